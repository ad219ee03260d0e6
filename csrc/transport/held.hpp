// A transport that holds outgoing messages back: the common part of link.hpp and delayed.hpp.
//
// A subclass says when a message may go. Until then it stays with the sender (its buffer too); then
// it is handed to the inner transport. Messages to one peer leave in their order. Receives and the
// control channel pass straight through. Holding needs a driver: whoever polls or idles here lets
// messages go.
#pragma once

#include <deque>

#include "transport/transport.hpp"

namespace minitorch {

class HeldTransport : public Transport {
 public:
  explicit HeldTransport(std::shared_ptr<Transport> inner) : inner_(std::move(inner)) {}

  int rank() const override { return inner_->rank(); }
  int size() const override { return inner_->size(); }
  Tag max_tag() const override { return inner_->max_tag(); }
  bool any_thread() const override { return inner_->any_thread(); }
  bool withdraws() const override { return inner_->withdraws(); }

  RequestPtr isend(int peer, Tag tag, const void* data, std::size_t bytes) override;
  RequestPtr irecv(int peer, Tag tag, void* data, std::size_t capacity) override;
  bool test(Request& request) override;
  void send_control(int peer, const ControlMessage& message) override {
    inner_->send_control(peer, message);
  }
  std::optional<ControlMessage> poll_control() override {
    release();
    return inner_->poll_control();
  }
  // Never sleeps beyond the moment at which the next message may go.
  void idle(std::chrono::nanoseconds longest) override;
  std::chrono::nanoseconds longest_idle() const override { return inner_->longest_idle(); }
  void wake() override { inner_->wake(); }
  void close() override { inner_->close(); }

 protected:
  // When a message may be handed on; asked once per message, in order of sending. Must not decrease
  // for one peer.
  virtual Clock::time_point release_time(int peer, std::size_t bytes) = 0;

 private:
  struct Held;
  struct SendRequest;
  void release();  // hands on what may go

  std::shared_ptr<Transport> inner_;
  std::deque<std::shared_ptr<Held>> held_;  // by time of release
};

}  // namespace minitorch
