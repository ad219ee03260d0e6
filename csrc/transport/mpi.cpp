#include "transport/mpi.hpp"

#include <mpi.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <list>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "kernels/kernels.hpp"

namespace minitorch {
namespace {

void check(int code, const char* call) {
  if (code == MPI_SUCCESS) return;
  char text[MPI_MAX_ERROR_STRING];
  int length = 0;
  MPI_Error_string(code, text, &length);
  throw std::runtime_error(std::string(call) + ": " +
                           std::string(text, static_cast<std::size_t>(length)));
}

bool mpi_is_usable() {
  int initialized = 0, finalized = 0;
  MPI_Initialized(&initialized);
  if (initialized != 0) MPI_Finalized(&finalized);
  return initialized != 0 && finalized == 0;
}

// A message: one MPI request, or several if it is longer than the limit. An unfinished one is never
// cancelled (MPI cannot take back a send); the engine keeps it, and its buffer, until the process
// ends.
struct MpiRequest final : Request {
  MPI_Request one = MPI_REQUEST_NULL;
  Ticket ticket{};  // a send whose payload went down a lane: what travels
  std::shared_ptr<Lanes>
      lanes;             // a receive whose payload stays: frees the slot `ticket` at the end
  void* data = nullptr;  // a receive: where the message lies, be it the payload or a ticket
  std::size_t capacity = 0;
  std::vector<MPI_Request> more;
  std::size_t next = 0;  // of `more`: the first that is not complete
  bool receives = false;

  ~MpiRequest() override {
    if (lanes) lanes->free(source, ticket);
  }

  bool advance(MPI_Request& request) {
    if (request == MPI_REQUEST_NULL) return true;
    int done = 0;
    MPI_Status status;
    check(MPI_Test(&request, &done, &status), "MPI_Test");
    if (done == 0) return false;
    if (receives) {
      int count = 0;
      MPI_Get_count(&status, MPI_BYTE, &count);
      source = status.MPI_SOURCE;
      bytes += static_cast<std::size_t>(count);
    }
    return true;
  }

  bool test() {
    if (!advance(one)) return false;
    for (; next < more.size(); ++next)
      if (!advance(more[next])) return false;
    return true;
  }
};

// Control messages: the kind, then the text.
constexpr std::size_t kControlBytes = sizeof(std::int32_t) + kMaxControlText;
using ControlBuffer = std::array<char, kControlBytes>;

struct OutgoingControl {
  ControlBuffer buffer;
  MPI_Request request = MPI_REQUEST_NULL;
};

class MpiTransport final : public Transport {
 public:
  MpiTransport(MPI_Comm data, MPI_Comm control, std::size_t count_limit,
               std::unique_ptr<Lanes> lanes)
      : data_(data),
        control_(control),
        limit_(std::min(count_limit, kMpiCountLimit)),
        lanes_(std::move(lanes)) {
    if (limit_ < 4096) throw std::invalid_argument("mpi_transport: count_limit is below 4096");
    // Errors come back as exceptions; MPI's default would end the process without a word on whose
    // fault it was.
    check(MPI_Comm_set_errhandler(data_, MPI_ERRORS_RETURN), "MPI_Comm_set_errhandler");
    check(MPI_Comm_set_errhandler(control_, MPI_ERRORS_RETURN), "MPI_Comm_set_errhandler");
    check(MPI_Comm_rank(data_, &rank_), "MPI_Comm_rank");
    check(MPI_Comm_size(data_, &size_), "MPI_Comm_size");
    int level = MPI_THREAD_SINGLE;
    check(MPI_Query_thread(&level), "MPI_Query_thread");
    any_thread_ = level >= MPI_THREAD_SERIALIZED;
    int* highest = nullptr;
    int found = 0;
    check(MPI_Comm_get_attr(data_, MPI_TAG_UB, &highest, &found), "MPI_Comm_get_attr");
    if (found != 0) max_tag_ = *highest;
    post_control();
  }

  ~MpiTransport() override { close(); }

  // Before MPI ends: takes back the posted control receive. A control message that nobody has
  // received by now may never be: its memory is given up rather than waited for.
  void close() override {
    if (!mpi_is_usable()) return;
    if (incoming_request_ != MPI_REQUEST_NULL) {
      MPI_Cancel(&incoming_request_);
      MPI_Wait(&incoming_request_, MPI_STATUS_IGNORE);
    }
    for (auto control = outgoing_.begin(); control != outgoing_.end();) {
      int done = 0;
      MPI_Test(&control->request, &done, MPI_STATUS_IGNORE);
      const auto next = std::next(control);
      if (done == 0) abandoned().splice(abandoned().end(), outgoing_, control);
      control = next;
    }
    outgoing_.clear();
  }

  int rank() const override { return rank_; }
  int size() const override { return size_; }
  Tag max_tag() const override { return max_tag_; }
  bool any_thread() const override { return any_thread_; }
  bool withdraws() const override { return false; }
  // A sleep costs up to its length in latency; half a millisecond still leaves the core to others.
  std::chrono::nanoseconds longest_idle() const override { return std::chrono::microseconds(500); }
  void idle(std::chrono::nanoseconds longest) override { std::this_thread::sleep_for(longest); }

  RequestPtr isend(int peer, Tag tag, const void* data, std::size_t bytes) override {
    auto request = std::make_unique<MpiRequest>();
    // A longer message is received in pieces: a ticket would fill the first and leave the others.
    const bool fits = lanes_ && bytes <= limit_;
    if (const auto ticket = fits ? lanes_->put(peer, data, bytes) : std::nullopt) {
      request->ticket = *ticket;
      data = &request->ticket;
      bytes = sizeof request->ticket;
    }
    start(*request, bytes, [&](std::size_t offset, int count, MPI_Request* into) {
      check(MPI_Isend(static_cast<const char*>(data) + offset, count, MPI_BYTE, peer, tag, data_,
                      into),
            "MPI_Isend");
    });
    return request;
  }

