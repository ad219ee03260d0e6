#include "collectives/channel.hpp"

#include <algorithm>
#include <cstring>
#include <stdexcept>

namespace minitorch {
namespace {

std::int64_t now_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now().time_since_epoch())
      .count();
}

[[noreturn]] void throw_size(int world_rank, std::size_t got, std::size_t expected) {
  throw CollectiveMismatch("rank " + std::to_string(world_rank) + " sent a message of " +
                           std::to_string(got) + " bytes where " + std::to_string(expected) +
                           " were expected; are all ranks running the same version with the same "
                           "settings?");
}

}  // namespace

Send Channel::send(int peer, const void* data, std::size_t bytes, std::uint64_t elements) {
  Send send;
  send.peer_ = peer;
  send.transport_ = route_.transport;
  std::uint8_t& met = this->met(peer);
  if ((met & kSent) == 0) {
    met |= kSent;
    const std::size_t head = std::min(bytes, kFirstBytes);
    Header header = header_;
    header.elements = elements;
    send.block_ = route_.buffers->take(kFirstCapacity);
    std::memcpy(send.block_.data(), &header, sizeof header);
    if (head != 0) std::memcpy(send.block_.data() + sizeof header, data, head);
    send.first_ =
        route_.transport->isend(world(peer), tag_, send.block_.data(), sizeof header + head);
    traffic_.header_bytes += sizeof header;
    traffic_.messages_sent += 1;
    if (bytes > head) {
      send.rest_ = route_.transport->isend(
          world(peer), tag_, static_cast<const std::byte*>(data) + head, bytes - head);
      traffic_.messages_sent += 1;
    }
  } else {
    send.rest_ = route_.transport->isend(world(peer), tag_, data, bytes);
    traffic_.messages_sent += 1;
  }
  traffic_.bytes_sent += bytes;
  return send;
}

bool Send::ready() {
  if (first_) {
    if (!transport_->test(*first_)) return false;
    first_.reset();
    block_.release();
  }
  if (rest_) {
    if (!transport_->test(*rest_)) return false;
    rest_.reset();
  }
  return true;
}

Recv Channel::recv(int peer, void* data, std::size_t bytes, std::uint64_t elements) {
  Recv recv;
  recv.channel_ = this;
  recv.peer_ = peer;
  recv.data_ = static_cast<std::byte*>(data);
  recv.bytes_ = bytes;
  recv.elements_ = elements;
  const bool known = peer != kAnySource && (met(peer) & kReceived) != 0;
  if (!known) {
    if (peer != kAnySource) met(peer) |= kReceived;
    recv.block_ = route_.buffers->take(kFirstCapacity);
    recv.first_ = route_.transport->irecv(peer == kAnySource ? kAnySource : world(peer), tag_,
                                          recv.block_.data(), kFirstCapacity);
  } else {
    recv.rest_ = route_.transport->irecv(world(peer), tag_, data, bytes);
  }
  return recv;
}

bool Recv::accepted() {
  if (!first_) return true;
  Transport& transport = *channel_->route_.transport;
  if (!transport.test(*first_)) return false;
  if (peer_ == kAnySource) peer_ = channel_->group_rank_of(first_->source);
  channel_->check(block_.data(), first_->bytes, peer_, elements_, bytes_);
  const std::size_t head = first_->bytes - sizeof(Header);
  if (head != 0) std::memcpy(data_, block_.data() + sizeof(Header), head);
  channel_->traffic_.bytes_received += head;
  first_.reset();
  block_.release();
  if (bytes_ > head) {
    rest_ = transport.irecv(channel_->world(peer_), channel_->tag_, data_ + head, bytes_ - head);
    data_ += head;
    bytes_ -= head;
  }
  return true;
}

bool Recv::ready() {
  if (!accepted()) return false;
  if (rest_) {
    if (!channel_->route_.transport->test(*rest_)) return false;
    if (rest_->bytes != bytes_) throw_size(channel_->world(peer_), rest_->bytes, bytes_);
    channel_->traffic_.bytes_received += bytes_;
    if (rest_->stays != nullptr) stays_ = std::move(rest_);
    rest_.reset();
  }
  return true;
}

std::uint8_t& Channel::met(int peer) {
  if (met_.empty()) met_.resize(route_.ranks->size());
  return met_.at(static_cast<std::size_t>(peer));
}

int Channel::group_rank_of(int world_rank) const {
  const auto& ranks = *route_.ranks;
  const auto found = std::find(ranks.begin(), ranks.end(), world_rank);
  if (found == ranks.end())
    throw CollectiveError("received a message from rank " + std::to_string(world_rank) +
                          ", which is not in this group");
  return static_cast<int>(found - ranks.begin());
}

void Channel::check(const std::byte* message, std::size_t bytes, int peer, std::uint64_t elements,
                    std::size_t expected_bytes) {
  Header theirs;
  if (bytes < sizeof theirs) throw_size(world(peer), bytes, sizeof theirs + expected_bytes);
  std::memcpy(&theirs, message, sizeof theirs);
  Header ours = header_;
  ours.elements = elements;
  if (ours.operation == Operation::kRecv) ours.operation = Operation::kSend;  // what a send says
  if (theirs.magic != Header::kMagic)
    throw CollectiveMismatch("rank " + std::to_string(world(peer)) +
                             " sent a message that is not minitorch's, or not of this version");
  Seen& seen = (*route_.seen)[static_cast<std::size_t>(peer)];
  seen = {theirs, now_ns(), false};
  if (theirs != ours) throw HeaderMismatch(world(route_.rank), ours, world(peer), theirs);
  const std::size_t head = std::min(expected_bytes, kFirstBytes);
  if (bytes != sizeof theirs + head) throw_size(world(peer), bytes, sizeof theirs + head);
}

