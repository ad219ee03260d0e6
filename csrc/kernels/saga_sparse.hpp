// SAGA over CSR rows with just-in-time updates: a step reads and writes only the features of its
// row, and each of them first catches up with the steps that it missed.
//
// While a feature is not drawn, its mean gradient m is constant, and every step does to its weight
//     w <- after * soft(before * w - step * m, step * l1).
// Written as w = s * u with one scale s for all features (s shrinks by before * after per step),
// this is  u <- soft(u - c m, c l1)  with c = step / s, so after many steps only the sum C of the c
// counts:
//     u <- u - (C_now - C_then) * (m + l1)    as long as u stays positive (mirrored: negative).
// What crosses zero with |m| <= l1 stays there; with |m| > l1 it comes out on the other side, and
// the step at which it does is found in the list of all C by bisection. Each feature keeps its
// C_then beside u and m, in one cache line.
//
// Included by saga.cpp only.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "kernels/saga_losses.hpp"

namespace minitorch::kernels {

// Weights are rescaled before s gets so small that u loses range.
inline constexpr double kSmallestScale = 1e-6;

// The sums C of the steps taken so far, [0] = 0.
class Clock {
 public:
  explicit Clock(std::int64_t steps) {
    sums_.reserve(static_cast<std::size_t>(steps) + 1);
    reset();
  }
  void reset() { sums_.assign(1, 0.0); }
  void add(double c) { sums_.push_back(sums_.back() + c); }
  double now() const { return sums_.back(); }

  // How far past zero a weight is by now that was u > 0 at C = then, with m > l1.
  double cross(double u, double m, double l1, double then) const {
    const auto begin = std::lower_bound(sums_.begin(), sums_.end(), then);
    const auto crossing = std::partition_point(
        begin + 1, sums_.end(), [&](double sum) { return u - (sum - then) * (m + l1) > 0; });
    if (crossing == sums_.end()) return 0;  // rounding: it has just arrived
    const double left = u - (*(crossing - 1) - then) * (m + l1), c = *crossing - *(crossing - 1);
    return std::max(0.0, c * (m - l1) - left) + (now() - *crossing) * (m - l1);
  }

 private:
  std::vector<double> sums_;
};

// The catch-up of one weight that missed `missed` = C_now - then of the sum: one soft threshold for
// all missed steps, except for a weight that crosses zero and goes on. That one is rare, and the
// only branch: signs and zeros are unpredictable, selects do not mind.
template <bool l1, class T>
MINITORCH_INLINE T catch_up(T u, T mean, double missed, double then, double penalty,
                            const Clock& clock) {
  const double m = mean, size = std::abs(static_cast<double>(u));
  const double v = u - missed * m;
  if constexpr (!l1) return static_cast<T>(v);
  const bool crosses =
      static_cast<int>(u * m > size * penalty) & (size < missed * (std::abs(m) + penalty));
  if (crosses) [[unlikely]]
    return static_cast<T>(std::copysign(clock.cross(size, std::abs(m), penalty, then), -m));
  return static_cast<T>(soft_threshold(v, missed * penalty));
}

// Everything about one feature side by side; one output is the common case.
template <class T>
struct alignas(sizeof(T) == 8 ? 32 : 16) Feature {
  T u, mean;
  double then;
};

// The features' state: u, mean and C_then per feature and output.
template <bool l1, class T>
class Features {
 public:
  Features(const SagaProblem<T>& p, const SagaState<T>& s, std::int64_t steps)
      : problem_(p),
        state_(s),
        clock_(steps),
        features_(static_cast<std::size_t>(p.features * p.outputs)) {
    for (std::int64_t k = 0; k < p.outputs; ++k)
      for (std::int64_t j = 0; j < p.features; ++j)
        at(j)[k] = {s.coef[k * p.features + j], s.mean[k * p.features + j], 0.0};
  }

  MINITORCH_INLINE Feature<T>* at(std::int64_t j) { return &features_[j * problem_.outputs]; }

  MINITORCH_INLINE void catch_up_one(Feature<T>& f) {
    f.u = catch_up<l1>(f.u, f.mean, clock_.now() - f.then, f.then, problem_.l1, clock_);
    f.then = clock_.now();
  }

  double scale() const { return scale_; }

  // Moves the clock on by one step; returns its c.
  // soft(before * s u - step m) = before * s * soft(u - step / (before s) m)
  double tick() {
    const double c = problem_.step / (scale_ * problem_.before);
    clock_.add(c);
    scale_ *= problem_.before * problem_.after;
    return c;
  }

