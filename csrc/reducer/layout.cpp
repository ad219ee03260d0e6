// How the reducer gets its buckets: laid out from an assignment, and rebuilt once in ready order.
#include <stdexcept>
#include <utility>

#include "reducer/reducer.hpp"

namespace minitorch {
namespace {

std::vector<Piece> pieces_in_order(const std::vector<Parameter>& parameters,
                                   const std::vector<std::size_t>& order) {
  std::vector<Piece> pieces;
  pieces.reserve(order.size());
  for (const std::size_t index : order) {
    const Parameter& p = parameters[index];
    pieces.push_back({p.elements * size_of(p.dtype), static_cast<int>(p.dtype), p.sparse});
  }
  return pieces;
}

}  // namespace

// Builds the buckets of `assignment`, which must name every parameter exactly once.
void Reducer::lay_out(const BucketAssignment& assignment) {
  if (assignment.limits.size() != assignment.indices.size()) {
    throw std::invalid_argument("Reducer: every bucket needs its size limit");
  }
  std::vector<Bucket> buckets;
  std::vector<Location> locations(parameters_.size(), Location{SIZE_MAX, 0});
  for (std::size_t b = 0; b < assignment.indices.size(); ++b) {
    buckets.emplace_back(b, assignment.limits[b], assignment.indices[b], parameters_);
    const auto& slots = buckets.back().slots();
    for (std::size_t s = 0; s < slots.size(); ++s) {
      Location& location = locations.at(slots[s].parameter);
      if (location.bucket != SIZE_MAX) {
        throw std::invalid_argument("Reducer: parameter " + parameters_[slots[s].parameter].name +
                                    " is in two buckets");
      }
      location = {b, s};
    }
  }
  for (std::size_t i = 0; i < locations.size(); ++i) {
    if (locations[i].bucket == SIZE_MAX) {
      throw std::invalid_argument("Reducer: parameter " + parameters_[i].name + " is in no bucket");
    }
  }
  buckets_ = std::move(buckets);
  locations_ = std::move(locations);
  reset_pass();
}

bool Reducer::rebuild_buckets() {
  const std::uint64_t needed = options_.static_graph ? 2 : 1;  // passes until the order is known
  if (rebuilt_ || dynamic() || iterations_ < needed) return false;
  const auto pieces = pieces_in_order(parameters_, last_ready_order_);
  lay_out(agree_on(
      compute_bucket_assignment_by_size(pieces, options_.rebuild_limits, last_ready_order_)));
  rebuilt_ = true;
  return true;
}

// Rank 0's assignment, on every rank. Two messages: how many buckets and what is in them; then how
// they are cut.
BucketAssignment Reducer::agree_on(const BucketAssignment& mine) const {
  const std::size_t count = parameters_.size();
  auto members = std::make_shared<std::vector<std::int64_t>>();
  for (const auto& bucket : mine.indices)
    members->insert(members->end(), bucket.begin(), bucket.end());
  members->push_back(static_cast<std::int64_t>(mine.indices.size()));
  group_
      ->broadcast(members->data(), members->size(), Dtype::kInt64, 0, members,
                  "bucket rebuild: members")
      ->wait();

  const auto buckets = static_cast<std::size_t>(members->back());
  auto cuts = std::make_shared<std::vector<std::int64_t>>(2 * buckets, 0);
  if (group_->rank() == 0) {
    for (std::size_t b = 0; b < buckets; ++b) {
      (*cuts)[2 * b] = static_cast<std::int64_t>(mine.indices[b].size());
      (*cuts)[2 * b + 1] = static_cast<std::int64_t>(mine.limits[b]);
    }
  }
  group_->broadcast(cuts->data(), cuts->size(), Dtype::kInt64, 0, cuts, "bucket rebuild: sizes")
      ->wait();

  BucketAssignment agreed;
  std::size_t next = 0;
  for (std::size_t b = 0; b < buckets; ++b) {
    auto& bucket = agreed.indices.emplace_back();
    for (std::int64_t i = 0; i < (*cuts)[2 * b] && next < count; ++i) {
      bucket.push_back(static_cast<std::size_t>((*members)[next++]));
    }
    agreed.limits.push_back(static_cast<std::size_t>((*cuts)[2 * b + 1]));
  }
  return agreed;
}

}  // namespace minitorch
