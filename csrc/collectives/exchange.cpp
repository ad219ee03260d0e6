// Schedules in which everyone talks directly to whom it concerns: one step each.
//
// Bytes sent per rank, B a rank's part: gather B, scatter (N-1) B at the root, all-to-all and
// direct all-gather (N-1) B. The barrier sends headers only, in ceil(log2 N) steps.
#include <cstring>
#include <numeric>

#include "collectives/collectives.hpp"

namespace minitorch::collectives {
namespace {

void copy(std::byte* out, const std::byte* in, std::size_t bytes) {
  if (out != in && bytes != 0) std::memmove(out, in, bytes);
}

std::size_t part(int rank, std::size_t bytes) {
  return static_cast<std::size_t>(rank) * bytes;
}

}  // namespace

Task gather(Channel& channel, std::byte* out, const std::byte* in, std::size_t bytes, int root) {
  const int rank = channel.rank();
  if (rank != root) {
    Send sent = channel.send(root, in, bytes);
    co_await sent;
    co_return;
  }
  std::vector<Recv> incoming;
  for (int peer = 0; peer < channel.size(); ++peer)
    if (peer != root) incoming.push_back(channel.recv(peer, out + part(peer, bytes), bytes));
  copy(out + part(root, bytes), in, bytes);
  AllOf all(incoming);
  co_await all;
}

Task scatter(Channel& channel, std::byte* out, const std::byte* in, std::size_t bytes, int root) {
  const int rank = channel.rank();
  if (rank != root) {
    Recv incoming = channel.recv(root, out, bytes);
    co_await incoming;
    co_return;
  }
  std::vector<Send> sent;
  for (int peer = 0; peer < channel.size(); ++peer)
    if (peer != root) sent.push_back(channel.send(peer, in + part(peer, bytes), bytes));
  copy(out, in + part(root, bytes), bytes);
  AllOf all(sent);
  co_await all;
}

Task all_gather_direct(Channel& channel, std::byte* out, const std::byte* in, std::size_t bytes) {
  const int rank = channel.rank(), size = channel.size();
  std::vector<Recv> incoming;
  std::vector<Send> sent;
  // Each starts with its right neighbour, so that not all send to rank 0 first.
  for (int i = 1; i < size; ++i) {
    const int from = (rank + size - i) % size;
    incoming.push_back(channel.recv(from, out + part(from, bytes), bytes));
  }
  for (int i = 1; i < size; ++i) sent.push_back(channel.send((rank + i) % size, in, bytes));
  copy(out + part(rank, bytes), in, bytes);
  AllOf all_in(incoming);
  co_await all_in;
  AllOf all_out(sent);
  co_await all_out;
}

Task all_to_all(Channel& channel, std::byte* out, const std::byte* in,
                std::vector<std::size_t> out_elements, std::vector<std::size_t> in_elements,
                std::size_t item_bytes) {
  const int rank = channel.rank(), size = channel.size();
  const auto offset = [&](const std::vector<std::size_t>& counts, int peer) {
    return std::accumulate(counts.begin(), counts.begin() + peer, std::size_t{0}) * item_bytes;
  };
  const auto count = [](const std::vector<std::size_t>& counts, int peer) {
    return counts[static_cast<std::size_t>(peer)];
  };
  std::vector<Recv> incoming;
  std::vector<Send> sent;
  for (int i = 1; i < size; ++i) {
    const int from = (rank + size - i) % size;
    const std::size_t n = count(out_elements, from);
    incoming.push_back(channel.recv(from, out + offset(out_elements, from), n * item_bytes, n));
  }
  for (int i = 1; i < size; ++i) {
    const int to = (rank + i) % size;
    const std::size_t n = count(in_elements, to);
    sent.push_back(channel.send(to, in + offset(in_elements, to), n * item_bytes, n));
  }
  copy(out + offset(out_elements, rank), in + offset(in_elements, rank),
       count(in_elements, rank) * item_bytes);
  AllOf all_in(incoming);
  co_await all_in;
  AllOf all_out(sent);
  co_await all_out;
}

// Dissemination: after step k a rank has heard, directly or not, of the 2^(k+1) - 1 ranks before
// it. Hensgen, Finkel, Manber, "Two algorithms for barrier synchronization", IJPP 17 (1988).
Task barrier(Channel& channel) {
  const int rank = channel.rank(), size = channel.size();
  for (int distance = 1; distance < size; distance *= 2) {
    Recv incoming = channel.recv((rank + size - distance) % size, nullptr, 0);
    Send sent = channel.send((rank + distance) % size, nullptr, 0);
    co_await incoming;
    co_await sent;
  }
}

Task send(Channel& channel, const std::byte* data, std::size_t bytes, int peer) {
  Send sent = channel.send(peer, data, bytes);
  co_await sent;
}

Task recv(Channel& channel, std::byte* data, std::size_t bytes, int peer,
          std::atomic<int>* source) {
  Recv incoming = channel.recv(peer, data, bytes);
  co_await incoming;
  source->store(incoming.peer(), std::memory_order_relaxed);
}

}  // namespace minitorch::collectives
