// The bodies of the hot loops, as always-inline templates: kernels.cpp compiles each of them twice,
// for the plain instruction set and for AVX2. Included there only.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "kernels/dtype.hpp"
#include "kernels/half.hpp"

#if defined(__GNUC__)
#define MINITORCH_INLINE inline __attribute__((always_inline))
#else
#define MINITORCH_INLINE inline
#endif

namespace minitorch::kernels {

// An integer type that may overflow without undefined behaviour.
template <class T>
struct Wrapping {
  using type = T;
};
template <class T>
  requires std::is_integral_v<T>
struct Wrapping<T> {
  // uint8 would be promoted to int and is safe as it is; the others compute unsigned.
  using type = std::make_unsigned_t<T>;
};

template <ReduceOp op, class T>
MINITORCH_INLINE T combine(T a, T b) {
  using W = typename Wrapping<T>::type;
  if constexpr (op == ReduceOp::kSum) {
    return static_cast<T>(static_cast<W>(static_cast<W>(a) + static_cast<W>(b)));
  } else if constexpr (op == ReduceOp::kProduct) {
    return static_cast<T>(static_cast<W>(static_cast<W>(a) * static_cast<W>(b)));
  } else {
    const bool take_a = op == ReduceOp::kMin ? a < b : a > b;
    if constexpr (std::is_floating_point_v<T>) {
      // a != a: a NaN stays; b is taken otherwise, whether smaller, equal or NaN.
      return take_a || a != a ? a : b;
    } else {
      return take_a ? a : b;
    }
  }
}

// `out` may be `a` or `b`. Element i depends on nothing but element i: ivdep tells that to a
// compiler that would otherwise take a scalar path when it sees that pointers are equal.
template <ReduceOp op, bool scaled, class T>
MINITORCH_INLINE void reduce_loop(T* out, const T* a, const T* b, std::size_t n, T scale) {
#pragma GCC ivdep
  for (std::size_t i = 0; i < n; ++i) {
    const T value = combine<op>(a[i], b[i]);
    out[i] = scaled ? static_cast<T>(value * scale) : value;
  }
}

template <class T>
MINITORCH_INLINE void scale_loop(T* out, const T* in, std::size_t n, T scale) {
#pragma GCC ivdep
  for (std::size_t i = 0; i < n; ++i) out[i] = in[i] * scale;
}

// 16-bit floats pass through float32 in small blocks; `Format` gives the conversions of a block.
inline constexpr std::size_t kBlock = 256;

template <class Format, ReduceOp op, bool scaled>
MINITORCH_INLINE void reduce_loop16(std::uint16_t* out, const std::uint16_t* a,
                                    const std::uint16_t* b, std::size_t n, float scale) {
  float fa[kBlock], fb[kBlock];
  for (std::size_t i = 0; i < n; i += kBlock) {
    const std::size_t m = n - i < kBlock ? n - i : kBlock;
    Format::widen(fa, a + i, m);
    Format::widen(fb, b + i, m);
    reduce_loop<op, scaled, float>(fa, fa, fb, m, scale);
    Format::narrow(out + i, fa, m);
  }
}

template <class Format>
MINITORCH_INLINE void scale_loop16(std::uint16_t* out, const std::uint16_t* in, std::size_t n,
                                   float scale) {
  float block[kBlock];
  for (std::size_t i = 0; i < n; i += kBlock) {
    const std::size_t m = n - i < kBlock ? n - i : kBlock;
    Format::widen(block, in + i, m);
    scale_loop<float>(block, block, m, scale);
    Format::narrow(out + i, block, m);
  }
}

struct Brain {
  static MINITORCH_INLINE void widen(float* out, const std::uint16_t* in, std::size_t n) {
    for (std::size_t i = 0; i < n; ++i) out[i] = bfloat16_to_float(in[i]);
  }
  static MINITORCH_INLINE void narrow(std::uint16_t* out, const float* in, std::size_t n) {
    for (std::size_t i = 0; i < n; ++i) out[i] = float_to_bfloat16(in[i]);
  }
};

struct Half {
  static MINITORCH_INLINE void widen(float* out, const std::uint16_t* in, std::size_t n) {
    for (std::size_t i = 0; i < n; ++i) out[i] = half_to_float(in[i]);
  }
  static MINITORCH_INLINE void narrow(std::uint16_t* out, const float* in, std::size_t n) {
    for (std::size_t i = 0; i < n; ++i) out[i] = float_to_half(in[i]);
  }
};

}  // namespace minitorch::kernels
