// What every transport promises, on the threads transport and the wrappers around it.
#include <cstring>
#include <functional>
#include <numeric>
#include <stdexcept>
#include <thread>
#include <vector>

#include "check.hpp"
#include "transport/delayed.hpp"
#include "transport/link.hpp"
#include "transport/threads.hpp"

using namespace minitorch;

namespace {

void finish(Transport& transport, Request& request) {
  while (!transport.test(request)) transport.idle(std::chrono::milliseconds(1));
}

// `sender` and `receiver` each on a thread of its own.
void both(const std::function<void()>& sender, const std::function<void()>& receiver) {
  std::thread thread(sender);
  receiver();
  thread.join();
}

// Messages of many sizes on two tags arrive in order, per tag.
void check_order(Transport& from, Transport& to) {
  constexpr int kMessages = 60;
  const auto size = [](int i) { return static_cast<std::size_t>(i % 6 == 5 ? 100'000 : 10 * i); };
  both(
      [&] {
        std::vector<std::vector<std::uint8_t>> data;
        std::vector<RequestPtr> requests;
        for (int i = 0; i < kMessages; ++i) {
          data.emplace_back(size(i), static_cast<std::uint8_t>(i));
          requests.push_back(from.isend(to.rank(), i % 2, data.back().data(), data.back().size()));
        }
        for (auto& request : requests) finish(from, *request);
      },
      [&] {
        for (const int tag : {1, 0}) {
          for (int i = tag; i < kMessages; i += 2) {
            std::vector<std::uint8_t> data(100'000);
            const auto request = to.irecv(from.rank(), tag, data.data(), data.size());
            finish(to, *request);
            CHECK_EQUAL(request->bytes, size(i));
            CHECK_EQUAL(request->source, from.rank());
            for (std::size_t k = 0; k < request->bytes; ++k) CHECK(data[k] == i);
          }
        }
      });
}

}  // namespace

TEST(order_is_kept) {
  const auto world = threads_world(3);
  check_order(*world[2], *world[0]);
}

TEST(order_is_kept_with_delays) {
  const auto world = threads_world(2);
  check_order(*delayed(world[0], 7, 0.001), *delayed(world[1], 7, 0.001));
}

TEST(order_is_kept_on_a_link) {
  const auto world = threads_world(2);
  check_order(*shaped_link(world[0], 1e9, 1e-4), *shaped_link(world[1], 1e9, 1e-4));
}

TEST(any_source) {
  const auto world = threads_world(3);
  int value = 42, got = 0;
  const auto send = world[2]->isend(1, 5, &value, sizeof value);
  const auto receive = world[1]->irecv(kAnySource, 5, &got, sizeof got);
  finish(*world[1], *receive);
  finish(*world[2], *send);
  CHECK_EQUAL(receive->source, 2);
  CHECK_EQUAL(got, 42);
}

TEST(too_long_is_an_error) {
  const auto world = threads_world(2);
  std::vector<char> data(100'000), room(10);
  for (const std::size_t bytes : {std::size_t{11}, data.size()}) {
    const auto send = world[0]->isend(1, 0, data.data(), bytes);
    const auto receive = world[1]->irecv(0, 0, room.data(), room.size());
    CHECK_THROWS(world[1]->test(*receive), std::runtime_error);
  }
}

TEST(unfinished_requests_can_be_taken_back) {
  const auto world = threads_world(2);
  std::vector<int> data(100'000, 1), room(100'000, 0);
  {
    const auto send = world[0]->isend(1, 0, data.data(), data.size() * sizeof(int));
  }
  {
    const auto receive = world[1]->irecv(0, 0, room.data(), room.size() * sizeof(int));
  }
  std::fill(data.begin(), data.end(), 2);
  const auto receive = world[1]->irecv(0, 0, room.data(), room.size() * sizeof(int));
  CHECK(!world[1]->test(*receive));
  const auto send = world[0]->isend(1, 0, data.data(), data.size() * sizeof(int));
  finish(*world[1], *receive);
  CHECK_EQUAL(room, data);
}

TEST(taking_back_races_with_delivery) {
  const auto world = threads_world(2);
  for (int i = 0; i < 200; ++i) {
    both(
        [&] {
          std::vector<char> data(50'000, 'x');
          const auto send = world[0]->isend(1, i, data.data(), data.size());
          static_cast<void>(world[0]->test(*send));
        },
        [&] {
          std::vector<char> data(50'000);
          const auto receive = world[1]->irecv(0, i, data.data(), data.size());
          static_cast<void>(world[1]->test(*receive));
        });
  }
}

TEST(control_messages) {
  const auto world = threads_world(2);
  CHECK(!world[1]->poll_control());
  world[0]->send_control(1, {ControlMessage::Kind::kGoodbye, -1, "bye"});
  world[0]->send_control(1, {ControlMessage::Kind::kFailure, -1, std::string(9999, 'x')});
  const auto first = world[1]->poll_control();
  CHECK(first && first->kind == ControlMessage::Kind::kGoodbye && first->from == 0);
  CHECK(first && first->text == "bye");
  const auto second = world[1]->poll_control();
  CHECK(second && second->text.size() == kMaxControlText);
  CHECK(!world[1]->poll_control());
}

TEST(an_arrival_ends_idling) {
  const auto world = threads_world(2);
  int value = 1, got = 0;
  both(
      [&] {
        std::this_thread::sleep_for(std::chrono::milliseconds(20));
        const auto send = world[0]->isend(1, 0, &value, sizeof value);
      },
      [&] {
        const auto receive = world[1]->irecv(0, 0, &got, sizeof got);
        // Would sit here for an hour if the arrival did not ring.
        while (!world[1]->test(*receive)) world[1]->idle(std::chrono::hours(1));
        CHECK_EQUAL(got, 1);
      });
}

TEST(a_link_is_never_faster_than_its_figures) {
  const auto world = threads_world(2);
  const auto sender = shaped_link(world[0], 10e6, 0.002);
  std::vector<char> data(50'000), room(50'000);
  const auto begin = Clock::now();
  // Two messages share the wire: 2 * 5 ms, and the latency once.
  const auto first = sender->isend(1, 0, data.data(), data.size());
  const auto second = sender->isend(1, 0, data.data(), data.size());
  const auto receive = world[1]->irecv(0, 0, room.data(), room.size());
  const auto receive_second = world[1]->irecv(0, 0, room.data(), room.size());
  finish(*sender, *first);
  CHECK(world[1]->test(*receive));
  CHECK(Clock::now() - begin >= std::chrono::milliseconds(7));
  finish(*sender, *second);
  CHECK(world[1]->test(*receive_second));
  CHECK(Clock::now() - begin >= std::chrono::milliseconds(12));
  CHECK_THROWS(shaped_link(world[0], 0, 0), std::invalid_argument);
  CHECK_THROWS(shaped_link(world[0], 1, -1), std::invalid_argument);
}
