// One bucket: a flat, aligned buffer, and where in it each gradient lives.
//
// The buffer belongs to a shared_ptr that travels: the reducer holds one reference, the collective
// in flight another, and every Python view (`.grad` under gradient_as_bucket_view) a third. It so
// outlives the reducer, and a rebuild does not pull it away from under a gradient that still points
// into it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "collectives/channel.hpp"

namespace minitorch {

struct Parameter {  // what the reducer needs to know of one managed parameter
  std::string name;
  Dtype dtype;
  std::size_t elements;
  bool sparse = false;  // its gradient holds some rows only, and travels alone
};

struct Slot {             // where one parameter's gradient lives in its bucket
  std::size_t parameter;  // index into the reducer's parameters
  std::size_t offset;     // in elements
  std::size_t elements;
};

using Memory = std::shared_ptr<std::byte>;
// Zeroed and aligned for any vector unit; at least one byte, so that the address is never null.
Memory allocate_aligned(std::size_t bytes);

class Bucket {
 public:
  // Lays the parameters one after the other. A sparse parameter gets a bucket without memory: its
  // indices and values live elsewhere. Throws std::invalid_argument when dtypes differ, since a
  // flat buffer has one, or when a sparse parameter is not alone.
  Bucket(std::size_t index, std::size_t limit, const std::vector<std::size_t>& members,
         const std::vector<Parameter>& parameters);

  std::size_t index() const { return index_; }
  std::size_t limit() const { return limit_; }  // the size limit it was closed under, in bytes
  Dtype dtype() const { return dtype_; }
  std::size_t elements() const { return elements_; }
  std::size_t bytes() const { return bytes_; }  // of a sparse bucket: were it dense
  bool sparse() const { return sparse_; }
  const std::vector<Slot>& slots() const { return slots_; }
  const Memory& memory() const { return memory_; }
  std::byte* address(const Slot& slot) const {
    return memory_.get() + slot.offset * element_bytes_;
  }
  // "bucket 0 [fc.bias, fc.weight]": how errors and timelines call it.
  const std::string& label() const { return label_; }

 private:
  std::size_t index_;
  std::size_t limit_;
  Dtype dtype_{};
  std::size_t element_bytes_ = 0;
  std::size_t elements_ = 0;
  std::size_t bytes_ = 0;
  bool sparse_ = false;
  std::vector<Slot> slots_;
  Memory memory_;
  std::string label_;
};

}  // namespace minitorch
