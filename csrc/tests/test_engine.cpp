// Queues, windows, groups, futures, the meter and the trace.
#include <atomic>
#include <memory>
#include <random>
#include <vector>

#include "check.hpp"
#include "world.hpp"

using namespace minitorch;
using check::on_ranks;
using check::Rank;
using check::WorldOptions;

namespace {

constexpr auto kTimeout = std::chrono::seconds(20);

std::vector<float> full(std::size_t elements, int value) {
  return std::vector<float>(elements, static_cast<float>(value));
}

}  // namespace

TEST(many_at_once) {
  for (const bool threaded : {true, false}) {
    WorldOptions options;
    options.threaded = threaded;
    options.max_delay_seconds = 0.0002;
    on_ranks(
        3,
        [](const Rank& self) {
          std::vector<std::vector<float>> data;
          std::vector<WorkPtr> works;
          for (int i = 0; i < 40; ++i) {
            data.push_back(full(static_cast<std::size_t>(1 + i * 311), self.rank + i));
            works.push_back(self.group.all_reduce(data.back().data(), data.back().size(),
                                                  Dtype::kFloat32, ReduceOp::kSum));
          }
          // Awaited backwards: all make progress, whoever is waited for.
          for (int i = 39; i >= 0; --i) {
            const auto index = static_cast<std::size_t>(i);
            works[index]->wait();
            CHECK(works[index]->is_completed());
            CHECK_EQUAL(data[index], full(data[index].size(), 3 * i + 3));
          }
          CHECK(works[0]->queued_ns() > 0);
          CHECK(works[0]->started_ns() >= works[0]->queued_ns());
          CHECK(works[0]->finished_ns() >= works[0]->started_ns());
          CHECK_EQUAL(works[2]->bytes(), data[2].size() * 4);
        },
        options);
  }
}

