// The ring: reduce-scatter, all-gather, and all-reduce as the one after the other. N ranks.
//
// Every rank sends to its right neighbour and receives from its left. The vector is cut into N
// chunks. In step s rank r sends chunk r-s-1 and receives chunk r-s-2 (mod N):
//   s = 0 .. N-2      reduce-scatter: what comes is combined with the own part and sent on in the
//   next
//                     step; in the last one chunk r is complete at rank r, and is scaled there
//   s = N-1 .. 2N-3   all-gather: complete chunks go round
// Chunk c so is summed in the order c+1, c+2, ..., c, whatever arrives when; all ranks then get
// that sum.
//
// Steps 2(N-1), bytes sent per rank 2(N-1)/N * B for an all-reduce (half of it for each of its
// halves). This is optimal: Patarasuk and Yuan, "Bandwidth optimal all-reduce algorithms", JPDC 69
// (2009).
//
// Chunks travel in segments, and the steps overlap: segment k of step s+1 goes out as soon as
// segment k of step s was combined. All ranks follow the same order, by waves: wave w holds segment
// w of step 0, segment w - lag of step 1, segment w - 2 lag of step 2, ... With `lag` as long as a
// chunk the steps run one after the other; with a short one, data are sent on while they are still
// in the cache.
#include <cstring>
#include <deque>

#include "collectives/chunks.hpp"
#include "collectives/collectives.hpp"
#include "kernels/kernels.hpp"

namespace minitorch::collectives {
namespace {

struct Ring {
  const std::byte* in;      // where the own parts of all chunks are (reduce steps)
  std::byte* own;           // where the own chunk gets complete
  std::byte* all;           // where all chunks gather
  Chunks chunks;            // of `in` and `all`
  std::size_t first, last;  // steps first .. last-1
  Reduction how;
};

// A place in the order of messages: the same for what is sent and for what is received.
class Place {
 public:
  Place(std::size_t first, std::size_t last, std::size_t segments, std::size_t lag)
      : first_(first), last_(last), segments_(segments), lag_(lag), step_(first) {}

  std::size_t step() const { return step_; }
  std::size_t segment() const { return wave_ - (step_ - first_) * lag_; }
  std::size_t wave() const { return wave_; }
  bool at_end() const { return wave_ >= segments_ + (last_ - first_ - 1) * lag_; }

  void next() {
    do {
      if (++step_ == last_) {
        step_ = first_;
        ++wave_;
      }
    } while (!at_end() && !exists());
  }

  // Whether this place comes after segment k of step s.
  bool is_after(std::size_t step, std::size_t segment) const {
    const std::size_t wave = segment + (step - first_) * lag_;
    return wave_ != wave ? wave_ > wave : step_ > step;
  }

 private:
  bool exists() const {
    const std::size_t delay = (step_ - first_) * lag_;
    return wave_ >= delay && wave_ - delay < segments_;
  }

  std::size_t first_, last_, segments_, lag_;
  std::size_t wave_ = 0, step_;
};

struct Sent {
  Send message;
  Place place;
  std::size_t slot;  // scratch that is free again once this is sent
};

struct Expected {
  Recv message;
  std::size_t slot;
};

constexpr std::size_t kNoSlot = static_cast<std::size_t>(-1);

// What a running ring holds; the coroutine below is its control flow.
class Run {
 public:
  Run(Channel& channel, const Ring& ring)
      : channel_(channel),
        ring_(ring),
        ranks_(static_cast<std::size_t>(channel.size())),
        rank_(static_cast<std::size_t>(channel.rank())),
        item_(size_of(ring.how.dtype)),
        segment_(segment_elements(channel.tuning(), ring.chunks.longest(), item_)),
        segments_(segments_of(ring.chunks.longest(), segment_)),
        lag_(lag_for(channel.tuning(), ring.last - ring.first, segments_)),
        to_send_(ring.first, ring.last, segments_, lag_),
        to_post_(to_send_),
        current(to_send_) {
    if (ring_.first < ranks_ - 1) {
      const std::size_t reduce_steps = ranks_ - 1;
      const std::size_t slots =
          std::min((lag_ + 1) * reduce_steps + 1, segments_ * reduce_steps) + ahead();
      slot_bytes_ = (std::min(segment_, ring_.chunks.longest()) * item_ + 63) / 64 * 64;
      scratch_ = channel.scratch(slots * slot_bytes_);
      for (std::size_t slot = slots; slot-- > 0;) free_.push_back(slot);
    }
  }

