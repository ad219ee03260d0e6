// Group: every collective twice, as `name` (returns a Work) and as `name_now` (returns when done).
//
// The `_now` form runs in the calling thread when nothing else is going on: no thread is woken,
// which for a few bytes is most of the time.
#include <pybind11/stl.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <stdexcept>

#include "bindings/arrays.hpp"
#include "bindings/bind.hpp"
#include "bindings/waiting.hpp"
#include "collectives/channel.hpp"
#include "engine/engine.hpp"
#include "trace/trace.hpp"

namespace minitorch::bindings {
namespace {

using Parent = std::optional<WorkPtr>;

Options options_of(std::shared_ptr<void> alive, std::string label, const Parent& parent,
                   bool blocking) {
  Options options;
  options.keep_alive = std::move(alive);
  options.label = std::move(label);
  if (parent) options.parent = *parent;
  options.blocking = blocking;
  return options;
}

// What a collective between two ranks spends on its fingerprint: makes one, checks one.
double fingerprint_seconds(std::size_t repetitions) {
  std::array<std::byte, kFirstCapacity> message{};
  Header header{.operation = Operation::kAllReduce, .dtype = Dtype::kFloat32};
  std::size_t wrong = 0;
  const std::int64_t begin = Trace::now_ns();
  for (std::size_t i = 0; i < repetitions; ++i) {
    header.elements = i;
    header.history = digest(header);
    std::memcpy(message.data(), &header, sizeof header);
    Header received;
    std::memcpy(&received, message.data(), sizeof received);
    wrong += received != header;
  }
  const auto elapsed = static_cast<double>(Trace::now_ns() - begin);
  if (wrong != 0) throw std::logic_error("a fingerprint differs from itself");
  return elapsed * 1e-9 / static_cast<double>(std::max<std::size_t>(repetitions, 1));
}

void check_count(const char* what, std::size_t got, std::size_t expected) {
  if (got != expected)
    throw py::value_error(std::string(what) + " must have " + std::to_string(expected) +
                          " elements, not " + std::to_string(got));
}

void check_dtype(const char* what, const View& a, const View& b) {
  if (a.dtype != b.dtype)
    throw py::type_error(std::string(what) + ": input is " + name_of(b.dtype) + " but output is " +
                         name_of(a.dtype));
}

std::size_t ranks(const Group& group) {
  return static_cast<std::size_t>(group.size());
}

// Starts the collective without the GIL; `blocking` also ends it.
template <class Start>
WorkPtr launch(bool blocking, Start start) {
  sweep();
  WorkPtr work;
  {
    const py::gil_scoped_release release;
    work = start();
  }
  if (blocking) wait(*work);
  return work;
}

WorkPtr all_reduce(bool blocking, Group& group, py::object array, std::string_view op,
                   std::string_view algorithm, double scale, std::string_view dtype,
                   std::string label, const Parent& parent) {
  const View data = view(array, "all_reduce: array", Access::kWrite, Use::kReduce, dtype);
  const ReduceOp how = reduce_op_named(op);
  Options options = options_of(keep(array), std::move(label), parent, blocking);
  options.scale = scale;
  if (algorithm != "auto") options.algorithm = algorithm_named(std::string(algorithm));
  return launch(blocking, [&] {
    return group.all_reduce(data.data, data.elements, data.dtype, how, std::move(options));
  });
}

WorkPtr reduce_scatter(bool blocking, Group& group, py::object out, py::object inp,
                       std::string_view op, double scale, std::string_view dtype, std::string label,
                       const Parent& parent) {
  const View to = view(out, "reduce_scatter: out", Access::kWrite, Use::kReduce, dtype);
  const View from = view(inp, "reduce_scatter: inp", Access::kRead, Use::kReduce, dtype);
  check_dtype("reduce_scatter", to, from);
  check_count("reduce_scatter: inp", from.elements, to.elements * ranks(group));
  const ReduceOp how = reduce_op_named(op);
  Options options = options_of(keep(out, inp), std::move(label), parent, blocking);
  options.scale = scale;
  return launch(blocking, [&] {
    return group.reduce_scatter(to.data, from.data, to.elements, to.dtype, how, std::move(options));
  });
}

WorkPtr all_gather(bool blocking, Group& group, py::object out, py::object inp,
                   std::string_view dtype, std::string label, const Parent& parent) {
  const View to = view(out, "all_gather: out", Access::kWrite, Use::kMove, dtype);
  const View from = view(inp, "all_gather: inp", Access::kRead, Use::kMove, dtype);
  check_dtype("all_gather", to, from);
  check_count("all_gather: out", to.elements, from.elements * ranks(group));
  Options options = options_of(keep(out, inp), std::move(label), parent, blocking);
  return launch(blocking, [&] {
    return group.all_gather(to.data, from.data, from.elements, to.dtype, std::move(options));
  });
}

WorkPtr broadcast(bool blocking, Group& group, py::object array, int src, std::string_view dtype,
                  std::string label, const Parent& parent) {
  const Access access = group.rank() == src ? Access::kRead : Access::kWrite;
  const View data = view(array, "broadcast: array", access, Use::kMove, dtype);
  Options options = options_of(keep(array), std::move(label), parent, blocking);
  return launch(blocking, [&] {
    return group.broadcast(data.data, data.elements, data.dtype, src, std::move(options));
  });
}

WorkPtr reduce(bool blocking, Group& group, py::object array, int dst, std::string_view op,
               double scale, std::string_view dtype, std::string label, const Parent& parent) {
  const Access access = group.rank() == dst ? Access::kWrite : Access::kRead;
  const View data = view(array, "reduce: array", access, Use::kReduce, dtype);
  const ReduceOp how = reduce_op_named(op);
  Options options = options_of(keep(array), std::move(label), parent, blocking);
  options.scale = scale;
  return launch(blocking, [&] {
    return group.reduce(data.data, data.elements, data.dtype, how, dst, std::move(options));
  });
}

WorkPtr gather(bool blocking, Group& group, py::object out, py::object inp, int dst,
               std::string_view dtype, std::string label, const Parent& parent) {
  const View from = view(inp, "gather: inp", Access::kRead, Use::kMove, dtype);
  View to;
  if (group.rank() == dst) {
    to = view(out, "gather: out", Access::kWrite, Use::kMove, dtype);
    check_dtype("gather", to, from);
    check_count("gather: out", to.elements, from.elements * ranks(group));
  }
  Options options = options_of(keep(out, inp), std::move(label), parent, blocking);
  return launch(blocking, [&] {
    return group.gather(to.data, from.data, from.elements, from.dtype, dst, std::move(options));
  });
}

WorkPtr scatter(bool blocking, Group& group, py::object out, py::object inp, int src,
                std::string_view dtype, std::string label, const Parent& parent) {
  const View to = view(out, "scatter: out", Access::kWrite, Use::kMove, dtype);
  View from;
  if (group.rank() == src) {
    from = view(inp, "scatter: inp", Access::kRead, Use::kMove, dtype);
    check_dtype("scatter", to, from);
    check_count("scatter: inp", from.elements, to.elements * ranks(group));
  }
  Options options = options_of(keep(out, inp), std::move(label), parent, blocking);
  return launch(blocking, [&] {
    return group.scatter(to.data, from.data, to.elements, to.dtype, src, std::move(options));
  });
}

using Counts = std::optional<std::vector<std::size_t>>;

std::vector<std::size_t> counts_of(const char* what, const Counts& given, std::size_t elements,
                                   std::size_t parts) {
  if (given) {
    std::size_t sum = 0;
    for (const std::size_t count : *given) sum += count;
    if (given->size() != parts || sum != elements)
      throw py::value_error(std::string(what) + " must be " + std::to_string(parts) +
                            " counts that add up to " + std::to_string(elements));
    return *given;
  }
  if (elements % parts != 0)
    throw py::value_error(std::string(what) + ": " + std::to_string(elements) +
                          " elements cannot be split evenly among " + std::to_string(parts) +
                          " ranks");
  return std::vector<std::size_t>(parts, elements / parts);
}

WorkPtr all_to_all(bool blocking, Group& group, py::object out, py::object inp,
                   const Counts& out_counts, const Counts& in_counts, std::string_view dtype,
                   std::string label, const Parent& parent) {
  const View to = view(out, "all_to_all: out", Access::kWrite, Use::kReduce, dtype);
  const View from = view(inp, "all_to_all: inp", Access::kRead, Use::kReduce, dtype);
  check_dtype("all_to_all", to, from);
  const auto out_elements =
      counts_of("all_to_all: out_counts", out_counts, to.elements, ranks(group));
  const auto in_elements =
      counts_of("all_to_all: in_counts", in_counts, from.elements, ranks(group));
  Options options = options_of(keep(out, inp), std::move(label), parent, blocking);
  return launch(blocking, [&] {
    return group.all_to_all(to.data, from.data, out_elements, in_elements, to.dtype,
                            std::move(options));
  });
}

WorkPtr barrier(bool blocking, Group& group, std::string label, const Parent& parent) {
  Options options = options_of(nullptr, std::move(label), parent, blocking);
  return launch(blocking, [&] { return group.barrier(std::move(options)); });
}

WorkPtr send(bool blocking, Group& group, py::object array, int dst, int tag,
             std::string_view dtype, std::string label) {
  const View data = view(array, "send: array", Access::kRead, Use::kMove, dtype);
  Options options = options_of(keep(array), std::move(label), {}, blocking);
  return launch(blocking, [&] {
    return group.send(data.data, data.elements, data.dtype, dst, tag, std::move(options));
  });
}

WorkPtr recv(bool blocking, Group& group, py::object array, int src, int tag,
             std::string_view dtype, std::string label) {
  const View data = view(array, "recv: array", Access::kWrite, Use::kMove, dtype);
  Options options = options_of(keep(array), std::move(label), {}, blocking);
  return launch(blocking, [&] {
    return group.recv(data.data, data.elements, data.dtype, src, tag, std::move(options));
  });
}

// Binds `name` and `name_now`.
template <class... Args, class... Extra>
void both(py::class_<Group, std::shared_ptr<Group>>& cls, const std::string& name,
          WorkPtr (*function)(bool, Group&, Args...), const Extra&... extra) {
  cls.def(
      name.c_str(),
      [function](Group& group, Args... args) {
        return function(false, group, std::forward<Args>(args)...);
      },
      extra...);
  cls.def((name + "_now").c_str(),
          [function](Group& group, Args... args) {
            return function(true, group, std::forward<Args>(args)...);
          },
          extra...);
}

}  // namespace

void bind_collectives(py::module_& module) {
  using py::arg;
  module.def("fingerprint_seconds", &fingerprint_seconds, arg("repetitions"),
             py::call_guard<py::gil_scoped_release>(),
             "Seconds that making and checking one collective's fingerprint takes.");
  const py::arg_v dtype = arg("dtype") = "", label = arg("label") = "",
                  parent = arg("parent") = py::none();
  const py::arg_v op = arg("op") = "sum", scale = arg("scale") = 1.0, tag = arg("tag") = 0;

  py::class_<Group, std::shared_ptr<Group>> cls(
      module, "Group",
      "Some ranks of the world, and the order of what they do together.\n\n"
      "Arrays are C-contiguous NumPy arrays, written in place, and must not be touched until the "
      "Work is done. Every collective also exists as `name_now`: it blocks, and runs in the "
      "calling "
      "thread when nothing else is going on. Roots and peers are ranks of the group.");
  cls.def_property_readonly("rank", &Group::rank, "This process's rank; -1: not a member.")
      .def_property_readonly("size", &Group::size)
      .def_property_readonly("ranks", &Group::ranks, "World rank of each member.")
      .def_property_readonly("id", &Group::id)
      .def_property(
          "timeout_seconds",
          [](const Group& group) { return std::chrono::duration<double>(group.timeout()).count(); },
          [](Group& group, double seconds) { group.set_timeout(to_nanoseconds(seconds)); })
      .def(
          "meter", [](const Group& group) { return meter_dict(group.meter()); },
          "What this group sent and received so far, by operation.")
      .def("reset_meter", [](const Group& group) { group.meter().reset(); });

  both(cls, "all_reduce", &all_reduce, arg("array"), op, arg("algorithm") = "auto", scale, dtype,
       label, parent);
  both(cls, "reduce_scatter", &reduce_scatter, arg("out"), arg("inp"), op, scale, dtype, label,
       parent);
  both(cls, "all_gather", &all_gather, arg("out"), arg("inp"), dtype, label, parent);
  both(cls, "broadcast", &broadcast, arg("array"), arg("src"), dtype, label, parent);
  both(cls, "reduce", &reduce, arg("array"), arg("dst"), op, scale, dtype, label, parent);
  both(cls, "gather", &gather, arg("out"), arg("inp"), arg("dst"), dtype, label, parent);
  both(cls, "scatter", &scatter, arg("out"), arg("inp"), arg("src"), dtype, label, parent);
  both(cls, "all_to_all", &all_to_all, arg("out"), arg("inp"), arg("out_counts") = py::none(),
       arg("in_counts") = py::none(), dtype, label, parent);
  both(cls, "barrier", &barrier, label, parent);
  both(cls, "send", &send, arg("array"), arg("dst"), tag, dtype, label);
  both(cls, "recv", &recv, arg("array"), arg("src"), tag, dtype, label);
}

}  // namespace minitorch::bindings
