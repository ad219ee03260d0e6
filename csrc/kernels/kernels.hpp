// The hot loops: reduce, scale, convert. Each has a portable form and, on x86-64, one for AVX2 and
// F16C that is chosen at run time, so that one binary runs everywhere. Both give the same bits.
//
// float16 and bfloat16 are added, multiplied and scaled in float32 and rounded once, to nearest
// even. Sums and products of integers wrap. A NaN on either side makes min and max NaN.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/dtype.hpp"

namespace minitorch::kernels {

// out[i] = a[i] op b[i]; out may be a or b.
void reduce(ReduceOp op, Dtype dtype, void* out, const void* a, const void* b,
            std::size_t elements);

// out[i] = (a[i] op b[i]) * scale, in one pass over memory. Floating point only, unless scale is 1.
void reduce_scaled(ReduceOp op, Dtype dtype, void* out, const void* a, const void* b,
                   std::size_t elements, double scale);

// out[i] = in[i] * scale; out may be in. A plain copy if scale is 1, else floating point only.
void copy_scaled(Dtype dtype, void* out, const void* in, std::size_t elements, double scale);

// memcpy with plain vector loads and stores. The `rep movsb` that the C library uses for lengths
// from a few KiB to a few hundred is ten times slower on some processors (AMD Zen 3 and 4) when
// source and destination differ modulo 64, which slots of a bucket usually do.
void copy_bytes(void* out, const void* in, std::size_t bytes);

void float_to_half(std::uint16_t* out, const float* in, std::size_t elements);
void half_to_float(float* out, const std::uint16_t* in, std::size_t elements);
void float_to_bfloat16(std::uint16_t* out, const float* in, std::size_t elements);
void bfloat16_to_float(float* out, const std::uint16_t* in, std::size_t elements);

// "avx2" or "portable": what the loops above run on this machine.
const char* instruction_set();

}  // namespace minitorch::kernels
