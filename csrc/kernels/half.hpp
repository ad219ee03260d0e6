// float16 and bfloat16 as 16-bit words: conversions of one value, rounding to nearest even.
#pragma once

#include <bit>
#include <cstdint>

namespace minitorch::kernels {

// bfloat16 is the upper half of a float32.
inline float bfloat16_to_float(std::uint16_t word) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(word) << 16);
}

inline std::uint16_t float_to_bfloat16(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  // Rounding could carry a NaN's payload into infinity: a NaN keeps its sign and becomes quiet.
  const auto quiet = static_cast<std::uint16_t>((bits >> 16) | 0x40);
  const auto rounded = static_cast<std::uint16_t>((bits + 0x7fff + ((bits >> 16) & 1)) >> 16);
  return (bits & 0x7fffffff) > 0x7f800000 ? quiet : rounded;
}

inline float half_to_float(std::uint16_t word) {
  // Shifted into a float's place, exponent and fraction mean value * 2^-112; a multiplication puts
  // that right, for subnormals too.
  const std::uint32_t sign = static_cast<std::uint32_t>(word & 0x8000) << 16;
  const std::uint32_t magnitude = static_cast<std::uint32_t>(word & 0x7fff) << 13;
  if ((word & 0x7c00) == 0x7c00) {  // infinity, or NaN made quiet
    const std::uint32_t quiet = (word & 0x03ff) != 0 ? 0x400000 : 0;
    return std::bit_cast<float>(sign | 0x7f800000 | (magnitude & 0x7fffff) | quiet);
  }
  return std::bit_cast<float>(
      sign | std::bit_cast<std::uint32_t>(std::bit_cast<float>(magnitude) * 0x1p112F));
}

inline std::uint16_t float_to_half(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const auto sign = static_cast<std::uint16_t>((bits >> 16) & 0x8000);
  const std::uint32_t magnitude = bits & 0x7fffffff;
  std::uint32_t half;
  if (magnitude > 0x7f800000) {
    half = 0x7e00 | ((magnitude >> 13) & 0x3ff);  // NaN, quiet, as F16C makes it
  } else if (magnitude >= 0x47800000) {           // 65536 and up
    half = 0x7c00;
  } else if (magnitude >= 0x38800000) {  // normal: rebias, round, perhaps carry into infinity
    half = (magnitude - 0x38000000 + 0xfff + ((magnitude >> 13) & 1)) >> 13;
  } else {
    // Subnormal: adding 0.5 makes the floating-point unit round at a half's last place, 2^-24.
    half = std::bit_cast<std::uint32_t>(std::bit_cast<float>(magnitude) + 0.5F) - 0x3f000000;
  }
  return static_cast<std::uint16_t>(sign | half);
}

}  // namespace minitorch::kernels
