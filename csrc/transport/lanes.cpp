#include "transport/lanes.hpp"

#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <new>
#include <stdexcept>
#include <string>

#include "kernels/kernels.hpp"

namespace minitorch {

// Fresh pages are zero: all slots start out free.
struct Lanes::Lane {
  struct alignas(64) State {
    std::atomic<std::uint32_t> full;  // written by both sides, in turn
  };
  State states[kSlots];
  alignas(4096) std::byte slots[kSlots][kSlotBytes];
};

static_assert(std::atomic<std::uint32_t>::is_always_lock_free, "shared between processes");

std::size_t Lanes::outbox_bytes(std::size_t local_size) {
  return local_size * sizeof(Lane);
}

Lanes::Lanes(std::size_t local_rank, std::vector<int> world_ranks, const std::vector<int>& outboxes,
             std::uint64_t token)
    : local_rank_(local_rank), token_(token) {
  if (world_ranks.size() != outboxes.size() || local_rank >= outboxes.size())
    throw std::invalid_argument("Lanes: one rank and one outbox for each process of the host");
  for (const int outbox : outboxes) {
    struct stat facts{};
    if (fstat(outbox, &facts) != 0 ||
        facts.st_size != static_cast<off_t>(outbox_bytes(outboxes.size())))
      throw std::invalid_argument("Lanes: an outbox must have outbox_bytes(" +
                                  std::to_string(outboxes.size()) + ") bytes");
  }
  for (std::size_t i = 0; i < outboxes.size(); ++i)
    peers_.push_back({world_ranks[i], dup(outboxes[i])});
}

Lanes::~Lanes() {
  for (Peer& peer : peers_) {
    if (peer.to != nullptr) munmap(peer.to, sizeof(Lane));
    if (peer.from != nullptr) munmap(peer.from, sizeof(Lane));
    close(peer.outbox);
  }
}

std::size_t Lanes::local_rank_of(int world_rank) const {
  std::size_t i = 0;
  while (i < peers_.size() && peers_[i].world_rank != world_rank) ++i;
  return i;
}

Lanes::Lane* Lanes::lane(std::size_t from, std::size_t to) {
  void* const memory = mmap(nullptr, sizeof(Lane), PROT_READ | PROT_WRITE, MAP_SHARED,
                            peers_[from].outbox, static_cast<off_t>(to * sizeof(Lane)));
  if (memory == MAP_FAILED) throw std::bad_alloc();
  return static_cast<Lane*>(memory);
}

std::optional<Ticket> Lanes::put(int world_rank, const void* data, std::size_t bytes) {
  if (bytes < kShortest || bytes > kSlotBytes) return std::nullopt;
  const std::size_t i = local_rank_of(world_rank);
  if (i == peers_.size() || i == local_rank_) return std::nullopt;
  Peer& peer = peers_[i];
  if (peer.to == nullptr) peer.to = lane(local_rank_, i);
  // The first free slot, not the next one: what was used last is still in the caches.
  for (std::size_t slot = 0; slot < kSlots; ++slot) {
    std::atomic<std::uint32_t>& full = peer.to->states[slot].full;
    if (full.load(std::memory_order_acquire) != 0) continue;
    kernels::copy_bytes(peer.to->slots[slot], data, bytes);
    full.store(1, std::memory_order_release);
    return Ticket{token_, bytes, slot};
  }
  return std::nullopt;
}

std::optional<Ticket> Lanes::recognise(int world_rank, const void* message,
                                       std::size_t bytes) const {
  Ticket ticket;
  if (bytes != sizeof ticket) return std::nullopt;
  std::memcpy(&ticket, message, sizeof ticket);
  if (ticket.token != token_ || ticket.slot >= kSlots || ticket.bytes > kSlotBytes)
    return std::nullopt;
  const std::size_t i = local_rank_of(world_rank);
  if (i == peers_.size() || i == local_rank_) return std::nullopt;
  return ticket;
}

const void* Lanes::payload(int world_rank, const Ticket& ticket) {
  const std::size_t i = local_rank_of(world_rank);
  Peer& peer = peers_.at(i);
  if (peer.from == nullptr) peer.from = lane(i, local_rank_);
  if (peer.from->states[ticket.slot].full.load(std::memory_order_acquire) != 1)
    throw std::runtime_error("rank " + std::to_string(world_rank) +
                             " announced a payload in shared memory that is not there");
  return peer.from->slots[ticket.slot];
}

void Lanes::free(int world_rank, const Ticket& ticket) {
  peers_.at(local_rank_of(world_rank))
      .from->states[ticket.slot]
      .full.store(0, std::memory_order_release);
}

}  // namespace minitorch
