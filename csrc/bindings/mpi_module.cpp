// minitorch._mpi: the MPI transport, apart from _core so that only ranks under an MPI load one.
//
// It carries no path to an MPI library: import mpi4py.MPI first, and it uses the one that is
// loaded.
#include <mpi.h>
#include <pybind11/pybind11.h>

#include "transport/mpi.hpp"

namespace py = pybind11;

namespace {

std::string library_version() {
  char text[MPI_MAX_LIBRARY_VERSION_STRING];
  int length = 0;
  MPI_Get_library_version(text, &length);
  return std::string(text, static_cast<std::size_t>(length));
}

std::string thread_level() {
  int level = MPI_THREAD_SINGLE;
  MPI_Query_thread(&level);
  if (level == MPI_THREAD_MULTIPLE) return "multiple";
  if (level == MPI_THREAD_SERIALIZED) return "serialized";
  if (level == MPI_THREAD_FUNNELED) return "funneled";
  return "single";
}

}  // namespace

PYBIND11_MODULE(_mpi, module) {
  module.doc() = "The MPI transport of minitorch.";
  py::module_::import("minitorch._core");  // knows the type Transport
  module.def("mpi_transport", &minitorch::mpi_transport, py::arg("data_comm"),
             py::arg("control_comm"), py::arg("count_limit") = minitorch::kMpiCountLimit,
             "This process's transport over two duplicated communicators (Comm.py2f()), which must "
             "outlive it.");
  module.def("library_version", &library_version, "The MPI library in use, in its own words.");
  module.def(
      "comm_handle_bytes", [] { return sizeof(MPI_Comm); },
      "Size of an MPI_Comm in the headers this was compiled with: tells MPIs apart.");
  module.def("thread_level", &thread_level,
             "\"single\", \"funneled\", \"serialized\" or \"multiple\"; MPI must be initialised.");
}
