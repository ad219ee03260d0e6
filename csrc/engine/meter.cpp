#include "engine/meter.hpp"

namespace minitorch {

void Meter::add(Operation operation, const Traffic& traffic) {
  const std::lock_guard lock(mutex_);
  Usage& usage = table_[static_cast<std::size_t>(operation)];
  usage.calls += 1;
  usage.traffic.messages_sent += traffic.messages_sent;
  usage.traffic.bytes_sent += traffic.bytes_sent;
  usage.traffic.bytes_received += traffic.bytes_received;
  usage.traffic.header_bytes += traffic.header_bytes;
}

Meter::Table Meter::read() const {
  const std::lock_guard lock(mutex_);
  return table_;
}

void Meter::reset() {
  const std::lock_guard lock(mutex_);
  table_ = {};
}

}  // namespace minitorch
