// How a collective fails. After any of these the engine stays failed: ranks can no longer agree.
#pragma once

#include <stdexcept>

namespace minitorch {

struct CollectiveError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// Two ranks ran different collectives, or the same one on different sizes or dtypes.
struct CollectiveMismatch : CollectiveError {
  using CollectiveError::CollectiveError;
};

// A peer did not come in time.
struct CollectiveTimeout : CollectiveError {
  using CollectiveError::CollectiveError;
};

}  // namespace minitorch
