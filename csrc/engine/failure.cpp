// Nothing hangs: deadlines, failure, goodbye, and the end.
//
// Whoever sees a failure, a mismatch or a passed deadline tells all ranks of the world over the
// control channel and fails; whoever is told fails too (control.cpp).
#include <algorithm>

#include "engine/core.hpp"

namespace minitorch {
namespace {

constexpr std::int64_t kSecond = 1'000'000'000;
constexpr const char* kShutDown =
    "the engine was shut down: by destroy_process_group, or as the program ends. Whatever uses its "
    "groups, like DistributedDataParallel, is to be built again after init_process_group";

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
  Error kind = Error::kPlain;
  std::string text = failed_here(message);
  {
    // What this rank fails with now is most often the error that it was told. The others are to
    // raise that one, whoever's message reaches them first.
    const std::lock_guard lock(inbox_mutex_);
    if (failed_) {
      kind = error_kind_;
      text = error_;
    }
  }
  fail_world(kind, text);
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
  if (pending_.load() != 0) fail_all(Error::kPlain, kShutDown);
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
  if (stopped_) throw CollectiveError(kShutDown);
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
    if (work->disputed_ns_ != 0 && now - work->disputed_ns_ > kSecond) {
      const std::string text = work->dispute_;  // the other rank does not answer
      fail_world(Error::kMismatch, text);
      return;
    }
    if (work->next_report_ns_ == 0) {
      work->report_interval_ns_ =
          deadline == 0 ? kSecond : std::min(kSecond, (deadline - work->started_ns()) / 4);
      work->next_report_ns_ = work->moved_ns_ + work->report_interval_ns_;
    }
    if (now > work->next_report_ns_ && now - work->moved_ns_ > work->report_interval_ns_)
      report_stall(*work, now);
  }
}

void Core::expire(Work& work, std::int64_t now) {
  work.missing_ = missing_ranks(work);
  const std::string deadlock = deadlock_text(work, now);
  if (deadlock.empty())
    fail_world(Error::kTimeout, timeout_text(work, now));
  else
    fail_world(Error::kMismatch, deadlock);
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

// --- the end -------------------------------------------------------------------------------------

std::string Core::failed_here(const std::string& why) const {
  return "rank " + std::to_string(transport_->rank()) + " failed: " + why;
}

void Core::fail_world(Error kind, const std::string& text) {
  switch (kind) {
    case Error::kMismatch:
      tell_all(ControlMessage::Kind::kMismatch, text);
      break;
    case Error::kTimeout:
      tell_all(ControlMessage::Kind::kTimeout, text);
      break;
    case Error::kPlain:
      tell_all(ControlMessage::Kind::kFailure, text);
      break;
  }
  fail_all(kind, text);
}

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
