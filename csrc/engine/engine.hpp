// The communication engine: one queue per group, one thread per rank, futures, deadlines.
//
// A collective is submitted as a Task and runs while Python computes: the engine's thread advances
// what is active, never takes the GIL and owns no Python reference. Within a group, collectives
// start in the order of issue and at most `Tuning::window` are active at a time; groups do not wait
// for each other. With a transport that may only be driven by one thread there is no engine thread,
// and waiting drives progress.
//
//   auto engine = std::make_shared<Engine>(transport);
//   auto group = engine->new_group({0, 1, 2, 3}, std::chrono::seconds(30));
//   WorkPtr work = group->all_reduce(data, n, Dtype::kFloat32, ReduceOp::kSum, {.label = "bucket
//   0"}); work->wait();
//
// Whatever goes wrong (a peer's failure, a mismatch, a deadline) fails the engine as a whole:
// everything pending raises, later calls raise at once, on every rank.
//
// Next rooms: work.hpp (the promise), core.hpp (the loop), meter.hpp (the bytes).
#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "engine/meter.hpp"
#include "engine/work.hpp"
#include "trace/trace.hpp"
#include "transport/transport.hpp"

namespace minitorch {

class Core;
struct GroupState;

// Some ranks of the world and the order of what they do together. Every collective returns at once;
// memory handed in must stay alive and untouched until the Work is completed (Options::keep_alive).
// Roots and peers are group ranks. Costs: see collectives/collectives.hpp.
class Group {
 public:
  Group(std::shared_ptr<Core> core, std::shared_ptr<GroupState> state);

  int rank() const;  // -1: this process is not a member, and every collective throws
  int size() const;
  std::uint32_t id() const;
  const std::vector<int>& ranks() const;  // group rank -> world rank
  std::chrono::nanoseconds timeout() const;
  void set_timeout(std::chrono::nanoseconds timeout);
  Meter& meter() const;
  Trace& trace() const;  // the engine's

  // In place.
  WorkPtr all_reduce(void* data, std::size_t elements, Dtype dtype, ReduceOp op,
                     Options options = {});
  // `in` holds size() * elements; `out` (elements) gets the reduction of everyone's rank()-th part.
  WorkPtr reduce_scatter(void* out, const void* in, std::size_t elements, Dtype dtype, ReduceOp op,
                         Options options = {});
  // `out` holds size() * elements, ordered by rank. `in` may be its own part of `out`.
  WorkPtr all_gather(void* out, const void* in, std::size_t elements, Dtype dtype,
                     Options options = {});
  WorkPtr broadcast(void* data, std::size_t elements, Dtype dtype, int root, Options options = {});
  // In place at the root; other ranks' data are only read.
  WorkPtr reduce(void* data, std::size_t elements, Dtype dtype, ReduceOp op, int root,
                 Options options = {});
  // `out` (size() * elements) is used at the root only.
  WorkPtr gather(void* out, const void* in, std::size_t elements, Dtype dtype, int root,
                 Options options = {});
  // `in` (size() * elements) is used at the root only.
  WorkPtr scatter(void* out, const void* in, std::size_t elements, Dtype dtype, int root,
                  Options options = {});
  // Part j of `in` goes to rank j, part i of `out` comes from rank i; parts lie one after the
  // other.
  WorkPtr all_to_all(void* out, const void* in, const std::vector<std::size_t>& out_elements,
                     const std::vector<std::size_t>& in_elements, Dtype dtype,
                     Options options = {});
  WorkPtr barrier(Options options = {});

  // Matched by peer and tag in the order of issue; not numbered among the collectives.
  WorkPtr send(const void* data, std::size_t elements, Dtype dtype, int peer, int tag = 0,
               Options options = {});
  // `peer` may be kAnySource; Work::source() then tells who it was.
  WorkPtr recv(void* data, std::size_t elements, Dtype dtype, int peer, int tag = 0,
               Options options = {});

  // Shorthands for a label and something to keep alive.
  WorkPtr all_reduce(void* data, std::size_t elements, Dtype dtype, ReduceOp op,
                     std::shared_ptr<void> keep_alive, std::string label) {
    return all_reduce(data, elements, dtype, op,
                      Options{.keep_alive = std::move(keep_alive), .label = std::move(label)});
  }
  WorkPtr broadcast(void* data, std::size_t elements, Dtype dtype, int root,
                    std::shared_ptr<void> keep_alive, std::string label) {
    return broadcast(data, elements, dtype, root,
                     Options{.keep_alive = std::move(keep_alive), .label = std::move(label)});
  }

 private:
  WorkPtr make(Operation operation, std::size_t elements, Dtype dtype, ReduceOp op, int root,
               std::size_t bytes, Options& options) const;
  WorkPtr point_to_point(Operation operation, std::size_t elements, Dtype dtype, int peer, int tag,
                         Options& options) const;
  WorkPtr issue(WorkPtr work, bool blocking) const;
  void check_rank(int rank, const char* what) const;

  std::shared_ptr<Core> core_;
  std::shared_ptr<GroupState> state_;
};

class Engine {
 public:
  // `threaded`: progress by a thread of the engine's own, if the transport allows it.
  explicit Engine(std::shared_ptr<Transport> transport, bool threaded = true,
                  const Tuning& tuning = {});
  ~Engine();  // shutdown()
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  int rank() const;
  int size() const;
  bool threaded() const;

  // A local call without communication. All ranks of the world call it in the same order, members
  // or not, or the members agree on an id of their own (then only they need to call).
  std::shared_ptr<Group> new_group(const std::vector<int>& ranks, std::chrono::nanoseconds timeout);
  std::shared_ptr<Group> new_group(const std::vector<int>& ranks, std::chrono::nanoseconds timeout,
                                   std::uint32_t id);

  // Tells all ranks that this one failed; everything pending and later raises "rank r failed: ...".
  void fail(const std::string& message);
  // A normal end; peers that still wait for this rank raise.
  void goodbye();
  // Stops the thread; what is pending fails. Idempotent.
  void shutdown();
  std::string error() const;  // why the engine failed; empty: it did not

  Meter& meter() const;
  Trace& trace() const;
  void set_trace(std::shared_ptr<Trace> trace);
  std::shared_ptr<Trace> shared_trace() const;

 private:
  std::shared_ptr<Core> core_;
};

}  // namespace minitorch
