// SAGA's inner loop, for arrays that Python holds: sizes and dtypes are checked here, before a
// number is written; the loop runs without the GIL.
#include "kernels/saga.hpp"

#include <optional>
#include <string>

#include "bindings/arrays.hpp"
#include "bindings/bind.hpp"

namespace minitorch::bindings {
namespace {

using kernels::Loss;

Loss loss_named(const std::string& name) {
  if (name == "squared") return Loss::kSquared;
  if (name == "logistic") return Loss::kLogistic;
  if (name == "smoothed_hinge") return Loss::kSmoothedHinge;
  if (name == "softmax") return Loss::kSoftmax;
  throw py::value_error("saga: unknown loss '" + name +
                        "'; there are squared, logistic, smoothed_hinge, softmax");
}

// The data of an array of `elements` elements of this dtype; throws otherwise.
template <class T>
T* data_of(const py::object& array, const char* name, Dtype dtype, std::int64_t elements,
           Access access = Access::kRead) {
  const View seen = view(array, name, access, Use::kReduce);
  if (seen.dtype != dtype)
    throw py::type_error(std::string("saga: ") + name + " has the wrong dtype");
  if (static_cast<std::int64_t>(seen.elements) != elements)
    throw py::value_error(std::string("saga: ") + name + " has " + std::to_string(seen.elements) +
                          " elements, expected " + std::to_string(elements));
  return static_cast<T*>(seen.data);
}

// What Python passes: (values,) or (values, columns, offsets), and the state by name.
struct Arguments {
  py::tuple rows;
  py::object targets, weights, scales, indices, coef, intercept, table, mean, mean_intercept;
  std::string loss;
  std::int64_t samples, features, outputs;
  double step, l1, before, after, smoothing, intercept_rate;
  bool checked;
};

template <class T>
void check_rows(const kernels::SagaProblem<T>& p, std::int64_t entries) {
  bool sound = p.offsets[0] == 0 && p.offsets[p.samples] == entries;
  for (std::int64_t i = 0; sound && i < p.samples; ++i) {
    sound = p.offsets[i] <= p.offsets[i + 1] && p.offsets[i + 1] <= entries;
    for (std::int64_t e = p.offsets[i]; sound && e < p.offsets[i + 1]; ++e)
      sound = p.columns[e] >= 0 && p.columns[e] < p.features;
  }
  if (!sound) throw py::value_error("saga: columns or offsets do not describe a CSR matrix");
}

template <class T>
void run(const Arguments& a, Dtype dtype) {
  const std::int64_t n = a.samples, d = a.features, outputs = a.outputs;
  kernels::SagaProblem<T> p;
  p.loss = loss_named(a.loss);
  p.smoothing = a.smoothing;
  p.samples = n, p.features = d, p.outputs = outputs;
  if (a.rows.size() == 1) {
    p.values = data_of<T>(a.rows[0], "values", dtype, n * d);
  } else if (a.rows.size() == 3) {
    const auto entries = static_cast<std::int64_t>(py::len(a.rows[0]));
    p.values = data_of<T>(a.rows[0], "values", dtype, entries);
    p.columns = data_of<std::int32_t>(a.rows[1], "columns", Dtype::kInt32, entries);
    p.offsets = data_of<std::int64_t>(a.rows[2], "offsets", Dtype::kInt64, n + 1);
    if (!a.checked) check_rows(p, entries);
  } else {
    throw py::value_error("saga: rows must be (values,) or (values, columns, offsets)");
  }
  const bool one_target_each = p.loss != Loss::kSquared;
  p.targets = data_of<T>(a.targets, "targets", dtype, one_target_each ? n : n * outputs);
  if (!a.weights.is_none()) p.weights = data_of<T>(a.weights, "weights", dtype, n);
  p.step = a.step, p.l1 = a.l1, p.before = a.before, p.after = a.after;
  p.intercept = !a.intercept.is_none();
  p.intercept_rate = a.intercept_rate;
  if (p.loss == Loss::kSoftmax) {
    for (std::int64_t i = 0; i < n; ++i)
      if (!(p.targets[i] >= 0 && p.targets[i] < static_cast<T>(outputs)))
        throw py::value_error("saga: a softmax target is no class number");
  } else if (p.loss != Loss::kSquared && outputs != 1) {
    throw py::value_error("saga: the loss '" + a.loss + "' has one output");
  }

  kernels::SagaState<T> s;
  s.coef = data_of<T>(a.coef, "coef", dtype, outputs * d, Access::kWrite);
  s.table = data_of<T>(a.table, "table", dtype, n * outputs, Access::kWrite);
  s.mean = data_of<T>(a.mean, "mean", dtype, outputs * d, Access::kWrite);
  if (p.intercept) {
    s.intercept = data_of<T>(a.intercept, "intercept", dtype, outputs, Access::kWrite);
    s.mean_intercept =
        data_of<T>(a.mean_intercept, "mean_intercept", dtype, outputs, Access::kWrite);
  }
  const T* scales = a.scales.is_none() ? nullptr : data_of<T>(a.scales, "scales", dtype, n);
  const auto steps = static_cast<std::int64_t>(py::len(a.indices));
  const auto* indices = data_of<std::int64_t>(a.indices, "indices", Dtype::kInt64, steps);
  const py::gil_scoped_release release;
  kernels::saga(p, s, indices, steps, scales);
}

}  // namespace

void bind_saga(py::module_& module) {
  module.def(
      "saga",
      [](py::tuple rows, py::object targets, py::object indices, py::object coef, py::object table,
         py::object mean, const std::string& loss, std::int64_t samples, std::int64_t features,
         std::int64_t outputs, double step, double l1, double before, double after,
         double smoothing, double intercept_rate, py::object weights, py::object scales,
         py::object intercept, py::object mean_intercept, bool checked) {
        if (samples < 1 || features < 0 || outputs < 1)
          throw py::value_error("saga: needs at least one sample and one output");
        if (!(step > 0 && l1 >= 0 && before > 0 && after > 0 && smoothing > 0 &&
              intercept_rate > 0))
          throw py::value_error(
              "saga: step, before, after, smoothing and intercept_rate must be positive, l1 not "
              "negative");
        const Arguments arguments{
            rows,  targets, weights,        scales, indices,   coef,           intercept,
            table, mean,    mean_intercept, loss,   samples,   features,       outputs,
            step,  l1,      before,         after,  smoothing, intercept_rate, checked};
        const Dtype dtype = view(coef, "coef", Access::kWrite, Use::kReduce).dtype;
        if (dtype == Dtype::kFloat64)
          run<double>(arguments, dtype);
        else if (dtype == Dtype::kFloat32)
          run<float>(arguments, dtype);
        else
          throw py::type_error("saga: computes in float32 or float64");
      },
      py::arg("rows"), py::arg("targets"), py::arg("indices"), py::arg("coef"), py::arg("table"),
      py::arg("mean"), py::kw_only(), py::arg("loss"), py::arg("samples"), py::arg("features"),
      py::arg("outputs"), py::arg("step"), py::arg("l1") = 0.0, py::arg("before") = 1.0,
      py::arg("after") = 1.0, py::arg("smoothing") = 1.0, py::arg("intercept_rate") = 1.0,
      py::arg("weights") = py::none(), py::arg("scales") = py::none(),
      py::arg("intercept") = py::none(), py::arg("mean_intercept") = py::none(),
      py::arg("checked") = false,
      "SAGA steps of a linear model on the samples `indices`, one after the other. coef, table, "
      "mean, intercept and mean_intercept change in place; rows are (values,) or (values, columns "
      "int32, offsets int64). checked says that an earlier call has seen these very columns and "
      "offsets.");
}

}  // namespace minitorch::bindings
