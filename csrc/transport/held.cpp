#include "transport/held.hpp"

#include <algorithm>

namespace minitorch {

struct HeldTransport::Held {
  int peer;
  Tag tag;
  const void* data;
  std::size_t bytes;
  Clock::time_point when;
  RequestPtr sent;         // the inner request, once released
  bool withdrawn = false;  // the request was destroyed before
};

struct HeldTransport::SendRequest final : Request {
  explicit SendRequest(std::shared_ptr<Held> message) : held(std::move(message)) {}
  ~SendRequest() override { held->withdrawn = true; }
  std::shared_ptr<Held> held;
};

RequestPtr HeldTransport::isend(int peer, Tag tag, const void* data, std::size_t bytes) {
  auto held = std::make_shared<Held>(
      Held{peer, tag, data, bytes, release_time(peer, bytes), nullptr, false});
  // Sorted by time, equal times in order of sending: then messages to one peer keep their order.
  const auto place = std::upper_bound(
      held_.begin(), held_.end(), held->when,
      [](Clock::time_point when, const auto& other) { return when < other->when; });
  held_.insert(place, held);
  release();
  return std::make_unique<SendRequest>(std::move(held));
}

RequestPtr HeldTransport::irecv(int peer, Tag tag, void* data, std::size_t capacity) {
  return inner_->irecv(peer, tag, data, capacity);
}

bool HeldTransport::test(Request& request) {
  release();
  auto* send = dynamic_cast<SendRequest*>(&request);
  if (send == nullptr) return inner_->test(request);
  return send->held->sent && inner_->test(*send->held->sent);
}

void HeldTransport::idle(std::chrono::nanoseconds longest) {
  release();
  if (!held_.empty()) {
    const auto until = held_.front()->when - Clock::now();
    longest = std::clamp<std::chrono::nanoseconds>(until, std::chrono::nanoseconds(0), longest);
  }
  inner_->idle(longest);
  release();
}

void HeldTransport::release() {
  if (held_.empty()) return;
  const auto now = Clock::now();
  while (!held_.empty() && held_.front()->when <= now) {
    const auto held = std::move(held_.front());
    held_.pop_front();
    if (!held->withdrawn)
      held->sent = inner_->isend(held->peer, held->tag, held->data, held->bytes);
  }
}

}  // namespace minitorch
