// Which schedule runs: by name, or by size.
#include "collectives/collectives.hpp"
#include "kernels/kernels.hpp"

namespace minitorch::collectives {
namespace {

// A world of one sends nothing, but a mean still divides.
Task alone(std::byte* out, const std::byte* in, std::size_t elements, Reduction how) {
  kernels::copy_scaled(how.dtype, out, in, elements, how.scale);
  co_return;
}

}  // namespace

Task all_reduce(Channel& channel, Algorithm algorithm, std::byte* data, std::size_t elements,
                Reduction how) {
  if (channel.size() == 1) return alone(data, data, elements, how);
  if (algorithm == Algorithm::kAuto)
    algorithm = elements * size_of(how.dtype) <= channel.tuning().small_bytes
                    ? Algorithm::kRecursiveDoubling
                    : Algorithm::kRing;
  switch (algorithm) {
    case Algorithm::kNaive:
      return naive_all_reduce(channel, data, elements, how);
    case Algorithm::kTree:
      return tree_all_reduce(channel, data, elements, how);
    case Algorithm::kHalvingDoubling:
      return halving_doubling_all_reduce(channel, data, elements, how);
    case Algorithm::kRecursiveDoubling:
      return recursive_doubling_all_reduce(channel, data, elements, how);
    default:
      return ring_all_reduce(channel, data, elements, how);
  }
}

Task reduce_scatter(Channel& channel, std::byte* out, const std::byte* in, std::size_t elements,
                    Reduction how) {
  if (channel.size() == 1) return alone(out, in, elements, how);
  return ring_reduce_scatter(channel, out, in, elements, how);
}

Task all_gather(Channel& channel, std::byte* out, const std::byte* in, std::size_t bytes) {
  if (bytes <= channel.tuning().small_bytes) return all_gather_direct(channel, out, in, bytes);
  return ring_all_gather(channel, out, in, bytes);
}

Task broadcast(Channel& channel, std::byte* data, std::size_t bytes, int root) {
  if (bytes <= channel.tuning().small_bytes) return tree_broadcast(channel, data, bytes, root);
  return chain_broadcast(channel, data, bytes, root);
}

Task reduce(Channel& channel, std::byte* data, std::size_t elements, Reduction how, int root) {
  if (channel.size() == 1) return alone(data, data, elements, how);
  if (elements * size_of(how.dtype) <= channel.tuning().small_bytes)
    return tree_reduce(channel, data, elements, how, root);
  return chain_reduce(channel, data, elements, how, root);
}

}  // namespace minitorch::collectives
