// What one training step took, each part measured by a clock of its own.
//
// Hidden and exposed communication are two measurements, not one and a difference: hidden is read
// off the collectives' own start and finish stamps, exposed is a stopwatch around the waits at the
// end of backward. That they add up to the communication is then a check, not a definition.
//
//   forward      backward (compute)                 waiting
//   |-----------|----------------------------------|---------|
//                     [ bucket 0 ]  [ bucket 1 ]  [ bucket 2 ]
//                      hidden        hidden        hid|exposed
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace minitorch {

using Nanoseconds = std::int64_t;  // on the steady clock; 0: has not happened

struct BucketTimes {
  Nanoseconds ready = 0;     // its last gradient arrived
  Nanoseconds launched = 0;  // handed to the engine (later than ready if an earlier bucket was not)
  Nanoseconds started = 0;   // first byte of the collective
  Nanoseconds finished = 0;  // last byte
  std::size_t bytes = 0;
};

struct StepTimes {
  Nanoseconds forward_start = 0;
  Nanoseconds forward_end = 0;
  Nanoseconds backward_start = 0;
  Nanoseconds compute_end = 0;  // backward's own work is over, waiting begins
  Nanoseconds handed_back = 0;  // the last averaged gradient is in its place
  Nanoseconds waited = 0;       // stopwatch: inside the waits for buckets
  std::vector<BucketTimes> buckets;
};

// How a step's communication lay relative to its computation. All in nanoseconds.
struct Overlap {
  Nanoseconds forward = 0;
  Nanoseconds backward = 0;       // compute of backward
  Nanoseconds communication = 0;  // time in which at least one bucket was on the wire
  Nanoseconds hidden = 0;         // the part of it that lay under backward's compute
  Nanoseconds exposed = 0;        // StepTimes::waited

  Overlap& operator+=(const Overlap& other);
  Overlap operator/(std::int64_t count) const;
};

Overlap measure_overlap(const StepTimes& step);

}  // namespace minitorch