TEST(blocking_calls_between_asynchronous_ones) {
  for (const bool threaded : {true, false}) {
    WorldOptions options;
    options.threaded = threaded;
    on_ranks(
        4,
        [](const Rank& self) {
          for (int i = 0; i < 50; ++i) {
            auto large = full(20'000, self.rank), small = full(1, self.rank);
            const auto pending =
                self.group.all_reduce(large.data(), large.size(), Dtype::kFloat32, ReduceOp::kSum);
            const auto done = self.group.all_reduce(small.data(), 1, Dtype::kFloat32,
                                                    ReduceOp::kSum, {.blocking = true});
            done->wait();
            CHECK_EQUAL(small, full(1, 6));
            pending->wait();
            CHECK_EQUAL(large, full(20'000, 6));
          }
        },
        options);
  }
}

TEST(two_groups_in_opposite_order) {
  on_ranks(3, [](const Rank& self) {
    const auto even = self.engine.new_group({0, 1, 2}, kTimeout);
    const auto odd = self.engine.new_group({2, 1, 0}, kTimeout);
    CHECK_EQUAL(odd->rank(), 2 - self.rank);
    for (int i = 0; i < 20; ++i) {
      auto a = full(9000, self.rank), b = full(9000, 1);
      Group& first = self.rank == 1 ? *odd : *even;
      Group& second = self.rank == 1 ? *even : *odd;
      auto& first_data = self.rank == 1 ? b : a;
      auto& second_data = self.rank == 1 ? a : b;
      const auto x = first.all_reduce(first_data.data(), 9000, Dtype::kFloat32, ReduceOp::kSum);
      const auto y = second.all_reduce(second_data.data(), 9000, Dtype::kFloat32, ReduceOp::kSum);
      x->wait();
      y->wait();
      CHECK_EQUAL(a, full(9000, 3));
      CHECK_EQUAL(b, full(9000, 3));
    }
  });
}

TEST(subgroups_work_beside_each_other) {
  on_ranks(5, [](const Rank& self) {
    const auto low = self.engine.new_group({0, 1}, kTimeout);
    const auto high = self.engine.new_group({4, 2, 3}, kTimeout);
    const bool is_low = self.rank < 2;
    Group& mine = is_low ? *low : *high;
    Group& other = is_low ? *high : *low;
    CHECK_EQUAL(other.rank(), -1);
    std::int64_t value = self.rank;
    mine.all_reduce(&value, 1, Dtype::kInt64, ReduceOp::kSum)->wait();
    CHECK_EQUAL(value, is_low ? 1 : 9);
    CHECK_THROWS(other.barrier(), CollectiveError);
    value = self.rank;
    mine.broadcast(&value, 1, Dtype::kInt64, 0)->wait();
    CHECK_EQUAL(value, is_low ? 0 : 4);
  });
}

TEST(a_group_of_members_only) {
  on_ranks(3, [](const Rank& self) {
    if (self.rank == 1) return;
    const auto pair = self.engine.new_group({0, 2}, kTimeout, 77);
    std::int32_t value = self.rank;
    pair->all_reduce(&value, 1, Dtype::kInt32, ReduceOp::kSum)->wait();
    CHECK_EQUAL(value, 2);
  });
}

TEST(dropped_work_keeps_its_memory) {
  for (const bool threaded : {true, false}) {
    WorldOptions options;
    options.threaded = threaded;
    on_ranks(
        2,
        [](const Rank& self) {
          std::vector<std::weak_ptr<void>> watched;
          for (int i = 0; i < 10; ++i) {
            auto data = std::make_shared<std::vector<float>>(full(40'000, self.rank));
            watched.push_back(data);
            float* const values = data->data();
            static_cast<void>(self.group.all_reduce(values, 40'000, Dtype::kFloat32, ReduceOp::kSum,
                                                    std::move(data), "dropped"));
          }
          self.group.barrier()->wait();
          self.group.barrier()->wait();
          // In order of issue the last of them may still be active; a later one on top cannot tell.
          float one = 1;
          for (int i = 0; i < 8; ++i)
            self.group.all_reduce(&one, 1, Dtype::kFloat32, ReduceOp::kMax)->wait();
          for (int i = 0; i < 6; ++i) CHECK(watched[static_cast<std::size_t>(i)].expired());
        },
        options);
  }
}

TEST(continuations_are_numbered_under_their_parent) {
  on_ranks(3, [](const Rank& self) {
    // Ranks launch the continuations of two collectives in different orders, and a third collective
    // at different times.
    auto a = full(10, 1), b = full(10, 2), c = full(10, 3), d = full(10, 4), e = full(10, 5);
    const auto first = self.group.all_reduce(a.data(), 10, Dtype::kFloat32, ReduceOp::kSum);
    const auto second = self.group.all_reduce(b.data(), 10, Dtype::kFloat32, ReduceOp::kSum);
    first->wait();
    second->wait();
    const auto under = [&](std::vector<float>& data, const WorkPtr& parent) {
      return self.group.all_reduce(data.data(), 10, Dtype::kFloat32, ReduceOp::kSum,
                                   {.parent = parent});
    };
    const auto third = [&] {
      return self.group.all_reduce(e.data(), 10, Dtype::kFloat32, ReduceOp::kSum);
    };
    std::vector<WorkPtr> works;
    if (self.rank == 0) works = {under(c, first), under(d, second), third()};
    if (self.rank == 1) works = {under(d, second), third(), under(c, first)};
    if (self.rank == 2) works = {third(), under(c, first), under(d, second)};
    for (const auto& work : works) work->wait();
    CHECK_EQUAL(c, full(10, 9));
    CHECK_EQUAL(d, full(10, 12));
    CHECK_EQUAL(e, full(10, 15));
  });
}

TEST(bytes_equal_the_closed_forms) {
  for (const int size : {2, 3, 4, 8}) {
    on_ranks(size, [](const Rank& self) {
      const auto n = static_cast<std::uint64_t>(self.size);
      const std::size_t elements = n * 10'000;
      const std::uint64_t bytes = elements * 4;
      auto data = full(elements, 1);
      const auto usage = [&](Operation operation) {
        return self.group.meter().read()[static_cast<std::size_t>(operation)];
      };
      self.group
          .all_reduce(data.data(), elements, Dtype::kFloat32, ReduceOp::kSum,
                      {.algorithm = Algorithm::kRing})
          ->wait();
      const Usage ring = usage(Operation::kAllReduce);
      CHECK_EQUAL(ring.calls, std::uint64_t{1});
      CHECK_EQUAL(ring.traffic.bytes_sent, 2 * (n - 1) * bytes / n);
      CHECK_EQUAL(ring.traffic.bytes_received, 2 * (n - 1) * bytes / n);
      CHECK_EQUAL(ring.traffic.header_bytes, std::uint64_t{32});  // one neighbour is sent to

      auto part = full(elements / n, 0);
      self.group
          .reduce_scatter(part.data(), data.data(), elements / n, Dtype::kFloat32, ReduceOp::kSum)
          ->wait();
      CHECK_EQUAL(usage(Operation::kReduceScatter).traffic.bytes_sent, (n - 1) * bytes / n);
      self.group.all_gather(data.data(), part.data(), elements / n, Dtype::kFloat32)->wait();
      CHECK_EQUAL(usage(Operation::kAllGather).traffic.bytes_sent, (n - 1) * bytes / n);
      self.group.broadcast(data.data(), elements, Dtype::kFloat32, 0)->wait();
      CHECK_EQUAL(usage(Operation::kBroadcast).traffic.bytes_sent,
                  self.rank == self.size - 1 ? 0 : bytes);
      self.group.barrier()->wait();
      CHECK_EQUAL(usage(Operation::kBarrier).traffic.bytes_sent, std::uint64_t{0});

      // The engine's meter is the sum over its groups.
      CHECK_EQUAL(self.engine.meter().read()[0].traffic.bytes_sent, ring.traffic.bytes_sent);
      self.group.meter().reset();
      CHECK_EQUAL(usage(Operation::kAllReduce).calls, std::uint64_t{0});

      self.group
          .all_reduce(data.data(), elements, Dtype::kFloat32, ReduceOp::kSum,
                      {.algorithm = Algorithm::kNaive})
          ->wait();
      CHECK_EQUAL(usage(Operation::kAllReduce).traffic.bytes_sent,
                  self.rank == 0 ? (n - 1) * bytes : bytes);
      if ((n & (n - 1)) != 0) return;
      self.group.meter().reset();
      self.group
          .all_reduce(data.data(), elements, Dtype::kFloat32, ReduceOp::kSum,
                      {.algorithm = Algorithm::kHalvingDoubling})
          ->wait();
      CHECK_EQUAL(usage(Operation::kAllReduce).traffic.bytes_sent, 2 * (n - 1) * bytes / n);
    });
  }
}

TEST(runs_are_recorded) {
  on_ranks(2, [](const Rank& self) {
    float value = 1;
    self.group.all_reduce(&value, 1, Dtype::kFloat32, ReduceOp::kSum)->wait();
    CHECK(self.engine.trace().events().empty());  // off by default
    self.engine.trace().enable();
    self.group.all_reduce(&value, 1, Dtype::kFloat32, ReduceOp::kSum, {.label = "bucket \"0\""})
        ->wait();
    self.group.barrier()->wait();
    const auto events = self.engine.trace().events();
    CHECK_EQUAL(events.size(), std::size_t{2});
    CHECK_EQUAL(events[0].name, "bucket \"0\"");
    CHECK_EQUAL(events[0].category, "communication");
    CHECK(events[0].begin_ns > 0 && events[0].end_ns >= events[0].begin_ns);
    CHECK_CONTAINS(events[0].args, "\"operation\": \"all_reduce\"");
    CHECK_CONTAINS(events[0].args, "\"bytes\": 4");
    CHECK_EQUAL(events[1].name, "barrier");
  });
}

TEST(a_trace_is_bounded) {
  Trace trace(2);
  trace.record({"off", "", "", 0, 0, ""});
  trace.enable();
  for (const char* name : {"a", "b", "c"}) trace.record({name, "", "", 0, 0, ""});
  CHECK_EQUAL(trace.events().size(), std::size_t{2});
  CHECK_EQUAL(trace.dropped(), std::uint64_t{1});
  trace.clear();
  CHECK(trace.events().empty());
  CHECK_EQUAL(json_string("a\"b\\\n"), "\"a\\\"b\\\\\\u000a\"");
}

TEST(bad_arguments_are_refused_before_anything_is_sent) {
  on_ranks(2, [](const Rank& self) {
    std::int32_t value = 0;
    CHECK_THROWS(self.group.all_reduce(&value, 1, Dtype::kInt32, ReduceOp::kSum, {.scale = 0.5}),
                 std::invalid_argument);
    CHECK_THROWS(self.group.broadcast(&value, 1, Dtype::kInt32, 2), std::invalid_argument);
    CHECK_THROWS(self.group.send(&value, 1, Dtype::kInt32, self.rank), std::invalid_argument);
    CHECK_THROWS(self.group.send(&value, 1, Dtype::kInt32, 1 - self.rank, -1),
                 std::invalid_argument);
    CHECK_THROWS(self.engine.new_group({}, kTimeout), std::invalid_argument);
    CHECK_THROWS(self.engine.new_group({0, 0}, kTimeout), std::invalid_argument);
    CHECK_THROWS(self.engine.new_group({0, 2}, kTimeout), std::invalid_argument);
    CHECK_THROWS(algorithm_named("rings"), std::invalid_argument);
    value = 1;
    self.group.all_reduce(&value, 1, Dtype::kInt32, ReduceOp::kSum)->wait();  // still agrees
    CHECK_EQUAL(value, 2);
  });
}

TEST(few_tags_are_enough) {
  const auto transports = threads_world(2, 32767);
  std::vector<std::thread> threads;
  for (int rank = 0; rank < 2; ++rank) {
    threads.emplace_back([&, rank] {
      Engine engine(transports[static_cast<std::size_t>(rank)]);
      std::vector<std::shared_ptr<Group>> groups;
      for (int i = 0; i < 64; ++i) groups.push_back(engine.new_group({0, 1}, kTimeout));
      CHECK_THROWS(engine.new_group({0, 1}, kTimeout), std::runtime_error);
      std::int32_t value = 1;
      for (int i = 0; i < 600; ++i)  // more than there are tags in a group
        groups[static_cast<std::size_t>(i % 64)]
            ->all_reduce(&value, 1, Dtype::kInt32, ReduceOp::kMax)
            ->wait();
      CHECK_EQUAL(value, 1);
      groups.front()->barrier()->wait();
    });
  }
  for (auto& thread : threads) thread.join();
}
