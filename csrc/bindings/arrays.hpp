// NumPy arrays on their way into C++: checked, never copied, kept alive without the GIL.
#pragma once

#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>

#include <cstddef>
#include <memory>
#include <optional>
#include <string_view>

#include "kernels/dtype.hpp"

namespace minitorch::bindings {

namespace py = pybind11;

struct View {
  void* data = nullptr;
  std::size_t elements = 0;
  Dtype dtype = Dtype::kUInt8;
};

enum class Access { kRead, kWrite };

// What is done with the elements: only reductions need to understand them, anything else moves
// bytes.
enum class Use { kReduce, kMove };

// Looks into a NumPy array; throws TypeError or ValueError, naming `name`, if it is none, is not
// C-contiguous, is read-only (for kWrite) or has a dtype that cannot be used. `dtype` (or "") says
// what the elements are if NumPy cannot: "bfloat16" for an array of 16-bit words.
View view(py::handle array, const char* name, Access access, Use use, std::string_view dtype = {});

// A reference that any thread may drop: the last owner puts the object into a graveyard, which
// Python threads empty (see sweep). The engine's thread so never needs the GIL.
std::shared_ptr<void> keep(py::handle first, py::handle second = {});

// Drops what is in the graveyard. The GIL is held.
void sweep();

Dtype dtype_named(std::string_view name);  // throws ValueError
ReduceOp reduce_op_named(
    std::string_view name);  // "sum", "product", "min", "max"; throws ValueError

}  // namespace minitorch::bindings
