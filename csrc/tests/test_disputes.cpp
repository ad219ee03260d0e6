// Ranks that disagree where no data flows between them: found at the next call or at the deadline,
// with a message that says in what.
#include <string>
#include <vector>

#include "check.hpp"
#include "world.hpp"

using namespace minitorch;
using check::on_ranks;
using check::Rank;
using check::WorldOptions;

namespace {

WorldOptions impatient(std::chrono::milliseconds timeout, bool threaded = true) {
  WorldOptions options;
  options.timeout = timeout;
  options.threaded = threaded;
  return options;
}

// The text of the mismatch that `call` must end in.
std::string mismatch_of(const std::function<void()>& call) {
  try {
    call();
  } catch (const CollectiveMismatch& error) {
    return error.what();
  } catch (const CollectiveError& error) {
    return std::string("no mismatch but: ") + error.what();
  }
  return "no error";
}

WorkPtr rooted(Group& group, Operation operation, int root, std::size_t elements,
               std::vector<float>& parts, std::vector<float>& data) {
  switch (operation) {
    case Operation::kBroadcast:
      return group.broadcast(data.data(), elements, Dtype::kFloat32, root);
    case Operation::kReduce:
      return group.reduce(data.data(), elements, Dtype::kFloat32, ReduceOp::kSum, root);
    case Operation::kGather:
      return group.gather(parts.data(), data.data(), elements, Dtype::kFloat32, root);
    default:
      return group.scatter(data.data(), parts.data(), elements, Dtype::kFloat32, root);
  }
}

}  // namespace

TEST(roots_differ) {
  const std::vector<std::vector<int>> assignments = {{0, 1},    {1, 0},    {0, 1, 2}, {1, 2, 0},
                                                     {0, 0, 1}, {2, 0, 0}, {1, 1, 0}, {1, 2, 2}};
  const Operation operations[] = {Operation::kBroadcast, Operation::kReduce, Operation::kGather,
                                  Operation::kScatter};
  std::size_t turn = 0;
  for (const auto& roots : assignments) {
    const int size = static_cast<int>(roots.size());
    for (const Operation operation : operations) {
      const std::size_t elements = ++turn % 3 == 0 ? 1 : 5000;  // trees, and chains
      on_ranks(
          size,
          [&](const Rank& self) {
            std::vector<float> data(elements, 1.0F);
            std::vector<float> parts(elements * roots.size(), 1.0F);
            const std::string text = mismatch_of([&] {
              const int root = roots[static_cast<std::size_t>(self.rank)];
              rooted(self.group, operation, root, elements, parts, data)->wait();
              self.group.barrier()->wait();
            });
            CHECK_CONTAINS(text, "Detected mismatch between collectives on ranks. Rank ");
            CHECK_CONTAINS(text, std::string(name_of(operation)) + " #0 (float32, ");
            CHECK_CONTAINS(text, "They differ in: root");
          },
          impatient(std::chrono::milliseconds(800)));
    }
  }
}

TEST(an_unnoticed_difference_is_named_at_the_next_call) {
  for (const bool threaded : {true, false}) {
    on_ranks(
        2,
        [](const Rank& self) {
          float value = 1;
          self.group.all_reduce(&value, 1, Dtype::kFloat32, ReduceOp::kSum)->wait();
          // Each is its own source: neither waits for anything.
          self.group.broadcast(&value, 1, Dtype::kFloat32, self.rank)->wait();
          const std::string text = mismatch_of(
              [&] { self.group.all_reduce(&value, 1, Dtype::kFloat32, ReduceOp::kSum)->wait(); });
          CHECK_EQUAL(text,
                      "Detected mismatch between collectives on ranks. Rank 0 is running "
                      "collective: broadcast #1 (float32, 1 elements, root 0) but Rank 1 is "
                      "running collective: broadcast #1 (float32, 1 elements, root 1). They differ "
                      "in: root. Every rank of group 0 must issue the same collectives in the same "
                      "order.");
          CHECK_EQUAL(value, 2.0F);  // nothing was written
        },
        impatient(std::chrono::seconds(5), threaded));
  }
}

TEST(the_record_reaches_back_64_calls) {
  on_ranks(2, [](const Rank& self) {
    float value = 1;
    for (int i = 0; i < 100; ++i)
      self.group.broadcast(&value, 1, Dtype::kFloat32, self.rank)->wait();
    const std::string text = mismatch_of([&] { self.group.barrier()->wait(); });
    CHECK_CONTAINS(text,
                   "Rank 0 is running collective: broadcast #37 (float32, 1 elements, root 0)");
  });
}

TEST(phases_have_a_history_too) {
  on_ranks(
      2,
      [](const Rank& self) {
        float value = 1, other = 1;
        const auto parent = self.group.all_reduce(&value, 1, Dtype::kFloat32, ReduceOp::kSum);
        parent->wait();
        const std::string text = mismatch_of([&] {
          self.group.broadcast(&other, 1, Dtype::kFloat32, self.rank, {.parent = parent})->wait();
          self.group.all_reduce(&other, 1, Dtype::kFloat32, ReduceOp::kSum, {.parent = parent})
              ->wait();
        });
        CHECK_CONTAINS(text, "broadcast #0.1 (float32, 1 elements, root 0)");
        CHECK_CONTAINS(text, "They differ in: root");
      },
      impatient(std::chrono::seconds(5)));
}

