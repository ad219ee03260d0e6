// Bucket assignment, bucket memory and the step's clocks: everything of the reducer that needs no
// other rank. Cases and values of the assignment are PyTorch's own.
#include <cstdint>
#include <stdexcept>
#include <vector>

#include "check.hpp"
#include "reducer/bucket.hpp"
#include "reducer/buckets.hpp"
#include "reducer/clocks.hpp"

using namespace minitorch;
using Indices = std::vector<std::vector<std::size_t>>;
using Limits = std::vector<std::size_t>;

namespace {

constexpr int kFloat = 0;
constexpr int kDouble = 1;

std::vector<Piece> floats(const std::vector<std::size_t>& elements) {
  std::vector<Piece> pieces;
  for (const std::size_t n : elements) pieces.push_back({4 * n, kFloat});
  return pieces;
}

// float[50], double[25], three times: 200 bytes each.
std::vector<Piece> alternating() {
  return {{200, kFloat},  {200, kDouble}, {200, kFloat},
          {200, kDouble}, {200, kFloat},  {200, kDouble}};
}

BucketAssignment assign(const std::vector<Piece>& pieces, const Limits& limits,
                        const std::vector<std::size_t>& order = {}) {
  return compute_bucket_assignment_by_size(pieces, limits, order);
}

}  // namespace

TEST(single_limit_single_dtype) {
  const auto a = assign(floats({100, 200, 100, 50}), {400});
  CHECK_EQUAL(a.indices, (Indices{{0}, {1}, {2}, {3}}));
  CHECK_EQUAL(a.limits, (Limits{400, 400, 400, 400}));
}

TEST(single_limit_multi_dtype) {
  const auto a = assign(alternating(), {400});
  CHECK_EQUAL(a.indices, (Indices{{0, 2}, {1, 3}, {4}, {5}}));
  CHECK_EQUAL(a.limits, (Limits{400, 400, 400, 400}));
}

TEST(multi_limit_single_dtype) {
  const auto a = assign(floats({10, 10, 10, 10}), {40, 80});
  CHECK_EQUAL(a.indices, (Indices{{0}, {1, 2}, {3}}));
  CHECK_EQUAL(a.limits, (Limits{40, 80, 80}));
}

TEST(multi_limit_multi_dtype) {
  const auto a = assign(alternating(), {200, 400});
  CHECK_EQUAL(a.indices, (Indices{{0}, {1}, {2, 4}, {3, 5}}));
  CHECK_EQUAL(a.limits, (Limits{200, 200, 400, 400}));
}

TEST(a_bucket_overshoots_and_splits_nothing) {
  CHECK_EQUAL(assign(floats({99, 1000, 1}), {400}).indices, (Indices{{0, 1}, {2}}));
}

TEST(sparse_pieces_travel_alone) {
  auto pieces = floats({10, 10, 10});
  pieces[1].alone = true;
  const auto a = assign(pieces, {400});
  CHECK_EQUAL(a.indices, (Indices{{0, 2}, {1}}));
  CHECK_EQUAL(a.limits, (Limits{400, kNoLimit}));
}

TEST(ready_order_sorts_buckets_by_their_last_piece) {
  CHECK_EQUAL(assign(floats({10, 10, 10}), {80}, {2, 0, 1}).indices, (Indices{{2, 0}, {1}}));
  // float, double, float: the double bucket is complete first.
  const std::vector<Piece> mixed = {{16, kFloat}, {32, kDouble}, {16, kFloat}};
  CHECK_EQUAL(assign(mixed, {400}, {2, 1, 0}).indices, (Indices{{1}, {2, 0}}));
}

TEST(bad_assignments_are_refused) {
  CHECK_THROWS(assign({}, {1}), std::invalid_argument);
  CHECK_THROWS(assign(floats({1}), {}), std::invalid_argument);
  CHECK_THROWS(assign(floats({1, 2}), {1}, {0}), std::invalid_argument);
}

TEST(a_bucket_lays_out_its_members_densely_and_aligned) {
  const std::vector<Parameter> parameters = {
      {"a", Dtype::kFloat32, 3}, {"b", Dtype::kFloat32, 0}, {"c", Dtype::kFloat32, 5}};
  const Bucket bucket(7, 400, {2, 1, 0}, parameters);
  CHECK_EQUAL(bucket.elements(), 8);
  CHECK_EQUAL(bucket.bytes(), 32);
  CHECK_EQUAL(bucket.slots()[2].parameter, 0);
  CHECK_EQUAL(bucket.slots()[2].offset, 5);
  CHECK_EQUAL(reinterpret_cast<std::uintptr_t>(bucket.memory().get()) % 64, 0);
  CHECK_EQUAL(bucket.address(bucket.slots()[2]), bucket.memory().get() + 20);
  CHECK_EQUAL(bucket.label(), "bucket 7 [c, b, a]");
}

TEST(a_bucket_has_one_dtype) {
  const std::vector<Parameter> parameters = {{"a", Dtype::kFloat32, 3}, {"b", Dtype::kFloat64, 3}};
  CHECK_THROWS(Bucket(0, 400, {0, 1}, parameters), std::invalid_argument);
}

TEST(memory_outlives_the_bucket) {
  Memory memory;
  {
    const std::vector<Parameter> parameters = {{"a", Dtype::kFloat64, 4}};
    const Bucket bucket(0, 400, {0}, parameters);
    memory = bucket.memory();
  }
  CHECK_EQUAL(reinterpret_cast<const double*>(memory.get())[3], 0.0);
}

TEST(overlap_counts_every_moment_once) {
  StepTimes step;
  step.forward_start = 10;
  step.forward_end = 40;
  step.backward_start = 50;
  step.compute_end = 150;
  step.waited = 42;
  // [60, 100] and [80, 120] share 20; [140, 190] sticks out of the computation by 40.
  step.buckets = {{.started = 60, .finished = 100},
                  {.started = 80, .finished = 120},
                  {.started = 140, .finished = 190},
                  {}};
  const Overlap overlap = measure_overlap(step);
  CHECK_EQUAL(overlap.forward, 30);
  CHECK_EQUAL(overlap.backward, 100);
  CHECK_EQUAL(overlap.communication, 110);
  CHECK_EQUAL(overlap.hidden, 70);
  CHECK_EQUAL(overlap.exposed, 42);
}
