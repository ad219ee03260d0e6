// What is done with a bucket by default: sum it over the group, in place. The gradients in it were
// divided by W as they entered, so the sum is the average.
//
// Cost: one all-reduce of the bucket, labelled with the bucket and its parameters in errors and
// timelines.
#pragma once

#include <memory>

#include "engine/engine.hpp"
#include "reducer/hook.hpp"

namespace minitorch {

// Waits for a collective in slices, with a look around in between.
void wait_for(Work& work, const WhileWaiting& while_waiting);

class AllReduceHook final : public CommunicationHook {
 public:
  explicit AllReduceHook(std::shared_ptr<Group> group) : group_(std::move(group)) {}
  bool wants_division() const override { return true; }
  std::unique_ptr<Pending> launch(const Bucket& bucket) override;

 private:
  std::shared_ptr<Group> group_;
};

// A collective of the engine, as a bucket's Pending.
class PendingWork final : public Pending {
 public:
  explicit PendingWork(WorkPtr work) : work_(std::move(work)) {}
  void wait(const WhileWaiting& while_waiting) override { wait_for(*work_, while_waiting); }
  Nanoseconds started() const override { return work_->started_ns(); }
  Nanoseconds finished() const override { return work_->finished_ns(); }

 private:
  WorkPtr work_;
};

}  // namespace minitorch
