// How to wait without a wake-up call: look often at first, then rarer and rarer.
//
// MPI can only be polled. Polling all the time is fastest while every rank has a core of its own,
// and ruinous once there are more ranks than cores, or a computation beside it: so a short spin
// (most answers come within microseconds), then polling with yields (lets other threads run, costs
// nothing if there are none), then sleeps that grow.
#pragma once

#include <algorithm>
#include <chrono>
#include <thread>

namespace minitorch {

class Backoff {
 public:
  explicit Backoff(std::chrono::nanoseconds longest) : longest_(longest) {}

  void reset() {
    polls_ = 0;
    sleep_ = kFirstSleep;
  }

  // After a fruitless poll: false if the caller should now sleep for `next_sleep()`.
  bool spin() {
    ++polls_;
    if (polls_ < kSpins) return true;
    if (polls_ < kSpins + kYields) {
      std::this_thread::yield();
      return true;
    }
    return false;
  }

  std::chrono::nanoseconds next_sleep() {
    const auto sleep = std::min(sleep_, longest_);
    sleep_ = sleep * 2;
    return sleep;
  }

 private:
  static constexpr int kSpins = 200;
  static constexpr int kYields = 200;
  static constexpr std::chrono::nanoseconds kFirstSleep{20'000};

  const std::chrono::nanoseconds longest_;
  int polls_ = 0;
  std::chrono::nanoseconds sleep_ = kFirstSleep;
};

}  // namespace minitorch
