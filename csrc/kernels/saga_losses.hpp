// Slopes of the losses of linear models: d loss / d z at the margins z of one sample.
// Included by saga.cpp only.
#pragma once

#include <cmath>
#include <cstdint>

#include "kernels/loops.hpp"
#include "kernels/saga.hpp"

namespace minitorch::kernels {

// One sample's slopes, in place: z[0..outputs) becomes weight * slope. The loss is the same in
// every step, so the branch on it is always predicted, and one compiled loop serves all losses.
template <class T>
MINITORCH_INLINE void slopes(const SagaProblem<T>& p, std::int64_t i, T* z) {
  const T weight = p.weights ? p.weights[i] : T(1);
  if (p.loss == Loss::kSquared) {
    const T* target = p.targets + i * p.outputs;
    for (std::int64_t k = 0; k < p.outputs; ++k) z[k] = weight * (z[k] - target[k]);
    return;
  }
  const T y = p.targets[i];
  if (p.loss == Loss::kLogistic) {
    // exp of a large positive number is infinite, and 1 / inf is the right limit, 0.
    z[0] = -weight * y / (T(1) + std::exp(y * z[0]));
  } else if (p.loss == Loss::kSmoothedHinge) {
    const T smoothing = static_cast<T>(p.smoothing), short_of_one = T(1) - y * z[0];
    const T share = short_of_one <= T(0)        ? T(0)
                    : short_of_one >= smoothing ? T(1)
                                                : short_of_one / smoothing;
    z[0] = -weight * y * share;
  } else {
    T largest = z[0], sum = T(0);
    for (std::int64_t k = 1; k < p.outputs; ++k) largest = z[k] > largest ? z[k] : largest;
    for (std::int64_t k = 0; k < p.outputs; ++k) sum += (z[k] = std::exp(z[k] - largest));
    const T factor = weight / sum;
    for (std::int64_t k = 0; k < p.outputs; ++k) z[k] *= factor;
    z[static_cast<std::int64_t>(y)] -= weight;
  }
}

template <class T>
MINITORCH_INLINE T soft_threshold(T v, T threshold) {
  // Two maxima: vector instructions, no branch. Exactly zero between the thresholds.
  const T above = v - threshold, below = v + threshold;
  return (above > T(0) ? above : T(0)) + (below < T(0) ? below : T(0));
}

}  // namespace minitorch::kernels
