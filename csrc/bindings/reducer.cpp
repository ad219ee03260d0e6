// `_core.Reducer` and the bucket assignment. The only place where the reducer meets Python.
//
// The GIL is released wherever it may take long: copying a big gradient, waiting for a bucket. A
// hook registered from Python is called with the GIL, on the rank's own thread.
#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "bindings/arrays.hpp"
#include "bindings/bind.hpp"
#include "bindings/waiting.hpp"
#include "reducer/reducer.hpp"

namespace py = pybind11;
using namespace pybind11::literals;

namespace minitorch {
namespace {

// Below this, copying is faster than letting go of the GIL and getting it back.
constexpr std::size_t kCopyWithoutGil = 256 * 1024;

// A Python object with launch(bucket) -> promise and wait(promise).
class PythonHook final : public CommunicationHook {
 public:
  explicit PythonHook(py::object hook) : hook_(std::move(hook)) {}
  ~PythonHook() override {
    py::gil_scoped_acquire gil;
    hook_ = py::object();
  }
  PythonHook(const PythonHook&) = delete;
  PythonHook& operator=(const PythonHook&) = delete;

  bool wants_division() const override { return false; }

  std::unique_ptr<Pending> launch(const Bucket& bucket) override {
    py::gil_scoped_acquire gil;
    return std::make_unique<Promise>(hook_.attr("wait"), hook_.attr("launch")(bucket.index()));
  }

 private:
  class Promise final : public Pending {
   public:
    Promise(py::object wait, py::object promise)
        : wait_(std::move(wait)), promise_(std::move(promise)) {}
    ~Promise() override {
      py::gil_scoped_acquire gil;
      wait_ = promise_ = py::object();
    }
    Promise(const Promise&) = delete;
    Promise& operator=(const Promise&) = delete;

    void wait(const WhileWaiting&) override {
      py::gil_scoped_acquire gil;
      wait_(promise_);
      finished_ = Trace::now_ns();
    }
    // What happens inside is the hook's business: from its launch until it was waited for.
    Nanoseconds started() const override { return started_; }
    Nanoseconds finished() const override { return finished_; }

   private:
    py::object wait_, promise_;
    Nanoseconds started_ = Trace::now_ns();
    Nanoseconds finished_ = 0;
  };

  py::object hook_;
};

// Reducer as Python uses it: gradients are arrays, memory is an array.
class PyReducer {
 public:
  PyReducer(std::shared_ptr<Group> group, const std::vector<std::string>& names,
            std::vector<py::dtype> dtypes, const std::vector<std::size_t>& elements,
            const std::vector<bool>& sparse, std::vector<std::vector<std::size_t>> indices,
            std::vector<std::size_t> limits, std::vector<std::size_t> rebuild_limits,
            bool find_unused_parameters, bool skip_unused_buckets)
      : dtypes_(std::move(dtypes)),
        reducer_(std::move(group), parameters(names, dtypes_, elements, sparse),
                 {std::move(indices), std::move(limits)},
                 {.rebuild_limits = std::move(rebuild_limits),
                  .find_unused_parameters = find_unused_parameters,
                  .skip_unused_buckets = skip_unused_buckets,
                  .while_waiting = &look_for_interrupt}) {}

  Reducer& core() { return reducer_; }

  bool mark_ready(std::size_t index, const py::object& gradient, bool unused) {
    if (!reducer_.armed()) return false;
    if (gradient.is_none()) return mark(index, nullptr, unused);
    const py::array array = checked(index, gradient);
    const void* data = array.data();
    if (!(array.flags() & py::array::c_style)) {
      // Only C order is copied by the core. NumPy writes any other into the slot, which the core
      // then scales.
      reducer_.require_unmarked(index);
      py::array slot = slot_array(index, array);
      py::module_::import("numpy").attr("copyto")(slot, array);
      data = slot.data();
    }
    if (static_cast<std::size_t>(array.nbytes()) < kCopyWithoutGil)
      return mark(index, data, unused);
    py::gil_scoped_release no_gil;
    return mark(index, data, unused);
  }

