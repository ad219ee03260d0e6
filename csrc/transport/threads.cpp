#include "transport/threads.hpp"

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <list>
#include <mutex>
#include <stdexcept>
#include <thread>

#include "kernels/kernels.hpp"

namespace minitorch {
namespace {

constexpr std::size_t kEagerBytes = 16384;

// The state of a message or of a posted receive. Waiting -> copying happens under the mailbox's
// lock, the copy outside of it.
enum class Phase : int { kWaiting, kCopying, kDone };

struct Message {
  int source;
  Tag tag;
  const void* data;  // the sender's memory, or `own`
  std::size_t bytes;
  std::vector<std::byte> own;
  std::atomic<Phase> phase{Phase::kWaiting};
  std::atomic<bool> too_long{false};
};
using MessagePtr = std::shared_ptr<Message>;

struct Posted {
  int source;  // kAnySource until matched, if any would do
  Tag tag;
  void* data;
  std::size_t capacity;
  std::size_t bytes = 0;
  bool too_long = false;
  std::atomic<Phase> phase{Phase::kWaiting};
};
using PostedPtr = std::shared_ptr<Posted>;

// What arrives at one rank, and the bell that wakes it.
struct Mailbox {
  std::mutex mutex;
  std::list<MessagePtr> messages;  // no receive was posted for them yet
  std::list<PostedPtr> receives;   // no message has come for them yet
  std::deque<ControlMessage> control;
  std::atomic<bool> has_control{false};

  std::mutex bell_mutex;
  std::condition_variable bell;
  std::atomic<std::uint64_t> rings{0};
  std::atomic<bool> sleeping{false};

  // The order of `rings` and `sleeping` matters: either the ringer sees the sleeper, or the sleeper
  // sees the ring (both sequentially consistent).
  void ring() {
    rings.fetch_add(1);
    if (!sleeping.load()) return;
    const std::lock_guard lock(bell_mutex);
    bell.notify_all();
  }
};

struct World {
  explicit World(int size) : boxes(static_cast<std::size_t>(size)) {}
  Mailbox& box(int rank) { return boxes[static_cast<std::size_t>(rank)]; }
  std::vector<Mailbox> boxes;
};
using WorldPtr = std::shared_ptr<World>;

bool matches(const Posted& receive, int source, Tag tag) {
  return receive.tag == tag && (receive.source == kAnySource || receive.source == source);
}

// Both have been taken out of the mailbox and marked as being copied.
void deliver(World& world, Message& message, Posted& receive, int receiver) {
  receive.source = message.source;
  receive.bytes = message.bytes;
  receive.too_long = message.bytes > receive.capacity;
  if (receive.too_long) {
    message.too_long.store(true, std::memory_order_relaxed);
  } else if (message.bytes != 0) {
    kernels::copy_bytes(receive.data, message.data, message.bytes);
  }
  const int sender = message.source;
  message.phase.store(Phase::kDone, std::memory_order_release);
  receive.phase.store(Phase::kDone, std::memory_order_release);
  world.box(sender).ring();
  world.box(receiver).ring();
}

void wait_until_copied(const std::atomic<Phase>& phase) {
  while (phase.load(std::memory_order_acquire) == Phase::kCopying) std::this_thread::yield();
}

// A message that waits in the receiver's mailbox; null once it was copied.
struct SendRequest final : Request {
  MessagePtr message;
  WorldPtr world;
  int receiver = 0;
  ~SendRequest() override {
    if (!message || message->phase.load(std::memory_order_acquire) == Phase::kDone) return;
    Mailbox& box = world->box(receiver);
    {
      const std::lock_guard lock(box.mutex);
      box.messages.remove(message);
    }
    wait_until_copied(message->phase);
  }
};

struct RecvRequest final : Request {
  PostedPtr posted;
  WorldPtr world;
  int receiver = 0;
  ~RecvRequest() override {
    if (posted->phase.load(std::memory_order_acquire) == Phase::kDone) return;
    Mailbox& box = world->box(receiver);
    {
      const std::lock_guard lock(box.mutex);
      box.receives.remove(posted);
    }
    wait_until_copied(posted->phase);
  }
};

class ThreadsTransport final : public Transport {
 public:
  ThreadsTransport(WorldPtr world, int rank, Tag max_tag)
      : world_(std::move(world)), rank_(rank), max_tag_(max_tag) {}

  int rank() const override { return rank_; }
  int size() const override { return static_cast<int>(world_->boxes.size()); }
  Tag max_tag() const override { return max_tag_; }
  bool any_thread() const override { return true; }
  bool withdraws() const override { return true; }