// --- headers
// ----------------------------------------------------------------------------------------

std::uint32_t digest(const Header& header) {
  // Multiply and fold: every bit of a word reaches every bit of the state.
  std::uint64_t state = header.history;
  const auto add = [&](std::uint64_t word) {
    state = (state ^ word) * 0x9e3779b97f4a7c15;
    state ^= state >> 32;
  };
  add(header.issue);
  add(header.elements);
  add(static_cast<std::uint64_t>(header.operation) | static_cast<std::uint64_t>(header.dtype) << 8 |
      static_cast<std::uint64_t>(header.reduce_op) << 16 |
      static_cast<std::uint64_t>(header.algorithm) << 24 |
      static_cast<std::uint64_t>(header.root) << 32 |
      static_cast<std::uint64_t>(header.phase) << 48);
  return static_cast<std::uint32_t>(state);
}

bool same_call(const Header& a, const Header& b) {
  Header twin = b;
  twin.history = a.history;
  return a == twin;
}

HeaderMismatch::HeaderMismatch(int rank, const Header& mine, int other_rank, const Header& other)
    : CollectiveMismatch(mismatch(rank, mine, other_rank, other)),
      peer(other_rank),
      ours(mine),
      theirs(other) {}

// --- names ---------------------------------------------------------------------------------------

const char* name_of(Operation operation) {
  static constexpr const char* kNames[kOperations] = {
      "all_reduce", "reduce_scatter", "all_gather", "broadcast", "reduce", "gather",
      "scatter",    "all_to_all",     "barrier",    "send",      "recv"};
  const auto index = static_cast<std::size_t>(operation);
  return index < kOperations ? kNames[index] : "operation?";
}

const char* name_of(Algorithm algorithm) {
  static constexpr const char* kNames[] = {
      "auto", "ring", "naive", "tree", "halving_doubling", "recursive_doubling"};
  const auto index = static_cast<std::size_t>(algorithm);
  return index < std::size(kNames) ? kNames[index] : "algorithm?";
}

Algorithm algorithm_named(const std::string& name) {
  std::string known;
  for (int i = 0; i <= static_cast<int>(Algorithm::kRecursiveDoubling); ++i) {
    const auto algorithm = static_cast<Algorithm>(i);
    if (name == name_of(algorithm)) return algorithm;
    known += std::string(i == 0 ? "" : ", ") + name_of(algorithm);
  }
  throw std::invalid_argument("unknown all-reduce algorithm '" + name + "'; known are " + known);
}

std::string describe(const Header& header) {
  std::string text = name_of(header.operation);
  text.append(is_collective(header) ? " #" : " with tag ").append(std::to_string(header.issue));
  if (header.phase != 0) text.append(".").append(std::to_string(header.phase));
  if (header.operation == Operation::kBarrier) return text;
  text.append(" (").append(name_of(header.dtype));
  if (header.operation != Operation::kAllToAll)
    text.append(", ").append(std::to_string(header.elements)).append(" elements");
  switch (header.operation) {
    case Operation::kAllReduce:
    case Operation::kReduceScatter:
      text.append(", ").append(name_of(header.reduce_op));
      break;
    case Operation::kReduce:
      text.append(", ").append(name_of(header.reduce_op));
      [[fallthrough]];
    case Operation::kBroadcast:
    case Operation::kGather:
    case Operation::kScatter:
      text.append(", root ").append(std::to_string(header.root));
      break;
    default:
      break;
  }
  if (header.algorithm != Algorithm::kAuto)
    text.append(", algorithm ").append(name_of(header.algorithm));
  return text + ")";
}

std::string differences(const Header& a, const Header& b) {
  std::string text;
  const auto add = [&](bool differs, const char* name) {
    if (differs) text += (text.empty() ? "" : ", ") + std::string(name);
  };
  add(a.operation != b.operation, "operation");
  add(a.group != b.group, "group");
  add(a.issue != b.issue || a.phase != b.phase, "number");
  add(a.dtype != b.dtype, "dtype");
  add(a.elements != b.elements, "number of elements");
  add(a.reduce_op != b.reduce_op, "reduction");
  add(a.root != b.root, "root");
  add(a.algorithm != b.algorithm, "algorithm");
  if (text.empty()) add(a.history != b.history, "what was called before");
  return text;
}

std::string mismatch(int rank, const Header& ours, int other_rank, const Header& theirs) {
  const bool swap = other_rank < rank;  // both ends word it alike
  const Header& lower = swap ? theirs : ours;
  const Header& upper = swap ? ours : theirs;
  return "Detected mismatch between collectives on ranks. Rank " +
         std::to_string(std::min(rank, other_rank)) + " is running collective: " + describe(lower) +
         " but Rank " + std::to_string(std::max(rank, other_rank)) +
         " is running collective: " + describe(upper) +
         ". They differ in: " + differences(lower, upper) + ". Every rank of group " +
         std::to_string(lower.group) + " must issue the same collectives in the same order.";
}

}  // namespace minitorch
