// Groups and numbers: which collective is which, on all ranks, and on which tag its messages
// travel.
#include <algorithm>
#include <stdexcept>

#include "engine/core.hpp"

namespace minitorch {

Channel::Route Core::route_of(GroupState& group) {
  return {transport_.get(), &buffers_, &tuning_, &group.ranks, &group.seen, group.rank};
}

GroupStatePtr Core::new_group(const std::vector<int>& ranks, std::chrono::nanoseconds timeout,
                              const std::uint32_t* id) {
  if (ranks.empty()) throw std::invalid_argument("new_group: a group needs at least one rank");
  std::vector<int> sorted = ranks;
  std::sort(sorted.begin(), sorted.end());
  if (sorted.front() < 0 || sorted.back() >= transport_->size())
    throw std::invalid_argument("new_group: ranks must be between 0 and " +
                                std::to_string(transport_->size() - 1));
  if (std::adjacent_find(sorted.begin(), sorted.end()) != sorted.end())
    throw std::invalid_argument("new_group: a rank appears twice");

  auto group = std::make_shared<GroupState>();
  group->ranks = ranks;
  const auto own = std::find(ranks.begin(), ranks.end(), transport_->rank());
  group->rank = own == ranks.end() ? -1 : static_cast<int>(own - ranks.begin());
  group->timeout_ns = timeout.count();
  group->seen.resize(ranks.size());

  const std::lock_guard lock(inbox_mutex_);
  throw_error();
  group->id = id != nullptr ? *id : next_group_++;
  // A group gets a range of tags. Few tags (MPI promises 32768): 64 ranges of 512; many: 512 of
  // 2^20.
  const std::int64_t all_tags = static_cast<std::int64_t>(transport_->max_tag()) + 1;
  const std::uint32_t ranges = all_tags >= (1 << 26) ? 512 : 64;
  const std::int64_t span = std::min<std::int64_t>(all_tags / ranges, 1 << 20);
  const std::uint32_t range = group->id % ranges;
  group->tags = static_cast<Tag>(span / 2);
  group->first_tag = static_cast<Tag>(range * span);
  std::erase_if(groups_, [](const auto& entry) { return entry.second.expired(); });
  for (const auto& [other_id, other] : groups_)
    if (other_id % ranges == range)
      throw std::runtime_error("new_group: group " + std::to_string(other_id) +
                               " has the same message tags as new group " +
                               std::to_string(group->id) + "; at most " + std::to_string(ranges) +
                               " groups may be alive at once");
  groups_[group->id] = group;
  return group;
}

void Core::issue(const WorkPtr& work, bool blocking) {
  GroupState& group = *work->group_;
  {
    const std::lock_guard lock(inbox_mutex_);
    throw_error();
    const Header& header = work->channel_.header();
    if (!is_collective(header)) {
      work->channel_.identify(header.issue, 0,
                              group.first_tag + group.tags + static_cast<Tag>(header.issue));
    } else {
      std::uint64_t issue;
      std::uint16_t phase = 0;
      if (work->root_) {
        issue = work->root_->channel_.header().issue;
        phase = work->root_->next_phase_++;
      } else {
        issue = group.next_issue++;
      }
      // Eight phases have tags of their own; more share them, one after the other.
      const auto slot = (issue * 8 + phase % 8) % static_cast<std::uint64_t>(group.tags);
      work->channel_.identify(issue, phase, group.first_tag + static_cast<Tag>(slot));
      // Phases have a history of their own, since ranks may get to them at different times.
      std::uint32_t& history = work->root_ ? work->root_->phases_ : group.history;
      work->channel_.remember(history);
      history = digest(header);
      group.record.add(header, work->origin_);
    }
    work->queued_ns_.store(now_ns(), std::memory_order_relaxed);
    inbox_.push_back(work);
    pending_.fetch_add(1);
    inbox_full_.store(true, std::memory_order_release);
  }
  if (blocking) {
    wait_for(*work, std::chrono::milliseconds(100));
  } else if (threaded_) {
    wake();
  } else if (std::unique_lock driving(drive_mutex_, std::try_to_lock); driving.owns_lock()) {
    drive_once();  // the first messages leave
  }
}

}  // namespace minitorch
