// What the engine writes into the trace: one event per collective, from its start to its end.
#include <stdexcept>

#include "engine/core.hpp"

namespace minitorch {

void Core::record(const Work& work) {
  if (work.lane_ < 64) lanes_ &= ~(std::uint64_t{1} << work.lane_);
  Trace& trace = *trace_.load();
  if (!trace.enabled()) return;
  const Header& header = work.channel_.header();
  const Traffic& traffic = work.channel_.traffic();
  std::string args = "{\"operation\": ";
  args += json_string(name_of(header.operation));
  const auto add = [&](const char* name, auto value) {
    args.append(", \"").append(name).append("\": ").append(std::to_string(value));
  };
  add("group", header.group);
  add("issue", header.issue);
  add("phase", header.phase);
  add("bytes", work.bytes_);
  add("bytes_sent", traffic.bytes_sent);
  add("messages_sent", traffic.messages_sent);
  add("queued_ns", work.queued_ns());
  args += "}";
  std::string track = "communication";
  if (work.lane_ > 0) track.append(" ").append(std::to_string(work.lane_ + 1));
  trace.record({work.label_.empty() ? name_of(header.operation) : work.label_, "communication",
                std::move(track), work.started_ns(), work.finished_ns(), std::move(args)});
}

std::shared_ptr<Trace> Core::shared_trace() {
  const std::lock_guard lock(inbox_mutex_);
  return traces_.back();
}

void Core::set_trace(std::shared_ptr<Trace> trace) {
  if (!trace) throw std::invalid_argument("set_trace: no trace");
  const std::lock_guard lock(inbox_mutex_);
  traces_.push_back(std::move(trace));
  trace_.store(traces_.back().get());
}

}  // namespace minitorch
