#include "reducer/clocks.hpp"

#include <algorithm>
#include <utility>

namespace minitorch {
namespace {

// Length of the union of intervals: buckets may be in flight at the same time, and time counts
// once.
Nanoseconds union_length(std::vector<std::pair<Nanoseconds, Nanoseconds>> intervals) {
  std::ranges::sort(intervals);
  Nanoseconds total = 0;
  Nanoseconds covered_to = 0;
  for (const auto& [begin, end] : intervals) {
    const Nanoseconds from = std::max(begin, covered_to);
    if (end <= from) continue;
    total += end - from;
    covered_to = end;
  }
  return total;
}

Nanoseconds between(Nanoseconds begin, Nanoseconds end) {
  return begin == 0 || end == 0 ? 0 : std::max<Nanoseconds>(end - begin, 0);
}

}  // namespace

Overlap& Overlap::operator+=(const Overlap& other) {
  forward += other.forward;
  backward += other.backward;
  communication += other.communication;
  hidden += other.hidden;
  exposed += other.exposed;
  return *this;
}

Overlap Overlap::operator/(std::int64_t count) const {
  return {forward / count, backward / count, communication / count, hidden / count,
          exposed / count};
}

Overlap measure_overlap(const StepTimes& step) {
  std::vector<std::pair<Nanoseconds, Nanoseconds>> whole;
  std::vector<std::pair<Nanoseconds, Nanoseconds>> under_compute;
  for (const BucketTimes& bucket : step.buckets) {
    if (bucket.started == 0 || bucket.finished == 0) continue;
    whole.emplace_back(bucket.started, bucket.finished);
    under_compute.emplace_back(bucket.started, std::min(bucket.finished, step.compute_end));
  }
  Overlap overlap;
  overlap.forward = between(step.forward_start, step.forward_end);
  overlap.backward = between(step.backward_start, step.compute_end);
  overlap.communication = union_length(std::move(whole));
  overlap.hidden = union_length(std::move(under_compute));
  overlap.exposed = step.waited;
  return overlap;
}

}  // namespace minitorch