  // Starts every send whose data are there, up to `lag` waves ahead of what is being received.
  void start_sends() {
    reap();
    while (!to_send_.at_end() && to_send_.wave() < current.wave() + lag_ + ahead() &&
           has_data(to_send_)) {
      const std::size_t step = to_send_.step();
      const Range range = range_of(sent_chunk(step), to_send_.segment());
      const std::byte* data;
      std::size_t slot = kNoSlot;
      if (step == 0 && ring_.first == 0) {
        data = at(ring_.in, range);
      } else if (step < ranks_ - 1) {
        slot = to_forward_.front();
        to_forward_.pop_front();
        data = slot_data(slot);
      } else if (sent_chunk(step) == rank_) {
        data = own(to_send_.segment());
      } else {
        data = at(ring_.all, range);
      }
      if (range.count != 0 || to_send_.segment() == 0)
        sent_.push_back({channel_.send(right(), data, range.count * item_), to_send_, slot});
      else if (slot != kNoSlot)
        free_.push_back(slot);
      to_send_.next();
    }
  }

  // Posts receives ahead, as far as there is room. At least one is posted on return, or a send must
  // complete first (false).
  bool post_receives() {
    reap();
    while (!to_post_.at_end() && posted_.size() < ahead() && may_post(to_post_)) {
      const std::size_t step = to_post_.step();
      const Range range = range_of(received_chunk(step), to_post_.segment());
      std::size_t slot = kNoSlot;
      std::byte* data;
      if (step < ranks_ - 1) {
        slot = free_.back();
        free_.pop_back();
        data = slot_data(slot);
      } else {
        data = at(ring_.all, range);
      }
      Expected expected{Recv(), slot};
      if (range.count != 0 || to_post_.segment() == 0)
        expected.message = channel_.recv(left(), data, range.count * item_);
      if (slot != kNoSlot) expected.message.may_stay();  // it will only be added to something
      posted_.push_back(std::move(expected));
      to_post_.next();
      if (!met_) break;  // the first message decides whether there may be more
    }
    return !posted_.empty();
  }

  Recv& incoming() { return posted_.front().message; }
  Send& oldest_send() { return sent_.front().message; }
  bool sends_pending() {
    reap();
    return !sent_.empty();
  }
  bool has_met() const { return met_; }
  void meet() { met_ = true; }

  // What was awaited has come: combine it, and on to the next place.
  void take() {
    const std::size_t step = current.step();
    const std::size_t slot = posted_.front().slot;
    if (step < ranks_ - 1) {
      const Range range = range_of(received_chunk(step), current.segment());
      const auto& how = ring_.how;
      const std::byte* theirs = posted_.front().message.stays();
      if (theirs == nullptr) theirs = slot_data(slot);
      if (step == ranks_ - 2) {
        kernels::reduce_scaled(how.op, how.dtype, own(current.segment()), at(ring_.in, range),
                               theirs, range.count, how.scale);
        free_.push_back(slot);
      } else {
        kernels::reduce(how.op, how.dtype, slot_data(slot), theirs, at(ring_.in, range),
                        range.count);
        to_forward_.push_back(slot);
      }
    }
    posted_.pop_front();
    current.next();
  }

 private:
  static std::size_t lag_for(const Tuning& tuning, std::size_t steps, std::size_t segments) {
    const std::size_t lag = (tuning.ahead + steps - 1) / steps;
    return std::clamp<std::size_t>(lag, 1, segments);
  }

  std::size_t ahead() const { return std::max<std::size_t>(channel_.tuning().ahead, 1); }
  int right() const { return static_cast<int>((rank_ + 1) % ranks_); }
  int left() const { return static_cast<int>((rank_ + ranks_ - 1) % ranks_); }
  std::size_t sent_chunk(std::size_t step) const {
    return (rank_ + 2 * ranks_ - step - 1) % ranks_;
  }
  std::size_t received_chunk(std::size_t step) const {
    return (rank_ + 2 * ranks_ - step - 2) % ranks_;
  }

