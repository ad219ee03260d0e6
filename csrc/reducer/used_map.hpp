// Which parameters took part in the loss: one int32 per parameter, summed over the ranks.
//
// A parameter that this rank did not use contributes zeros to its bucket. Whether the average may
// then be handed back depends on the others: used somewhere, yes; used nowhere, `.grad` is to stay
// what it was. That question is asked only for parameters unused here, so the sum is waited for
// only if there is one.
//
// Cost: one all-reduce of 4 bytes per parameter and pass.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "engine/engine.hpp"
#include "reducer/hook.hpp"

namespace minitorch {

class UsedMap {
 public:
  explicit UsedMap(std::size_t parameters)
      : here_(parameters, 0), sum_(std::make_shared<std::vector<std::int32_t>>(parameters, 0)) {}

  void mark(std::size_t parameter) { here_.at(parameter) = 1; }
  void forget_marks() { here_.assign(here_.size(), 0); }
  std::vector<std::size_t> unmarked() const;
  void launch(Group& group);
  bool used_anywhere(std::size_t parameter, const WhileWaiting& while_waiting);
  // On how many ranks each parameter was used, as of the last launch.
  std::span<const std::int32_t> counts(const WhileWaiting& while_waiting);

 private:
  std::vector<std::int32_t> here_;
  std::shared_ptr<std::vector<std::int32_t>> sum_;
  WorkPtr work_;
};

}  // namespace minitorch
