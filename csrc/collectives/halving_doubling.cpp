// All-reduce by recursive halving (a reduce-scatter) and recursive doubling (an all-gather).
//
// Steps 2 log2 P, bytes sent 2(P-1)/P * B, for P ranks, a power of two: the ring's bytes in a
// tree's steps, but partners get ever farther apart and messages ever shorter. For other N see
// fold.hpp: two steps and up to B bytes more. Rabenseifner, "Optimization of collective reduction
// operations", ICCS 2004.
//
// Halving: partners at distance P/2, P/4, ..., 1 split the range they share; each sends the half
// that it gives up and combines the half that it keeps. Place v is left with piece v of P,
// complete. Doubling undoes it step by step.
#include "collectives/chunks.hpp"
#include "collectives/collectives.hpp"
#include "collectives/fold.hpp"
#include "kernels/kernels.hpp"

namespace minitorch::collectives {

Task halving_doubling_all_reduce(Channel& channel, std::byte* data, std::size_t elements,
                                 Reduction how) {
  const Fold fold(channel.rank(), channel.size());
  const std::size_t item = size_of(how.dtype), bytes = elements * item;
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

  // Pieces of the vector, and [low, high) of them: what this rank still works on.
  const int places = fold.size();
  const Chunks chunks{elements, static_cast<std::size_t>(places)};
  const auto start = [&](int piece) {
    return piece == places ? elements : chunks[static_cast<std::size_t>(piece)].begin;
  };
  int low = 0, high = places;
  for (int distance = places / 2; distance >= 1; distance /= 2) {
    const int peer = fold.rank_at(fold.place() ^ distance);
    const int middle = low + distance;
    const bool keeps_lower = (fold.place() & distance) == 0;
    const std::size_t give_begin = start(keeps_lower ? middle : low);
    const std::size_t give_end = start(keeps_lower ? high : middle);
    (keeps_lower ? high : low) = middle;
    const std::size_t keep_begin = start(low), keep = start(high) - keep_begin;
    Recv incoming = channel.recv(peer, theirs, keep * item);
    Send sent = channel.send(peer, data + give_begin * item, (give_end - give_begin) * item);
    co_await incoming;
    std::byte* const kept = data + keep_begin * item;
    kernels::reduce_scaled(how.op, how.dtype, kept, kept, theirs, keep,
                           distance == 1 ? how.scale : 1.0);
    co_await sent;
  }
  for (int distance = 1; distance < places; distance *= 2) {
    const int peer = fold.rank_at(fold.place() ^ distance);
    const bool has_lower = (fold.place() & distance) == 0;
    const int their_low = has_lower ? high : low - distance;
    const std::size_t theirs_begin = start(their_low);
    const std::size_t theirs_count = start(their_low + distance) - theirs_begin;
    const std::size_t ours_begin = start(low), ours_count = start(high) - ours_begin;
    Recv incoming = channel.recv(peer, data + theirs_begin * item, theirs_count * item);
    Send sent = channel.send(peer, data + ours_begin * item, ours_count * item);
    co_await incoming;
    co_await sent;
    (has_lower ? high : low) = has_lower ? high + distance : low - distance;
  }
  if (fold.takes_over()) {
    Send sent = channel.send(fold.partner(), data, bytes);
    co_await sent;
  }
}

}  // namespace minitorch::collectives