  py::array bucket_memory(std::size_t bucket) const {
    const Bucket& b = reducer_.buckets().at(bucket);
    return wrap(b.memory(), b.memory().get(), b.sparse() ? 0 : b.bytes());
  }

 private:
  bool mark(std::size_t index, const void* data, bool unused) {
    return unused ? reducer_.mark_unused_ready(index, data) : reducer_.mark_ready(index, data);
  }

  static void look_for_interrupt() {
    py::gil_scoped_acquire gil;
    if (PyErr_CheckSignals() != 0) throw py::error_already_set();
  }

  static std::vector<Parameter> parameters(const std::vector<std::string>& names,
                                           const std::vector<py::dtype>& dtypes,
                                           const std::vector<std::size_t>& elements,
                                           const std::vector<bool>& sparse) {
    if (names.size() != dtypes.size() || names.size() != elements.size() ||
        names.size() != sparse.size()) {
      throw py::value_error("Reducer: names, dtypes, elements and sparse must be equally many");
    }
    std::vector<Parameter> result;
    for (std::size_t i = 0; i < names.size(); ++i) {
      result.push_back({names[i], bindings::dtype_named(dtypes[i].attr("name").cast<std::string>()),
                        elements[i], sparse[i]});
    }
    return result;
  }

  // bytes as a uint8 array that keeps `memory` alive.
  static py::array wrap(const Memory& memory, std::byte* data, std::size_t bytes) {
    py::capsule owner(new Memory(memory), [](void* p) { delete static_cast<Memory*>(p); });
    return py::array_t<std::uint8_t>({static_cast<py::ssize_t>(bytes)},
                                     reinterpret_cast<std::uint8_t*>(data), owner);
  }

  py::array slot_array(std::size_t index, const py::array& like) const {
    const auto location = reducer_.location(index);
    const Bucket& bucket = reducer_.buckets()[location.bucket];
    const Slot& slot = bucket.slots()[location.slot];
    const py::array bytes =
        wrap(bucket.memory(), bucket.address(slot), static_cast<std::size_t>(like.nbytes()));
    return bytes.attr("view")(dtypes_[index]).attr("reshape")(like.attr("shape"));
  }

  py::array checked(std::size_t index, const py::object& gradient) const {
    const Parameter& parameter = reducer_.parameters().at(index);
    if (!py::isinstance<py::array>(gradient)) {
      throw py::type_error("Reducer: the gradient of " + parameter.name + " must be a NumPy array");
    }
    auto array = py::reinterpret_borrow<py::array>(gradient);
    if (!array.dtype().is(dtypes_[index]) && !array.dtype().equal(dtypes_[index])) {
      throw std::runtime_error(
          "Expected " + py::str(dtypes_[index]).cast<std::string>() + ", got " +
          py::str(array.dtype()).cast<std::string>() + ": the gradient of " + parameter.name +
          " has another dtype than the parameter had when DistributedDataParallel was built");
    }
    if (static_cast<std::size_t>(array.size()) != parameter.elements) {
      throw std::runtime_error("Expected a gradient of " + std::to_string(parameter.elements) +
                               " elements, got " + std::to_string(array.size()) + ", for " +
                               parameter.name);
    }
    return array;
  }

