// Lanes through shared memory: two ends in one process, over files in memory as the processes of
// one host have them.
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstring>
#include <memory>
#include <thread>
#include <vector>

#include "check.hpp"
#include "transport/lanes.hpp"

using namespace minitorch;

namespace {

constexpr std::uint64_t kToken = 0x1234567890abcdef;

int file_of(std::size_t bytes) {
  std::FILE* const file = std::tmpfile();
  const int descriptor = dup(fileno(file));
  std::fclose(file);
  CHECK_EQUAL(ftruncate(descriptor, static_cast<off_t>(bytes)), 0);
  return descriptor;
}

// One end for each of `ranks`, which are world ranks.
struct Host {
  explicit Host(std::vector<int> ranks) {
    std::vector<int> outboxes;
    for (std::size_t i = 0; i < ranks.size(); ++i)
      outboxes.push_back(file_of(Lanes::outbox_bytes(ranks.size())));
    for (std::size_t i = 0; i < ranks.size(); ++i)
      ends.push_back(std::make_unique<Lanes>(i, ranks, outboxes, kToken));
    for (const int outbox : outboxes) close(outbox);  // the ends have their own descriptors
  }
  Lanes& operator[](std::size_t i) { return *ends[i]; }
  std::vector<std::unique_ptr<Lanes>> ends;
};

std::vector<std::uint8_t> payload(std::size_t bytes, int seed) {
  std::vector<std::uint8_t> data(bytes);
  for (std::size_t i = 0; i < bytes; ++i)
    data[i] = static_cast<std::uint8_t>(i * 7 + i / 251 + seed);
  return data;
}

void take(Lanes& lanes, int world_rank, const Ticket& ticket, std::vector<std::uint8_t>& out) {
  std::memcpy(out.data(), lanes.payload(world_rank, ticket), ticket.bytes);
  lanes.free(world_rank, ticket);
}

}  // namespace

TEST(payloads_arrive_and_free_their_slots) {
  Host host({3, 8, 5});
  for (const std::size_t bytes :
       {Lanes::kShortest, Lanes::kShortest + 1, Lanes::kSlotBytes - 13, Lanes::kSlotBytes}) {
    for (int round = 0; round < 2 * static_cast<int>(Lanes::kSlots); ++round) {
      const auto sent = payload(bytes, round);
      const auto ticket = host[1].put(5, sent.data(), bytes);
      CHECK(ticket.has_value());
      std::vector<std::uint8_t> got(bytes);
      std::memcpy(got.data(), &*ticket, sizeof *ticket);  // the ticket lies where the payload goes
      const auto seen = host[2].recognise(8, got.data(), sizeof *ticket);
      CHECK(seen.has_value());
      take(host[2], 8, *seen, got);
      CHECK(got == sent);
    }
  }
}

TEST(a_lane_declines_what_it_cannot_carry) {
  Host host({0, 1});
  const auto data = payload(Lanes::kSlotBytes + 1, 0);
  CHECK(!host[0].put(1, data.data(), Lanes::kShortest - 1));
  CHECK(!host[0].put(1, data.data(), Lanes::kSlotBytes + 1));
  CHECK(!host[0].put(0, data.data(), Lanes::kSlotBytes));  // to itself
  CHECK(!host[0].put(7, data.data(), Lanes::kSlotBytes));  // on another host
}

TEST(a_full_lane_declines_until_a_slot_is_free) {
  Host host({0, 1});
  std::vector<Ticket> tickets;
  for (std::size_t i = 0; i < Lanes::kSlots; ++i)
    tickets.push_back(*host[0].put(1, payload(20000, static_cast<int>(i)).data(), 20000));
  const auto data = payload(20000, 99);
  CHECK(!host[0].put(1, data.data(), data.size()));
  CHECK(host[1].put(0, data.data(), data.size()).has_value());  // the way back is another lane
  std::vector<std::uint8_t> got(20000);
  take(host[1], 0, tickets[2], got);
  CHECK(got == payload(20000, 2));
  CHECK_EQUAL(host[0].put(1, data.data(), data.size())->slot, std::uint64_t{2});
}

TEST(what_is_no_ticket_is_a_message) {
  Host host({0, 1});
  const Ticket ticket = *host[0].put(1, payload(20000, 0).data(), 20000);
  CHECK(host[1].recognise(0, &ticket, sizeof ticket).has_value());
  CHECK(!host[1].recognise(0, &ticket, sizeof ticket - 1));
  CHECK(!host[1].recognise(7, &ticket, sizeof ticket));  // not from this host
  Ticket other = ticket;
  other.token += 1;
  CHECK(!host[1].recognise(0, &other, sizeof other));
  other = ticket;
  other.slot = Lanes::kSlots;
  CHECK(!host[1].recognise(0, &other, sizeof other));
  other.slot = ticket.slot + 1;  // nobody put anything there
  CHECK_THROWS(host[1].payload(0, other), std::runtime_error);
}

TEST(outboxes_that_do_not_fit_are_refused) {
  const int small = file_of(4096);
  CHECK_THROWS(Lanes(0, {0, 1}, {small, small}, kToken), std::invalid_argument);
  CHECK_THROWS(Lanes(0, {0, 1}, {small}, kToken), std::invalid_argument);
  CHECK_THROWS(Lanes(2, {0, 1}, {small, small}, kToken), std::invalid_argument);
  close(small);
}

TEST(both_sides_at_once) {
  Host host({0, 1});
  constexpr int kMessages = 300;
  constexpr std::size_t kBytes = 40000;
  // Stands for the messages of the MPI that announce a payload: 1 + the slot it lies in.
  std::vector<std::atomic<std::uint64_t>> announced[2] = {
      std::vector<std::atomic<std::uint64_t>>(kMessages),
      std::vector<std::atomic<std::uint64_t>>(kMessages)};
  const auto side = [&](std::size_t me) {
    const int peer = static_cast<int>(1 - me);
    std::vector<std::uint8_t> got(kBytes);
    int sent = 0, received = 0;
    while (sent < kMessages || received < kMessages) {
      if (sent < kMessages) {
        const auto data = payload(kBytes, sent + static_cast<int>(me));
        if (const auto ticket = host[me].put(peer, data.data(), kBytes)) {
          announced[me][static_cast<std::size_t>(sent)].store(ticket->slot + 1);
          ++sent;
        }
      }
      if (received < kMessages) {
        const auto slot = announced[1 - me][static_cast<std::size_t>(received)].load();
        if (slot != 0) {
          take(host[me], peer, {kToken, kBytes, slot - 1}, got);
          CHECK(got == payload(kBytes, received + peer));
          ++received;
        }
      }
      std::this_thread::yield();
    }
  };
  std::thread other([&] { side(1); });
  side(0);
  other.join();
}
