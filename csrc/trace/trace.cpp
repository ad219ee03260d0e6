#include "trace/trace.hpp"

#include <chrono>
#include <cstdio>
#include <utility>

namespace minitorch {

void Trace::record(Event event) {
  if (!enabled()) return;
  const std::lock_guard lock(mutex_);
  if (events_.size() >= capacity_) {
    ++dropped_;
    return;
  }
  events_.push_back(std::move(event));
}

std::vector<Trace::Event> Trace::events() const {
  const std::lock_guard lock(mutex_);
  return events_;
}

std::uint64_t Trace::dropped() const {
  const std::lock_guard lock(mutex_);
  return dropped_;
}

void Trace::clear() {
  const std::lock_guard lock(mutex_);
  events_.clear();
  dropped_ = 0;
}

std::int64_t Trace::now_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

std::string json_string(const std::string& text) {
  std::string quoted = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      quoted += '\\';
      quoted += c;
    } else if (static_cast<unsigned char>(c) < 0x20) {
      char escape[8];
      std::snprintf(escape, sizeof escape, "\\u%04x", static_cast<unsigned>(c));
      quoted += escape;
    } else {
      quoted += c;
    }
  }
  return quoted + '"';
}

}  // namespace minitorch
