// The seam between the reducer and what is done with a full bucket.
//
// The reducer decides *when* a bucket goes out; a CommunicationHook decides *how*. The default sums
// it over the group (all_reduce_hook.hpp); a hook registered from Python (bindings/reducer.cpp)
// compresses, quantizes, skips.
#pragma once

#include <functional>
#include <memory>

#include "reducer/bucket.hpp"
#include "reducer/clocks.hpp"

namespace minitorch {

// Called now and then during a long wait; may throw to end it (Ctrl-C in Python).
using WhileWaiting = std::function<void()>;

// A bucket on its way. After wait() its memory holds what every rank is to see.
class Pending {
 public:
  virtual ~Pending() = default;
  virtual void wait(const WhileWaiting& while_waiting) = 0;  // rethrows what went wrong
  virtual Nanoseconds started() const = 0;  // valid after wait(); 0 if nothing was sent
  virtual Nanoseconds finished() const = 0;
};

class CommunicationHook {
 public:
  virtual ~CommunicationHook() = default;
  // Whether gradients are to enter the bucket multiplied by 1/W. PyTorch's rule: the default
  // all-reduce gets them divided, a user's hook gets the raw local gradient.
  virtual bool wants_division() const = 0;
  virtual std::unique_ptr<Pending> launch(const Bucket& bucket) = 0;
};

}  // namespace minitorch