  // The step that the clock has just counted, for a feature of the row.
  MINITORCH_INLINE void step_one(Feature<T>& f, T rate, T threshold, T pull, T share) {
    const T v = f.u - rate * (pull + f.mean);
    f.u = l1 ? soft_threshold(v, threshold) : v;
    f.mean += share;
    f.then = clock_.now();
  }

  void rescale_if_needed() {
    if (scale_ < kSmallestScale) rescale();
  }

  // Brings every feature up to date and s back to 1.
  void rescale() {
    for (Feature<T>& f : features_) {
      catch_up_one(f);
      f.u = static_cast<T>(f.u * scale_);
      f.then = 0;
    }
    scale_ = 1;
    clock_.reset();
  }

  void store() {
    rescale();
    const std::int64_t d = problem_.features;
    for (std::int64_t k = 0; k < problem_.outputs; ++k)
      for (std::int64_t j = 0; j < d; ++j) {
        state_.coef[k * d + j] = at(j)[k].u;
        state_.mean[k * d + j] = at(j)[k].mean;
      }
  }

 private:
  const SagaProblem<T>& problem_;
  const SagaState<T>& state_;
  Clock clock_;
  std::vector<Feature<T>> features_;
  double scale_ = 1;
};

// `one` says at compile time that there is one output.
template <bool l1, bool one, class T>
MINITORCH_INLINE void saga_sparse(const SagaProblem<T>& p, const SagaState<T>& s,
                                  const std::int64_t* indices, std::int64_t steps,
                                  const T* scales) {
  const std::int64_t outputs = one ? 1 : p.outputs;
  const T inverse_n = T(1) / static_cast<T>(p.samples);
  const T intercept_step = static_cast<T>(p.step * p.intercept_rate);
  Features<l1, T> features(p, s, steps);
  std::vector<T> many(one ? 0 : outputs);
  T single;
  T* z = one ? &single : many.data();
  for (std::int64_t t = 0; t < steps; ++t) {
    const std::int64_t i = indices[t], begin = p.offsets[i], end = p.offsets[i + 1];
    // Two steps ahead: the row; one step ahead: the features that it names.
    if (t + 2 < steps) {
      const std::int64_t from = p.offsets[indices[t + 2]], to = p.offsets[indices[t + 2] + 1];
      for (std::int64_t e = from; e < to; e += 8) __builtin_prefetch(p.values + e);
      for (std::int64_t e = from; e < to; e += 16) __builtin_prefetch(p.columns + e);
    }
    if (t + 1 < steps) {
      const std::int64_t from = p.offsets[indices[t + 1]], to = p.offsets[indices[t + 1] + 1];
      for (std::int64_t e = from; e < to; ++e) __builtin_prefetch(features.at(p.columns[e]), 1);
    }
    for (std::int64_t k = 0; k < outputs; ++k) z[k] = T(0);
    for (std::int64_t e = begin; e < end; ++e) {
      Feature<T>* f = features.at(p.columns[e]);
      const T x = p.values[e];
      for (std::int64_t k = 0; k < outputs; ++k) {
        features.catch_up_one(f[k]);
        z[k] += f[k].u * x;
      }
    }
    const T now = static_cast<T>(features.scale());
    for (std::int64_t k = 0; k < outputs; ++k)
      z[k] = z[k] * now + (p.intercept ? s.intercept[k] : T(0));
    slopes(p, i, z);
    const T scale = scales ? scales[i] : T(1);
    T* table = s.table + i * outputs;
    for (std::int64_t k = 0; k < outputs; ++k) {
      const T delta = z[k] - table[k];
      table[k] = z[k];
      z[k] = delta;
      if (p.intercept) {
        s.intercept[k] -= intercept_step * (scale * delta + s.mean_intercept[k]);
        s.mean_intercept[k] += delta * inverse_n;
      }
    }
    const double c = features.tick();
    const T rate = static_cast<T>(c), threshold = static_cast<T>(c * p.l1);
    for (std::int64_t e = begin; e < end; ++e) {
      Feature<T>* f = features.at(p.columns[e]);
      const T x = p.values[e];
      for (std::int64_t k = 0; k < outputs; ++k)
        features.step_one(f[k], rate, threshold, scale * z[k] * x, z[k] * inverse_n * x);
    }
    features.rescale_if_needed();
  }
  features.store();
}

}  // namespace minitorch::kernels
