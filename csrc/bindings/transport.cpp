// Transports are opaque to Python: made here (or in _mpi) and handed to an Engine.
#include "transport/transport.hpp"

#include <pybind11/stl.h>

#include "bindings/bind.hpp"
#include "transport/delayed.hpp"
#include "transport/link.hpp"
#include "transport/threads.hpp"

namespace minitorch::bindings {

namespace py = pybind11;

void bind_transport(py::module_& module) {
  py::class_<Transport, std::shared_ptr<Transport>>(
      module, "Transport", "How bytes move between this rank and the others.")
      .def_property_readonly("rank", &Transport::rank)
      .def_property_readonly("size", &Transport::size)
      .def_property_readonly("max_tag", &Transport::max_tag)
      .def_property_readonly("any_thread", &Transport::any_thread,
                             "Whether an engine thread may drive it.");

  module.def("threads_world", &threads_world, py::arg("size"), py::arg("max_tag") = (1 << 29) - 1,
             "Transports of `size` ranks within this process; element r is rank r's.");
  module.def("shaped_link", &shaped_link, py::arg("inner"), py::arg("bytes_per_second"),
             py::arg("latency_seconds"),
             "An EMULATED link: `inner` with a bandwidth and a latency. Full duplex, one outgoing "
             "wire per rank.");
  module.def("delayed", &delayed, py::arg("inner"), py::arg("seed"), py::arg("max_delay_seconds"),
             "For tests: `inner` with every message late by a random time.");
}

}  // namespace minitorch::bindings
