#include "reducer/reducer.hpp"

#include <algorithm>
#include <numeric>
#include <stdexcept>
#include <utility>

#include "kernels/kernels.hpp"
#include "reducer/all_reduce_hook.hpp"
#include "trace/trace.hpp"

namespace minitorch {
namespace {

Nanoseconds now() {
  return Trace::now_ns();
}

std::string bucket_args(const Bucket& bucket) {
  return "{\"bucket\": " + std::to_string(bucket.index()) +
         ", \"bytes\": " + std::to_string(bucket.bytes()) +
         ", \"label\": " + json_string(bucket.label()) + "}";
}

}  // namespace

Reducer::Reducer(std::shared_ptr<Group> group, std::vector<Parameter> parameters,
                 const BucketAssignment& assignment, ReducerOptions options)
    : group_(std::move(group)),
      parameters_(std::move(parameters)),
      options_(std::move(options)),
      hook_(std::make_unique<AllReduceHook>(group_)),
      divisor_(static_cast<std::size_t>(group_->size())),
      used_(parameters_.size()),
      used_in_flush_(parameters_.size()),
      firings_(parameters_.size()) {
  if (options_.rebuild_limits.empty())
    throw std::invalid_argument("Reducer: there is no bucket size limit");
  lay_out(assignment);
}

Reducer::~Reducer() = default;

void Reducer::reset_pass() {
  phase_ = Phase::kIdle;
  pass_ = Pass::kBackward;
  pass_open_ = false;
  waiting_for_.clear();
  for (const Bucket& bucket : buckets_) waiting_for_.push_back(bucket.slots().size());
  ready_.assign(parameters_.size(), false);
  unused_.assign(parameters_.size(), false);
  ready_order_.clear();
  next_to_launch_ = 0;
  pending_.clear();
  pending_.resize(buckets_.size());
  step_.buckets.assign(buckets_.size(), BucketTimes{});
  for (std::size_t b = 0; b < buckets_.size(); ++b) step_.buckets[b].bytes = buckets_[b].bytes();
}

// --- before forward ------------------------------------------------------------------------------

void Reducer::ensure_finished() {
  if (phase_ == Phase::kFilling && next_to_launch_ == 0 && pass_open_) {
    // The pass never came to its end: it raised. No other rank has seen anything of it.
    reset_pass();
    return;
  }
  if (std::string complaint = unfinished(); !complaint.empty()) throw std::runtime_error(complaint);
}

std::vector<std::size_t> Reducer::missing() const {
  std::vector<std::size_t> result;
  for (std::size_t i = 0; i < ready_.size(); ++i) {
    if (!ready_[i]) result.push_back(i);
  }
  return result;
}

void Reducer::mark_forward_start() {
  step_.forward_start = now();
}

// --- after forward -------------------------------------------------------------------------------

void Reducer::arm(Pass pass) {
  const Nanoseconds forward_start = step_.forward_start;
  reset_pass();
  pass_ = pass;
  if (pass == Pass::kBackward && options_.static_graph) firings_.begin_pass();
  if (pass == Pass::kFlush) used_in_flush_.forget_marks();
  step_ = StepTimes{
      .forward_start = forward_start, .forward_end = now(), .buckets = std::move(step_.buckets)};
  phase_ = Phase::kArmed;
}

void Reducer::set_static_graph() {
  if (iterations_ > 0 || phase_ != Phase::kIdle) {
    throw std::runtime_error(
        "set_static_graph() should be called before training loop starts and after "
        "DistributedDataParallel is constructed.");
  }
  options_.static_graph = true;
}

// --- during backward -----------------------------------------------------------------------------

void Reducer::mark_backward_start() {
  if (step_.backward_start == 0) step_.backward_start = now();
}

UsedMap* Reducer::used_in_this_pass() {
  if (pass_ == Pass::kFlush) return &used_in_flush_;
  return options_.find_unused_parameters || options_.static_graph ? &used_ : nullptr;
}

void Reducer::mark_used(std::size_t parameter) {
  if (UsedMap* map = used_in_this_pass()) map->mark(parameter);
}

bool Reducer::mark_fired(std::size_t parameter) {
  if (phase_ == Phase::kIdle) return false;
  if (phase_ == Phase::kArmed) phase_ = Phase::kFilling;
  pass_open_ = true;
  if (learning() && !agreeing() && used_map()[parameter] == 0)
    throw std::runtime_error(graph_changed_text(parameter));
  switch (firings_.fire(parameter)) {
    case Firings::Outcome::kComplete:
      return true;
    case Firings::Outcome::kUnexpected:
      throw std::runtime_error(graph_changed_text(parameter));
    default:
      return false;
  }
}

double Reducer::division_factor() const {
  return hook_->wants_division() ? 1.0 / static_cast<double>(divisor_) : 1.0;
}

void Reducer::divide_by(std::size_t ranks) {
  if (ranks == 0) throw std::invalid_argument("Reducer: gradients cannot be divided by 0 ranks");
  divisor_ = ranks;
}

// Returns how many bytes came from elsewhere: none if the gradient was computed in its slot.
std::size_t Reducer::fill_slot(const Bucket& bucket, const Slot& slot, const void* gradient) const {
  if (bucket.sparse()) return 0;
  std::byte* target = bucket.address(slot);
  const std::size_t bytes = slot.elements * size_of(bucket.dtype());
  if (gradient == nullptr) {
    std::fill_n(target, bytes, std::byte{0});
  } else if (const double factor = division_factor(); factor != 1.0) {
    kernels::copy_scaled(bucket.dtype(), target, gradient, slot.elements, factor);
  } else if (gradient != target) {
    kernels::copy_bytes(target, gradient, bytes);
  }
  return gradient == nullptr || gradient == target ? 0 : bytes;
}

bool Reducer::mark_unused_ready(std::size_t parameter, const void* gradient) {
  if (phase_ == Phase::kIdle) return false;
  require_unmarked(parameter);
  unused_[parameter] = true;
  return mark_ready(parameter, gradient);
}

bool Reducer::mark_ready(std::size_t parameter, const void* gradient) {
  if (phase_ == Phase::kIdle) return false;
  require_unmarked(parameter);
  if (phase_ == Phase::kArmed) phase_ = Phase::kFilling;
  pass_open_ = true;
  const Nanoseconds arrived = now();
  if (step_.backward_start == 0) step_.backward_start = arrived;

  const Location location = locations_[parameter];
  const Bucket& bucket = buckets_[location.bucket];
  const std::size_t copied = fill_slot(bucket, bucket.slots()[location.slot], gradient);
  ready_[parameter] = true;
  ready_order_.push_back(parameter);
  if (group_->trace().enabled()) {
    note_ready("gradient ready: " + parameters_[parameter].name,
               "{\"bytes_copied\": " + std::to_string(copied) + "}");
  }
  if (--waiting_for_[location.bucket] > 0) return false;

  step_.buckets[location.bucket].ready = now();
  if (group_->trace().enabled()) {
    note_ready("bucket " + std::to_string(location.bucket) + " ready", bucket_args(bucket));
  }
  launch_ready_buckets();
  return phase_ == Phase::kDraining;
}

void Reducer::note_ready(const std::string& what, std::string args) const {
  const Nanoseconds moment = now();
  group_->trace().record({.name = what,
                          .category = "ready",
                          .track = "compute",
                          .begin_ns = moment,
                          .end_ns = moment,
                          .args = std::move(args)});
}

bool Reducer::nothing_to_send(const Bucket& bucket) const {
  return options_.skip_unused_buckets && std::ranges::all_of(bucket.slots(), [&](const Slot& slot) {
           return unused_[slot.parameter];
         });
}

// Strictly in index order: a bucket that is ready early waits for its predecessors, on every rank
// alike.
void Reducer::launch_ready_buckets() {
  while (next_to_launch_ < buckets_.size() && waiting_for_[next_to_launch_] == 0) {
    const std::size_t b = next_to_launch_;
    const Bucket& bucket = buckets_[b];
    if (!nothing_to_send(bucket)) {
      step_.buckets[b].launched = now();
      CommunicationHook& hook = bucket.sparse() && !user_hook_ ? *sparse_hook_ : *hook_;
      pending_[b] = hook.launch(bucket);
    }
    ++next_to_launch_;
  }
  if (next_to_launch_ < buckets_.size()) return;
  phase_ = Phase::kDraining;
  if (dynamic() || agreeing() || pass_ == Pass::kFlush) used_in_this_pass()->launch(*group_);
}

// --- end of backward -----------------------------------------------------------------------------

void Reducer::begin_draining() {
  if (phase_ != Phase::kDraining) throw std::logic_error("Reducer: nothing to wait for");
  pass_open_ = false;
  step_.compute_end = now();
}

void Reducer::wait_bucket(std::size_t bucket) {
  if (phase_ != Phase::kDraining) throw std::logic_error("Reducer: nothing to wait for");
  Pending* pending = pending_.at(bucket).get();
  if (pending == nullptr) return;  // nothing was sent
  const Nanoseconds from = now();
  pending->wait(options_.while_waiting);
  const Nanoseconds to = now();
  step_.waited += to - from;
  if (group_->trace().enabled()) {
    group_->trace().record({.name = "wait for bucket " + std::to_string(bucket),
                            .category = "wait",
                            .track = "compute",
                            .begin_ns = from,
                            .end_ns = to,
                            .args = bucket_args(buckets_[bucket])});
  }
  BucketTimes& times = step_.buckets[bucket];
  times.started = pending->started();
  times.finished = pending->finished();
}

void Reducer::note_handed_back(std::size_t bucket, std::size_t bytes_copied) const {
  if (!group_->trace().enabled()) return;
  const Nanoseconds moment = now();
  group_->trace().record({.name = "bucket " + std::to_string(bucket) + " handed back",
                          .category = "copy",
                          .track = "compute",
                          .begin_ns = moment,
                          .end_ns = moment,
                          .args = "{\"bytes_copied\": " + std::to_string(bytes_copied) + "}"});
}

std::vector<std::size_t> Reducer::unused_here() {
  UsedMap* map = used_in_this_pass();
  return map == nullptr ? std::vector<std::size_t>{} : map->unmarked();
}

bool Reducer::used_anywhere(std::size_t parameter) {
  UsedMap* map = used_in_this_pass();
  return map == nullptr || map->used_anywhere(parameter, options_.while_waiting);
}

void Reducer::finish() {
  if (phase_ != Phase::kDraining) throw std::logic_error("Reducer: nothing to finish");
  if (pass_ == Pass::kFlush) {  // what no_sync steps used is accounted for
    if (dynamic()) used_.forget_marks();
    reset_pass();
    return;
  }
  step_.handed_back = now();
  last_step_ = step_;
  if (iterations_ > 0) total_ += measure_overlap(last_step_);
  last_ready_order_ = ready_order_;
  if (dynamic()) used_.forget_marks();
  if (options_.static_graph && pass_ == Pass::kBackward) firings_.set_learned();
  ++iterations_;
  reset_pass();
}

Overlap Reducer::mean_overlap() const {
  if (iterations_ < 2) return measure_overlap(last_step_);
  return total_ / static_cast<std::int64_t>(iterations_ - 1);
}

void Reducer::register_hook(std::unique_ptr<CommunicationHook> hook) {
  if (user_hook_) {
    throw std::runtime_error(
        "register_comm_hook or register_builtin_comm_hook can only be called once.");
  }
  user_hook_ = true;
  hook_ = std::move(hook);
}

}  // namespace minitorch
