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

// A status on the wire; where in the program the sender made the call may follow.
struct Status {
  Header header;
  std::int64_t age_ns = 0;     // since the sender got into this state
  std::uint32_t finished = 0;  // it has finished this and is in nothing of the group
  std::uint32_t needs_you = 0;
  // If it has finished: what it is in beside this group, and for how long (0: nothing).
  Header elsewhere = {};
  std::int64_t elsewhere_age_ns = 0;
};

void send_status(Transport& transport, int world_rank, const Status& status,
                 const std::string& origin = {}) {
  ControlMessage message;
  message.kind = ControlMessage::Kind::kStatus;
  message.text.assign(reinterpret_cast<const char*>(&status), sizeof status);
  message.text += origin;
  transport.send_control(world_rank, message);
}

}  // namespace

void Core::handle(const ControlMessage& message) {
  switch (message.kind) {
    case ControlMessage::Kind::kFailure:
      return fail_all(Error::kPlain, message.text);
    case ControlMessage::Kind::kMismatch:
      return fail_all(Error::kMismatch, message.text);
    case ControlMessage::Kind::kTimeout:
      return fail_all(Error::kTimeout, message.text);
    case ControlMessage::Kind::kGoodbye:
      return handle_goodbye(message);
    case ControlMessage::Kind::kStatus:
      return handle_status(message);
    case ControlMessage::Kind::kDispute:
      return handle_dispute(message);
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
      return fail_world(Error::kPlain, failed_here(text));
    }
    std::int64_t deadline = work->deadline_ns_.load();
    const std::int64_t soon = now_ns() + kGrace;
    if (deadline == 0 || soon < deadline) work->deadline_ns_.store(soon);
  }
}

void Core::handle_status(const ControlMessage& message) {
  Status status;
  if (message.text.size() < sizeof status) return;
  std::memcpy(&status, message.text.data(), sizeof status);
  const GroupStatePtr group = group_of(status.header.group);
  if (!group) return;
  const auto place = std::find(group->ranks.begin(), group->ranks.end(), message.from);
  if (place == group->ranks.end()) return;
  const std::int64_t now = now_ns();
  Seen& seen = group->seen[static_cast<std::size_t>(place - group->ranks.begin())];
  seen = {.header = status.header,
          .at_ns = now - status.age_ns,
          .finished = status.finished != 0,
          .elsewhere = status.elsewhere,
          .elsewhere_ns = status.elsewhere_age_ns == 0 ? 0 : now - status.elsewhere_age_ns,
          .needs_us = status.needs_you != 0};
  if (status.finished != 0) return;
  // It is stuck in a collective. Did we call another one by that number? Else say where we are.
  const Record::Call theirs{status.header, message.text.substr(sizeof status)};
  if (!disagree(*group, message.from, theirs)) answer_status(*group, message.from);
}

// Unless we are in the group's collective as well: what we have finished, and what else we are in.
void Core::answer_status(GroupState& group, int world_rank) {
  const std::int64_t now = now_ns();
  Status status{.header = group.finished.header};
  status.finished = 1;
  if (group.finished.at_ns == 0)
    status.header = Header{.magic = 0, .group = group.id};
  else
    status.age_ns = now - group.finished.at_ns;
  for (const WorkPtr& work : active_) {
    const Header& header = work->channel_.header();
    if (header.group == group.id && is_collective(header)) return;
    const std::vector<int> missing = missing_ranks(*work);
    const bool needed = std::find(missing.begin(), missing.end(), world_rank) != missing.end();
    if (status.elsewhere_age_ns != 0 && (!needed || status.needs_you != 0)) continue;
    status.elsewhere = header;
    status.elsewhere_age_ns = std::max<std::int64_t>(now - work->started_ns(), 1);
    status.needs_you = needed ? 1 : 0;
  }
  send_status(*transport_, world_rank, status);
}

void Core::report_stall(Work& work, std::int64_t now) {
  // Rarer and rarer, but once more shortly before the deadline.
  const std::int64_t deadline = work.deadline_ns_.load(std::memory_order_relaxed);
  const std::int64_t last_call = deadline - work.report_interval_ns_;
  work.next_report_ns_ = now + 2 * (now - work.moved_ns_);
  if (deadline != 0 && now < last_call)
    work.next_report_ns_ = std::min(work.next_report_ns_, last_call);
  const Header& header = work.channel_.header();
  if (!is_collective(header)) return;
  const Status status{.header = header, .age_ns = now - work.started_ns()};
  for (const int rank : work.group_->ranks)
    if (rank != transport_->rank()) send_status(*transport_, rank, status, work.origin_);
}

}  // namespace minitorch
