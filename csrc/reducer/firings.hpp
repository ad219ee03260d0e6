// How often each parameter's hook fires in one backward pass: what static_graph learns.
//
// A hook fires once per accumulation into `.grad`. Once per pass is the rule; a parameter inside
// re-entrant checkpoints fires once for each of them, a parameter outside of the loss never. If
// that never changes from step to step (static_graph), one pass is enough to know when a gradient
// is complete:
//
//   learning   counts, communicates nothing until the pass is over
//   afterwards a gradient is complete at its last firing; a parameter that never fired is unused
#pragma once

#include <cstddef>
#include <vector>

namespace minitorch {

class Firings {
 public:
  explicit Firings(std::size_t parameters) : per_pass_(parameters, 0), left_(parameters, 0) {}

  bool learned() const { return learned_; }
  void set_learned() { learned_ = true; }
  void begin_pass() {
    if (learned_) {
      left_ = per_pass_;
    } else {
      per_pass_.assign(per_pass_.size(), 0);
    }
  }

  enum class Outcome { kCounted, kMoreToCome, kComplete, kUnexpected };
  Outcome fire(std::size_t parameter) {
    if (!learned_) {
      ++per_pass_.at(parameter);
      return Outcome::kCounted;
    }
    std::size_t& left = left_.at(parameter);
    if (left == 0) return Outcome::kUnexpected;
    return --left == 0 ? Outcome::kComplete : Outcome::kMoreToCome;
  }
  std::vector<std::size_t> never_fired() const {
    std::vector<std::size_t> result;
    for (std::size_t i = 0; i < per_pass_.size(); ++i) {
      if (per_pass_[i] == 0) result.push_back(i);
    }
    return result;
  }

 private:
  bool learned_ = false;
  std::vector<std::size_t> per_pass_;  // while learning: so far; afterwards: what was learned
  std::vector<std::size_t> left_;      // of the pass that runs, once learned
};

}  // namespace minitorch
