// The event recorder.
#include "trace/trace.hpp"

#include <pybind11/stl.h>

#include <memory>

#include "bindings/bind.hpp"

namespace minitorch::bindings {

namespace py = pybind11;

void bind_trace(py::module_& module) {
  py::class_<Trace, std::shared_ptr<Trace>>(
      module, "Trace", "A bounded, thread-safe list of timed events. Off until enabled.")
      .def(py::init<std::size_t>(), py::arg("capacity") = std::size_t{1} << 20)
      .def("enable", &Trace::enable)
      .def("disable", &Trace::disable)
      .def_property_readonly("enabled", &Trace::enabled)
      .def_property_readonly("dropped", &Trace::dropped, "Events that did not fit.")
      .def("clear", &Trace::clear)
      .def(
          "record",
          [](Trace& trace, std::string name, std::string category, std::string track,
             std::int64_t begin_ns, std::int64_t end_ns, std::string args_json) {
            trace.record({std::move(name), std::move(category), std::move(track), begin_ns, end_ns,
                          std::move(args_json)});
          },
          py::arg("name"), py::arg("category"), py::arg("track"), py::arg("begin_ns"),
          py::arg("end_ns"), py::arg("args_json") = "")
      .def(
          "events",
          [](const Trace& trace) {
            py::list list;
            for (const Trace::Event& event : trace.events())
              list.append(py::make_tuple(event.name, event.category, event.track, event.begin_ns,
                                         event.end_ns, event.args));
            return list;
          },
          "(name, category, track, begin_ns, end_ns, args_json) of every event.")
      .def_static("now_ns", &Trace::now_ns, "The clock of all events (time.monotonic_ns).");
  module.def("now_ns", &Trace::now_ns, "The clock of all events (time.monotonic_ns).");
}

}  // namespace minitorch::bindings
