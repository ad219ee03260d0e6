#include "reducer/bucket.hpp"

#include <algorithm>
#include <cstring>
#include <new>
#include <stdexcept>

namespace minitorch {
namespace {

constexpr std::align_val_t kAlignment{64};
constexpr std::size_t kNamesInLabel = 4;

std::string label_of(std::size_t index, const std::vector<std::size_t>& members,
                     const std::vector<Parameter>& parameters) {
  std::string label = "bucket " + std::to_string(index) + " [";
  for (std::size_t i = 0; i < std::min(members.size(), kNamesInLabel); ++i) {
    label += (i == 0 ? "" : ", ") + parameters[members[i]].name;
  }
  if (members.size() > kNamesInLabel)
    label += ", and " + std::to_string(members.size() - kNamesInLabel) + " more";
  return label + "]";
}

}  // namespace

Memory allocate_aligned(std::size_t bytes) {
  const std::size_t size = std::max<std::size_t>(bytes, 1);
  auto* address = static_cast<std::byte*>(::operator new(size, kAlignment));
  std::memset(address, 0, size);
  return Memory(address, [](std::byte* p) { ::operator delete(p, kAlignment); });
}

Bucket::Bucket(std::size_t index, std::size_t limit, const std::vector<std::size_t>& members,
               const std::vector<Parameter>& parameters)
    : index_(index), limit_(limit) {
  if (members.empty())
    throw std::invalid_argument("bucket " + std::to_string(index) + " holds no parameter");
  dtype_ = parameters.at(members.front()).dtype;
  element_bytes_ = size_of(dtype_);
  sparse_ = parameters[members.front()].sparse;
  for (const std::size_t member : members) {
    const Parameter& parameter = parameters.at(member);
    if (parameter.dtype != dtype_) {
      throw std::invalid_argument(
          "All parameters in a bucket must have the same dtype: bucket " + std::to_string(index) +
          " holds " + parameters[members.front()].name + " (" + name_of(dtype_) + ") and " +
          parameter.name + " (" + name_of(parameter.dtype) + ").");
    }
    if (members.size() > 1 && parameter.sparse) {
      throw std::invalid_argument("bucket " + std::to_string(index) + ": " + parameter.name +
                                  " has sparse gradients, and needs a bucket of its own.");
    }
    slots_.push_back({member, elements_, parameter.elements});
    elements_ += parameter.elements;
  }
  bytes_ = elements_ * element_bytes_;
  memory_ = allocate_aligned(sparse_ ? 0 : bytes_);
  label_ = label_of(index, members, parameters);
}

}  // namespace minitorch
