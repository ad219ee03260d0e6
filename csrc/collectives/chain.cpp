// Broadcast and reduce for long vectors: a pipelined chain through all ranks.
//
// Steps N - 1 + pieces, bytes sent B on all ranks but the last of the chain: for long vectors each
// wire is busy nearly all the time, where a tree's root sends everything log2(N) times.
#include <deque>

#include "collectives/chunks.hpp"
#include "collectives/collectives.hpp"
#include "kernels/kernels.hpp"

namespace minitorch::collectives {
namespace {

struct Pieces {
  Pieces(const Tuning& tuning, std::size_t elements_, std::size_t item_)
      : elements(elements_),
        item(item_),
        segment(segment_elements(tuning, elements_, item_)),
        count(segments_of(elements_, segment)) {}
  std::size_t begin(std::size_t k) const { return k * segment; }
  std::size_t length(std::size_t k) const { return std::min(segment, elements - k * segment); }
  std::size_t elements, item, segment, count;
};

}  // namespace

// root -> root+1 -> ... -> root-1.
Task chain_broadcast(Channel& channel, std::byte* data, std::size_t bytes, int root) {
  const int rank = channel.rank(), size = channel.size();
  const int left = (rank + size - 1) % size, right = (rank + 1) % size;
  const bool is_first = rank == root, is_last = right == root;
  const Pieces pieces(channel.tuning(), bytes, 1);
  const std::size_t ahead = std::max<std::size_t>(channel.tuning().ahead, 1);
  std::deque<Recv> posted;
  std::deque<Send> sent;
  std::size_t next = 0;
  for (std::size_t k = 0; k < pieces.count; ++k) {
    if (!is_first) {
      // Until the first message has been checked, no other may be posted.
      while (next < pieces.count && posted.size() < (k == 0 ? 1 : ahead)) {
        posted.push_back(channel.recv(left, data + pieces.begin(next), pieces.length(next)));
        ++next;
      }
      co_await posted.front();
      posted.pop_front();
    }
    if (!is_last) {
      while (sent.size() >= ahead) {
        co_await sent.front();
        sent.pop_front();
      }
      sent.push_back(channel.send(right, data + pieces.begin(k), pieces.length(k)));
    }
  }
  while (!sent.empty()) {
    co_await sent.front();
    sent.pop_front();
  }
}

// root+1 -> root+2 -> ... -> root, each adding its own: the order of summation is that of the
// chain.
Task chain_reduce(Channel& channel, std::byte* data, std::size_t elements, Reduction how,
                  int root) {
  const int rank = channel.rank(), size = channel.size();
  const int left = (rank + size - 1) % size, right = (rank + 1) % size;
  const bool is_first = left == root, is_last = rank == root;
  const Pieces pieces(channel.tuning(), elements, size_of(how.dtype));
  const std::size_t ahead = std::max<std::size_t>(channel.tuning().ahead, 1);
  // Slot k mod slots holds piece k from the moment its receive is posted until it is sent on.
  const std::size_t slots = 2 * ahead;
  const std::size_t slot_bytes = std::min(pieces.segment, elements) * pieces.item;
  Buffers::Block scratch;
  if (!is_first) scratch = channel.scratch(slots * slot_bytes);
  std::deque<Recv> posted;
  std::deque<Send> sent;
  std::size_t next = 0;
  for (std::size_t k = 0; k < pieces.count; ++k) {
    while (sent.size() >= ahead) {
      co_await sent.front();
      sent.pop_front();
    }
    std::byte* const own = data + pieces.begin(k) * pieces.item;
    const std::size_t bytes = pieces.length(k) * pieces.item;
    if (is_first) {
      sent.push_back(channel.send(right, own, bytes));
      continue;
    }
    while (next < pieces.count && posted.size() < (k == 0 ? 1 : ahead)) {
      posted.push_back(channel.recv(left, scratch.data() + next % slots * slot_bytes,
                                    pieces.length(next) * pieces.item));
      ++next;
    }
    co_await posted.front();
    posted.pop_front();
    std::byte* const partial = scratch.data() + k % slots * slot_bytes;
    if (is_last) {
      kernels::reduce_scaled(how.op, how.dtype, own, partial, own, pieces.length(k), how.scale);
    } else {
      kernels::reduce(how.op, how.dtype, partial, partial, own, pieces.length(k));
      sent.push_back(channel.send(right, partial, bytes));
    }
  }
  while (!sent.empty()) {
    co_await sent.front();
    sent.pop_front();
  }
}

}  // namespace minitorch::collectives
