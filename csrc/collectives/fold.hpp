// Schedules that need a power of two: how N ranks become P of them, the largest power of two <= N.
//
// The first 2(N-P) ranks pair up: the even one hands its data to the odd one and sits out. The
// others are numbered 0..P-1 by `place`.
#pragma once

#include <bit>

namespace minitorch::collectives {

class Fold {
 public:
  Fold(int rank, int ranks)
      : rank_(rank),
        size_(static_cast<int>(std::bit_floor(static_cast<unsigned>(ranks)))),
        pairs_(ranks - size_) {}

  bool hands_over() const { return rank_ < 2 * pairs_ && rank_ % 2 == 0; }
  bool takes_over() const { return rank_ < 2 * pairs_ && rank_ % 2 == 1; }
  int partner() const { return rank_ ^ 1; }
  int size() const { return size_; }  // P
  int place() const { return rank_ < 2 * pairs_ ? rank_ / 2 : rank_ - pairs_; }
  int rank_at(int place) const { return place < pairs_ ? 2 * place + 1 : place + pairs_; }

 private:
  int rank_, size_, pairs_;
};

}  // namespace minitorch::collectives
