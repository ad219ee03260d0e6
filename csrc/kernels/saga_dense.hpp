// SAGA over dense rows. Every step touches all weights, so what counts is one pass over them: the
// loop that updates the weights also sums the margin of the *next* sample, whose row is known.
// Included by saga.cpp only, which compiles it for the plain instruction set and for AVX2; sums are
// taken in kLanes fixed partial sums, so that both give the same bits.
#pragma once

#include <cstdint>
#include <vector>

#include "kernels/saga_losses.hpp"

namespace minitorch::kernels {

inline constexpr std::int64_t kLanes = 8;

template <class T>
MINITORCH_INLINE T sum_of_lanes(const T* lanes) {
  return ((lanes[0] + lanes[4]) + (lanes[2] + lanes[6])) +
         ((lanes[1] + lanes[5]) + (lanes[3] + lanes[7]));
}

// x . w, in the order of partial sums that `update_row` uses.
template <class T>
MINITORCH_INLINE T dot(const T* __restrict x, const T* __restrict w, std::int64_t n) {
  T lanes[kLanes] = {};
  std::int64_t j = 0;
  for (; j + kLanes <= n; j += kLanes)
    for (std::int64_t l = 0; l < kLanes; ++l) lanes[l] += w[j + l] * x[j + l];
  T rest = T(0);
  for (; j < n; ++j) rest += w[j] * x[j];
  return sum_of_lanes(lanes) + rest;
}

template <class T>
struct RowUpdate {
  T before, after, step, threshold;
  T pull;   // scale * delta: along x into the weights
  T share;  // delta / n: along x into the mean
};

template <bool l1, class T>
MINITORCH_INLINE T update_one(T* __restrict w, T* __restrict mean, T x, const RowUpdate<T>& u) {
  T v = u.before * *w - u.step * (u.pull * x + *mean);
  if constexpr (l1) v = soft_threshold(v, u.threshold);
  v *= u.after;
  *w = v;
  *mean += u.share * x;
  return v;
}

// One step on one output's weights; returns their product with the next sample's row.
template <bool l1, class T>
MINITORCH_INLINE T update_row(T* __restrict w, T* __restrict mean, const T* __restrict x,
                              const T* __restrict next, std::int64_t n, const RowUpdate<T>& u) {
  T lanes[kLanes] = {};
  std::int64_t j = 0;
  for (; j + kLanes <= n; j += kLanes)
    for (std::int64_t l = 0; l < kLanes; ++l)
      lanes[l] += update_one<l1>(w + j + l, mean + j + l, x[j + l], u) * next[j + l];
  T rest = T(0);
  for (; j < n; ++j) rest += update_one<l1>(w + j, mean + j, x[j], u) * next[j];
  return sum_of_lanes(lanes) + rest;
}

template <bool l1, class T>
MINITORCH_INLINE void saga_dense(const SagaProblem<T>& p, const SagaState<T>& s,
                                 const std::int64_t* indices, std::int64_t steps, const T* scales) {
  const std::int64_t d = p.features, outputs = p.outputs;
  const T inverse_n = T(1) / static_cast<T>(p.samples);
  RowUpdate<T> u{static_cast<T>(p.before),
                 static_cast<T>(p.after),
                 static_cast<T>(p.step),
                 static_cast<T>(p.step * p.l1),
                 T(0),
                 T(0)};
  const T intercept_step = static_cast<T>(p.step * p.intercept_rate);
  std::vector<T> now(outputs), later(outputs);
  for (std::int64_t k = 0; k < outputs; ++k)
    now[k] = dot(p.values + indices[0] * d, s.coef + k * d, d);
  for (std::int64_t t = 0; t < steps; ++t) {
    const std::int64_t i = indices[t];
    const T* x = p.values + i * d;
    const T* next = p.values + indices[t + 1 < steps ? t + 1 : t] * d;
    const char* soon =
        reinterpret_cast<const char*>(p.values + indices[t + 2 < steps ? t + 2 : t] * d);
    for (std::int64_t byte = 0; byte < d * static_cast<std::int64_t>(sizeof(T)); byte += 64)
      __builtin_prefetch(soon + byte);
    if (p.intercept)
      for (std::int64_t k = 0; k < outputs; ++k) now[k] += s.intercept[k];
    slopes(p, i, now.data());
    const T scale = scales ? scales[i] : T(1);
    T* table = s.table + i * outputs;
    for (std::int64_t k = 0; k < outputs; ++k) {
      const T delta = now[k] - table[k];
      table[k] = now[k];
      u.pull = scale * delta;
      u.share = delta * inverse_n;
      later[k] = update_row<l1>(s.coef + k * d, s.mean + k * d, x, next, d, u);
      if (p.intercept) {
        s.intercept[k] -= intercept_step * (u.pull + s.mean_intercept[k]);
        s.mean_intercept[k] += u.share;
      }
    }
    now.swap(later);
  }
}

}  // namespace minitorch::kernels
