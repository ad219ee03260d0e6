// The lowest rung of all-reduce: everyone sends everything to rank 0, which adds it up and sends it
// back.
//
// Steps: one in, one out, but the root moves N-1 vectors each way over its one wire. Bytes sent:
// (N-1) * B at the root, B elsewhere; scratch at the root: N * B. Summed in the order of ranks. The
// next rung: tree.cpp.
#include "collectives/collectives.hpp"
#include "kernels/kernels.hpp"

namespace minitorch::collectives {

Task naive_all_reduce(Channel& channel, std::byte* data, std::size_t elements, Reduction how) {
  const int rank = channel.rank(), size = channel.size();
  const std::size_t bytes = elements * size_of(how.dtype);
  Buffers::Block all;
  if (rank == 0) all = channel.scratch(static_cast<std::size_t>(size) * bytes);

  Task collect = gather(channel, all.data(), data, bytes, 0);
  co_await collect;
  if (rank == 0) {
    for (int peer = 1; peer < size; ++peer)
      kernels::reduce_scaled(how.op, how.dtype, data, data,
                             all.data() + static_cast<std::size_t>(peer) * bytes, elements,
                             peer == size - 1 ? how.scale : 1.0);
    std::vector<Send> sent;
    for (int peer = 1; peer < size; ++peer) sent.push_back(channel.send(peer, data, bytes));
    AllOf sends(sent);
    co_await sends;
  } else {
    Recv incoming = channel.recv(0, data, bytes);
    co_await incoming;
  }
}

}  // namespace minitorch::collectives
