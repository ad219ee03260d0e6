// What the ranks tell each other beside the data: failures, goodbyes, and what they are stuck in.
//
// A rank that is stuck for a second tells its group what it is in (status). So ranks that run
// different collectives find out even if no data flow between them, and the error of a deadline can
// say what everyone is doing: a rank that has not come that far answers where it is.
#include <algorithm>
#include <cstring>
#include <sstream>

#include "engine/core.hpp"

namespace minitorch {
namespace {

// After a peer's goodbye, for messages it may have sent before.
constexpr std::int64_t kGrace = 1'000'000'000;

// A status on the wire.
struct Status {
  Header header;
  std::int64_t age_ns;     // since the sender got into this state
  std::uint32_t finished;  // it has finished this and is in nothing of the group
  std::uint32_t unused = 0;
};

}  // namespace

void Core::handle(const ControlMessage& message) {
  const std::string from = "rank " + std::to_string(message.from);
  switch (message.kind) {
    case ControlMessage::Kind::kFailure:
      return fail_all(Error::kPlain, from + " failed: " + message.text);
    case ControlMessage::Kind::kMismatch:
      return fail_all(Error::kMismatch, message.text);
    case ControlMessage::Kind::kTimeout:
      return fail_all(Error::kTimeout, message.text);
    case ControlMessage::Kind::kGoodbye:
      return handle_goodbye(message);
    case ControlMessage::Kind::kStatus:
      return handle_status(message);
  }
}

void Core::handle_goodbye(const ControlMessage& message) {
  Gone& gone = gone_[static_cast<std::size_t>(message.from)];
  gone.at_ns = now_ns();
  std::istringstream issues(message.text);
  std::uint32_t id;
  std::uint64_t issue;
  char colon;
  while (issues >> id >> colon >> issue) gone.issues[id] = issue;
  const std::vector<WorkPtr> active = active_;
  for (const WorkPtr& work : active)
    if (!work->failed()) check_gone(work);
}

// Work that needs a rank which has ended: fails if that rank never took part, and gets only a
// moment more if it did, or if that cannot be known.
void Core::check_gone(const WorkPtr& work) {
  const GroupState& group = *work->group_;
  const Header& header = work->channel_.header();
  for (std::size_t i = 0; i < group.ranks.size(); ++i) {
    const int rank = group.ranks[i];
    const Gone& gone = gone_[static_cast<std::size_t>(rank)];
    if (gone.at_ns == 0) continue;
    if (!is_collective(header) && work->peer_ != static_cast<int>(i)) continue;
    const auto known = gone.issues.find(group.id);
    if (is_collective(header) && known != gone.issues.end() && header.issue >= known->second) {
      const std::string text = describe(*work) + " of group " + std::to_string(group.id) +
                               " needs rank " + std::to_string(rank) +
                               ", which ended normally after " + std::to_string(known->second) +
                               " collectives of this group";
      tell_all(ControlMessage::Kind::kFailure, text);
      return fail_all(Error::kPlain,
                      "rank " + std::to_string(transport_->rank()) + " failed: " + text);
    }
    std::int64_t deadline = work->deadline_ns_.load();
    const std::int64_t soon = now_ns() + kGrace;
    if (deadline == 0 || soon < deadline) work->deadline_ns_.store(soon);
  }
}

void Core::handle_status(const ControlMessage& message) {
  Status status;
  if (message.text.size() != sizeof status) return;
  std::memcpy(&status, message.text.data(), sizeof status);
  GroupStatePtr group;
  {
    const std::lock_guard lock(inbox_mutex_);
    const auto known = groups_.find(status.header.group);
    if (known != groups_.end()) group = known->second.lock();
  }
  if (!group) return;
  const auto place = std::find(group->ranks.begin(), group->ranks.end(), message.from);
  if (place == group->ranks.end()) return;
  Seen& seen = group->seen[static_cast<std::size_t>(place - group->ranks.begin())];
  seen = {status.header, now_ns() - status.age_ns, status.finished != 0};
  if (status.finished != 0) return;

  // Are we in the same collective?
  const Header& theirs = status.header;
  const auto same_number = [&](const WorkPtr& work) {
    const Header& ours = work->channel_.header();
    return work->group_ == group && is_collective(ours) && ours.issue == theirs.issue &&
           ours.phase == theirs.phase;
  };
  const auto found = std::find_if(active_.begin(), active_.end(), same_number);
  if (found != active_.end()) {
    const Header& ours = (*found)->channel_.header();
    if (ours == theirs) return;
    const std::string text = mismatch(transport_->rank(), ours, message.from, theirs);
    tell_all(ControlMessage::Kind::kMismatch, text);
    return fail_all(Error::kMismatch, text);
  }
  // No: if we have not got to it, say where we are.
  std::uint64_t next_issue;
  {
    const std::lock_guard lock(inbox_mutex_);
    next_issue = group->next_issue;
  }
  if (theirs.issue < next_issue) return;
  Header last = group->finished.header;
  if (group->finished.at_ns == 0) last.magic = 0;
  send_status(message.from, last, true,
              group->finished.at_ns == 0 ? 0 : now_ns() - group->finished.at_ns);
}

void Core::report_stall(Work& work, std::int64_t now) {
  work.told_status_ = true;
  const Header& header = work.channel_.header();
  if (!is_collective(header)) return;
  for (const int rank : work.group_->ranks)
    if (rank != transport_->rank()) send_status(rank, header, false, now - work.started_ns());
}

void Core::send_status(int world_rank, const Header& header, bool finished, std::int64_t age) {
  const Status status{header, age, finished ? 1U : 0U};
  ControlMessage message;
  message.kind = ControlMessage::Kind::kStatus;
  message.text.assign(reinterpret_cast<const char*>(&status), sizeof status);
  transport_->send_control(world_rank, message);
}

}  // namespace minitorch
