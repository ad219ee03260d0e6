// All-reduce in log2 N steps, for short vectors: in step k partners at distance 2^k exchange all
// they have and both combine it.
//
// Steps log2 N, bytes sent log2(N) * B when N is a power of two. Otherwise let P be the largest
// power of two below N: the first 2(N-P) ranks pair up, the even one handing its data to the odd
// one before and getting the result after (two steps more). Thakur, Rabenseifner, Gropp,
// "Optimization of collective communication operations in MPICH", IJHPCA 19 (2005), section 4.5.
//
// Both partners compute lower op upper, with operands in this order: the same bits everywhere.
#include <bit>

#include "collectives/collectives.hpp"
#include "collectives/fold.hpp"
#include "kernels/kernels.hpp"

namespace minitorch::collectives {

Task recursive_doubling_all_reduce(Channel& channel, std::byte* data, std::size_t elements,
                                   Reduction how) {
  const Fold fold(channel.rank(), channel.size());
  const std::size_t bytes = elements * size_of(how.dtype);
  if (fold.hands_over()) {
    Send sent = channel.send(fold.partner(), data, bytes);
    co_await sent;
    Recv result = channel.recv(fold.partner(), data, bytes);
    co_await result;
    co_return;
  }
  Buffers::Block scratch = channel.scratch(bytes);
  std::byte* const theirs = scratch.data();
  if (fold.takes_over()) {
    Recv incoming = channel.recv(fold.partner(), theirs, bytes);
    co_await incoming;
    kernels::reduce(how.op, how.dtype, data, theirs, data, elements);
  }
  for (int distance = 1; distance < fold.size(); distance *= 2) {
    const int place = fold.place() ^ distance;
    const int peer = fold.rank_at(place);
    Recv incoming = channel.recv(peer, theirs, bytes);
    Send sent = channel.send(peer, data, bytes);
    co_await incoming;
    co_await sent;  // before `data` changes
    const bool lower = fold.place() < place;
    kernels::reduce(how.op, how.dtype, data, lower ? data : theirs, lower ? theirs : data,
                    elements);
  }
  kernels::copy_scaled(how.dtype, data, data, elements, how.scale);
  if (fold.takes_over()) {
    Send sent = channel.send(fold.partner(), data, bytes);
    co_await sent;
  }
}

}  // namespace minitorch::collectives
