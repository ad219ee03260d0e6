// Binomial trees: few steps for short vectors, and a teaching rung of all-reduce ("tree").
//
// Broadcast and reduce take ceil(log2 N) steps; the root sends (or receives) up to ceil(log2 N) * B
// bytes. The all-reduce is a reduce to rank 0 and a broadcast from it: 2 ceil(log2 N) steps.
//
// Ranks are counted from the root, modulo N. In the reduction, rank v combines what comes from v+1,
// v+2, v+4, ... in this order and then sends to v minus its lowest set bit; the broadcast walks the
// same edges down.
#include "collectives/collectives.hpp"
#include "kernels/kernels.hpp"

namespace minitorch::collectives {

Task tree_broadcast(Channel& channel, std::byte* data, std::size_t bytes, int root) {
  const int size = channel.size();
  const int place = (channel.rank() - root + size) % size;
  int distance = 1;
  while (distance < size && (place & distance) == 0) distance *= 2;
  if (place != 0) {
    Recv incoming = channel.recv((place - distance + root) % size, data, bytes);
    co_await incoming;
  }
  std::vector<Send> sent;
  for (distance /= 2; distance >= 1; distance /= 2)
    if (place + distance < size)
      sent.push_back(channel.send((place + distance + root) % size, data, bytes));
  AllOf all(sent);
  co_await all;
}

Task tree_reduce(Channel& channel, std::byte* data, std::size_t elements, Reduction how, int root) {
  const int size = channel.size();
  const int place = (channel.rank() - root + size) % size;
  const std::size_t bytes = elements * size_of(how.dtype);
  // Only the root's data may change: others collect in scratch.
  Buffers::Block incoming_block, partial_block;
  std::byte* partial = data;
  bool complete = false;
  for (int distance = 1; distance < size; distance *= 2) {
    if ((place & distance) != 0) {
      Send sent = channel.send((place - distance + root) % size, partial, bytes);
      co_await sent;
      break;
    }
    if (place + distance >= size) continue;
    if (incoming_block.data() == nullptr) {
      incoming_block = channel.scratch(bytes);
      if (place != 0) partial_block = channel.scratch(bytes);
    }
    std::byte* const arrived = incoming_block.data();
    Recv incoming = channel.recv((place + distance + root) % size, arrived, bytes);
    co_await incoming;
    std::byte* const sum = place == 0 ? data : partial_block.data();
    complete = place == 0 && distance * 2 >= size;
    kernels::reduce_scaled(how.op, how.dtype, sum, partial, arrived, elements,
                           complete ? how.scale : 1.0);
    partial = sum;
  }
}

Task tree_all_reduce(Channel& channel, std::byte* data, std::size_t elements, Reduction how) {
  Task up = tree_reduce(channel, data, elements, how, 0);
  co_await up;
  Task down = tree_broadcast(channel, data, elements * size_of(how.dtype), 0);
  co_await down;
}

}  // namespace minitorch::collectives
