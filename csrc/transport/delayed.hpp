// A wrapper for tests: every message is late by a random time, so that runs explore many
// interleavings.
//
// The order of messages to one peer is kept, as every transport keeps it; messages to different
// peers overtake each other.
#pragma once

#include "transport/held.hpp"

namespace minitorch {

std::shared_ptr<Transport> delayed(std::shared_ptr<Transport> inner, std::uint64_t seed,
                                   double max_delay_seconds);

}  // namespace minitorch
