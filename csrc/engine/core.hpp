// The inside of the engine: who drives, what is queued, what is active, what went wrong. Private to
// engine/.
//
// Two locks. `inbox_` guards what callers hand in: taken for a moment, never while anything runs.
// `drive_` is held by whoever advances collectives and touches the transport: mostly the engine's
// thread, at times a caller who would otherwise only wait (that is the low-latency path: nobody has
// to be woken).
#pragma once

#include <array>
#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "engine/meter.hpp"
#include "engine/work.hpp"
#include "trace/trace.hpp"

namespace minitorch {

// What this rank has called in a group, as far back as disputes reach.
class Record {
 public:
  struct Call {
    Header header;
    std::string origin;
  };
  static constexpr std::size_t kLength = 64;

  void add(const Header& header, const std::string& origin) {
    Call& call = calls_[count_++ % kLength];
    call.header = header;
    call.origin = origin;
  }
  const Call* find(const Header& like) const;  // of the same number; nullptr: none, or too old
  std::string pack() const;                    // as the text of a control message
  static std::vector<Call> unpack(const std::string& text);

 private:
  std::size_t size() const { return count_ < kLength ? count_ : kLength; }
  std::array<Call, kLength> calls_;
  std::size_t count_ = 0;
};

struct GroupState {
  std::uint32_t id = 0;
  std::vector<int> ranks;  // group rank -> world rank
  int rank = -1;           // ours; -1: not a member
  std::atomic<std::int64_t> timeout_ns{0};
  Tag first_tag =
      0;  // collectives use first_tag .. first_tag+tags-1, point-to-point the next `tags`
  Tag tags = 0;
  Meter meter;

  // Under the inbox lock.
  std::uint64_t next_issue = 0;
  std::uint32_t history = 0;  // digest of all that were issued
  Record record;              // the last of them

  // Under the drive lock.
  std::deque<WorkPtr> queue;     // collectives, in order of issue
  std::deque<WorkPtr> receives;  // point-to-point receives that must not overtake an earlier one
  std::size_t active = 0;        // of the queue's
  std::vector<Seen> seen;        // by group rank
  Seen finished;                 // the last collective that we finished
};
using GroupStatePtr = std::shared_ptr<GroupState>;

class Core : public std::enable_shared_from_this<Core> {
 public:
  Core(std::shared_ptr<Transport> transport, bool threaded, const Tuning& tuning);

  void start();  // once the object is owned by a shared_ptr
  GroupStatePtr new_group(const std::vector<int>& ranks, std::chrono::nanoseconds timeout,
                          const std::uint32_t* id);
  Channel::Route route_of(GroupState& group);

  // Numbers the work and queues it; throws if the engine has failed or was shut down.
  void issue(const WorkPtr& work, bool blocking);
  bool wait_for(Work& work, std::chrono::nanoseconds slice);
  void poke();  // a deadline was set: have it looked at

  void fail(const std::string& message);
  void goodbye();
  void shutdown();
  std::string error();

  Transport& transport() { return *transport_; }
  bool threaded() const { return threaded_; }
  Meter& meter() { return meter_; }
  Trace& trace() const { return *trace_.load(); }
  std::shared_ptr<Trace> shared_trace();
  void set_trace(std::shared_ptr<Trace> trace);

 private:
  using Error = Work::Error;

  // core.cpp: the loop
  void run_thread();
  template <class Done>
  void drive(Done done, std::int64_t until_ns);
  void drive_once();
  bool pass();
  void drain_inbox();
  void activate(const WorkPtr& work);
  void activate_collectives(GroupState& group);
  void activate_receives(GroupState& group);
  bool advance(const WorkPtr& work);  // true: it moved
  void finish(const WorkPtr& work);
  void notify_waiters();
  void wake();
  void record(const Work& work);

  // failure.cpp: deadlines and the end; control.cpp: what ranks tell each other
  void look_around(std::int64_t now_ns);  // control messages, deadlines, stalls
  void handle(const ControlMessage& message);
  void handle_goodbye(const ControlMessage& message);
  void handle_status(const ControlMessage& message);
  void check_gone(const WorkPtr& work);
  void expire(Work& work, std::int64_t now_ns);
  bool expire_queued(std::int64_t now_ns);
  void report_stall(Work& work, std::int64_t now_ns);
  void answer_status(GroupState& group, int world_rank);

  // lateness.cpp: what the error of a deadline says
  static std::vector<int> missing_ranks(const Work& work);
  std::string timeout_text(const Work& work, std::int64_t now_ns) const;
  std::string deadlock_text(const Work& work, std::int64_t now_ns);
  bool needs_us(const Seen& seen);

  // disputes.cpp: who called what
  void dispute(Work& work, const HeaderMismatch& error);
  void handle_dispute(const ControlMessage& message);
  bool disagree(GroupState& group, int world_rank, const Record::Call& theirs);
  GroupStatePtr group_of(std::uint32_t id);

  // failure.cpp: the end
  std::string failed_here(const std::string& why) const;  // "rank r failed: ..."
  void fail_world(Error kind, const std::string& text);   // tell_all, then fail_all
  void tell_all(ControlMessage::Kind kind, const std::string& text);
  void fail_all(Error kind, const std::string& text);
  void fail_work(const WorkPtr& work, Error kind, const std::string& text);
  void throw_error();  // under the inbox lock

  const std::shared_ptr<Transport> transport_;
  const bool threaded_;
  const Tuning tuning_;
  Meter meter_;
  std::vector<std::shared_ptr<Trace>> traces_{std::make_shared<Trace>()};  // all that were ever set
  std::atomic<Trace*> trace_{traces_.back().get()};
  std::thread thread_;

  std::mutex inbox_mutex_;
  std::condition_variable inbox_bell_;
  std::vector<WorkPtr> inbox_;
  std::atomic<bool> inbox_full_{false};
  bool stopped_ = false;
  bool failed_ = false;
  Error error_kind_ = Error::kPlain;
  std::string error_;
  std::map<std::uint32_t, std::weak_ptr<GroupState>> groups_;  // by id
  std::uint32_t next_group_ = 0;

  std::mutex drive_mutex_;
  std::atomic<int> drive_requests_{0};  // callers that want the lock for a moment
  std::vector<WorkPtr> active_;         // in order of activation
  std::vector<WorkPtr> taken_;          // from the inbox; kept for its memory
  Buffers buffers_;
  // Failed while in flight, over a transport that cannot take it back. Works own their core, so
  // once there is one it all lives until the process ends: on purpose.
  std::vector<WorkPtr> pinned_;
  struct Gone {
    std::int64_t at_ns = 0;  // 0: not gone
    std::map<std::uint32_t, std::uint64_t>
        issues;  // per group: how many collectives it took part in
  };
  std::vector<Gone> gone_;  // by world rank
  unsigned passes_ = 0;
  std::uint64_t lanes_ = 0;              // of the timeline, bit i: taken
  std::atomic<std::size_t> pending_{0};  // issued and not completed
  std::atomic<bool> stopping_{false};
  std::atomic<bool> impatient_{false};  // some caller has set a deadline of its own

  std::mutex done_mutex_;
  std::condition_variable done_bell_;
  std::atomic<int> waiters_{0};
};

std::int64_t now_ns();

// "all_reduce #12 (float32, 1000 elements, sum) 'bucket 3'"
std::string describe(const Work& work);

}  // namespace minitorch
