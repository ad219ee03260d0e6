// minitorch._mpi: the MPI transport, apart from _core so that only ranks under an MPI load one.
//
// It carries no path to an MPI library: import mpi4py.MPI first, and it uses the one that is
// loaded.
#include <mpi.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

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

// The processes of this host: their world ranks, and a descriptor of each one's outbox.
std::shared_ptr<minitorch::Transport> mpi_transport(int data_communicator, int control_communicator,
                                                    std::size_t count_limit, std::size_t local_rank,
                                                    std::vector<int> local_world_ranks,
                                                    const std::vector<int>& outboxes,
                                                    std::uint64_t token) {
  std::unique_ptr<minitorch::Lanes> lanes;
  if (!outboxes.empty())
    lanes = std::make_unique<minitorch::Lanes>(local_rank, std::move(local_world_ranks), outboxes,
                                               token);
  return minitorch::mpi_transport(data_communicator, control_communicator, count_limit,
                                  std::move(lanes));
}

}  // namespace

PYBIND11_MODULE(_mpi, module) {
  module.doc() = "The MPI transport of minitorch.";
  py::module_::import("minitorch._core");  // knows the type Transport
  module.def("mpi_transport", &mpi_transport, py::arg("data_comm"), py::arg("control_comm"),
             py::arg("count_limit") = minitorch::kMpiCountLimit, py::kw_only(),
             py::arg("local_rank") = 0, py::arg("local_world_ranks") = std::vector<int>{},
             py::arg("outboxes") = std::vector<int>{}, py::arg("token") = 0,
             "This process's transport over two duplicated communicators (Comm.py2f()), which must "
             "outlive it. With `outboxes` (file descriptors of shared memory, one for each process "
             "of this host) long payloads between those processes bypass the MPI.");
  module.def("outbox_bytes", &minitorch::Lanes::outbox_bytes, py::arg("local_size"),
             "Size of the shared memory through which one process sends to the others of its "
             "host.");
  module.def("library_version", &library_version, "The MPI library in use, in its own words.");
  module.def(
      "comm_handle_bytes", [] { return sizeof(MPI_Comm); },
      "Size of an MPI_Comm in the headers this was compiled with: tells MPIs apart.");
  module.def("thread_level", &thread_level,
             "\"single\", \"funneled\", \"serialized\" or \"multiple\"; MPI must be initialised.");
}
