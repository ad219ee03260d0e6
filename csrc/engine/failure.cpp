// Nothing hangs: deadlines, failure, goodbye, and the end.
//
// Whoever sees a failure, a mismatch or a passed deadline tells all ranks of the world over the
// control channel and fails; whoever is told fails too (control.cpp).
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

}  // namespace

std::string describe(const Work& work) {
  return work.describe();
}

// --- the public calls ----------------------------------------------------------------------------

namespace {

// The drive lock for a caller who only needs it for a moment: drivers make way.
class Moment {
 public:
  Moment(std::mutex& mutex, std::atomic<int>& requests, Transport& transport)
      : lock_(mutex, std::defer_lock) {
    requests.fetch_add(1);
    transport.wake();
    lock_.lock();
    requests.fetch_sub(1);
  }

 private:
  std::unique_lock<std::mutex> lock_;
};

}  // namespace

void Core::fail(const std::string& message) {
  const Moment moment(drive_mutex_, drive_requests_, *transport_);
  tell_all(ControlMessage::Kind::kFailure, message);
  fail_all(Error::kPlain, "rank " + std::to_string(transport_->rank()) + " failed: " + message);
}

void Core::goodbye() {
  std::string issues;
  {
    const std::lock_guard lock(inbox_mutex_);
    for (const auto& [id, weak] : groups_)
      if (const auto group = weak.lock(); group && group->rank >= 0)
        issues += std::to_string(id) + ":" + std::to_string(group->next_issue) + " ";
  }
  const Moment moment(drive_mutex_, drive_requests_, *transport_);
  tell_all(ControlMessage::Kind::kGoodbye, issues);
}

void Core::shutdown() {
  {
    const std::lock_guard lock(inbox_mutex_);
    if (stopped_) return;
    stopped_ = true;
    stopping_.store(true);
  }
  inbox_bell_.notify_all();
  transport_->wake();
  if (thread_.joinable()) thread_.join();
  const Moment moment(drive_mutex_, drive_requests_, *transport_);
  if (pending_.load() != 0) fail_all(Error::kPlain, "the engine was shut down");
  if (pinned_.empty()) transport_->close();
}

std::string Core::error() {
  const std::lock_guard lock(inbox_mutex_);
  return error_;
}

void Core::throw_error() {
  if (failed_) {
    switch (error_kind_) {
      case Error::kMismatch:
        throw CollectiveMismatch(error_);
      case Error::kTimeout:
        throw CollectiveTimeout(error_);
      case Error::kPlain:
        throw CollectiveError(error_);
    }
  }
  if (stopped_) throw CollectiveError("the engine was shut down");
}

// --- looking around ------------------------------------------------------------------------------

void Core::look_around(std::int64_t now) {
  while (const auto message = transport_->poll_control()) handle(*message);
  if (impatient_.load(std::memory_order_relaxed) && expire_queued(now)) return;
  // By index, and to the first failure only: it leaves nothing active.
  for (std::size_t i = 0; i < active_.size(); ++i) {
    const WorkPtr work = active_[i];
    if (work->moved_ns_ == 0) work->moved_ns_ = now;
    const std::int64_t deadline = work->deadline_ns_.load(std::memory_order_relaxed);
    if (deadline != 0 && now >= deadline) {
      expire(*work, now);
      return;
    }
    const std::int64_t started = work->started_ns();
    const std::int64_t patience =
        deadline == 0 ? kSecond : std::min(kSecond, (deadline - started) / 4);
    if (!work->told_status_ && now - work->moved_ns_ > patience) report_stall(*work, now);
  }
}

void Core::expire(const Work& work, std::int64_t now) {
  const std::string text = timeout_text(work, now);
  tell_all(ControlMessage::Kind::kTimeout, text);
  fail_all(Error::kTimeout, text);
}

// What still queues has no deadline of the group's yet, but a caller may be waiting for it with one
// of his own.
bool Core::expire_queued(std::int64_t now) {
  std::vector<GroupStatePtr> groups;
  {
    const std::lock_guard lock(inbox_mutex_);
    for (const auto& [id, weak] : groups_)
      if (auto group = weak.lock()) groups.push_back(std::move(group));
  }
  for (const auto& group : groups) {
    for (const auto* queue : {&group->queue, &group->receives}) {
      for (const WorkPtr& work : *queue) {
        const std::int64_t deadline = work->deadline_ns_.load(std::memory_order_relaxed);
        if (deadline == 0 || now < deadline) continue;
        const WorkPtr late = work;  // fail_all empties the queue
        expire(*late, now);
        return true;
      }
    }
  }
  return false;
}

std::string Core::timeout_text(const Work& work, std::int64_t now) const {
  const GroupState& group = *work.group_;
  std::vector<int> peers;
  if (const Condition* condition = work.task_.waiting_for()) condition->blame(peers);
  std::sort(peers.begin(), peers.end());
  peers.erase(std::unique(peers.begin(), peers.end()), peers.end());
  std::erase(peers, kAnySource);
  for (int& peer : peers) peer = group.ranks[static_cast<std::size_t>(peer)];

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
  }
  text.back() = '.';
  return text;
}

// --- the end -------------------------------------------------------------------------------------

void Core::tell_all(ControlMessage::Kind kind, const std::string& text) {
  ControlMessage message;
  message.kind = kind;
  message.from = transport_->rank();
  message.text = text.substr(0, kMaxControlText);
  for (int rank = 0; rank < transport_->size(); ++rank) {
    if (rank == transport_->rank()) continue;
    try {
      transport_->send_control(rank, message);
    } catch (const std::exception&) {
      // The transport itself may be what failed. The others then have their deadlines.
    }
  }
}

void Core::fail_all(Error kind, const std::string& text) {
  std::vector<WorkPtr> works;
  {
    const std::lock_guard lock(inbox_mutex_);
    if (!failed_ && !stopped_) {  // the first error is the one that counts
      failed_ = true;
      error_kind_ = kind;
      error_ = text;
    }
    works.swap(inbox_);
    inbox_full_.store(false);
  }
  works.insert(works.end(), taken_.begin(), taken_.end());
  for (const WorkPtr& work : active_) {
    GroupState& group = *work->group_;
    works.insert(works.end(), group.queue.begin(), group.queue.end());
    works.insert(works.end(), group.receives.begin(), group.receives.end());
    group.queue.clear();
    group.receives.clear();
    group.active = 0;
    works.push_back(work);
  }
  active_.clear();
  for (const WorkPtr& work : works)
    if (!work->is_completed()) fail_work(work, kind, text);
  lanes_ = 0;
  notify_waiters();
}

void Core::fail_work(const WorkPtr& work, Error kind, const std::string& text) {
  work->error_kind_ = kind;
  work->error_ = text;
  work->finished_ns_.store(now_ns(), std::memory_order_relaxed);
  const bool in_flight = work->state_.load() == Work::State::kRunning;
  if (in_flight && !transport_->withdraws()) {
    pinned_.push_back(work);
  } else {
    work->task_.reset();
    work->keep_alive_.reset();
  }
  work->state_.store(Work::State::kFailed);
  pending_.fetch_sub(1);
}

}  // namespace minitorch