  RequestPtr isend(int peer, Tag tag, const void* data, std::size_t bytes) override {
    auto message = std::make_shared<Message>();
    message->source = rank_;
    message->tag = tag;
    message->data = data;
    message->bytes = bytes;
    auto request = std::make_unique<SendRequest>();
    Mailbox& box = world_->box(peer);
    PostedPtr receive;
    {
      const std::lock_guard lock(box.mutex);
      const auto found = std::find_if(box.receives.begin(), box.receives.end(),
                                      [&](const PostedPtr& p) { return matches(*p, rank_, tag); });
      if (found != box.receives.end()) {
        receive = *found;
        receive->phase.store(Phase::kCopying, std::memory_order_relaxed);
        box.receives.erase(found);
      } else if (bytes <= kEagerBytes) {
        const auto* from = static_cast<const std::byte*>(data);
        message->own.assign(from, from + bytes);
        message->data = message->own.data();
        box.messages.push_back(std::move(message));
      } else {
        box.messages.push_back(message);
        request->message = std::move(message);
        request->world = world_;
        request->receiver = peer;
      }
    }
    if (receive) {
      deliver(*world_, *message, *receive, peer);
      if (message->too_long.load(std::memory_order_relaxed)) request->message = message;
    }
    return request;
  }

  RequestPtr irecv(int peer, Tag tag, void* data, std::size_t capacity) override {
    auto posted = std::make_shared<Posted>();
    posted->source = peer;
    posted->tag = tag;
    posted->data = data;
    posted->capacity = capacity;
    auto request = std::make_unique<RecvRequest>();
    request->posted = posted;
    request->world = world_;
    request->receiver = rank_;
    Mailbox& box = world_->box(rank_);
    MessagePtr message;
    {
      const std::lock_guard lock(box.mutex);
      const auto found =
          std::find_if(box.messages.begin(), box.messages.end(),
                       [&](const MessagePtr& m) { return matches(*posted, m->source, m->tag); });
      if (found != box.messages.end()) {
        message = *found;
        message->phase.store(Phase::kCopying, std::memory_order_relaxed);
        box.messages.erase(found);
      } else {
        box.receives.push_back(posted);
      }
    }
    if (message) deliver(*world_, *message, *posted, rank_);
    return request;
  }

  bool test(Request& request) override {
    if (auto* receive = dynamic_cast<RecvRequest*>(&request)) {
      const Posted& posted = *receive->posted;
      if (posted.phase.load(std::memory_order_acquire) != Phase::kDone) return false;
      if (posted.too_long)
        throw std::runtime_error("rank " + std::to_string(posted.source) + " sent " +
                                 std::to_string(posted.bytes) + " bytes into a receive of " +
                                 std::to_string(posted.capacity));
      receive->source = posted.source;
      receive->bytes = posted.bytes;
      return true;
    }
    const auto& message = static_cast<SendRequest&>(request).message;
    return !message || message->phase.load(std::memory_order_acquire) == Phase::kDone;
  }

  void send_control(int peer, const ControlMessage& message) override {
    Mailbox& box = world_->box(peer);
    {
      const std::lock_guard lock(box.mutex);
      box.control.push_back(message);
      box.control.back().from = rank_;
      if (box.control.back().text.size() > kMaxControlText)
        box.control.back().text.resize(kMaxControlText);
      box.has_control.store(true, std::memory_order_release);
    }
    box.ring();
  }

  std::optional<ControlMessage> poll_control() override {
    Mailbox& box = world_->box(rank_);
    if (!box.has_control.load(std::memory_order_acquire)) return std::nullopt;
    const std::lock_guard lock(box.mutex);
    if (box.control.empty()) return std::nullopt;
    ControlMessage message = std::move(box.control.front());
    box.control.pop_front();
    box.has_control.store(!box.control.empty(), std::memory_order_release);
    return message;
  }

  void idle(std::chrono::nanoseconds longest) override {
    Mailbox& box = world_->box(rank_);
    // What rang since the last idle may not have been looked at: look once more before sleeping.
    const std::uint64_t heard = box.rings.load();
    if (heard != heard_) {
      heard_ = heard;
      return;
    }
    std::unique_lock lock(box.bell_mutex);
    box.sleeping.store(true);
    box.bell.wait_for(lock, longest, [&] { return box.rings.load() != heard_; });
    box.sleeping.store(false);
    heard_ = box.rings.load();
  }

  std::chrono::nanoseconds longest_idle() const override { return std::chrono::milliseconds(20); }
  void wake() override { world_->box(rank_).ring(); }

 private:
  const WorldPtr world_;
  const int rank_;
  const Tag max_tag_;
  std::uint64_t heard_ = 0;  // only idle() uses it, and only one thread drives a rank
};

}  // namespace

std::vector<std::shared_ptr<Transport>> threads_world(int size, Tag max_tag) {
  if (size < 1) throw std::invalid_argument("a world needs at least one rank");
  const auto world = std::make_shared<World>(size);
  std::vector<std::shared_ptr<Transport>> transports;
  for (int rank = 0; rank < size; ++rank)
    transports.push_back(std::make_shared<ThreadsTransport>(world, rank, max_tag));
  return transports;
}

}  // namespace minitorch
