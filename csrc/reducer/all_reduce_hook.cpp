#include "reducer/all_reduce_hook.hpp"

namespace minitorch {

namespace {
constexpr std::chrono::milliseconds kWaitingSlice{50};
}

void wait_for(Work& work, const WhileWaiting& while_waiting) {
  if (while_waiting) {
    while (!work.wait_for(kWaitingSlice)) while_waiting();
  }
  work.wait();
}

std::unique_ptr<Pending> AllReduceHook::launch(const Bucket& bucket) {
  return std::make_unique<PendingWork>(group_->all_reduce(bucket.memory().get(), bucket.elements(),
                                                          bucket.dtype(), ReduceOp::kSum,
                                                          bucket.memory(), bucket.label()));
}

}  // namespace minitorch
