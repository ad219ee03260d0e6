// One collective's view of the wire: group ranks instead of world ranks, the collective's own tag,
// the header that proves that both ends run the same thing, and the byte meter.
//
// The header costs no message: the first message of each direction between two ranks carries it in
// front of up to kFirstBytes of data, into a buffer of fixed capacity, and it is checked *before*
// anything is written to memory that the user sees. Whatever follows between these two ranks is
// then known to fit:
//
//   sender    [header | first 4064 bytes]   [rest]   [next message]   ...
//   receiver   into scratch, checked         into the user's memory
//
// So of several receives from one peer the first must be `Accepted` before the second is started.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "collectives/buffers.hpp"
#include "collectives/errors.hpp"
#include "collectives/task.hpp"
#include "kernels/dtype.hpp"
#include "transport/transport.hpp"

namespace minitorch {

enum class Operation : std::uint8_t {
  kAllReduce,
  kReduceScatter,
  kAllGather,
  kBroadcast,
  kReduce,
  kGather,
  kScatter,
  kAllToAll,
  kBarrier,
  kSend,
  kRecv
};
inline constexpr std::size_t kOperations = 11;
const char* name_of(Operation operation);

enum class Algorithm : std::uint8_t {
  kAuto,
  kRing,
  kNaive,
  kTree,
  kHalvingDoubling,
  kRecursiveDoubling
};
const char* name_of(Algorithm algorithm);
Algorithm algorithm_named(const std::string& name);  // throws std::invalid_argument

// 32 bytes, the same on every rank of a collective (but for all-to-all, where `elements` is what
// this pair exchanges). `issue` counts the group's collectives; `phase` numbers what a continuation
// launches under its parent. Point-to-point messages are not counted: there `issue` is the user's
// tag.
//
// `history` is a digest of all collectives of the group before this one. Two ranks that disagreed
// in one through which no data passed between them (two broadcasts, each rank its own source) so
// find out in the next one through which some do.
struct Header {
  std::uint64_t magic : 16 = kMagic;
  std::uint64_t issue : 48 = 0;
  std::uint32_t group = 0;
  std::uint32_t history = 0;
  std::uint16_t phase = 0;
  Operation operation = Operation::kBarrier;
  Dtype dtype = Dtype::kUInt8;
  ReduceOp reduce_op = ReduceOp::kSum;
  Algorithm algorithm = Algorithm::kAuto;
  std::uint16_t root = 0;
  std::uint64_t elements = 0;

  static constexpr std::uint16_t kMagic = 0x6d32;  // "m2"
  bool operator==(const Header&) const = default;
};
static_assert(sizeof(Header) == 32);

// The history of what follows `header`.
std::uint32_t digest(const Header& header);
// Whether two ranks called the same, whatever they called before.
bool same_call(const Header& a, const Header& b);

// Numbered by the group; the others are send and recv.
inline bool is_collective(const Header& header) {
  return header.operation != Operation::kSend && header.operation != Operation::kRecv;
}

// "all_reduce #12 (float32, 1000 elements, sum)"
std::string describe(const Header& header);
// "operation, elements": the fields in which two headers differ.
std::string differences(const Header& a, const Header& b);
// "Detected mismatch between collectives on ranks. Rank 0 is running collective: ..."
std::string mismatch(int rank, const Header& ours, int other_rank, const Header& theirs);

// A message came with another header than ours.
struct HeaderMismatch : CollectiveMismatch {
  HeaderMismatch(int rank, const Header& mine, int other_rank, const Header& other);
  int peer;  // world rank
  Header ours, theirs;
};

inline constexpr std::size_t kFirstCapacity = 4096;
inline constexpr std::size_t kFirstBytes = kFirstCapacity - sizeof(Header);

// What the collectives may be tuned by. Must be the same on all ranks.
struct Tuning {
  std::size_t segment_bytes = std::size_t{256} << 10;  // largest piece of a pipelined message
  std::size_t min_segment_bytes = std::size_t{64} << 10;
  std::size_t pieces = 4;          // a chunk is cut into at least so many, if that is sensible
  std::size_t ahead = 2;           // messages that a ring keeps in flight
  std::size_t small_bytes = 8192;  // up to here "auto" prefers few steps to few bytes
  std::size_t window = 4;          // collectives of one group active at once
};

struct Traffic {
  std::uint64_t messages_sent = 0;
  std::uint64_t bytes_sent = 0;  // payload
  std::uint64_t bytes_received = 0;
  std::uint64_t header_bytes = 0;  // sent
};

// What a group's peers were last seen doing.
struct Seen {
  Header header;
  std::int64_t at_ns = 0;  // Clock; 0: never seen
  bool finished = false;   // it told that it had finished this and was in nothing of this group
  // Then: what it was in beside this group, since when (0: nothing), and whether that needed us.
  Header elsewhere = {};
  std::int64_t elsewhere_ns = 0;
  bool needs_us = false;
};

class Channel;

// A message on its way out (possibly two: the first with the header, and the rest).
class Send final : public Condition {
 public:
  Send() = default;
  bool ready() override;
  void blame(std::vector<int>& peers) const override {
    if (first_ || rest_) peers.push_back(peer_);
  }

