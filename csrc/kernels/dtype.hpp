// What an array's elements are and how two of them become one: the vocabulary of all floors above.
#pragma once

#include <cstddef>
#include <cstdint>

namespace minitorch {

enum class Dtype : std::uint8_t { kFloat32, kFloat64, kFloat16, kBFloat16, kInt32, kInt64, kUInt8 };

enum class ReduceOp : std::uint8_t { kSum, kProduct, kMin, kMax };

constexpr std::size_t size_of(Dtype dtype) {
  switch (dtype) {
    case Dtype::kFloat64:
    case Dtype::kInt64:
      return 8;
    case Dtype::kFloat32:
    case Dtype::kInt32:
      return 4;
    case Dtype::kFloat16:
    case Dtype::kBFloat16:
      return 2;
    case Dtype::kUInt8:
      return 1;
  }
  return 1;
}

constexpr bool is_floating_point(Dtype dtype) {
  return dtype <= Dtype::kBFloat16;
}

constexpr const char* name_of(Dtype dtype) {
  switch (dtype) {
    case Dtype::kFloat32:
      return "float32";
    case Dtype::kFloat64:
      return "float64";
    case Dtype::kFloat16:
      return "float16";
    case Dtype::kBFloat16:
      return "bfloat16";
    case Dtype::kInt32:
      return "int32";
    case Dtype::kInt64:
      return "int64";
    case Dtype::kUInt8:
      return "uint8";
  }
  return "dtype?";
}

constexpr const char* name_of(ReduceOp op) {
  switch (op) {
    case ReduceOp::kSum:
      return "sum";
    case ReduceOp::kProduct:
      return "product";
    case ReduceOp::kMin:
      return "min";
    case ReduceOp::kMax:
      return "max";
  }
  return "op?";
}

}  // namespace minitorch
