// What the reducer's tests share: three small parameters, and a backward by hand.
#pragma once

#include <chrono>
#include <cstring>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "check.hpp"
#include "reducer/all_reduce_hook.hpp"
#include "reducer/reducer.hpp"
#include "world.hpp"

using namespace minitorch;
using Indices = std::vector<std::vector<std::size_t>>;

namespace reducer_test {

// Runs `body(rank, group)` on every rank of a world of threads, with random message delays.
template <class Body>
void on_ranks(int size, Body body) {
  check::WorldOptions options;
  options.max_delay_seconds = 0.0002;
  check::on_ranks(
      size,
      [&](const check::Rank& self) {
        body(self.rank, self.engine.new_group(self.group.ranks(), std::chrono::seconds(20)));
      },
      options);
}

// Three float parameters of 4, 2 and 3 elements, each in its own bucket, last one first.
struct Fixture {
  std::vector<Parameter> parameters = {
      {"first", Dtype::kFloat32, 4}, {"second", Dtype::kFloat32, 2}, {"third", Dtype::kFloat32, 3}};
  BucketAssignment assignment = {{{2}, {1}, {0}}, {1, 1, 1}};

  Reducer make(const std::shared_ptr<Group>& group, ReducerOptions options = {}) const {
    options.rebuild_limits = {1};
    return Reducer(group, parameters, assignment, options);
  }
};

inline std::vector<float> gradient(std::size_t elements, float value) {
  return std::vector<float>(elements, value);
}

inline float value_in(const Reducer& reducer, std::size_t parameter) {
  const auto location = reducer.location(parameter);
  const Bucket& bucket = reducer.buckets()[location.bucket];
  float value = 0;
  std::memcpy(&value, bucket.address(bucket.slots()[location.slot]), sizeof value);
  return value;
}

inline void drain(Reducer& reducer) {
  reducer.begin_draining();
  for (std::size_t b = 0; b < reducer.buckets().size(); ++b) reducer.wait_bucket(b);
  reducer.finish();
}

// One backward in which parameter i's gradient is (rank + 1) * 10^i and arrives in `order`.
inline void backward(Reducer& reducer, int rank, const std::vector<std::size_t>& order) {
  reducer.prepare_for_backward();
  bool last = false;
  for (const std::size_t i : order) {
    float value = static_cast<float>(rank + 1);
    for (std::size_t k = 0; k < i; ++k) value *= 10;
    const auto g = gradient(reducer.parameters()[i].elements, value);
    last = reducer.mark_ready(i, g.data());
  }
  CHECK(last);
}

inline constexpr const char* kUnfinished =
    "Expected to have finished reduction in the prior iteration before starting a new one.";

// Counts its launches and leaves the gradients as they are.
class CountingHook final : public CommunicationHook {
 public:
  explicit CountingHook(std::vector<std::size_t>& launches) : launches_(launches) {}
  bool wants_division() const override { return false; }
  std::unique_ptr<Pending> launch(const Bucket& bucket) override {
    launches_.push_back(bucket.index());
    return std::make_unique<Done>();
  }

 private:
  struct Done final : Pending {
    void wait(const WhileWaiting&) override {}
    Nanoseconds started() const override { return 0; }
    Nanoseconds finished() const override { return 0; }
  };
  std::vector<std::size_t>& launches_;
};

}  // namespace reducer_test
