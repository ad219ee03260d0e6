#include "kernels/kernels.hpp"

#include <stdexcept>
#include <string>

#include "kernels/loops.hpp"

#if defined(__x86_64__) && defined(__GNUC__)
#include <immintrin.h>
#define MINITORCH_AVX2 1
#define MINITORCH_TARGET __attribute__((target("avx2,f16c")))
#else
#define MINITORCH_AVX2 0
#endif

namespace minitorch::kernels {
namespace {

// Two compilations of each loop, behind one function pointer per (op, dtype, scaled).

struct Portable {
  using HalfFormat = Half;
  template <ReduceOp op, bool scaled, class T>
  static void reduce(void* out, const void* a, const void* b, std::size_t n, double scale) {
    reduce_loop<op, scaled, T>(static_cast<T*>(out), static_cast<const T*>(a),
                               static_cast<const T*>(b), n, static_cast<T>(scale));
  }
  template <ReduceOp op, bool scaled, class Format>
  static void reduce16(void* out, const void* a, const void* b, std::size_t n, double scale) {
    reduce_loop16<Format, op, scaled>(
        static_cast<std::uint16_t*>(out), static_cast<const std::uint16_t*>(a),
        static_cast<const std::uint16_t*>(b), n, static_cast<float>(scale));
  }
  static void copy(void* out, const void* in, std::size_t n) {
    if (n != 0) std::memcpy(out, in, n);
  }
  template <class T>
  static void scale(void* out, const void* in, std::size_t n, double scale) {
    scale_loop<T>(static_cast<T*>(out), static_cast<const T*>(in), n, static_cast<T>(scale));
  }
  template <class Format>
  static void scale16(void* out, const void* in, std::size_t n, double scale) {
    scale_loop16<Format>(static_cast<std::uint16_t*>(out), static_cast<const std::uint16_t*>(in), n,
                         static_cast<float>(scale));
  }
  template <class Format>
  static void widen(float* out, const std::uint16_t* in, std::size_t n) {
    Format::widen(out, in, n);
  }
  template <class Format>
  static void narrow(std::uint16_t* out, const float* in, std::size_t n) {
    Format::narrow(out, in, n);
  }
};

#if MINITORCH_AVX2
// Called per block, not inlined: GCC inlines nothing of AVX2 into a template that is not.
struct HalfF16C {
  MINITORCH_TARGET static void widen(float* out, const std::uint16_t* in, std::size_t n) {
    std::size_t i = 0;
    for (; i + 8 <= n; i += 8)
      _mm256_storeu_ps(out + i,
                       _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(in + i))));
    for (; i < n; ++i) out[i] = half_to_float(in[i]);
  }
  MINITORCH_TARGET static void narrow(std::uint16_t* out, const float* in, std::size_t n) {
    std::size_t i = 0;
    for (; i + 8 <= n; i += 8)
      _mm_storeu_si128(
          reinterpret_cast<__m128i*>(out + i),
          _mm256_cvtps_ph(_mm256_loadu_ps(in + i), _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
    for (; i < n; ++i) out[i] = float_to_half(in[i]);
  }
};

struct Avx2 {
  using HalfFormat = HalfF16C;
  template <ReduceOp op, bool scaled, class T>
  MINITORCH_TARGET static void reduce(void* out, const void* a, const void* b, std::size_t n,
                                      double scale) {
    reduce_loop<op, scaled, T>(static_cast<T*>(out), static_cast<const T*>(a),
                               static_cast<const T*>(b), n, static_cast<T>(scale));
  }
  template <ReduceOp op, bool scaled, class Format>
  MINITORCH_TARGET static void reduce16(void* out, const void* a, const void* b, std::size_t n,
                                        double scale) {
    reduce_loop16<Format, op, scaled>(
        static_cast<std::uint16_t*>(out), static_cast<const std::uint16_t*>(a),
        static_cast<const std::uint16_t*>(b), n, static_cast<float>(scale));
  }
  MINITORCH_TARGET static void copy(void* out, const void* in, std::size_t n) {
    auto* to = static_cast<std::byte*>(out);
    const auto* from = static_cast<const std::byte*>(in);
    const std::byte* const end = from + n / 128 * 128;
    for (; from != end; from += 128, to += 128) {  // four at a time: GCC leaves that loop alone
      const __m256i a = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from));
      const __m256i b = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from + 32));
      const __m256i c = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from + 64));
      const __m256i d = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from + 96));
      _mm256_storeu_si256(reinterpret_cast<__m256i*>(to), a);
      _mm256_storeu_si256(reinterpret_cast<__m256i*>(to + 32), b);
      _mm256_storeu_si256(reinterpret_cast<__m256i*>(to + 64), c);
      _mm256_storeu_si256(reinterpret_cast<__m256i*>(to + 96), d);
    }
    if (n % 128 != 0) std::memcpy(to, from, n % 128);
  }
  template <class T>
  MINITORCH_TARGET static void scale(void* out, const void* in, std::size_t n, double scale) {
    scale_loop<T>(static_cast<T*>(out), static_cast<const T*>(in), n, static_cast<T>(scale));
  }
  template <class Format>
  MINITORCH_TARGET static void scale16(void* out, const void* in, std::size_t n, double scale) {
    scale_loop16<Format>(static_cast<std::uint16_t*>(out), static_cast<const std::uint16_t*>(in), n,
                         static_cast<float>(scale));
  }
  template <class Format>
  MINITORCH_TARGET static void widen(float* out, const std::uint16_t* in, std::size_t n) {
    Format::widen(out, in, n);
  }
  template <class Format>
  MINITORCH_TARGET static void narrow(std::uint16_t* out, const float* in, std::size_t n) {
    Format::narrow(out, in, n);
  }
};
#endif

