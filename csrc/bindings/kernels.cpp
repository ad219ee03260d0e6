// The hot loops, for arrays that Python holds.
#include "kernels/kernels.hpp"

#include "bindings/arrays.hpp"
#include "bindings/bind.hpp"

namespace minitorch::bindings {
namespace {

void check_same(const View& a, const View& b, const char* what) {
  if (a.elements != b.elements || a.dtype != b.dtype)
    throw py::value_error(std::string(what) + ": arrays differ in size or dtype");
}

void convert(const View& to, const View& from) {
  const auto words = [](void* data) { return static_cast<std::uint16_t*>(data); };
  const auto floats = [](void* data) { return static_cast<float*>(data); };
  if (from.dtype == Dtype::kFloat32 && to.dtype == Dtype::kFloat16)
    return kernels::float_to_half(words(to.data), floats(from.data), to.elements);
  if (from.dtype == Dtype::kFloat32 && to.dtype == Dtype::kBFloat16)
    return kernels::float_to_bfloat16(words(to.data), floats(from.data), to.elements);
  if (from.dtype == Dtype::kFloat16 && to.dtype == Dtype::kFloat32)
    return kernels::half_to_float(floats(to.data), words(from.data), to.elements);
  if (from.dtype == Dtype::kBFloat16 && to.dtype == Dtype::kFloat32)
    return kernels::bfloat16_to_float(floats(to.data), words(from.data), to.elements);
  throw std::invalid_argument(std::string("convert: from ") + name_of(from.dtype) + " to " +
                              name_of(to.dtype) +
                              " is not among float32 <-> float16, float32 <-> bfloat16");
}

}  // namespace

void bind_kernels(py::module_& module) {
  module.def("instruction_set", &kernels::instruction_set,
             "Which variant of the hot loops this machine runs: \"avx2\" or \"portable\".");

  module.def(
      "reduce_into",
      [](py::object out, py::object a, py::object b, std::string_view op, double scale,
         std::string_view dtype) {
        const View to = view(out, "out", Access::kWrite, Use::kReduce, dtype);
        const View x = view(a, "a", Access::kRead, Use::kReduce, dtype);
        const View y = view(b, "b", Access::kRead, Use::kReduce, dtype);
        check_same(to, x, "reduce_into");
        check_same(to, y, "reduce_into");
        const ReduceOp how = reduce_op_named(op);
        const py::gil_scoped_release release;
        kernels::reduce_scaled(how, to.dtype, to.data, x.data, y.data, to.elements, scale);
      },
      py::arg("out"), py::arg("a"), py::arg("b"), py::arg("op") = "sum", py::arg("scale") = 1.0,
      py::arg("dtype") = "",
      "out = (a op b) * scale. 16-bit floats compute in float32 and round once.");

  module.def(
      "convert",
      [](py::object out, py::object in, std::string_view out_dtype, std::string_view in_dtype) {
        const View to = view(out, "out", Access::kWrite, Use::kReduce, out_dtype);
        const View from = view(in, "inp", Access::kRead, Use::kReduce, in_dtype);
        if (to.elements != from.elements) throw py::value_error("convert: arrays differ in size");
        const py::gil_scoped_release release;
        convert(to, from);
      },
      py::arg("out"), py::arg("inp"), py::arg("out_dtype") = "", py::arg("in_dtype") = "",
      "out = inp, between float32 and float16 or bfloat16; rounds to nearest even.");

  module.def(
      "copy_scaled",
      [](py::object out, py::object in, double scale, std::string_view dtype) {
        const View to = view(out, "out", Access::kWrite, Use::kReduce, dtype);
        const View from = view(in, "inp", Access::kRead, Use::kReduce, dtype);
        check_same(to, from, "copy_scaled");
        const py::gil_scoped_release release;
        kernels::copy_scaled(to.dtype, to.data, from.data, to.elements, scale);
      },
      py::arg("out"), py::arg("inp"), py::arg("scale") = 1.0, py::arg("dtype") = "",
      "out = inp * scale.");
}

}  // namespace minitorch::bindings