 private:
  friend class Channel;
  Transport* transport_ = nullptr;
  RequestPtr first_, rest_;
  Buffers::Block block_;
  int peer_ = 0;
};

class Recv final : public Condition {
 public:
  Recv() = default;
  bool ready() override;  // throws CollectiveMismatch
  // True once later receives from the same peer may be started.
  bool accepted();
  int peer() const { return peer_; }  // known once accepted, if any source would do
  // Before it is ready: the bytes need not come into the buffer. `stays` then says where they are,
  // until this is destroyed; null: in the buffer.
  void may_stay() {
    if (rest_) rest_->may_stay = true;
  }
  const std::byte* stays() const {
    return stays_ ? static_cast<const std::byte*>(stays_->stays) : nullptr;
  }
  void blame(std::vector<int>& peers) const override {
    if (first_ || rest_) peers.push_back(peer_);
  }

 private:
  friend class Channel;
  Channel* channel_ = nullptr;
  RequestPtr first_, rest_, stays_;
  Buffers::Block block_;
  std::byte* data_ = nullptr;
  std::size_t bytes_ = 0;
  std::uint64_t elements_ = 0;
  int peer_ = 0;
};

struct Accepted final : Condition {
  explicit Accepted(Recv& incoming) : recv(incoming) {}
  bool ready() override { return recv.accepted(); }
  void blame(std::vector<int>& peers) const override { recv.blame(peers); }
  Recv& recv;
};

// Waits for all of a container of sends or receives. Started together, they finish in any order.
template <class Items>
struct AllOf final : Condition {
  explicit AllOf(Items& all_items) : items(all_items) {}
  bool ready() override {
    bool all = true;
    for (auto& item : items) all = item.ready() && all;
    return all;
  }
  void blame(std::vector<int>& peers) const override {
    for (auto& item : items) item.blame(peers);
  }
  Items& items;
};

class Channel {
 public:
  // What the engine provides to all collectives of a group.
  struct Route {
    Transport* transport = nullptr;
    Buffers* buffers = nullptr;
    const Tuning* tuning = nullptr;
    const std::vector<int>* ranks = nullptr;  // group rank -> world rank
    std::vector<Seen>* seen = nullptr;
    int rank = 0;  // group rank
  };

  Channel(const Route& route, const Header& header) : route_(route), header_(header) {}
  Channel(const Channel&) = delete;
  Channel& operator=(const Channel&) = delete;

  int rank() const { return route_.rank; }
  int size() const { return static_cast<int>(route_.ranks->size()); }
  const Tuning& tuning() const { return *route_.tuning; }
  const Header& header() const { return header_; }
  const Traffic& traffic() const { return traffic_; }
  Buffers::Block scratch(std::size_t bytes) { return route_.buffers->take(bytes); }

  // The engine numbers a collective when it is issued, after the channel was made.
  void identify(std::uint64_t issue, std::uint16_t phase, Tag tag) {
    header_.issue = issue & ((std::uint64_t{1} << 48) - 1);
    header_.phase = phase;
    tag_ = tag;
  }

  void remember(std::uint32_t history) { header_.history = history; }

  // Start a message to or from a group rank; await the returned object. `elements` is what the
  // header says instead of the collective's own count.
  Send send(int peer, const void* data, std::size_t bytes) {
    return send(peer, data, bytes, header_.elements);
  }
  Send send(int peer, const void* data, std::size_t bytes, std::uint64_t elements);
  Recv recv(int peer, void* data, std::size_t bytes) {
    return recv(peer, data, bytes, header_.elements);
  }
  Recv recv(int peer, void* data, std::size_t bytes, std::uint64_t elements);

 private:
  friend class Recv;
  static constexpr std::uint8_t kSent = 1, kReceived = 2;

  std::uint8_t& met(int peer);
  int world(int peer) const { return (*route_.ranks)[static_cast<std::size_t>(peer)]; }
  int group_rank_of(int world_rank) const;
  // Compares a first message's header with ours; throws CollectiveMismatch.
  void check(const std::byte* message, std::size_t bytes, int peer, std::uint64_t elements,
             std::size_t expected_bytes);

  Route route_;
  Header header_;
  Tag tag_ = 0;
  Traffic traffic_;
  std::vector<std::uint8_t> met_;
};

}  // namespace minitorch
