// All collectives, as tasks. N ranks, B bytes: the whole vector of an all-reduce, broadcast or
// reduce; one rank's part for gather, scatter, all-gather, reduce-scatter and all-to-all (where a
// rank holds N parts).
//
//   operation       schedule                       steps            bytes sent per rank (most
//   burdened) all_reduce      ring                           2(N-1)           2(N-1)/N * B
//                   naive (gather + broadcast)     2(N-1) at root   (N-1) * B at root, B elsewhere
//                   tree (binomial, up and down)   2 log2 N         log2(N) * B at root
//                   halving_doubling               2 log2 N         2(N-1)/N * B   (N a power of
//                   two) recursive_doubling             log2 N           log2(N) * B    (N a power
//                   of two) auto: recursive_doubling up to Tuning::small_bytes, ring above
//   reduce_scatter  ring                           N-1              (N-1) * B
//   all_gather      ring; direct if small          N-1; 1           (N-1) * B
//   broadcast       pipelined chain; tree if small N-1+pieces; log2 N   B; log2(N) * B at root
//   reduce          pipelined chain; tree if small N-1+pieces; log2 N   B
//   gather          direct                         1                B
//   scatter         direct                         1                (N-1) * B at root
//   all_to_all      direct                         1                (N-1) * B
//   barrier         dissemination                  ceil(log2 N)     0 (headers only)
//   send, recv      direct                         1                B
//
// Every schedule fixes the order in which an element's contributions are combined, and every result
// that several ranks receive is computed by one of them (or by all from the same operands in the
// same order): all ranks end with the same bits.
//
// Data pointers must stay valid until the task is done or destroyed.
#pragma once

#include <atomic>
#include <cstddef>
#include <vector>

#include "collectives/channel.hpp"
#include "collectives/task.hpp"
#include "kernels/dtype.hpp"

namespace minitorch::collectives {

struct Reduction {
  Dtype dtype = Dtype::kFloat32;
  ReduceOp op = ReduceOp::kSum;
  double scale = 1.0;  // applied once, to the complete result
};

// Chooses the schedule: the entry points of the engine.
Task all_reduce(Channel& channel, Algorithm algorithm, std::byte* data, std::size_t elements,
                Reduction how);
Task reduce_scatter(Channel& channel, std::byte* out, const std::byte* in, std::size_t elements,
                    Reduction how);
Task all_gather(Channel& channel, std::byte* out, const std::byte* in, std::size_t bytes);
Task broadcast(Channel& channel, std::byte* data, std::size_t bytes, int root);
Task reduce(Channel& channel, std::byte* data, std::size_t elements, Reduction how, int root);

// exchange.cpp
Task gather(Channel& channel, std::byte* out, const std::byte* in, std::size_t bytes, int root);
Task scatter(Channel& channel, std::byte* out, const std::byte* in, std::size_t bytes, int root);
// Counts are in elements; the header of each message carries the count of its pair.
Task all_to_all(Channel& channel, std::byte* out, const std::byte* in,
                std::vector<std::size_t> out_elements, std::vector<std::size_t> in_elements,
                std::size_t item_bytes);
Task barrier(Channel& channel);
Task send(Channel& channel, const std::byte* data, std::size_t bytes, int peer);
// Writes the sender to `*source`.
Task recv(Channel& channel, std::byte* data, std::size_t bytes, int peer, std::atomic<int>* source);
Task all_gather_direct(Channel& channel, std::byte* out, const std::byte* in, std::size_t bytes);

// ring.cpp
Task ring_all_reduce(Channel& channel, std::byte* data, std::size_t elements, Reduction how);
Task ring_reduce_scatter(Channel& channel, std::byte* out, const std::byte* in,
                         std::size_t elements, Reduction how);
Task ring_all_gather(Channel& channel, std::byte* out, const std::byte* in, std::size_t bytes);

// chain.cpp
Task chain_broadcast(Channel& channel, std::byte* data, std::size_t bytes, int root);
Task chain_reduce(Channel& channel, std::byte* data, std::size_t elements, Reduction how, int root);

// tree.cpp
Task tree_broadcast(Channel& channel, std::byte* data, std::size_t bytes, int root);
Task tree_reduce(Channel& channel, std::byte* data, std::size_t elements, Reduction how, int root);
Task tree_all_reduce(Channel& channel, std::byte* data, std::size_t elements, Reduction how);

// naive.cpp, halving_doubling.cpp, recursive_doubling.cpp
Task naive_all_reduce(Channel& channel, std::byte* data, std::size_t elements, Reduction how);
Task halving_doubling_all_reduce(Channel& channel, std::byte* data, std::size_t elements,
                                 Reduction how);
Task recursive_doubling_all_reduce(Channel& channel, std::byte* data, std::size_t elements,
                                   Reduction how);

}  // namespace minitorch::collectives
