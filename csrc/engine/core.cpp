// The loop: from the inbox into the queues, from the queues to what is active, and that forward.
#include "engine/core.hpp"

#include <algorithm>
#include <bit>
#include <csignal>
#include <stdexcept>

#include "engine/backoff.hpp"

#if defined(__linux__)
#include <pthread.h>
#include <sys/prctl.h>
#endif

namespace minitorch {
namespace {

// How long an idle engine leaves control messages unread.
constexpr std::chrono::milliseconds kRest{50};

}  // namespace

std::int64_t now_ns() {
  return Trace::now_ns();
}

Core::Core(std::shared_ptr<Transport> transport, bool threaded, const Tuning& tuning)
    : transport_(std::move(transport)),
      threaded_(threaded && transport_ && transport_->any_thread()),
      tuning_(tuning) {
  if (!transport_) throw std::invalid_argument("Engine: no transport");
  gone_.resize(static_cast<std::size_t>(transport_->size()));
}

void Core::start() {
  if (!threaded_) return;
#if defined(__linux__)
  // Signals are for Python's main thread.
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
#endif
  thread_ = std::thread([this] { run_thread(); });
#if defined(__linux__)
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
#endif
}

void Core::run_thread() {
#if defined(__linux__)
  pthread_setname_np(pthread_self(), "minitorch-comm");
  prctl(PR_SET_TIMERSLACK, 1000UL);  // sleeps of microseconds are to be that long, not 50 more
#endif
  while (!stopping_.load()) {
    {
      std::unique_lock lock(inbox_mutex_);
      inbox_bell_.wait_for(lock, kRest, [this] {
        return stopping_.load() || !inbox_.empty() || pending_.load() != 0;
      });
    }
    while (drive_requests_.load() > 0) std::this_thread::yield();
    const std::lock_guard driving(drive_mutex_);
    drive([this] { return pending_.load() == 0 || stopping_.load(); }, 0);
  }
}

// Advances everything until `done`, or someone else wants the lock, or `until_ns` (0: no limit) has
// come. The drive lock is held.
template <class Done>
void Core::drive(Done done, std::int64_t until_ns) {
  Backoff backoff(transport_->longest_idle());
  try {
    for (;;) {
      const bool moved = pass();
      if (done()) break;
      if (moved) {
        backoff.reset();
      } else if (drive_requests_.load(std::memory_order_relaxed) > 0) {
        break;
      } else if (!backoff.spin()) {
        const std::int64_t now = now_ns();
        look_around(now);
        if (done() || (until_ns != 0 && now >= until_ns)) break;
        transport_->idle(backoff.next_sleep());
      }
    }
    if (pending_.load() == 0) look_around(now_ns());
  } catch (const std::exception& error) {  // the transport itself, beside any collective
    fail_world(Error::kPlain, failed_here(error.what()));
  }
}

void Core::drive_once() {
  drive([] { return true; }, 0);
}

bool Core::pass() {
  if (inbox_full_.load(std::memory_order_acquire)) drain_inbox();
  if (++passes_ % 256 == 0) look_around(now_ns());
  bool moved = false;
  for (std::size_t i = 0; i < active_.size();) {
    const WorkPtr work = active_[i];
    moved = advance(work) || moved;
    // Finished work was erased, and after a failure nothing is left.
    if (i < active_.size() && active_[i] == work) ++i;
  }
  return moved;
}

void Core::drain_inbox() {
  {
    const std::lock_guard lock(inbox_mutex_);
    taken_.swap(inbox_);
    inbox_full_.store(false, std::memory_order_relaxed);
  }
  for (const WorkPtr& work : taken_) {
    if (work->is_completed()) continue;  // one before it brought everything down
    GroupState& group = *work->group_;
    const Header& header = work->channel_.header();
    if (header.operation == Operation::kRecv) {
      group.receives.push_back(work);
      activate_receives(group);
    } else if (!is_collective(header) || work->root_) {
      activate(work);
    } else {
      group.queue.push_back(work);
      activate_collectives(group);
    }
  }
  taken_.clear();
}

void Core::activate_collectives(GroupState& group) {
  while (!group.queue.empty() && group.active < std::max<std::size_t>(tuning_.window, 1)) {
    const WorkPtr work = group.queue.front();
    group.queue.pop_front();
    ++group.active;
    activate(work);
  }
}

// A receive consists of up to two messages on one tag, so it may start only when no earlier one
// could take a message of its own.
void Core::activate_receives(GroupState& group) {
  const auto clash = [](const Work& a, const Work& b) {
    return a.group_ == b.group_ && a.channel_.header().operation == Operation::kRecv &&
           a.channel_.header().issue == b.channel_.header().issue &&
           (a.peer_ == b.peer_ || a.peer_ == kAnySource || b.peer_ == kAnySource);
  };
  for (auto next = group.receives.begin(); next != group.receives.end();) {
    const WorkPtr work = *next;
    const auto blocks = [&](const WorkPtr& other) { return clash(*other, *work); };
    if (std::any_of(active_.begin(), active_.end(), blocks) ||
        std::any_of(group.receives.begin(), next, blocks)) {
      ++next;
    } else {
      next = group.receives.erase(next);
      activate(work);
    }
  }
}

void Core::activate(const WorkPtr& work) {
  const std::int64_t now = now_ns();
  work->started_ns_.store(now, std::memory_order_relaxed);
  work->moved_ns_ = now;
  std::int64_t unset = 0;  // unless wait() already set one
  const std::int64_t timeout = work->group_->timeout_ns.load(std::memory_order_relaxed);
  if (timeout > 0) work->deadline_ns_.compare_exchange_strong(unset, now + timeout);
  // Collectives that overlap are drawn on lanes of their own.
  work->lane_ = std::countr_one(lanes_);
  if (work->lane_ < 64) lanes_ |= std::uint64_t{1} << work->lane_;
  work->state_.store(Work::State::kRunning, std::memory_order_release);
  active_.push_back(work);
  check_gone(work);
}

bool Core::advance(const WorkPtr& work) {
  if (work->disputed_ns_ != 0) return false;
  try {
    switch (work->task_.advance()) {
      case Task::Progress::kBlocked:
        return false;
      case Task::Progress::kMoved:
        work->moved_ns_ = 0;  // look_around puts the time in: no clock is read here
        return true;
      case Task::Progress::kDone:
        finish(work);
        return true;
    }
  } catch (const HeaderMismatch& error) {
    const bool earlier = error.ours.history != error.theirs.history;
    if (!is_collective(error.ours) || (!earlier && work->origin_.empty()))
      fail_world(Error::kMismatch, error.what());
    else
      dispute(*work, error);
  } catch (const CollectiveMismatch& error) {
    fail_world(Error::kMismatch, error.what());
  } catch (const std::exception& error) {
    fail_world(Error::kPlain, failed_here(describe(*work) + ": " + error.what()));
  }
  return true;
}

void Core::finish(const WorkPtr& work) {
  GroupState& group = *work->group_;
  const Header header = work->channel_.header();
  work->task_.reset();
  const std::int64_t now = now_ns();
  work->finished_ns_.store(now, std::memory_order_relaxed);
  meter_.add(header.operation, work->channel_.traffic());
  group.meter.add(header.operation, work->channel_.traffic());
  record(*work);
  work->keep_alive_.reset();
  active_.erase(std::find(active_.begin(), active_.end(), work));
  work->state_.store(Work::State::kFinished);
  pending_.fetch_sub(1);
  notify_waiters();
  if (header.operation == Operation::kRecv) {
    activate_receives(group);
  } else if (is_collective(header)) {
    group.finished = {header, now, true};
    if (!work->root_) {
      --group.active;
      activate_collectives(group);
    }
  }
}

// State before waiters_ here, waiters_ before state in wait_for, all sequentially consistent: a
// waiter either sees that the work is done or is seen.
void Core::notify_waiters() {
  if (waiters_.load() == 0) return;
  const std::lock_guard lock(done_mutex_);
  done_bell_.notify_all();
}

bool Core::wait_for(Work& work, std::chrono::nanoseconds slice) {
  if (work.is_completed()) return true;
  const std::int64_t until = now_ns() + slice.count();
  while (!work.is_completed() && now_ns() < until) {
    if (std::unique_lock driving(drive_mutex_, std::try_to_lock); driving.owns_lock()) {
      drive([&] { return work.is_completed(); }, until);
      driving.unlock();
      while (drive_requests_.load() > 0) std::this_thread::yield();
      continue;
    }
    if (threaded_) wake();  // the inbox may be full
    // Without an engine thread, another waiter drives, and may stop before this work is done.
    const std::int64_t limit = threaded_ ? until : std::min(until, now_ns() + 1'000'000);
    std::unique_lock lock(done_mutex_);
    waiters_.fetch_add(1);
    done_bell_.wait_for(lock, std::chrono::nanoseconds(std::max<std::int64_t>(limit - now_ns(), 0)),
                        [&] { return work.is_completed(); });
    waiters_.fetch_sub(1);
  }
  if (threaded_ && pending_.load() != 0) wake();  // what is left is the engine thread's
  return work.is_completed();
}

void Core::wake() {
  if (!threaded_) return;
  {
    const std::lock_guard lock(inbox_mutex_);
  }
  inbox_bell_.notify_one();
  transport_->wake();
}

void Core::poke() {
  impatient_.store(true);
  wake();
}

}  // namespace minitorch