TEST(phases_may_be_reached_at_different_times) {
  // Rank 1 continues the first before it calls the second, rank 0 after.
  on_ranks(2, [](const Rank& self) {
    float a = 1, b = 1, c = 1;
    const auto sum = [&](float& value, WorkPtr parent) {
      return self.group.all_reduce(&value, 1, Dtype::kFloat32, ReduceOp::kSum,
                                   {.parent = std::move(parent)});
    };
    const auto first = sum(a, nullptr);
    WorkPtr second, third;
    if (self.rank == 0) second = sum(b, nullptr);
    third = sum(c, first);
    if (self.rank == 1) second = sum(b, nullptr);
    for (const auto& work : {first, second, third}) work->wait();
    self.group.barrier()->wait();
    CHECK_EQUAL(a + b + c, 6.0F);
  });
}

TEST(both_call_sites_are_named) {
  for (const bool immediate : {true, false}) {
    on_ranks(
        2,
        [&](const Rank& self) {
          std::vector<float> data(10, 1.0F);
          const std::string at = "train.py:" + std::to_string(10 + self.rank);
          const std::string text = mismatch_of([&] {
            if (immediate) {
              const std::size_t elements = self.rank == 0 ? 10 : 9;
              self.group
                  .all_reduce(data.data(), elements, Dtype::kFloat32, ReduceOp::kSum,
                              {.label = "loss\n" + at})
                  ->wait();
            } else {
              self.group
                  .broadcast(data.data(), 1, Dtype::kFloat32, self.rank, {.label = "loss\n" + at})
                  ->wait();
              self.group.barrier()->wait();
            }
          });
          CHECK_CONTAINS(text,
                         " Rank 0 called it at train.py:10. Rank 1 called it at train.py:11.");
        },
        impatient(std::chrono::seconds(5)));
  }
}

TEST(the_call_site_of_what_is_late) {
  on_ranks(
      2,
      [](const Rank& self) {
        if (self.rank == 1) {
          while (self.engine.error().empty())
            std::this_thread::sleep_for(std::chrono::milliseconds(5));
          return;
        }
        const auto work = self.group.barrier({.label = "\ntrain.py:7"});
        try {
          work->wait();
          CHECK(false);
        } catch (const CollectiveTimeout& error) {
          CHECK_CONTAINS(error.what(), " Called at train.py:7.");
        }
        CHECK_EQUAL(work->missing(), std::vector<int>{1});
      },
      impatient(std::chrono::milliseconds(100)));
}

TEST(groups_in_another_order) {
  for (const bool threaded : {true, false}) {
    on_ranks(
        2,
        [](const Rank& self) {
          const auto timeout = std::chrono::milliseconds(400);
          const auto a = self.engine.new_group({0, 1}, timeout);
          const auto b = self.engine.new_group({1, 0}, timeout);
          float value = 1;
          const std::string text = mismatch_of([&] {
            for (const auto& group : {self.rank == 0 ? a : b, self.rank == 0 ? b : a})
              group->all_reduce(&value, 1, Dtype::kFloat32, ReduceOp::kSum)->wait();
          });
          CHECK_CONTAINS(text, "Detected mismatch between collectives on ranks. Rank ");
          CHECK_CONTAINS(text, "all_reduce #0 (float32, 1 elements, sum) of group 1");
          CHECK_CONTAINS(text, "all_reduce #0 (float32, 1 elements, sum) of group 2");
          CHECK_CONTAINS(text, "They have waited for each other");
        },
        impatient(std::chrono::seconds(5), threaded));
  }
}

TEST(a_receive_that_meets_a_collective) {
  on_ranks(
      2,
      [](const Rank& self) {
        float value = 1;
        const std::string text = mismatch_of([&] {
          if (self.rank == 0)
            self.group.all_reduce(&value, 1, Dtype::kFloat32, ReduceOp::kSum)->wait();
          else
            self.group.recv(&value, 1, Dtype::kFloat32, 0, 3)->wait();
        });
        CHECK_CONTAINS(text, "all_reduce #0 (float32, 1 elements, sum)");
        CHECK_CONTAINS(text, "recv with tag 3 (float32, 1 elements)");
      },
      impatient(std::chrono::milliseconds(400)));
}

TEST(who_only_computes_is_late_and_no_mismatch) {
  on_ranks(
      3,
      [](const Rank& self) {
        // Rank 1 waits for rank 2, which computes: rank 0, waiting for rank 1, must not blame it.
        float value = 1;
        try {
          if (self.rank == 0)
            self.group.recv(&value, 1, Dtype::kFloat32, 1)->wait();
          else if (self.rank == 1)
            self.group.recv(&value, 1, Dtype::kFloat32, 2)->wait();
          else
            while (self.engine.error().empty())
              std::this_thread::sleep_for(std::chrono::milliseconds(5));
          self.group.barrier()->wait();
          CHECK(false);
        } catch (const CollectiveTimeout& error) {
          CHECK_CONTAINS(error.what(), "recv with tag 0");
        }
      },
      impatient(std::chrono::milliseconds(300)));
}

TEST(a_rank_that_passes_its_error_on_passes_on_the_mismatch) {
  // Told of it, rank 0 ends before rank 2 has been told: whose message comes first must not matter.
  for (int round = 0; round < 200; ++round) {
    on_ranks(
        3,
        [](const Rank& self) {
          std::vector<float> parts(9), data(3);
          const std::string text = mismatch_of([&] {
            rooted(self.group, Operation::kGather, self.rank == 2 ? 1 : 0, 3, parts, data)->wait();
            self.group.barrier()->wait();
          });
          self.engine.fail("RuntimeError: " + text);
          CHECK_CONTAINS(text, "They differ in: root.");
          CHECK_EQUAL(text.rfind("Detected mismatch", 0), std::size_t{0});
        },
        impatient(std::chrono::milliseconds(800)));
  }
}
