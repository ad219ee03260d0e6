// What happened when: a bounded, thread-safe list of events, written out by Python as a timeline.
//
// One recorder per rank. Off by default; while off, asking `enabled()` is all that an event costs.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <string>
#include <vector>

namespace minitorch {

class Trace {
 public:
  struct Event {
    std::string name;
    std::string category;  // "compute", "communication", ...
    std::string track;     // the line of the timeline it is drawn on
    std::int64_t begin_ns = 0;
    std::int64_t end_ns = 0;  // equal to begin_ns: an instant
    std::string args;         // a JSON object, or empty
  };

  // Holds at most `capacity` events; later ones are counted and dropped.
  explicit Trace(std::size_t capacity = std::size_t{1} << 20) : capacity_(capacity) {}

  void enable() { enabled_.store(true, std::memory_order_relaxed); }
  void disable() { enabled_.store(false, std::memory_order_relaxed); }
  bool enabled() const { return enabled_.load(std::memory_order_relaxed); }

  // Does nothing while disabled.
  void record(Event event);
  std::vector<Event> events() const;
  std::uint64_t dropped() const;
  void clear();

  // The clock of all events: nanoseconds of std::chrono::steady_clock, the same for all processes
  // of one machine (Python's time.monotonic_ns).
  static std::int64_t now_ns();

 private:
  const std::size_t capacity_;
  std::atomic<bool> enabled_{false};
  mutable std::mutex mutex_;
  std::vector<Event> events_;
  std::uint64_t dropped_ = 0;
};

// Quotes and escapes text for the `args` of an event.
std::string json_string(const std::string& text);

}  // namespace minitorch
