// A wrapper that gives any transport a bandwidth and a latency: an EMULATED link.
//
// Full duplex; each rank has one outgoing wire that carries one message at a time. A message of b
// bytes that is sent at time t is delivered at
//     max(t, wire free) + b / bandwidth + latency,
// and the wire is free again after the first two terms. Real networks have contention at the
// receiver, packets and jitter; this one has not.
#pragma once

#include "transport/held.hpp"

namespace minitorch {

// Throws std::invalid_argument unless bytes_per_second > 0 and latency_seconds >= 0.
std::shared_ptr<Transport> shaped_link(std::shared_ptr<Transport> inner, double bytes_per_second,
                                       double latency_seconds);

}  // namespace minitorch
