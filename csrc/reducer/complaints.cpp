// What the reducer says when something is wrong: always with the rank and the parameters' names.
#include <stdexcept>
#include <string>

#include "reducer/reducer.hpp"

namespace minitorch {

std::string Reducer::unfinished() const {
  if (!started()) return {};
  const std::string text =
      "Expected to have finished reduction in the prior iteration before starting a new one. "
      "Rank " +
      std::to_string(group_->rank()) + ", after " + std::to_string(next_to_launch_) + " of " +
      std::to_string(buckets_.size()) + " buckets were launched: ";
  if (phase_ == Phase::kFilling && !pass_open_ && options_.static_graph) {
    return text +
           "this error indicates that your training graph has changed in this iteration, e.g., one "
           "parameter is used in first iteration, but then got unused in the second iteration. "
           "this is not compatible with static_graph set to True. What is in .grad was not "
           "averaged. " +
           missing_text();
  }
  if (phase_ == Phase::kFilling && !pass_open_) {
    return text +
           "backward ended without a gradient for every parameter, and what is in .grad was not "
           "averaged. If parts of the module may stay unused, pass find_unused_parameters=True to "
           "DistributedDataParallel; else let every output of forward take part in the loss. " +
           missing_text();
  }
  if (next_to_launch_ == 0) {
    return text + "backward raised, and what is in .grad was not averaged. Leave out this step.";
  }
  return text +
         "backward raised in the middle of its communication, so the ranks may have seen different "
         "numbers of collectives. Restart from a checkpoint, or build DistributedDataParallel anew "
         "on all ranks.";
}

std::string Reducer::graph_changed_text(std::size_t parameter) const {
  return "Your training graph has changed in this iteration, e.g., one parameter is unused in "
         "first "
         "iteration, but then got used in the second iteration. this is not compatible with "
         "static_graph set to True. Rank " +
         std::to_string(group_->rank()) + ": the gradient of parameter " +
         std::to_string(parameter) + ", " + parameters_[parameter].name +
         ", arrived more often than in the first iteration. Leave out static_graph, or pass "
         "find_unused_parameters=True in its place.";
}

std::string Reducer::missing_text() const {
  std::string numbers, names;
  for (const std::size_t i : missing()) {
    numbers += " " + std::to_string(i);
    names += (names.empty() ? "" : ", ") + parameters_[i].name;
  }
  return "Parameter indices which did not receive grad for rank " + std::to_string(group_->rank()) +
         ":" + numbers + ". Parameters which did not receive grad for rank " +
         std::to_string(group_->rank()) + ": " + names;
}

void Reducer::require_unmarked(std::size_t parameter) const {
  if (!ready_.at(parameter)) return;
  throw std::runtime_error(
      "Expected to mark a variable ready only once. Parameter at index " +
      std::to_string(parameter) + " with name " + parameters_[parameter].name +
      " has been marked as ready twice. Its gradient arrived again after it was counted as "
      "complete for this "
      "iteration. Two things do that: the parameter is used outside of DistributedDataParallel's "
      "forward (with "
      "find_unused_parameters=True it was then taken for unused), or it takes part in several "
      "backward passes that "
      "run inside one another, as with reentrant activation checkpointing of a shared part.");
}

}  // namespace minitorch
