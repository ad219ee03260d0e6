#include "reducer/used_map.hpp"

#include "reducer/all_reduce_hook.hpp"

namespace minitorch {

std::vector<std::size_t> UsedMap::unmarked() const {
  std::vector<std::size_t> result;
  for (std::size_t i = 0; i < here_.size(); ++i) {
    if (here_[i] == 0) result.push_back(i);
  }
  return result;
}

void UsedMap::launch(Group& group) {
  // A fresh copy: the map of the step before may still be on its way, as long as nobody needed it.
  sum_ = std::make_shared<std::vector<std::int32_t>>(here_);
  work_ = group.all_reduce(sum_->data(), sum_->size(), Dtype::kInt32, ReduceOp::kSum, sum_,
                           "used-parameter map");
}

bool UsedMap::used_anywhere(std::size_t parameter, const WhileWaiting& while_waiting) {
  return here_.at(parameter) != 0 || counts(while_waiting)[parameter] > 0;
}

std::span<const std::int32_t> UsedMap::counts(const WhileWaiting& while_waiting) {
  if (work_) wait_for(*work_, while_waiting);
  return *sum_;
}

}  // namespace minitorch