using ReduceFunction = void (*)(void*, const void*, const void*, std::size_t, double);
using ScaleFunction = void (*)(void*, const void*, std::size_t, double);

template <class Variant, ReduceOp op, bool scaled>
ReduceFunction pick_dtype(Dtype dtype) {
  switch (dtype) {
    case Dtype::kFloat32:
      return Variant::template reduce<op, scaled, float>;
    case Dtype::kFloat64:
      return Variant::template reduce<op, scaled, double>;
    case Dtype::kFloat16:
      return Variant::template reduce16<op, scaled, typename Variant::HalfFormat>;
    case Dtype::kBFloat16:
      return Variant::template reduce16<op, scaled, Brain>;
    case Dtype::kInt32:
      return Variant::template reduce<op, false, std::int32_t>;
    case Dtype::kInt64:
      return Variant::template reduce<op, false, std::int64_t>;
    case Dtype::kUInt8:
      return Variant::template reduce<op, false, std::uint8_t>;
  }
  throw std::invalid_argument("unknown dtype");
}

template <class Variant, bool scaled>
ReduceFunction pick_op(ReduceOp op, Dtype dtype) {
  switch (op) {
    case ReduceOp::kSum:
      return pick_dtype<Variant, ReduceOp::kSum, scaled>(dtype);
    case ReduceOp::kProduct:
      return pick_dtype<Variant, ReduceOp::kProduct, scaled>(dtype);
    case ReduceOp::kMin:
      return pick_dtype<Variant, ReduceOp::kMin, scaled>(dtype);
    case ReduceOp::kMax:
      return pick_dtype<Variant, ReduceOp::kMax, scaled>(dtype);
  }
  throw std::invalid_argument("unknown reduction");
}

template <class Variant>
ScaleFunction pick_scale(Dtype dtype) {
  switch (dtype) {
    case Dtype::kFloat32:
      return Variant::template scale<float>;
    case Dtype::kFloat64:
      return Variant::template scale<double>;
    case Dtype::kFloat16:
      return Variant::template scale16<typename Variant::HalfFormat>;
    case Dtype::kBFloat16:
      return Variant::template scale16<Brain>;
    default:
      throw std::invalid_argument(std::string("cannot scale ") + name_of(dtype));
  }
}

bool has_avx2() {
#if MINITORCH_AVX2
  static const bool has = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("f16c");
  return has;
#else
  return false;
#endif
}

// Calls `choose` with the variant for this machine.
template <class Choose>
auto on_this_machine(Choose choose) {
#if MINITORCH_AVX2
  if (has_avx2()) return choose(Avx2{});
#endif
  return choose(Portable{});
}

}  // namespace

const char* instruction_set() {
  return has_avx2() ? "avx2" : "portable";
}

void reduce(ReduceOp op, Dtype dtype, void* out, const void* a, const void* b,
            std::size_t elements) {
  reduce_scaled(op, dtype, out, a, b, elements, 1.0);
}

void reduce_scaled(ReduceOp op, Dtype dtype, void* out, const void* a, const void* b,
                   std::size_t elements, double scale) {
  if (scale != 1.0 && !is_floating_point(dtype))
    throw std::invalid_argument(std::string("cannot scale ") + name_of(dtype));
  const ReduceFunction function = on_this_machine([&](auto variant) {
    using Variant = decltype(variant);
    return scale == 1.0 ? pick_op<Variant, false>(op, dtype) : pick_op<Variant, true>(op, dtype);
  });
  function(out, a, b, elements, scale);
}

void copy_scaled(Dtype dtype, void* out, const void* in, std::size_t elements, double scale) {
  if (scale == 1.0) {
    if (out != in) copy_bytes(out, in, elements * size_of(dtype));
    return;
  }
  const ScaleFunction function =
      on_this_machine([&](auto variant) { return pick_scale<decltype(variant)>(dtype); });
  function(out, in, elements, scale);
}

void copy_bytes(void* out, const void* in, std::size_t bytes) {
  on_this_machine([&](auto variant) { decltype(variant)::copy(out, in, bytes); });
}

void float_to_half(std::uint16_t* out, const float* in, std::size_t elements) {
  on_this_machine([&](auto variant) {
    using Variant = decltype(variant);
    Variant::template narrow<typename Variant::HalfFormat>(out, in, elements);
  });
}

void half_to_float(float* out, const std::uint16_t* in, std::size_t elements) {
  on_this_machine([&](auto variant) {
    using Variant = decltype(variant);
    Variant::template widen<typename Variant::HalfFormat>(out, in, elements);
  });
}

void float_to_bfloat16(std::uint16_t* out, const float* in, std::size_t elements) {
  on_this_machine(
      [&](auto variant) { decltype(variant)::template narrow<Brain>(out, in, elements); });
}

void bfloat16_to_float(float* out, const std::uint16_t* in, std::size_t elements) {
  on_this_machine(
      [&](auto variant) { decltype(variant)::template widen<Brain>(out, in, elements); });
}

}  // namespace minitorch::kernels