  std::vector<py::dtype> dtypes_;
  Reducer reducer_;
};

py::dict step_dict(const StepTimes& step) {
  py::list buckets;
  for (const BucketTimes& bucket : step.buckets) {
    buckets.append(py::dict("ready"_a = bucket.ready, "launched"_a = bucket.launched,
                            "started"_a = bucket.started, "finished"_a = bucket.finished,
                            "bytes"_a = bucket.bytes));
  }
  return py::dict("forward_start"_a = step.forward_start, "forward_end"_a = step.forward_end,
                  "backward_start"_a = step.backward_start, "compute_end"_a = step.compute_end,
                  "handed_back"_a = step.handed_back, "waited"_a = step.waited,
                  "buckets"_a = buckets);
}

py::dict overlap_dict(const Overlap& overlap) {
  return py::dict("forward"_a = overlap.forward, "backward"_a = overlap.backward,
                  "communication"_a = overlap.communication, "hidden"_a = overlap.hidden,
                  "exposed"_a = overlap.exposed);
}

py::tuple assign(const std::vector<std::size_t>& sizes, const py::list& dtypes,
                 const std::vector<std::size_t>& limits, const std::vector<bool>& expect_sparse,
                 const std::vector<std::size_t>& order) {
  if (dtypes.size() != sizes.size())
    throw py::value_error("bucket assignment: sizes and dtypes must be equally many");
  if (!expect_sparse.empty() && expect_sparse.size() != sizes.size()) {
    throw py::value_error(
        "bucket assignment: expect_sparse_gradient must be empty or name every tensor");
  }
  py::dict keys;
  std::vector<Piece> pieces;
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    const py::object key = keys.attr("setdefault")(dtypes[i], keys.size());
    pieces.push_back({sizes[i], key.cast<int>(), !expect_sparse.empty() && expect_sparse[i]});
  }
  const BucketAssignment assignment = compute_bucket_assignment_by_size(pieces, limits, order);
  return py::make_tuple(assignment.indices, assignment.limits);
}

}  // namespace
}  // namespace minitorch

