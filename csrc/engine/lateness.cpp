// What the error of a passed deadline says: who is missing, what all ranks were last seen doing,
// and whether two of them have been waiting for each other.
#include <algorithm>
#include <sstream>

#include "engine/core.hpp"

namespace minitorch {
namespace {

constexpr std::int64_t kSecond = 1'000'000'000;

std::string seconds(std::int64_t ns) {
  std::ostringstream text;
  text.precision(ns < 10 * kSecond ? 2 : 1);
  text << std::fixed << static_cast<double>(ns) / 1e9 << " s";
  return text.str();
}

std::string list(const std::vector<int>& ranks) {
  std::string text;
  for (const int rank : ranks) text.append(text.empty() ? "" : ", ").append(std::to_string(rank));
  return text;
}

std::string called_at(const Work& work) {
  return work.origin().empty() ? "" : " Called at " + work.origin() + ".";
}

}  // namespace

// The world ranks that a work is waiting for.
std::vector<int> Core::missing_ranks(const Work& work) {
  std::vector<int> peers;
  if (const Condition* condition = work.task_.waiting_for()) condition->blame(peers);
  std::sort(peers.begin(), peers.end());
  peers.erase(std::unique(peers.begin(), peers.end()), peers.end());
  std::erase(peers, kAnySource);
  for (int& peer : peers) peer = work.group_->ranks[static_cast<std::size_t>(peer)];
  return peers;
}

// Did another rank of the group wait all the while for us, in something else that we have not
// called? Empty: none is known to.
std::string Core::deadlock_text(const Work& work, std::int64_t now) {
  const GroupState& group = *work.group_;
  for (std::size_t i = 0; i < group.ranks.size(); ++i) {
    const Seen& seen = group.seen[i];
    if (!seen.finished || seen.elsewhere_ns == 0 || !needs_us(seen)) continue;
    const std::string ours =
        " is running collective: " + describe(work) + " of group " + std::to_string(group.id);
    return "Detected mismatch between collectives on ranks. Rank " +
           std::to_string(transport_->rank()) + ours + " but Rank " +
           std::to_string(group.ranks[i]) + " is running collective: " + describe(seen.elsewhere) +
           " of group " + std::to_string(seen.elsewhere.group) +
           ". They have waited for each other, for " + seconds(now - work.started_ns()) + " and " +
           seconds(now - seen.elsewhere_ns) +
           ". Ranks that share several groups must issue their collectives, sends and receives in "
           "an order that fits together." +
           called_at(work);
  }
  return {};
}

bool Core::needs_us(const Seen& seen) {
  if (seen.needs_us || !is_collective(seen.elsewhere)) return seen.needs_us;
  const GroupStatePtr group = group_of(seen.elsewhere.group);
  if (!group || group->rank < 0) return false;
  const std::lock_guard lock(inbox_mutex_);
  return seen.elsewhere.issue >= group->next_issue;
}

std::string Core::timeout_text(const Work& work, std::int64_t now) const {
  const GroupState& group = *work.group_;
  const std::vector<int>& peers = work.missing_;
  const bool queued = work.started_ns() == 0;
  std::string text = "Rank " + std::to_string(transport_->rank()) + ": " + describe(work) +
                     " of group " + std::to_string(group.id) + " (ranks " + list(group.ranks) +
                     ") timed out after " +
                     seconds(now - (queued ? work.queued_ns() : work.started_ns()));
  if (queued) {
    text += " in the queue, behind earlier ones that did not finish.";
  } else if (peers.empty()) {
    text += ", waiting for any rank.";
  } else {
    text.append(", waiting for rank").append(peers.size() > 1 ? "s " : " ").append(list(peers)) +=
        ".";
  }
  text += " Last seen:";
  for (std::size_t i = 0; i < group.ranks.size(); ++i) {
    const int rank = group.ranks[i];
    if (rank == transport_->rank()) continue;
    const Seen& seen = group.seen[i];
    const Gone& gone = gone_[static_cast<std::size_t>(rank)];
    text += " rank " + std::to_string(rank);
    if (gone.at_ns != 0)
      text += " ended normally " + seconds(now - gone.at_ns) + " ago;";
    else if (seen.at_ns == 0)
      text += " not yet in this group;";
    else if (seen.header.magic != Header::kMagic)
      text += " has run nothing in this group yet;";
    else
      text += std::string(seen.finished ? " finished " : " in ") + describe(seen.header) + " " +
              seconds(now - seen.at_ns) + " ago;";
    if (gone.at_ns == 0 && seen.finished && seen.elsewhere_ns != 0) {
      text.back() = ',';
      text += " and has been in " + describe(seen.elsewhere) + " of group " +
              std::to_string(seen.elsewhere.group) + " for " + seconds(now - seen.elsewhere_ns) +
              ";";
    }
  }
  text.back() = '.';
  return text + called_at(work);
}

}  // namespace minitorch
