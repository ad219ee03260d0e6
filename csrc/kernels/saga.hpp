// The inner loop of SAGA for linear models (Defazio, Bach and Lacoste-Julien, 2014), over dense
// rows or over rows in CSR form, for one output or several.
//
//   f_i(W, b) = weight_i * loss(x_i W' + b, y_i),   minimise mean_i f_i + l2/2 |W|^2 + l1 |W|_1
//
// A linear model's gradient is its slope d loss / d z (one number per output) times x_i, so the
// table holds slopes: n * outputs numbers instead of n * outputs * features. A step on sample i:
//
//   delta    = weight_i * slope_i(now) - table_i
//   v        = before * W - step * (scale_i * delta * x_i + mean)       mean: before this step
//   W        = after * soft_threshold(v, step * l1)
//   table_i += delta;   mean += delta * x_i / n
//
// `before` = 1 - step*l2 takes l2 as a gradient that needs no table, `after` = 1 / (1 + step*l2) as
// part of the proximal operator; the other one is 1. `scale_i` = 1 / (n p_i) keeps the estimate
// unbiased when sample i is drawn with probability p_i. The intercept is not penalised.
//
// Cost of a step: O(features * outputs) dense; O(nonzeros of the row * outputs) in CSR form, where
// a feature is brought up to date when it is next needed (saga_sparse.hpp).
#pragma once

#include <cstdint>

namespace minitorch::kernels {

enum class Loss { kSquared, kLogistic, kSmoothedHinge, kSoftmax };

// What is minimised. Targets: +-1 for logistic and hinge, class numbers for softmax (one per
// sample), values (samples x outputs) for squared.
template <class T>
struct SagaProblem {
  Loss loss = Loss::kSquared;
  double smoothing = 1.0;  // of the hinge: its quadratic part is that wide
  std::int64_t samples = 0, features = 0, outputs = 1;
  const T* values = nullptr;              // samples x features, or the CSR entries
  const std::int32_t* columns = nullptr;  // CSR only; strictly increasing within a row
  const std::int64_t* offsets = nullptr;  // CSR only; samples + 1
  const T* targets = nullptr;
  const T* weights = nullptr;  // one per sample, or nullptr for ones
  double step = 0.0, l1 = 0.0, before = 1.0, after = 1.0;
  bool intercept = false;
  double intercept_rate =
      1.0;  // its step, in steps of the weights: as if x had a column of its root
};

// What a step changes; all in place. Means are of table_i * x_i and of table_i.
template <class T>
struct SagaState {
  T* coef = nullptr;            // outputs x features
  T* intercept = nullptr;       // outputs
  T* table = nullptr;           // samples x outputs
  T* mean = nullptr;            // outputs x features
  T* mean_intercept = nullptr;  // outputs
};

// Takes `steps` steps on the given samples. `scales` has one entry per sample, or is nullptr for
// ones. Throws std::out_of_range, before the first step, for an index that is no sample.
template <class T>
void saga(const SagaProblem<T>& problem, const SagaState<T>& state, const std::int64_t* indices,
          std::int64_t steps, const T* scales);

}  // namespace minitorch::kernels