void bind_reducer(py::module_& m) {
  using namespace minitorch;
  m.def("compute_bucket_assignment_by_size", &assign, "sizes"_a, "dtypes"_a, "limits"_a,
        "expect_sparse"_a = std::vector<bool>{}, "order"_a = std::vector<std::size_t>{},
        "Assign tensors to buckets greedily; return (indices, limits) per bucket.");

  const auto no_gil = py::call_guard<py::gil_scoped_release>();
  py::class_<PyReducer>(m, "Reducer", "The DDP reducer: gradients in, averaged gradients out.")
      .def(py::init<std::shared_ptr<Group>, const std::vector<std::string>&, std::vector<py::dtype>,
                    const std::vector<std::size_t>&, const std::vector<bool>&,
                    std::vector<std::vector<std::size_t>>, std::vector<std::size_t>,
                    std::vector<std::size_t>, bool, bool>(),
           "group"_a, "names"_a, "dtypes"_a, "elements"_a, "sparse"_a, "indices"_a, "limits"_a,
           py::kw_only(), "rebuild_limits"_a, "find_unused_parameters"_a = false,
           "skip_unused_buckets"_a = false)
      // Before and after forward.
      .def("ensure_finished", [](PyReducer& r) { r.core().ensure_finished(); })
      .def("unfinished", [](PyReducer& r) { return r.core().unfinished(); })
      .def(
          "rebuild_buckets", [](PyReducer& r) { return r.core().rebuild_buckets(); }, no_gil)
      .def(
          "divide_by", [](PyReducer& r, std::size_t ranks) { r.core().divide_by(ranks); },
          "ranks"_a)
      .def("mark_forward_start", [](PyReducer& r) { r.core().mark_forward_start(); })
      .def("prepare_for_backward", [](PyReducer& r) { r.core().prepare_for_backward(); })
      .def("prepare_for_flush", [](PyReducer& r) { r.core().prepare_for_flush(); })
      .def("prepare_for_shadow", [](PyReducer& r) { r.core().prepare_for_shadow(); })
      .def("set_static_graph", [](PyReducer& r) { r.core().set_static_graph(); })
      // During backward.
      .def_property_readonly("armed", [](PyReducer& r) { return r.core().armed(); })
      .def_property_readonly("started", [](PyReducer& r) { return r.core().started(); })
      .def("mark_backward_start", [](PyReducer& r) { r.core().mark_backward_start(); })
      .def(
          "mark_used", [](PyReducer& r, std::size_t index) { r.core().mark_used(index); },
          "index"_a)
      .def(
          "mark_fired", [](PyReducer& r, std::size_t index) { return r.core().mark_fired(index); },
          "index"_a)
      .def_property_readonly("learning", [](PyReducer& r) { return r.core().learning(); })
      .def_property_readonly("never_fired", [](PyReducer& r) { return r.core().never_fired(); })
      .def("mark_ready", &PyReducer::mark_ready, "index"_a, "gradient"_a, "unused"_a = false)
      .def("mark_pass_ended", [](PyReducer& r) { r.core().mark_pass_ended(); })
      // End of backward.
      .def_property_readonly("all_launched", [](PyReducer& r) { return r.core().draining(); })
      .def("begin_draining", [](PyReducer& r) { r.core().begin_draining(); })
      .def(
          "wait_bucket", [](PyReducer& r, std::size_t bucket) { r.core().wait_bucket(bucket); },
          "bucket"_a, no_gil)
      .def(
          "note_handed_back",
          [](PyReducer& r, std::size_t bucket, std::size_t bytes_copied) {
            r.core().note_handed_back(bucket, bytes_copied);
          },
          "bucket"_a, "bytes_copied"_a)
      .def_property_readonly("unused_here", [](PyReducer& r) { return r.core().unused_here(); })
      .def(
          "used_anywhere",
          [](PyReducer& r, std::size_t index) { return r.core().used_anywhere(index); }, "index"_a,
          no_gil)
      .def("finish", [](PyReducer& r) { r.core().finish(); })
      .def(
          "register_hook",
          [](PyReducer& r, py::object hook) {
            r.core().register_hook(std::make_unique<PythonHook>(std::move(hook)));
          },
          "hook"_a)
      .def(
          "set_sparse_hook",
          [](PyReducer& r, py::object hook) {
            r.core().set_sparse_hook(std::make_unique<PythonHook>(std::move(hook)));
          },
          "hook"_a)
      .def_property_readonly("division_factor",
                             [](PyReducer& r) { return r.core().division_factor(); })
      // To look at.
      .def("bucket_memory", &PyReducer::bucket_memory, "bucket"_a)
      .def(
          "is_sparse",
          [](PyReducer& r, std::size_t bucket) { return r.core().buckets().at(bucket).sparse(); },
          "bucket"_a)
      .def_property_readonly("bucket_indices",
                             [](PyReducer& r) {
                               std::vector<std::vector<std::size_t>> indices;
                               for (const Bucket& bucket : r.core().buckets()) {
                                 auto& members = indices.emplace_back();
                                 for (const Slot& slot : bucket.slots())
                                   members.push_back(slot.parameter);
                               }
                               return indices;
                             })
      .def_property_readonly("bucket_sizes",
                             [](PyReducer& r) {
                               std::vector<std::size_t> sizes;
                               for (const Bucket& bucket : r.core().buckets())
                                 sizes.push_back(bucket.bytes());
                               return sizes;
                             })
      .def_property_readonly("has_rebuilt", [](PyReducer& r) { return r.core().has_rebuilt(); })
      .def_property_readonly("iterations", [](PyReducer& r) { return r.core().iterations(); })
      .def_property_readonly("launched", [](PyReducer& r) { return r.core().launched(); })
      .def_property_readonly("missing", [](PyReducer& r) { return r.core().missing(); })
      .def_property_readonly("ready_order", [](PyReducer& r) { return r.core().ready_order(); })
      .def("used_map",
           [](PyReducer& r) {
             const auto map = r.core().used_map();
             return std::vector<std::int32_t>(map.begin(), map.end());
           })
      .def("last_step", [](PyReducer& r) { return step_dict(r.core().last_step()); })
      .def("overlap",
           [](PyReducer& r) { return overlap_dict(measure_overlap(r.core().last_step())); })
      .def("mean_overlap", [](PyReducer& r) { return overlap_dict(r.core().mean_overlap()); });
}
