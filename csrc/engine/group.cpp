// The collectives as methods: check the arguments, make the Work, give it its task, issue it.
#include <numeric>
#include <stdexcept>

#include "collectives/collectives.hpp"
#include "engine/core.hpp"
#include "engine/engine.hpp"

namespace minitorch {
namespace {

std::byte* bytes_of(void* data) {
  return static_cast<std::byte*>(data);
}
const std::byte* bytes_of(const void* data) {
  return static_cast<const std::byte*>(data);
}

std::size_t total(const std::vector<std::size_t>& counts) {
  return std::accumulate(counts.begin(), counts.end(), std::size_t{0});
}

}  // namespace

Group::Group(std::shared_ptr<Core> core, std::shared_ptr<GroupState> state)
    : core_(std::move(core)), state_(std::move(state)) {}

int Group::rank() const {
  return state_->rank;
}
int Group::size() const {
  return static_cast<int>(state_->ranks.size());
}
std::uint32_t Group::id() const {
  return state_->id;
}
const std::vector<int>& Group::ranks() const {
  return state_->ranks;
}
Meter& Group::meter() const {
  return state_->meter;
}
Trace& Group::trace() const {
  return core_->trace();
}

std::chrono::nanoseconds Group::timeout() const {
  return std::chrono::nanoseconds(state_->timeout_ns.load());
}
void Group::set_timeout(std::chrono::nanoseconds timeout) {
  state_->timeout_ns = timeout.count();
}

WorkPtr Group::make(Operation operation, std::size_t elements, Dtype dtype, ReduceOp op, int root,
                    std::size_t bytes, Options& options) const {
  if (state_->rank < 0)
    throw CollectiveError("Rank " + std::to_string(core_->transport().rank()) +
                          " is not a member of group " + std::to_string(state_->id) +
                          " and cannot run " + name_of(operation) + " on it");
  if (options.scale != 1.0 && !is_floating_point(dtype))
    throw std::invalid_argument(std::string(name_of(operation)) + ": cannot scale " +
                                name_of(dtype) +
                                "; a mean needs a floating-point dtype (sum, then divide)");
  if (options.parent && options.parent->group_ != state_)
    throw std::invalid_argument(std::string(name_of(operation)) +
                                ": the parent collective belongs to another group");
  Header header;
  header.group = state_->id;
  header.operation = operation;
  header.dtype = dtype;
  header.reduce_op = op;
  header.algorithm = options.algorithm;
  header.root = static_cast<std::uint16_t>(root);
  header.elements = elements;
  auto work =
      std::make_shared<Work>(core_, state_, core_->route_of(*state_), header, std::move(options));
  work->bytes_ = bytes;
  return work;
}

WorkPtr Group::issue(WorkPtr work, bool blocking) const {
  core_->issue(work, blocking);
  return work;
}

void Group::check_rank(int rank, const char* what) const {
  if (rank < 0 || rank >= size())
    throw std::invalid_argument(std::string(what) + " " + std::to_string(rank) +
                                " is not a rank of this group of " + std::to_string(size()));
}

WorkPtr Group::all_reduce(void* data, std::size_t elements, Dtype dtype, ReduceOp op,
                          Options options) {
  const collectives::Reduction how{dtype, op, options.scale};
  auto work =
      make(Operation::kAllReduce, elements, dtype, op, 0, elements * size_of(dtype), options);
  work->task_ =
      collectives::all_reduce(work->channel_, options.algorithm, bytes_of(data), elements, how);
  return issue(std::move(work), options.blocking);
}

WorkPtr Group::reduce_scatter(void* out, const void* in, std::size_t elements, Dtype dtype,
                              ReduceOp op, Options options) {
  const collectives::Reduction how{dtype, op, options.scale};
  auto work = make(Operation::kReduceScatter, elements, dtype, op, 0,
                   elements * size_of(dtype) * state_->ranks.size(), options);
  work->task_ =
      collectives::reduce_scatter(work->channel_, bytes_of(out), bytes_of(in), elements, how);
  return issue(std::move(work), options.blocking);
}

WorkPtr Group::all_gather(void* out, const void* in, std::size_t elements, Dtype dtype,
                          Options options) {
  const std::size_t bytes = elements * size_of(dtype);
  auto work = make(Operation::kAllGather, elements, dtype, ReduceOp::kSum, 0,
                   bytes * state_->ranks.size(), options);
  work->task_ = collectives::all_gather(work->channel_, bytes_of(out), bytes_of(in), bytes);
  return issue(std::move(work), options.blocking);
}

WorkPtr Group::broadcast(void* data, std::size_t elements, Dtype dtype, int root, Options options) {
  check_rank(root, "broadcast: source");
  const std::size_t bytes = elements * size_of(dtype);
  auto work = make(Operation::kBroadcast, elements, dtype, ReduceOp::kSum, root, bytes, options);
  work->task_ = collectives::broadcast(work->channel_, bytes_of(data), bytes, root);
  return issue(std::move(work), options.blocking);
}

WorkPtr Group::reduce(void* data, std::size_t elements, Dtype dtype, ReduceOp op, int root,
                      Options options) {
  check_rank(root, "reduce: destination");
  const collectives::Reduction how{dtype, op, options.scale};
  auto work =
      make(Operation::kReduce, elements, dtype, op, root, elements * size_of(dtype), options);
  work->task_ = collectives::reduce(work->channel_, bytes_of(data), elements, how, root);
  return issue(std::move(work), options.blocking);
}

WorkPtr Group::gather(void* out, const void* in, std::size_t elements, Dtype dtype, int root,
                      Options options) {
  check_rank(root, "gather: destination");
  const std::size_t bytes = elements * size_of(dtype);
  auto work = make(Operation::kGather, elements, dtype, ReduceOp::kSum, root, bytes, options);
  work->task_ = collectives::gather(work->channel_, bytes_of(out), bytes_of(in), bytes, root);
  return issue(std::move(work), options.blocking);
}

WorkPtr Group::scatter(void* out, const void* in, std::size_t elements, Dtype dtype, int root,
                       Options options) {
  check_rank(root, "scatter: source");
  const std::size_t bytes = elements * size_of(dtype);
  auto work = make(Operation::kScatter, elements, dtype, ReduceOp::kSum, root, bytes, options);
  work->task_ = collectives::scatter(work->channel_, bytes_of(out), bytes_of(in), bytes, root);
  return issue(std::move(work), options.blocking);
}

WorkPtr Group::all_to_all(void* out, const void* in, const std::vector<std::size_t>& out_elements,
                          const std::vector<std::size_t>& in_elements, Dtype dtype,
                          Options options) {
  if (out_elements.size() != state_->ranks.size() || in_elements.size() != state_->ranks.size())
    throw std::invalid_argument("all_to_all: needs one count per rank, that is " +
                                std::to_string(size()) + ", for input and output");
  const std::size_t own = static_cast<std::size_t>(std::max(state_->rank, 0));
  if (out_elements[own] != in_elements[own])
    throw std::invalid_argument("all_to_all: this rank sends itself " +
                                std::to_string(in_elements[own]) + " elements but expects " +
                                std::to_string(out_elements[own]));
  auto work = make(Operation::kAllToAll, 0, dtype, ReduceOp::kSum, 0,
                   total(in_elements) * size_of(dtype), options);
  work->task_ = collectives::all_to_all(work->channel_, bytes_of(out), bytes_of(in), out_elements,
                                        in_elements, size_of(dtype));
  return issue(std::move(work), options.blocking);
}

WorkPtr Group::barrier(Options options) {
  auto work = make(Operation::kBarrier, 0, Dtype::kUInt8, ReduceOp::kSum, 0, 0, options);
  work->task_ = collectives::barrier(work->channel_);
  return issue(std::move(work), options.blocking);
}

WorkPtr Group::send(const void* data, std::size_t elements, Dtype dtype, int peer, int tag,
                    Options options) {
  check_rank(peer, "send: destination");
  auto work = point_to_point(Operation::kSend, elements, dtype, peer, tag, options);
  work->task_ = collectives::send(work->channel_, bytes_of(data), work->bytes_, peer);
  return issue(std::move(work), options.blocking);
}

WorkPtr Group::recv(void* data, std::size_t elements, Dtype dtype, int peer, int tag,
                    Options options) {
  if (peer != kAnySource) check_rank(peer, "recv: source");
  auto work = point_to_point(Operation::kRecv, elements, dtype, peer, tag, options);
  work->task_ =
      collectives::recv(work->channel_, bytes_of(data), work->bytes_, peer, &work->source_);
  return issue(std::move(work), options.blocking);
}

WorkPtr Group::point_to_point(Operation operation, std::size_t elements, Dtype dtype, int peer,
                              int tag, Options& options) const {
  if (peer == state_->rank && state_->rank >= 0)
    throw std::invalid_argument(std::string(name_of(operation)) +
                                ": the other side is this rank itself");
  if (tag < 0 || tag >= state_->tags)
    throw std::invalid_argument(std::string(name_of(operation)) + ": tag " + std::to_string(tag) +
                                " is not between 0 and " + std::to_string(state_->tags - 1));
  if (options.parent)
    throw std::invalid_argument(std::string(name_of(operation)) +
                                ": only collectives are numbered under a parent");
  auto work =
      make(operation, elements, dtype, ReduceOp::kSum, 0, elements * size_of(dtype), options);
  work->peer_ = peer;
  work->channel_.identify(static_cast<std::uint64_t>(tag), 0, 0);
  return work;
}

}  // namespace minitorch
