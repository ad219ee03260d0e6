// The promise of a collective. Pins what it works on until it is done, whoever drops it.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "collectives/channel.hpp"
#include "collectives/task.hpp"

namespace minitorch {

class Core;
class Group;
struct GroupState;
class Work;
using WorkPtr = std::shared_ptr<Work>;

// How one collective is to run, beside its data. All fields have defaults: `{.label = "bucket 3"}`.
struct Options {
  // Kept until the collective is done; released by whichever thread finishes it.
  std::shared_ptr<void> keep_alive = nullptr;
  // Named in errors and timelines, e.g. "bucket 3: fc1.weight, fc1.bias". What comes after a line
  // break says where in the program it was called, and is shown when ranks disagree.
  std::string label = {};
  // Multiplies the result, once, at the rank that completes a piece of it: 1/W makes a mean.
  double scale = 1.0;
  Algorithm algorithm = Algorithm::kAuto;
  // The collective whose continuation launches this one: it is numbered under its parent, so that
  // it cannot cross what other ranks launch next, and does not queue behind later collectives.
  WorkPtr parent = nullptr;
  // Run in the caller's thread if nothing else is going on (the low-latency path). Returns when the
  // collective is done, or after about 100 ms (then `wait` on).
  bool blocking = false;
};

class Work {
 public:
  Work(std::shared_ptr<Core> core, std::shared_ptr<GroupState> group, const Channel::Route& route,
       const Header& header, Options&& options);
  ~Work();
  Work(const Work&) = delete;
  Work& operator=(const Work&) = delete;

  // Blocks until done, failed, or `timeout` has passed (<= 0: the group's own deadline); a passed
  // timeout fails the engine. Throws the collective's error: CollectiveError or a subclass.
  void wait(std::chrono::nanoseconds timeout = std::chrono::nanoseconds(0));
  // Blocks for at most about `slice`; true if completed. Never throws, changes no deadline.
  bool wait_for(std::chrono::nanoseconds slice);
  void set_timeout(std::chrono::nanoseconds timeout);  // from now
  void throw_if_failed() const;
  // Called about ten times a second by every `wait`, which passes on what it throws: how Ctrl-C
  // gets through. The collective goes on.
  static void set_interrupt(void (*check)());

  bool is_completed() const;  // finished or failed
  bool failed() const;
  std::string error() const;  // empty: none

  // Clock (steady), 0: not yet.
  std::int64_t queued_ns() const { return queued_ns_.load(std::memory_order_relaxed); }
  std::int64_t started_ns() const { return started_ns_.load(std::memory_order_relaxed); }
  std::int64_t finished_ns() const { return finished_ns_.load(std::memory_order_relaxed); }

  std::size_t bytes() const { return bytes_; }  // size of the data, not of the traffic
  const std::string& label() const { return label_; }
  const std::string& origin() const { return origin_; }  // where it was called, if known
  // After a deadline: the world ranks that it was waiting for.
  const std::vector<int>& missing() const { return missing_; }
  std::string describe() const;
  // After a recv from any source: the group rank that sent.
  int source() const { return source_.load(std::memory_order_relaxed); }

 private:
  friend class Core;
  friend class Group;
  enum class State : int { kQueued, kRunning, kFinished, kFailed };
  enum class Error : int { kPlain, kMismatch, kTimeout };

  std::shared_ptr<Core> core_;
  std::shared_ptr<GroupState> group_;
  std::shared_ptr<void> keep_alive_;
  std::string label_, origin_;
  WorkPtr root_;                              // under which this is numbered, if any
  std::atomic<std::uint16_t> next_phase_{1};  // for those numbered under this
  std::uint32_t phases_ = 0;                  // digest of those, under the inbox lock
  std::size_t bytes_ = 0;
  int peer_ = -1;                                             // point-to-point: the other side
  std::int64_t next_report_ns_ = 0, report_interval_ns_ = 0;  // of being stuck
  std::int64_t disputed_ns_ = 0;  // since when its first message has been disputed
  std::string dispute_;           // what it then fails with, if the other rank does not answer
  std::vector<int> missing_;
  int lane_ = 0;  // of the timeline

  std::atomic<State> state_{State::kQueued};
  std::atomic<std::int64_t> queued_ns_{0}, started_ns_{0}, finished_ns_{0};
  std::atomic<std::int64_t> deadline_ns_{0};
  std::int64_t moved_ns_ = 0;  // when it last got further
  std::atomic<int> source_{-1};
  Error error_kind_ = Error::kPlain;
  std::string error_;

  Channel channel_;
  Task task_;  // after the channel: destroyed before it
};

}  // namespace minitorch
