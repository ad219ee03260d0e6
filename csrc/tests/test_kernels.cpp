// The hot loops: every operation and dtype against the plain formula, all 65536 halves, edge
// values.
#include <array>
#include <bit>
#include <cstring>
#include <limits>
#include <vector>

#include "check.hpp"
#include "kernels/half.hpp"
#include "kernels/kernels.hpp"

using namespace minitorch;

namespace {

constexpr std::array kOps = {ReduceOp::kSum, ReduceOp::kProduct, ReduceOp::kMin, ReduceOp::kMax};

template <class T>
T plain(ReduceOp op, T a, T b) {
  switch (op) {
    case ReduceOp::kSum:
      return static_cast<T>(a + b);
    case ReduceOp::kProduct:
      return static_cast<T>(a * b);
    case ReduceOp::kMin:
      return a < b ? a : b;
    case ReduceOp::kMax:
      return a > b ? a : b;
  }
  return a;
}

template <class T>
void check_reduce(Dtype dtype) {
  for (const std::size_t n : {0, 1, 7, 8, 9, 255, 256, 257, 1000}) {
    std::vector<T> a(n), b(n), out(n), expected(n);
    for (std::size_t i = 0; i < n; ++i) {
      a[i] = static_cast<T>(i % 11);
      b[i] = static_cast<T>((3 * i + 1) % 13);
    }
    for (const ReduceOp op : kOps) {
      for (std::size_t i = 0; i < n; ++i) expected[i] = plain(op, a[i], b[i]);
      kernels::reduce(op, dtype, out.data(), a.data(), b.data(), n);
      CHECK_EQUAL(out, expected);
      auto in_place = a;  // out may be a, or b
      kernels::reduce(op, dtype, in_place.data(), in_place.data(), b.data(), n);
      CHECK_EQUAL(in_place, expected);
      in_place = b;
      kernels::reduce(op, dtype, in_place.data(), a.data(), in_place.data(), n);
      CHECK_EQUAL(in_place, expected);
    }
  }
}

}  // namespace

TEST(reduce_every_dtype) {
  check_reduce<float>(Dtype::kFloat32);
  check_reduce<double>(Dtype::kFloat64);
  check_reduce<std::int32_t>(Dtype::kInt32);
  check_reduce<std::int64_t>(Dtype::kInt64);
  check_reduce<std::uint8_t>(Dtype::kUInt8);
}

TEST(integers_wrap) {
  std::int32_t a = std::numeric_limits<std::int32_t>::max(), one = 1, out = 0;
  kernels::reduce(ReduceOp::kSum, Dtype::kInt32, &out, &a, &one, 1);
  CHECK_EQUAL(out, std::numeric_limits<std::int32_t>::min());
  std::uint8_t x = 200, y = 100, z = 0;
  kernels::reduce(ReduceOp::kSum, Dtype::kUInt8, &z, &x, &y, 1);
  CHECK_EQUAL(static_cast<int>(z), 44);
}

TEST(not_a_number_stays) {
  const float nan = std::numeric_limits<float>::quiet_NaN(), one = 1;
  for (const ReduceOp op : kOps) {
    float out = 0;
    kernels::reduce(op, Dtype::kFloat32, &out, &nan, &one, 1);
    CHECK(std::isnan(out));
    kernels::reduce(op, Dtype::kFloat32, &out, &one, &nan, 1);
    CHECK(std::isnan(out));
  }
}

TEST(scale_is_one_more_rounding) {
  std::vector<float> a(100, 0.1F), b(100, 0.2F), out(100);
  kernels::reduce_scaled(ReduceOp::kSum, Dtype::kFloat32, out.data(), a.data(), b.data(), 100,
                         1.0 / 3);
  CHECK_EQUAL(out, std::vector<float>(100, (0.1F + 0.2F) * static_cast<float>(1.0 / 3)));
  kernels::copy_scaled(Dtype::kFloat32, out.data(), a.data(), 100, 0.5);
  CHECK_EQUAL(out, std::vector<float>(100, 0.05F));
  std::vector<double> d(100, 3.0);
  kernels::copy_scaled(Dtype::kFloat64, d.data(), d.data(), 100, 1.0 / 3);
  CHECK_EQUAL(d, std::vector<double>(100, 3.0 * (1.0 / 3)));
  std::int32_t i = 1;
  CHECK_THROWS(kernels::copy_scaled(Dtype::kInt32, &i, &i, 1, 0.5), std::invalid_argument);
  CHECK_THROWS(kernels::reduce_scaled(ReduceOp::kSum, Dtype::kInt32, &i, &i, &i, 1, 0.5),
               std::invalid_argument);
}

