// The DDP reducer: gradients in, averaged gradients out, one state machine per backward pass.
//
//             prepare_for_backward        first mark_ready          last bucket launched
//      idle ----------------------> armed ----------------> filling --------------------> draining
//        ^                            |  ^                     |                              |
//        |                            +--+                     +-- (backward raised) --+      |
//        |                       a dropped forward                                     |      |
//        +--------------------- reset, if nothing was launched <----------------------+       |
//        +------------------------------------ finish <---------------------------------------+
//
// A gradient that arrives is copied, divided by W, into its slot; the last one of a bucket makes
// the bucket ready; ready buckets are launched strictly in index order, so that every rank issues
// the same collectives in the same order, whatever order its own gradients came in. The end of
// backward waits in the same order.
//
// Four kinds of pass go through these states:
//   backward  as told above.
//   learning  the first backward under static_graph (firings.hpp). mark_fired only counts; when the
//             pass is over, the caller marks every parameter ready at once.
//   flush     no backward at all: the caller arms with prepare_for_flush and marks every parameter
//             ready with what `.grad` holds (accumulated under no_sync).
//   shadow    a backward that the other ranks run, joined with zeros. Nothing fires, and so this
//             rank learns nothing of its own graph: it counts in its own first backward.
//
// Division comes before the sum (g * (1/W), as in PyTorch): sums of half-precision gradients then
// do not overflow at large W. The price is one more rounding than dividing the sum.
//
// Every arrow of that path is an event of the group's trace: gradient ready, bucket ready, (by the
// engine) the collective, wait, handed back; those that copy say how many bytes.
//
// Knows nothing of Python: gradients come as pointers. Every call comes from the rank's own thread.
// Cost per step: the gradients' bytes once through memory, and what the hook communicates, by
// default one ring all-reduce per bucket: 2 (W-1) steps, 2 (W-1)/W of the bucket's bytes sent per
// rank.
// Next rooms: buckets.hpp (who goes where), bucket.hpp (memory), hook.hpp (communication),
// used_map.hpp (unused parameters), firings.hpp (static_graph), clocks.hpp (times).
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "engine/engine.hpp"
#include "reducer/bucket.hpp"
#include "reducer/buckets.hpp"
#include "reducer/clocks.hpp"
#include "reducer/firings.hpp"
#include "reducer/hook.hpp"
#include "reducer/used_map.hpp"

namespace minitorch {

struct ReducerOptions {
  // Limits in bytes of the buckets after the rebuild; the last one repeats.
  std::vector<std::size_t> rebuild_limits{kDefaultFirstBucketBytes, kDefaultBucketBytes};
  // Parameters may go without a gradient: a used-map is reduced beside the buckets, and buckets
  // keep their order for ever, since the order of readiness may change from step to step.
  bool find_unused_parameters = false;
  // The graph never changes: which parameters take part, and how often, is learned once. Takes
  // precedence over find_unused_parameters.
  bool static_graph = false;
  // Do not send a bucket of which no parameter is used. Only right if all ranks use the same ones.
  bool skip_unused_buckets = false;
  // See hook.hpp.
  WhileWaiting while_waiting = nullptr;
};

class Reducer {
 public:
  Reducer(std::shared_ptr<Group> group, std::vector<Parameter> parameters,
          const BucketAssignment& assignment, ReducerOptions options = {});
  ~Reducer();

  // --- before forward ----------------------------------------------------------------------------

  // Throws std::runtime_error if the previous backward left gradients unreduced. A backward that
  // raised before anything was launched is forgotten instead: no other rank has seen any of it.
  void ensure_finished();
  // The same complaint as text, empty if there is none: for a check that an optimizer makes before
  // its step.
  std::string unfinished() const;
  // Once, after the first reduced backward (static_graph: the second, since the first has no order
  // of readiness): new buckets in the order in which rank 0's gradients became ready. A collective
  // (two broadcasts). True if the buckets were replaced.
  bool rebuild_buckets();
  void mark_forward_start();

  // --- after forward -----------------------------------------------------------------------------

  // Arms the reducer for the next backward.
  void prepare_for_backward() { arm(Pass::kBackward); }
  // Arms it for mark_ready calls without a backward: every parameter's, in any order.
  void prepare_for_flush() { arm(Pass::kFlush); }
  // Likewise, for a backward that only the other ranks run.
  void prepare_for_shadow() { arm(Pass::kShadow); }
  // Throws std::runtime_error once a reduction has run.
  void set_static_graph();

  // --- during backward ---------------------------------------------------------------------------

  bool armed() const { return phase_ != Phase::kIdle; }
  bool started() const { return phase_ == Phase::kFilling || phase_ == Phase::kDraining; }
  bool draining() const { return phase_ == Phase::kDraining; }  // the last bucket was launched
  void mark_backward_start();
  // For the used-map: this rank's loss depends on the parameter. Counts also while not armed
  // (no_sync).
  void mark_used(std::size_t parameter);
  // static_graph: the parameter's hook fired. True if its gradient is complete by that; never while
  // learning. Throws std::runtime_error if it fired more often than in the first pass, or on no
  // rank in theirs if this one comes to learn later.
  bool mark_fired(std::size_t parameter);
  bool learning() const { return options_.static_graph && !firings_.learned(); }
  // static_graph: the parameters that the first pass did without.
  std::vector<std::size_t> never_fired() const { return firings_.never_fired(); }
  // Throws the "ready only once" error. Called by whoever wants to write into a slot by himself.
  void require_unmarked(std::size_t parameter) const;
  // The gradient of one parameter is complete. `gradient` holds its elements densely; nullptr
  // stands for zeros; the slot's own address means that the local gradient is there already. Does
  // nothing while not armed. Returns true when this launched the last bucket. A sparse gradient is
  // not copied: its hook knows where it is.
  bool mark_ready(std::size_t parameter, const void* gradient);
  // Likewise, for a parameter that this rank's loss does not depend on.
  bool mark_unused_ready(std::size_t parameter, const void* gradient);
  // This backward pass came to its end without launching the last bucket (else: begin_draining).
  void mark_pass_ended() { pass_open_ = false; }