  RequestPtr irecv(int peer, Tag tag, void* data, std::size_t capacity) override {
    auto request = std::make_unique<MpiRequest>();
    request->receives = true;
    request->data = data;
    request->capacity = capacity;
    const int source = peer == kAnySource ? MPI_ANY_SOURCE : peer;
    start(*request, capacity, [&](std::size_t offset, int count, MPI_Request* into) {
      check(MPI_Irecv(static_cast<char*>(data) + offset, count, MPI_BYTE, source, tag, data_, into),
            "MPI_Irecv");
    });
    return request;
  }

  bool test(Request& request) override {
    auto& message = static_cast<MpiRequest&>(request);
    if (!message.test()) return false;
    if (lanes_ && message.receives && message.data != nullptr) {
      if (const auto ticket = lanes_->recognise(message.source, message.data, message.bytes))
        collect(message, *ticket);
      message.data = nullptr;
    }
    return true;
  }

  void send_control(int peer, const ControlMessage& message) override {
    OutgoingControl& control = outgoing_.emplace_back();
    const auto kind = static_cast<std::int32_t>(message.kind);
    const std::size_t length = std::min(message.text.size(), kMaxControlText);
    std::memcpy(control.buffer.data(), &kind, sizeof kind);
    std::memcpy(control.buffer.data() + sizeof kind, message.text.data(), length);
    check(MPI_Isend(control.buffer.data(), static_cast<int>(sizeof kind + length), MPI_BYTE, peer,
                    kControlTag, control_, &control.request),
          "MPI_Isend");
  }

  std::optional<ControlMessage> poll_control() override {
    while (!outgoing_.empty()) {
      int sent = 0;
      check(MPI_Test(&outgoing_.front().request, &sent, MPI_STATUS_IGNORE), "MPI_Test");
      if (sent == 0) break;
      outgoing_.pop_front();
    }
    if (incoming_request_ == MPI_REQUEST_NULL) return std::nullopt;  // closed
    int arrived = 0;
    MPI_Status status;
    check(MPI_Test(&incoming_request_, &arrived, &status), "MPI_Test");
    if (arrived == 0) return std::nullopt;
    int length = 0;
    MPI_Get_count(&status, MPI_BYTE, &length);
    ControlMessage message;
    std::int32_t kind = 0;
    const auto text = static_cast<std::size_t>(std::max(length - static_cast<int>(sizeof kind), 0));
    std::memcpy(&kind, incoming_.data(), sizeof kind);
    message.kind = static_cast<ControlMessage::Kind>(kind);
    message.from = status.MPI_SOURCE;
    message.text.assign(incoming_.data() + sizeof kind, text);
    post_control();
    return message;
  }

 private:
  static constexpr int kControlTag = 0;

  static std::list<OutgoingControl>& abandoned() {
    static auto* const list = new std::list<OutgoingControl>;
    return *list;
  }

  template <class Start>
  void start(MpiRequest& request, std::size_t bytes, Start start_piece) {
    if (bytes <= limit_) return start_piece(0, static_cast<int>(bytes), &request.one);
    for (std::size_t offset = 0; offset < bytes; offset += limit_) {
      request.more.push_back(MPI_REQUEST_NULL);
      start_piece(offset, static_cast<int>(std::min(limit_, bytes - offset)), &request.more.back());
    }
  }

  // The payload that a ticket stands for, into the buffer unless it may stay where it is.
  void collect(MpiRequest& receive, const Ticket& ticket) {
    if (ticket.bytes > receive.capacity)
      throw std::runtime_error("rank " + std::to_string(receive.source) + " sent " +
                               std::to_string(ticket.bytes) + " bytes where at most " +
                               std::to_string(receive.capacity) + " were expected");
    const void* const payload = lanes_->payload(receive.source, ticket);
    receive.bytes = ticket.bytes;
    if (receive.may_stay) {
      receive.stays = payload;
      receive.ticket = ticket;
      receive.lanes = lanes_;
    } else {
      kernels::copy_bytes(receive.data, payload, ticket.bytes);
      lanes_->free(receive.source, ticket);
    }
  }

  void post_control() {
    check(MPI_Irecv(incoming_.data(), static_cast<int>(incoming_.size()), MPI_BYTE, MPI_ANY_SOURCE,
                    kControlTag, control_, &incoming_request_),
          "MPI_Irecv");
  }

  const MPI_Comm data_, control_;
  const std::size_t limit_;
  const std::shared_ptr<Lanes> lanes_;  // null: every payload goes through the MPI
  int rank_ = 0, size_ = 1;
  Tag max_tag_ = 32767;
  bool any_thread_ = false;
  ControlBuffer incoming_{};
  MPI_Request incoming_request_ = MPI_REQUEST_NULL;
  std::list<OutgoingControl> outgoing_;
};

}  // namespace

std::shared_ptr<Transport> mpi_transport(int data_communicator, int control_communicator,
                                         std::size_t count_limit, std::unique_ptr<Lanes> lanes) {
  if (!mpi_is_usable())
    throw std::runtime_error("mpi_transport: MPI is not initialised, or already finalised");
  return std::make_shared<MpiTransport>(MPI_Comm_f2c(data_communicator),
                                        MPI_Comm_f2c(control_communicator), count_limit,
                                        std::move(lanes));
}

}  // namespace minitorch