TEST(half_there_and_back) {
  std::vector<std::uint16_t> words(65536), back(65536);
  for (std::size_t i = 0; i < words.size(); ++i) words[i] = static_cast<std::uint16_t>(i);
  std::vector<float> values(65536);
  kernels::half_to_float(values.data(), words.data(), words.size());
  kernels::float_to_half(back.data(), values.data(), values.size());
  for (std::size_t i = 0; i < words.size(); ++i) {
    const bool nan = (i & 0x7fff) > 0x7c00;
    CHECK_EQUAL(back[i], nan ? words[i] | 0x200 : words[i]);
    // The portable conversions and this machine's give the same bits.
    CHECK_EQUAL(std::bit_cast<std::uint32_t>(kernels::half_to_float(words[i])),
                std::bit_cast<std::uint32_t>(values[i]));
    CHECK_EQUAL(kernels::float_to_half(values[i]), back[i]);
  }
  CHECK_EQUAL(values[0x3c00], 1.0F);
  CHECK_EQUAL(values[0x0001], 0x1p-24F);
  CHECK_EQUAL(values[0x7bff], 65504.0F);
}

TEST(half_rounds_to_nearest_even) {
  const auto half = [](float value) {
    return kernels::half_to_float(kernels::float_to_half(value));
  };
  CHECK_EQUAL(half(2049.0F), 2048.0F);  // ties to even
  CHECK_EQUAL(half(2051.0F), 2052.0F);
  CHECK_EQUAL(half(65519.0F), 65504.0F);
  CHECK(std::isinf(half(65520.0F)));
  CHECK_EQUAL(half(0x1p-25F), 0.0F);
  CHECK_EQUAL(half(0x1.8p-25F), 0x1p-24F);
  // Between neighbours the two variants agree too.
  std::vector<float> values;
  for (std::uint32_t bits = 0; bits < 0x7f800000; bits += 40009)
    values.push_back(std::bit_cast<float>(bits));
  std::vector<std::uint16_t> words(values.size());
  kernels::float_to_half(words.data(), values.data(), values.size());
  for (std::size_t i = 0; i < values.size(); ++i)
    CHECK_EQUAL(words[i], kernels::float_to_half(values[i]));
}

TEST(bfloat16_rounds_to_nearest_even) {
  const auto brain = [](float value) {
    return kernels::bfloat16_to_float(kernels::float_to_bfloat16(value));
  };
  CHECK_EQUAL(brain(1.0F), 1.0F);
  CHECK_EQUAL(brain(257.0F), 256.0F);
  CHECK_EQUAL(brain(259.0F), 260.0F);
  CHECK(std::isinf(brain(std::numeric_limits<float>::max())));
  CHECK(std::isnan(brain(std::bit_cast<float>(0x7f800001U))));
}

TEST(sixteen_bits_add_in_float32_and_round_once) {
  const auto word = [](float value) { return kernels::float_to_half(value); };
  // 1 + 2^-11 is a tie; times 3 the exact 3.00146484375 rounds up, a rounded sum would give 3.
  std::vector<std::uint16_t> a(20, word(1.0F)), b(20, word(0x1p-11F)), out(20);
  kernels::reduce_scaled(ReduceOp::kSum, Dtype::kFloat16, out.data(), a.data(), b.data(), 20, 3.0);
  CHECK_EQUAL(out, std::vector<std::uint16_t>(20, word(3.001953125F)));
  std::vector<std::uint16_t> x(20, kernels::float_to_bfloat16(3.0F)), y(20);
  kernels::copy_scaled(Dtype::kBFloat16, y.data(), x.data(), 20, 0.5);
  CHECK_EQUAL(y, std::vector<std::uint16_t>(20, kernels::float_to_bfloat16(1.5F)));
}

TEST(copy_moves_every_byte_and_no_other) {
  for (const std::size_t n : {0, 1, 31, 127, 128, 129, 1000, 4096, 70001})
    for (const std::size_t shift : {0, 1, 16, 63}) {
      std::vector<std::uint8_t> in(n + 64), out(n + 128, 0xee);
      for (std::size_t i = 0; i < in.size(); ++i) in[i] = static_cast<std::uint8_t>(i * 13 + 5);
      kernels::copy_bytes(out.data() + shift, in.data() + 7, n);
      for (std::size_t i = 0; i < out.size(); ++i) {
        const bool inside = i >= shift && i < shift + n;
        const std::uint8_t expected = inside ? in[i - shift + 7] : std::uint8_t{0xee};
        if (out[i] != expected) {
          CHECK_EQUAL(static_cast<int>(out[i]), static_cast<int>(expected));
          break;
        }
      }
    }
}