  // --- end of backward ---------------------------------------------------------------------------

  void begin_draining();                 // compute is over: hidden turns into exposed
  void wait_bucket(std::size_t bucket);  // in index order
  // For the trace: the averages of this bucket are where the user looks for them.
  void note_handed_back(std::size_t bucket, std::size_t bytes_copied) const;
  // Parameters that this rank did not use: ask used_anywhere before their average is handed back.
  std::vector<std::size_t> unused_here();
  bool used_anywhere(std::size_t parameter);  // waits for the used-map only if unused here
  void finish();                              // disarms

  // Replaces the all-reduce. Throws std::runtime_error when called twice.
  void register_hook(std::unique_ptr<CommunicationHook> hook);
  // What is done with buckets of sparse gradients, unless register_hook was called.
  void set_sparse_hook(std::unique_ptr<CommunicationHook> hook) { sparse_hook_ = std::move(hook); }
  // By what gradients are divided from here on: W at first; fewer when some ranks have joined.
  void divide_by(std::size_t ranks);

  // --- to look at --------------------------------------------------------------------------------

  struct Location {
    std::size_t bucket;
    std::size_t slot;
  };
  const std::vector<Parameter>& parameters() const { return parameters_; }
  const std::vector<Bucket>& buckets() const { return buckets_; }
  Location location(std::size_t parameter) const { return locations_.at(parameter); }
  double division_factor() const;  // 1 / divisor, or 1 under a user's hook
  bool has_rebuilt() const { return rebuilt_; }
  std::uint64_t iterations() const { return iterations_; }  // finished reductions
  const std::vector<std::size_t>& ready_order() const { return last_ready_order_; }
  const StepTimes& last_step() const { return last_step_; }
  // Over all finished steps but the first, which has one bucket per dtype and nothing to overlap.
  Overlap mean_overlap() const;
  std::size_t launched() const { return next_to_launch_; }  // buckets launched in this pass
  std::vector<std::size_t> missing() const;                 // parameters this pass still waits for
  // Of the last pass that reduced it: on how many ranks each parameter was used.
  std::span<const std::int32_t> used_map() { return used_.counts(options_.while_waiting); }

 private:
  enum class Phase { kIdle, kArmed, kFilling, kDraining };
  enum class Pass { kBackward, kFlush, kShadow };

  // Which parameters are used may differ from step to step.
  bool dynamic() const { return options_.find_unused_parameters && !options_.static_graph; }
  // static_graph: the pass in which the ranks agree on which parameters are used. A rank that
  // shadows it has its learning pass later.
  bool agreeing() const { return options_.static_graph && iterations_ == 0; }
  // What mark_used is about, for the pass that runs; nullptr if every parameter counts as used.
  UsedMap* used_in_this_pass();

  void lay_out(const BucketAssignment& assignment);
  std::size_t fill_slot(const Bucket& bucket, const Slot& slot, const void* gradient) const;
  void launch_ready_buckets();
  bool nothing_to_send(const Bucket& bucket) const;
  BucketAssignment agree_on(const BucketAssignment& mine) const;
  std::string missing_text() const;
  std::string graph_changed_text(std::size_t parameter) const;
  void note_ready(const std::string& what, std::string args) const;
  void arm(Pass pass);
  void reset_pass();

  std::shared_ptr<Group> group_;
  std::vector<Parameter> parameters_;
  ReducerOptions options_;
  std::unique_ptr<CommunicationHook> hook_;
  std::unique_ptr<CommunicationHook> sparse_hook_;
  bool user_hook_ = false;
  std::size_t divisor_;

  std::vector<Bucket> buckets_;
  std::vector<Location> locations_;  // by parameter
  bool rebuilt_ = false;

  // One pass.
  Phase phase_ = Phase::kIdle;
  Pass pass_ = Pass::kBackward;
  bool pass_open_ = false;                // a backward is running, or raised
  std::vector<std::size_t> waiting_for_;  // by bucket: gradients still to come
  std::vector<bool> ready_;               // by parameter
  std::vector<bool> unused_;              // by parameter: marked ready as unused
  std::vector<std::size_t> ready_order_;
  std::size_t next_to_launch_ = 0;
  std::vector<std::unique_ptr<Pending>> pending_;  // by bucket
  StepTimes step_;

  UsedMap used_;  // of backward passes; under static_graph, as learned
  UsedMap used_in_flush_;
  Firings firings_;

  std::uint64_t iterations_ = 0;
  std::vector<std::size_t> last_ready_order_;
  StepTimes last_step_;
  Overlap total_;  // of all finished steps but the first
};

}  // namespace minitorch
