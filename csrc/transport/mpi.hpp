// Processes under an MPI: the only files that include mpi.h are this one's mpi.cpp and
// bindings/mpi_module.cpp.
//
// Only point-to-point calls are used (MPI_Isend, MPI_Irecv, MPI_Test): no MPI collective, no
// blocking call. Data and control travel on communicators of their own, so that nothing the user
// does with MPI can cross them.
#pragma once

#include <cstddef>
#include <memory>

#include "transport/lanes.hpp"
#include "transport/transport.hpp"

namespace minitorch {

// An MPI count is an int. A longer message travels in pieces, and then both sides must agree on its
// length. Tests lower the limit; it must not be below the first message of a collective (4096
// bytes).
inline constexpr std::size_t kMpiCountLimit = 2147483647;

// Over two duplicated communicators (as Fortran handles), which must live as long as the transport.
// Throws std::runtime_error if MPI is not initialised or already finalised.
// `lanes`, if given, carries long payloads between processes of one host (lanes.hpp).
std::shared_ptr<Transport> mpi_transport(int data_communicator, int control_communicator,
                                         std::size_t count_limit = kMpiCountLimit,
                                         std::unique_ptr<Lanes> lanes = nullptr);

}  // namespace minitorch
