// How bytes move between two ranks: the one interface that everything above is written against.
//
// A transport knows ranks 0..size-1 of the world, nothing of groups, collectives or dtypes.
// Messages between one pair with one tag arrive in the order in which they were sent (MPI's
// non-overtaking rule; the threads transport keeps it too), so the segments of one collective need
// no numbers.
//
// Beside the data runs a control channel for short messages (failure, goodbye, ...) that reach a
// rank whatever it is doing.
//
// Next rooms: threads.hpp (ranks as threads), mpi.hpp (processes), held.hpp with link.hpp (a
// slower, shaped wire) and delayed.hpp (random delays for tests).
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

namespace minitorch {

using Clock = std::chrono::steady_clock;
using Tag = std::int32_t;

inline constexpr int kAnySource = -1;

// A message in flight. Owned by whoever started it; `Transport::test` says when it is done. The
// buffer it was started with must stay alive until then (see `withdraws` for giving up on it).
struct Request {
  virtual ~Request() = default;
  int source = kAnySource;  // receives: filled in on completion
  std::size_t bytes = 0;    // receives: bytes that came (never more than the capacity)
  // Receives: set it after `irecv` if reading the message where it lies is as good as having it in
  // the buffer. Then, once complete, `stays` tells where that is, until the request is destroyed;
  // null: it is in the buffer, as ever.
  bool may_stay = false;
  const void* stays = nullptr;
};
using RequestPtr = std::unique_ptr<Request>;

struct ControlMessage {
  enum class Kind : std::int32_t {
    kFailure = 1,   // a rank failed; text says which one and why
    kGoodbye = 2,   // the sender ends normally; text says what it took part in
    kMismatch = 3,  // the sender saw two ranks run different collectives
    kTimeout = 4,   // the sender gave up waiting
    kStatus = 5,    // the sender has been stuck for a while in this collective (or: is not in it)
    kDispute = 6,   // the sender and the receiver disagree; text says what the sender has called
  };
  Kind kind = Kind::kFailure;
  int from = 0;
  std::string text;  // any bytes, cut to kMaxControlText
};
inline constexpr std::size_t kMaxControlText = 4000;

class Transport {
 public:
  virtual ~Transport() = default;
  virtual int rank() const = 0;
  virtual int size() const = 0;
  // Largest tag that may be used (MPI_TAG_UB); at least 32767.
  virtual Tag max_tag() const = 0;

  // Start a send or a receive; neither blocks. A receive of capacity c accepts any message of at
  // most c bytes; a longer one is an error (never a silent truncation).
  virtual RequestPtr isend(int peer, Tag tag, const void* data, std::size_t bytes) = 0;
  virtual RequestPtr irecv(int peer, Tag tag, void* data, std::size_t capacity) = 0;
  // True once the request is complete (and stays so). Never blocks; drives progress.
  virtual bool test(Request& request) = 0;

  // Never blocks: the message is copied.
  virtual void send_control(int peer, const ControlMessage& message) = 0;
  virtual std::optional<ControlMessage> poll_control() = 0;

  // Give the core away until something may have happened, at most `longest`. The threads transport
  // sleeps on a condition that arrivals signal; MPI, which cannot, sleeps for `longest`.
  virtual void idle(std::chrono::nanoseconds longest) = 0;
  // The longest idle that costs no latency worth speaking of.
  virtual std::chrono::nanoseconds longest_idle() const = 0;
  // Ends an `idle` in another thread early, where that is possible.
  virtual void wake() {}

  // Nothing more will be sent or received: give up what is posted. Idempotent.
  virtual void close() {}

  // Whether calls may come from several threads, one at a time (the engine's thread and the caller
  // of a blocking collective). Without it there is no engine thread: progress happens in wait().
  virtual bool any_thread() const = 0;

  // Whether destroying an unfinished request takes it back, so that its buffer may be freed. MPI
  // cannot take back a send: what a failed collective used then stays pinned until the process
  // ends.
  virtual bool withdraws() const = 0;
};

}  // namespace minitorch
