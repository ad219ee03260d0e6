// SAGA's inner loop: known answers, CSR with lazy updates against dense rows, weights that cross
// zero while nobody looks, indices out of range.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <random>
#include <stdexcept>
#include <vector>

#include "check.hpp"
#include "kernels/saga.hpp"

using namespace minitorch;
using kernels::Loss;
using kernels::saga;
using kernels::SagaProblem;
using kernels::SagaState;

namespace {

// A problem and a state that own their arrays; rows are kept dense and as CSR.
template <class T>
struct Model {
  std::int64_t n, d, outputs;
  std::vector<T> dense, values, targets;
  std::vector<std::int32_t> columns;
  std::vector<std::int64_t> offsets{0};
  std::vector<T> coef, intercept, table, mean, mean_intercept;

  Model(std::int64_t samples, std::int64_t features, std::int64_t k, unsigned seed, double density)
      : n(samples),
        d(features),
        outputs(k),
        coef(k * d),
        intercept(k),
        table(n * k),
        mean(k * d),
        mean_intercept(k) {
    std::mt19937 bits(seed);
    std::normal_distribution<double> normal;
    std::uniform_real_distribution<double> uniform;
    for (std::int64_t i = 0; i < n; ++i) {
      for (std::int64_t j = 0; j < d; ++j) {
        const bool here = uniform(bits) < density;
        dense.push_back(here ? static_cast<T>(normal(bits)) : T(0));
        if (!here) continue;
        values.push_back(dense.back());
        columns.push_back(static_cast<std::int32_t>(j));
      }
      offsets.push_back(static_cast<std::int64_t>(values.size()));
    }
    for (T& w : coef) w = static_cast<T>(normal(bits));
    for (T& m : mean) m = static_cast<T>(normal(bits));
    for (T& a : table) a = static_cast<T>(normal(bits));
  }

  SagaProblem<T> problem(Loss loss, bool csr) const {
    SagaProblem<T> p;
    p.loss = loss;
    p.samples = n, p.features = d, p.outputs = outputs;
    p.values = csr ? values.data() : dense.data();
    p.columns = csr ? columns.data() : nullptr;
    p.offsets = csr ? offsets.data() : nullptr;
    p.targets = targets.data();
    p.intercept = true;
    return p;
  }

  SagaState<T> state() {
    return {coef.data(), intercept.data(), table.data(), mean.data(), mean_intercept.data()};
  }
};

template <class T>
double largest_difference(const std::vector<T>& a, const std::vector<T>& b) {
  double most = 0;
  for (std::size_t i = 0; i < a.size(); ++i)
    most = std::max(most, std::abs(static_cast<double>(a[i]) - static_cast<double>(b[i])));
  return most;
}

std::vector<std::int64_t> random_indices(std::int64_t n, std::int64_t steps) {
  std::mt19937 bits(7);
  std::vector<std::int64_t> indices;
  for (std::int64_t t = 0; t < steps; ++t)
    indices.push_back(static_cast<std::int64_t>(bits() % static_cast<unsigned>(n)));
  return indices;
}

}  // namespace

TEST(one_step_by_hand) {
  // loss (2w - 3)^2 / 2 at w = 1: slope -1, table 0, mean 0.5; n = 1.
  const double x = 2, y = 3;
  double w = 1, table = 0, mean = 0.5;
  SagaProblem<double> p;
  p.samples = p.features = 1;
  p.values = &x, p.targets = &y;
  p.step = 0.1, p.l1 = 0.2, p.after = 0.5;
  const std::int64_t index = 0;
  saga(p, {&w, nullptr, &table, &mean, nullptr}, &index, 1, static_cast<const double*>(nullptr));
  // 1 - 0.1 (-1 * 2 + 0.5) = 1.15, less 0.1 * 0.2, halved
  CHECK_NEAR(w, 0.565, 1e-15);
  CHECK_EQUAL(table, -1.0);
  CHECK_EQUAL(mean, -1.5);
}

