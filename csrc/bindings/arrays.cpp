#include "bindings/arrays.hpp"

#include <atomic>
#include <mutex>
#include <string>
#include <vector>

namespace minitorch::bindings {
namespace {

// Never destroyed: references may still be dropped while the process ends.
struct Graveyard {
  std::mutex mutex;
  std::vector<PyObject*> objects;
  std::atomic<bool> empty{true};

  void bury(PyObject* object) {
    if (object == nullptr) return;
    const std::lock_guard lock(mutex);
    objects.push_back(object);
    empty.store(false, std::memory_order_release);
  }
};

Graveyard& graveyard() {
  static Graveyard* const graveyard = new Graveyard;
  return *graveyard;
}

std::string type_name(py::handle object) {
  return py::str(py::type::handle_of(object).attr("__name__"));
}

// NumPy's type numbers (NPY_TYPES) are part of its ABI.
std::optional<Dtype> dtype_of(const py::dtype& dtype) {
  switch (dtype.num()) {
    case 0:  // bool
    case 2:  // uint8
      return Dtype::kUInt8;
    case 11:
      return Dtype::kFloat32;
    case 12:
      return Dtype::kFloat64;
    case 23:
      return Dtype::kFloat16;
    case 5:  // int
      return Dtype::kInt32;
    case 7:  // long: 32 bits on some platforms
    case 9:  // long long
      return dtype.itemsize() == 8 ? Dtype::kInt64 : Dtype::kInt32;
    default:
      return std::nullopt;
  }
}

[[noreturn]] void throw_dtype(const char* name, const py::dtype& dtype) {
  throw py::type_error(std::string(name) + ": cannot reduce dtype " + std::string(py::str(dtype)) +
                       "; supported are float32, float64, float16, bfloat16, int32, int64, uint8");
}

}  // namespace

View view(py::handle object, const char* name, Access access, Use use, std::string_view as) {
  if (!py::isinstance<py::array>(object))
    throw py::type_error(std::string(name) + ": expected a NumPy array, not " + type_name(object));
  const auto array = py::reinterpret_borrow<py::array>(object);
  if ((array.flags() & py::array::c_style) == 0)
    throw py::value_error(std::string(name) +
                          ": the array must be C-contiguous (numpy.ascontiguousarray)");
  if (access == Access::kWrite && !array.writeable())
    throw py::value_error(std::string(name) + ": the array is read-only");

  View result;
  result.data = const_cast<void*>(array.data());
  result.elements = static_cast<std::size_t>(array.size());
  const py::dtype dtype = array.dtype();
  const auto item = static_cast<std::size_t>(dtype.itemsize());
  if (!as.empty()) {
    result.dtype = dtype_named(as);
    if (size_of(result.dtype) != item)
      throw py::type_error(std::string(name) + ": an array of dtype " +
                           std::string(py::str(dtype)) + " cannot hold " + std::string(as));
    return result;
  }
  if (const auto known = dtype_of(dtype)) {
    result.dtype = *known;
  } else if (std::string(py::str(dtype)) == "bfloat16") {  // ml_dtypes
    result.dtype = Dtype::kBFloat16;
  } else if (use == Use::kMove && !dtype.attr("hasobject").cast<bool>()) {
    result.dtype = Dtype::kUInt8;
    result.elements *= item;
  } else {
    throw_dtype(name, dtype);
  }
  return result;
}

std::shared_ptr<void> keep(py::handle first, py::handle second) {
  struct Kept {
    PyObject *first, *second;
    Kept(PyObject* a, PyObject* b) : first(a), second(b) {
      Py_XINCREF(first);
      Py_XINCREF(second);
    }
    Kept(const Kept&) = delete;
    Kept& operator=(const Kept&) = delete;
    ~Kept() {
      graveyard().bury(first);
      graveyard().bury(second);
    }
  };
  return std::make_shared<Kept>(first.ptr(), second.ptr());
}

void sweep() {
  Graveyard& yard = graveyard();
  if (yard.empty.load(std::memory_order_acquire)) return;
  std::vector<PyObject*> objects;
  {
    const std::lock_guard lock(yard.mutex);
    objects.swap(yard.objects);
    yard.empty.store(true, std::memory_order_release);
  }
  for (PyObject* object : objects) Py_DECREF(object);
}

Dtype dtype_named(std::string_view name) {
  for (int i = 0; i <= static_cast<int>(Dtype::kUInt8); ++i)
    if (name == name_of(static_cast<Dtype>(i))) return static_cast<Dtype>(i);
  throw py::value_error("unknown dtype '" + std::string(name) + "'");
}

ReduceOp reduce_op_named(std::string_view name) {
  for (int i = 0; i <= static_cast<int>(ReduceOp::kMax); ++i)
    if (name == name_of(static_cast<ReduceOp>(i))) return static_cast<ReduceOp>(i);
  throw py::value_error("unknown reduction '" + std::string(name) +
                        "'; known are sum, product, min, max (a mean is a sum with scale=1/W)");
}

}  // namespace minitorch::bindings
