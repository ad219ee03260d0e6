// Lanes: the short way between two processes of one host, through memory that both have mapped.
//
// An MPI moves a long message between processes by a copy inside the kernel. Two copies in user
// space, into shared memory and out of it, are faster wherever the kernel's copy is slow (see
// kernels::copy_bytes). A lane carries payloads only: the message itself, now a 24-byte `Ticket`
// that says where the payload lies, still travels through the MPI, which keeps matching, order and
// progress in one place. The sender decides for every message; a lane that is full declines, and
// the message then goes the long way.
//
// One lane leads from one rank to another: `kSlots` slots of `kSlotBytes`. The lanes that leave a
// rank are one file, its outbox, which has no name (memfd): nothing is left behind by a crash.
// Pages cost memory once a lane has used them: at most kSlots * kSlotBytes per lane.
//
// Used by mpi.cpp, but free of MPI, so that the sanitizers see it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace minitorch {

// What is sent in place of a payload. `token` is a random number of this job: a message that merely
// looks like a ticket is none.
struct Ticket {
  std::uint64_t token;
  std::uint64_t bytes;
  std::uint64_t slot;
};

class Lanes {
 public:
  static constexpr std::size_t kSlots = 4;
  static constexpr std::size_t kSlotBytes = std::size_t{512} << 10;  // two segments of a ring
  static constexpr std::size_t kShortest = std::size_t{16} << 10;    // below: an MPI is as quick

  // Bytes of an outbox with lanes to `local_size` ranks (the one to the rank itself stays unused).
  static std::size_t outbox_bytes(std::size_t local_size);

  // `outboxes[i]` is an open file descriptor of local rank i's outbox, which is duplicated;
  // `world_ranks[i]` is who that is. All ranks of a host pass the same order and the same token.
  // Throws std::invalid_argument if they do not fit.
  Lanes(std::size_t local_rank, std::vector<int> world_ranks, const std::vector<int>& outboxes,
        std::uint64_t token);
  ~Lanes();
  Lanes(const Lanes&) = delete;
  Lanes& operator=(const Lanes&) = delete;

  // Copies the payload into a free slot of the lane to `world_rank`. None: too short, too long, not
  // on this host, or all slots are taken.
  std::optional<Ticket> put(int world_rank, const void* data, std::size_t bytes);

  // Whether these bytes, received from `world_rank`, are a ticket.
  std::optional<Ticket> recognise(int world_rank, const void* message, std::size_t bytes) const;

  // Where the payload lies, until its slot is freed.
  const void* payload(int world_rank, const Ticket& ticket);
  void free(int world_rank, const Ticket& ticket);

 private:
  struct Lane;
  struct Peer {
    int world_rank;
    int outbox;  // a descriptor of our own
    Lane* to = nullptr;
    Lane* from = nullptr;
  };
  std::size_t local_rank_of(int world_rank) const;  // peers_.size(): not on this host
  Lane* lane(std::size_t from, std::size_t to);

  const std::size_t local_rank_;
  const std::uint64_t token_;
  std::vector<Peer> peers_;
};

}  // namespace minitorch
