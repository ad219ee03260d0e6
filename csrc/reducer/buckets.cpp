#include "reducer/buckets.hpp"

#include <algorithm>
#include <map>
#include <numeric>
#include <stdexcept>
#include <utility>

namespace minitorch {
namespace {

struct OpenBucket {  // what one key is filling at the moment
  std::vector<std::size_t> indices;
  std::size_t bytes = 0;
  std::size_t limit_number = 0;  // where this key stands in the list of limits
  std::size_t last_position = 0;
};

struct ClosedBucket {
  std::vector<std::size_t> indices;
  std::size_t limit;
  std::size_t rank_by;  // what the final order is decided by
};

}  // namespace

BucketAssignment compute_bucket_assignment_by_size(std::span<const Piece> pieces,
                                                   std::span<const std::size_t> limits,
                                                   std::span<const std::size_t> order) {
  if (pieces.empty())
    throw std::invalid_argument("bucket assignment: there is no parameter to assign");
  if (limits.empty()) throw std::invalid_argument("bucket assignment: there is no size limit");
  if (!order.empty() && order.size() != pieces.size()) {
    throw std::invalid_argument("bucket assignment: " + std::to_string(pieces.size()) +
                                " parameters but an order of " + std::to_string(order.size()));
  }
  const bool by_readiness = !order.empty();
  std::map<int, OpenBucket> open;
  std::vector<ClosedBucket> closed;

  auto close = [&](std::vector<std::size_t> indices, std::size_t limit, std::size_t last_position) {
    const std::size_t rank_by = by_readiness ? last_position : *std::ranges::min_element(indices);
    closed.push_back({std::move(indices), limit, rank_by});
  };

  for (std::size_t position = 0; position < pieces.size(); ++position) {
    const std::size_t index = by_readiness ? order[position] : position;
    const Piece& piece = pieces[position];
    if (piece.alone) {
      close({index}, kNoLimit, position);
      continue;
    }
    OpenBucket& bucket = open[piece.key];
    bucket.indices.push_back(index);
    bucket.bytes += piece.bytes;
    bucket.last_position = position;
    const std::size_t limit = limits[bucket.limit_number];
    if (bucket.bytes >= limit) {
      close(std::exchange(bucket.indices, {}), limit, position);
      bucket.bytes = 0;
      if (bucket.limit_number + 1 < limits.size()) ++bucket.limit_number;
    }
  }
  for (auto& [key, bucket] : open) {
    if (!bucket.indices.empty())
      close(std::move(bucket.indices), limits[bucket.limit_number], bucket.last_position);
  }

  std::ranges::stable_sort(closed, {}, &ClosedBucket::rank_by);
  BucketAssignment result;
  for (ClosedBucket& bucket : closed) {
    result.indices.push_back(std::move(bucket.indices));
    result.limits.push_back(bucket.limit);
  }
  return result;
}

}  // namespace minitorch
