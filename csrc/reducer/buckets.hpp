// Which gradient goes into which bucket: a pure function of sizes, tested without any
// communication.
//
// Li et al., PVLDB 13(12) 2020, §3.2.3: small all-reduces waste latency, one big all-reduce cannot
// overlap with backward; buckets are the compromise. The rule is greedy: parameters are appended to
// the open bucket of their dtype, and a bucket closes once its size *reaches* the limit. It may so
// overshoot, and a parameter is never split.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace minitorch {

inline constexpr std::size_t kMiB = std::size_t{1} << 20;
// Bucket 0 is small when the user named no size, so that communication starts early.
inline constexpr std::size_t kDefaultFirstBucketBytes = kMiB;
inline constexpr std::size_t kDefaultBucketBytes = 25 * kMiB;
inline constexpr std::size_t kNoLimit = SIZE_MAX;

struct Piece {  // one parameter, as far as bucketing is concerned
  std::size_t bytes = 0;
  int key = 0;         // pieces of different keys (dtypes) never share a bucket
  bool alone = false;  // sparse gradients travel by themselves
};

struct BucketAssignment {
  std::vector<std::vector<std::size_t>> indices;  // per bucket, what it holds, in order
  std::vector<std::size_t> limits;  // per bucket, the limit in force; kNoLimit for lone pieces
};

// Assign pieces[i] to buckets.
//
// `limits`: the first bucket of each key closes at limits[0], the next at limits[1], ...; the last
// one repeats. `order`: the order in which the pieces are taken and, per piece, the index to
// report. Empty: 0, 1, 2, ...
//
// Order of the buckets: by their smallest index without `order` (the constructor then reverses the
// list); with `order` (a rebuild in ready order) by the position of their *last* piece, since that
// is when a bucket becomes ready and buckets are launched strictly in index order. Throws
// std::invalid_argument on no pieces, no limits, or an order of another length.
BucketAssignment compute_bucket_assignment_by_size(std::span<const Piece> pieces,
                                                   std::span<const std::size_t> limits,
                                                   std::span<const std::size_t> order = {});

}  // namespace minitorch