  Range range_of(std::size_t chunk, std::size_t segment) const {
    const Range whole = ring_.chunks[chunk];
    const std::size_t begin = std::min(segment * segment_, whole.count);
    return {whole.begin + begin, std::min(segment_, whole.count - begin)};
  }
  template <class Byte>
  Byte* at(Byte* base, Range range) const {
    return base + range.begin * item_;
  }
  std::byte* own(std::size_t segment) const {
    return ring_.own + std::min(segment * segment_, ring_.chunks[rank_].count) * item_;
  }
  std::byte* slot_data(std::size_t slot) const { return scratch_.data() + slot * slot_bytes_; }

  // What is sent in the first step is there; what is sent later was received a step before.
  bool has_data(const Place& place) const {
    return place.step() == ring_.first || current.is_after(place.step() - 1, place.segment());
  }

  bool may_post(const Place& place) const {
    const std::size_t step = place.step();
    if (step < ranks_ - 1) return !free_.empty();
    if (ring_.first == ranks_ - 1) return true;
    // An all-reduce in place: the memory about to be overwritten must have been read, that is sent
    // (chunk r-1, step 0) or combined (all others, N steps before).
    if (step == ranks_ - 1) return is_sent(0, place.segment());
    return current.is_after(step - ranks_, place.segment());
  }

  bool is_sent(std::size_t step, std::size_t segment) const {
    if (!to_send_.at_end() && !to_send_.is_after(step, segment)) return false;
    return sent_.empty() || sent_.front().place.is_after(step, segment);
  }

  void reap() {
    while (!sent_.empty() && sent_.front().message.ready()) {
      if (sent_.front().slot != kNoSlot) free_.push_back(sent_.front().slot);
      sent_.pop_front();
    }
  }

  Channel& channel_;
  const Ring ring_;
  const std::size_t ranks_, rank_, item_;
  const std::size_t segment_;   // elements of a segment
  const std::size_t segments_;  // of the longest chunk; of shorter ones the last may be empty
  const std::size_t lag_;
  Place to_send_, to_post_;
  bool met_ = false;  // the left neighbour's first message came and fits

  std::size_t slot_bytes_ = 0;
  Buffers::Block scratch_;
  std::vector<std::size_t> free_;
  std::deque<std::size_t> to_forward_;  // slots combined, in the order in which they will be sent
  std::deque<Sent> sent_;
  std::deque<Expected> posted_;

 public:
  Place current;  // what is to be received next
};

// Why this never gets stuck: let r be the rank whose `current` comes first in the order (all follow
// the same one). Its left neighbour is at least as far, so it has sent what r waits for. If r
// instead waits for a send, its right neighbour has not posted that receive and is therefore behind
// r: a contradiction.
Task run_ring(Channel& channel, Ring ring) {
  Run run(channel, ring);
  while (!run.current.at_end()) {
    run.start_sends();
    while (!run.post_receives()) co_await run.oldest_send();
    if (!run.has_met()) {
      Accepted first(run.incoming());
      co_await first;
      run.meet();
      run.post_receives();
    }
    co_await run.incoming();
    run.take();
  }
  run.start_sends();
  while (run.sends_pending()) co_await run.oldest_send();
}

}  // namespace

Task ring_all_reduce(Channel& channel, std::byte* data, std::size_t elements, Reduction how) {
  const auto ranks = static_cast<std::size_t>(channel.size());
  const Chunks chunks{elements, ranks};
  std::byte* own =
      data + chunks[static_cast<std::size_t>(channel.rank())].begin * size_of(how.dtype);
  return run_ring(channel, Ring{data, own, data, chunks, 0, 2 * ranks - 2, how});
}

Task ring_reduce_scatter(Channel& channel, std::byte* out, const std::byte* in,
                         std::size_t elements, Reduction how) {
  const auto ranks = static_cast<std::size_t>(channel.size());
  return run_ring(channel,
                  Ring{in, out, nullptr, Chunks{elements * ranks, ranks}, 0, ranks - 1, how});
}

Task ring_all_gather(Channel& channel, std::byte* out, const std::byte* in, std::size_t bytes) {
  const auto ranks = static_cast<std::size_t>(channel.size());
  std::byte* own = out + static_cast<std::size_t>(channel.rank()) * bytes;
  if (own != in && bytes != 0) std::memmove(own, in, bytes);
  if (ranks == 1) co_return;
  const Reduction plain{Dtype::kUInt8, ReduceOp::kSum, 1.0};
  Task ring = run_ring(channel, Ring{nullptr, own, out, Chunks{bytes * ranks, ranks}, ranks - 1,
                                     2 * ranks - 2, plain});
  co_await ring;
}

}  // namespace minitorch::collectives
