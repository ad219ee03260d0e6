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
// Division comes before the sum (g * (1/W), as in PyTorch): sums of half-precision gradients then
// do not overflow at large W. The price is one more rounding than dividing the sum.
//
// Every arrow of that path is an event of the group's trace: gradient ready, bucket ready, (by the
// engine) the collective, wait.
//
// Knows nothing of Python: gradients come as pointers. Every call comes from the rank's own thread.
// Cost per step: the gradients' bytes once through memory, and what the hook communicates, by
// default one ring all-reduce per bucket: 2 (W-1) steps, 2 (W-1)/W of the bucket's bytes sent per
// rank.
// Next rooms: buckets.hpp (who goes where), bucket.hpp (memory), hook.hpp (communication),
// clocks.hpp (times).
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
#include "reducer/hook.hpp"

namespace minitorch {

struct ReducerOptions {
  // Limits in bytes of the buckets after the rebuild; the last one repeats.
  std::vector<std::size_t> rebuild_limits{kDefaultFirstBucketBytes, kDefaultBucketBytes};
  // Parameters may go without a gradient: a used-map is reduced beside the buckets, and buckets
  // keep their order for ever, since the order of readiness may change from step to step.
  bool find_unused_parameters = false;
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
  // Once, after the first reduced backward: new buckets in the order in which rank 0's gradients
  // became ready. A collective (two broadcasts). True if the buckets were replaced.
  bool rebuild_buckets();
  void mark_forward_start();

  // --- after forward -----------------------------------------------------------------------------

  // Arms the reducer for the next backward.
  void prepare_for_backward();

  // --- during backward ---------------------------------------------------------------------------

  bool armed() const { return phase_ != Phase::kIdle; }
  bool started() const { return phase_ == Phase::kFilling || phase_ == Phase::kDraining; }
  bool draining() const { return phase_ == Phase::kDraining; }  // the last bucket was launched
  void mark_backward_start();
  // For the used-map: this rank's loss depends on the parameter. Counts also while not armed
  // (no_sync).
  void mark_used(std::size_t parameter);
  // Throws the "ready only once" error. Called by whoever wants to write into a slot by himself.
  void require_unmarked(std::size_t parameter) const;
  // The gradient of one parameter is complete. `gradient` holds its elements densely; nullptr
  // stands for zeros; the slot's own address means that the local gradient is there already. Does
  // nothing while not armed. Returns true when this launched the last bucket.
  bool mark_ready(std::size_t parameter, const void* gradient);
  // This backward pass came to its end without launching the last bucket (else: begin_draining).
  void mark_pass_ended() { pass_open_ = false; }

  // --- end of backward ---------------------------------------------------------------------------

  void begin_draining();                      // compute is over: hidden turns into exposed
  void wait_bucket(std::size_t bucket);       // in index order
  bool used_anywhere(std::size_t parameter);  // waits for the used-map only if locally unused
  void finish();                              // disarms

  // Replaces the all-reduce. Throws std::runtime_error when called twice.
  void register_hook(std::unique_ptr<CommunicationHook> hook);

  // --- to look at --------------------------------------------------------------------------------

  struct Location {
    std::size_t bucket;
    std::size_t slot;
  };
  const std::vector<Parameter>& parameters() const { return parameters_; }
  const std::vector<Bucket>& buckets() const { return buckets_; }
  Location location(std::size_t parameter) const { return locations_.at(parameter); }
  double division_factor() const;  // 1/W, or 1 under a user's hook
  bool has_rebuilt() const { return rebuilt_; }
  std::uint64_t iterations() const { return iterations_; }  // finished reductions
  const std::vector<std::size_t>& ready_order() const { return last_ready_order_; }
  const StepTimes& last_step() const { return last_step_; }
  // Over all finished steps but the first, which has one bucket per dtype and nothing to overlap.
  Overlap mean_overlap() const;
  std::size_t launched() const { return next_to_launch_; }  // buckets launched in this pass
  std::vector<std::size_t> missing() const;                 // parameters this pass still waits for
  // Of the last finished step with find_unused_parameters: on how many ranks each parameter was
  // used.
  std::span<const std::int32_t> used_map();

 private:
  enum class Phase { kIdle, kArmed, kFilling, kDraining };

  void lay_out(const BucketAssignment& assignment);
  void fill_slot(const Bucket& bucket, const Slot& slot, const void* gradient) const;
  void launch_ready_buckets();
  void launch_used_map();
  BucketAssignment agree_on(const BucketAssignment& mine) const;
  std::string missing_text() const;
  void note_ready(const std::string& what, std::string args) const;
  void reset_pass();

  std::shared_ptr<Group> group_;
  std::vector<Parameter> parameters_;
  ReducerOptions options_;
  std::unique_ptr<CommunicationHook> hook_;
  bool user_hook_ = false;

  std::vector<Bucket> buckets_;
  std::vector<Location> locations_;  // by parameter
  bool rebuilt_ = false;

  // One pass.
  Phase phase_ = Phase::kIdle;
  bool pass_open_ = false;                // a backward is running, or raised
  std::vector<std::size_t> waiting_for_;  // by bucket: gradients still to come
  std::vector<bool> ready_;               // by parameter
  std::vector<std::size_t> ready_order_;
  std::size_t next_to_launch_ = 0;
  std::vector<std::unique_ptr<Pending>> pending_;  // by bucket
  StepTimes step_;

  // The used-map: one int32 per parameter, summed over ranks.
  std::shared_ptr<std::vector<std::int32_t>> used_here_;
  std::shared_ptr<std::vector<std::int32_t>> used_sum_;
  WorkPtr used_work_;

  std::uint64_t iterations_ = 0;
  std::vector<std::size_t> last_ready_order_;
  StepTimes last_step_;
  Overlap total_;  // of all finished steps but the first
};

}  // namespace minitorch