TEST(lazy_updates_equal_dense_ones) {
  for (const Loss loss : {Loss::kSquared, Loss::kLogistic, Loss::kSmoothedHinge, Loss::kSoftmax}) {
    const bool many = loss == Loss::kSoftmax || loss == Loss::kSquared;
    for (const double l1 : {0.0, 0.3})
      for (const double after : {1.0, 0.97}) {
        Model<double> dense(23, 17, many ? 3 : 1, 5, 0.2);
        for (std::int64_t i = 0; i < dense.n * dense.outputs; ++i)
          dense.targets.push_back(loss == Loss::kSoftmax ? double(i % 3) : i % 2 ? 1.0 : -1.0);
        Model<double> sparse = dense;
        const auto indices = random_indices(dense.n, 500);
        auto p = dense.problem(loss, false), q = sparse.problem(loss, true);
        p.step = q.step = 0.02, p.l1 = q.l1 = l1, p.after = q.after = after;
        p.intercept_rate = q.intercept_rate = 0.5;
        saga(p, dense.state(), indices.data(), 500, static_cast<const double*>(nullptr));
        saga(q, sparse.state(), indices.data(), 500, static_cast<const double*>(nullptr));
        CHECK_NEAR(largest_difference(dense.coef, sparse.coef), 0.0, 1e-12);
        CHECK_NEAR(largest_difference(dense.mean, sparse.mean), 0.0, 1e-12);
        CHECK_NEAR(largest_difference(dense.table, sparse.table), 0.0, 1e-12);
        CHECK_NEAR(largest_difference(dense.intercept, sparse.intercept), 0.0, 1e-12);
      }
  }
}

TEST(a_feature_nobody_draws_crosses_zero) {
  // Two samples; only the first is drawn, so feature 1 falls at its mean gradient alone: down to
  // zero, through it where the gradient beats l1, and back again with a gradient of the other sign.
  for (const double gradient : {0.1, 0.3, 0.31, 2.0, -2.0})
    for (const double start : {1.0, -1.0, 0.0})
      for (const double after : {1.0, 0.99, 0.5}) {  // 0.5: the scale is renewed every 20 steps
        Model<double> dense(2, 2, 1, 1, 1.0);
        dense.dense = {1, 0, 0, 1};
        dense.values = {1, 1};
        dense.columns = {0, 1};
        dense.offsets = {0, 1, 2};
        dense.targets = {1, -1};
        dense.coef = {0.5, start};
        dense.mean = {0.0, gradient};
        Model<double> sparse = dense;
        const std::vector<std::int64_t> indices(150, 0);
        auto p = dense.problem(Loss::kLogistic, false), q = sparse.problem(Loss::kLogistic, true);
        p.step = q.step = 0.05, p.l1 = q.l1 = 0.3, p.after = q.after = after;
        saga(p, dense.state(), indices.data(), 150, static_cast<const double*>(nullptr));
        saga(q, sparse.state(), indices.data(), 150, static_cast<const double*>(nullptr));
        CHECK_NEAR(sparse.coef[1], dense.coef[1], 1e-13);
        CHECK_EQUAL(sparse.coef[1] == 0, dense.coef[1] == 0);
      }
}

TEST(float32_follows_float64) {
  Model<double> exact(11, 9, 1, 3, 0.5);
  for (std::int64_t i = 0; i < exact.n; ++i) exact.targets.push_back(i % 2 ? 1.0 : -1.0);
  Model<float> rough(11, 9, 1, 3, 0.5);
  for (std::int64_t i = 0; i < exact.n; ++i) rough.targets.push_back(i % 2 ? 1.0F : -1.0F);
  const auto indices = random_indices(exact.n, 200);
  for (const bool csr : {false, true}) {
    auto p = exact.problem(Loss::kLogistic, csr);
    auto q = rough.problem(Loss::kLogistic, csr);
    p.step = q.step = 0.05, p.l1 = q.l1 = 0.05, p.after = q.after = 0.99;
    saga(p, exact.state(), indices.data(), 200, static_cast<const double*>(nullptr));
    saga(q, rough.state(), indices.data(), 200, static_cast<const float*>(nullptr));
    for (std::size_t j = 0; j < exact.coef.size(); ++j)
      CHECK_NEAR(rough.coef[j], exact.coef[j], 1e-4);
  }
}

TEST(an_index_out_of_range_changes_nothing) {
  Model<double> model(3, 2, 1, 1, 1.0);
  model.targets = {1, -1, 1};
  auto p = model.problem(Loss::kLogistic, false);
  p.step = 0.1;
  const auto before = model.coef;
  for (const std::int64_t wrong : {std::int64_t{3}, std::int64_t{-1}}) {
    const std::vector<std::int64_t> indices = {0, wrong};
    CHECK_THROWS(saga(p, model.state(), indices.data(), 2, static_cast<const double*>(nullptr)),
                 std::out_of_range);
  }
  CHECK_EQUAL(model.coef, before);
}
