// Nothing hangs: mismatch, deadline, failure, goodbye; told to all, and lasting.
#include <memory>
#include <string>
#include <vector>

#include "check.hpp"
#include "world.hpp"

using namespace minitorch;
using check::message_of;
using check::on_ranks;
using check::Rank;
using check::WorldOptions;

namespace {

WorldOptions impatient(std::chrono::milliseconds timeout) {
  WorldOptions options;
  options.timeout = timeout;
  return options;
}

// What `wait` throws, as (type, text).
struct Outcome {
  std::string type, text;
};

Outcome outcome(const std::function<void()>& call) {
  try {
    call();
  } catch (const CollectiveMismatch& error) {
    return {"mismatch", error.what()};
  } catch (const CollectiveTimeout& error) {
    return {"timeout", error.what()};
  } catch (const CollectiveError& error) {
    return {"error", error.what()};
  }
  return {"none", ""};
}

}  // namespace

TEST(different_operations_are_told_to_all) {
  for (const int odd_one : {0, 1, 2}) {
    on_ranks(3, [&](const Rank& self) {
      std::vector<float> data(2000, 1.0F);
      const Outcome result = outcome([&] {
        if (self.rank == odd_one)
          self.group.broadcast(data.data(), 2000, Dtype::kFloat32, 0)->wait();
        else
          self.group.all_reduce(data.data(), 2000, Dtype::kFloat32, ReduceOp::kSum)->wait();
        self.group.barrier()->wait();
      });
      CHECK_EQUAL(result.type, "mismatch");
      CHECK_CONTAINS(result.text, "Detected mismatch between collectives on ranks. Rank ");
      CHECK_CONTAINS(result.text, " is running collective: ");
      CHECK_CONTAINS(result.text, "all_reduce #0 (float32, 2000 elements, sum)");
      CHECK_CONTAINS(result.text, "broadcast #0 (float32, 2000 elements, root 0)");
      CHECK_CONTAINS(result.text, "They differ in: operation");
      // It stays failed, for all, at once.
      CHECK_EQUAL(outcome([&] { self.group.barrier()->wait(); }).type, "mismatch");
      CHECK(!self.engine.error().empty());
    });
  }
}

TEST(no_garbage_is_written_on_a_mismatch) {
  on_ranks(2, [](const Rank& self) {
    // Rank 1 sends more, of another dtype; rank 0's memory must keep its values.
    std::vector<float> data(self.rank == 0 ? 10 : 20, 7.0F);
    const Outcome result = outcome([&] {
      self.group
          .all_reduce(data.data(), data.size(), self.rank == 0 ? Dtype::kFloat32 : Dtype::kInt32,
                      ReduceOp::kSum)
          ->wait();
    });
    CHECK_EQUAL(result.type, "mismatch");
    CHECK_CONTAINS(result.text, "They differ in: dtype, number of elements");
    CHECK_EQUAL(data, std::vector<float>(data.size(), 7.0F));
  });
}

TEST(two_roots_that_wait_for_each_other) {
  // No data flow at all: the ranks find out by telling each other what they are stuck in.
  on_ranks(
      2,
      [](const Rank& self) {
        float value = 0;
        const Outcome result = outcome(
            [&] { self.group.broadcast(&value, 1, Dtype::kFloat32, 1 - self.rank)->wait(); });
        CHECK_EQUAL(result.type, "mismatch");
        CHECK_CONTAINS(result.text, "They differ in: root");
      },
      impatient(std::chrono::seconds(2)));
}

TEST(a_deadline_names_the_missing) {
  on_ranks(
      3,
      [](const Rank& self) {
        std::vector<float> data(10, 1.0F);
        self.group.all_reduce(data.data(), 10, Dtype::kFloat32, ReduceOp::kSum)->wait();
        const Outcome result = outcome([&] {
          if (self.rank != 2)
            self.group
                .all_reduce(data.data(), 10, Dtype::kFloat32, ReduceOp::kSum,
                            {.label = "bucket 3: fc1.weight"})
                ->wait();
          else  // comes late, and is told
            while (self.engine.error().empty())
              std::this_thread::sleep_for(std::chrono::milliseconds(5));
          self.group.barrier()->wait();
        });
        CHECK_EQUAL(result.type, "timeout");
        CHECK_CONTAINS(result.text,
                       "all_reduce #1 (float32, 10 elements, sum) 'bucket 3: fc1.weight'");
        CHECK_CONTAINS(result.text, "of group 0 (ranks 0, 1, 2) timed out after 0.");
        CHECK_CONTAINS(result.text, "waiting for rank");
        CHECK_CONTAINS(result.text, "rank 2 finished all_reduce #0 (float32, 10 elements, sum)");
      },
      impatient(std::chrono::milliseconds(400)));
}

TEST(wait_may_be_more_impatient_than_the_group) {
  for (const bool threaded : {true, false}) {
    WorldOptions options;
    options.threaded = threaded;
    on_ranks(
        2,
        [](const Rank& self) {
          float value = 0;
          const Outcome result = outcome([&] {
            if (self.rank == 0)
              self.group.recv(&value, 1, Dtype::kFloat32, 1)->wait(std::chrono::milliseconds(50));
            else
              self.group.barrier()->wait();
          });
          CHECK_EQUAL(result.type, "timeout");
          CHECK_CONTAINS(result.text, "recv with tag 0");
          CHECK_CONTAINS(result.text, "waiting for rank 1");
        },
        options);
  }
}

TEST(a_deadline_holds_in_the_queue_too) {
  on_ranks(2, [](const Rank& self) {
    if (self.rank == 1) return;
    float value = 0;
    const auto first = self.group.recv(&value, 1, Dtype::kFloat32, 1);
    const auto second = self.group.recv(&value, 1, Dtype::kFloat32, 1);
    const Outcome result = outcome([&] { second->wait(std::chrono::milliseconds(50)); });
    CHECK_EQUAL(result.type, "timeout");
    CHECK_CONTAINS(result.text, "in the queue, behind earlier ones");
    CHECK_EQUAL(outcome([&] { first->wait(); }).type, "timeout");
  });
}

TEST(a_failure_reaches_everyone) {
  on_ranks(4, [](const Rank& self) {
    if (self.rank == 2) {
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
      self.engine.fail("ValueError: no such file");
    }
    const Outcome result = outcome([&] {
      for (;;) self.group.barrier()->wait();
    });
    CHECK_EQUAL(result.type, "error");
    CHECK_EQUAL(result.text, "rank 2 failed: ValueError: no such file");
    CHECK_EQUAL(self.engine.error(), result.text);
  });
}

TEST(a_goodbye_ends_the_waiting) {
  on_ranks(3, [](const Rank& self) {
    float value = 1;
    self.group.all_reduce(&value, 1, Dtype::kFloat32, ReduceOp::kSum)->wait();
    CHECK_EQUAL(value, 3.0F);
    if (self.rank == 1) {
      self.engine.goodbye();
      return;
    }
    const Outcome result =
        outcome([&] { self.group.all_reduce(&value, 1, Dtype::kFloat32, ReduceOp::kSum)->wait(); });
    CHECK_EQUAL(result.type, "error");
    CHECK_CONTAINS(result.text,
                   "needs rank 1, which ended normally after 1 collectives of this group");
  });
}

TEST(what_was_sent_before_a_goodbye_still_arrives) {
  WorldOptions options;
  options.max_delay_seconds = 0.02;  // the goodbye overtakes the data
  on_ranks(
      2,
      [](const Rank& self) {
        std::vector<float> data(100, static_cast<float>(self.rank));
        const auto work = self.rank == 0 ? self.group.send(data.data(), 100, Dtype::kFloat32, 1)
                                         : self.group.recv(data.data(), 100, Dtype::kFloat32, 0);
        if (self.rank == 0) {
          work->wait();
          self.engine.goodbye();
        } else {
          work->wait();
          CHECK_EQUAL(data, std::vector<float>(100, 0.0F));
        }
      },
      options);
}

TEST(a_failed_engine_lets_go_of_memory) {
  on_ranks(2, [](const Rank& self) {
    auto data = std::make_shared<std::vector<float>>(100'000, 1.0F);
    const std::weak_ptr<void> watched = data;
    float* const values = data->data();
    if (self.rank == 0) {
      const auto work = self.group.all_reduce(values, 100'000, Dtype::kFloat32, ReduceOp::kSum,
                                              std::move(data), "pinned");
      const Outcome result = outcome([&] { work->wait(); });
      CHECK_EQUAL(result.text, "rank 1 failed: gone");
      CHECK(watched.expired());  // threads can take messages back
    } else {
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
      self.engine.fail("gone");
    }
  });
}

TEST(shutdown_fails_what_is_pending) {
  on_ranks(2, [](const Rank& self) {
    float value = 0;
    if (self.rank == 1) return;
    const auto work = self.group.recv(&value, 1, Dtype::kFloat32, 1);
    self.engine.shutdown();
    self.engine.shutdown();
    CHECK_CONTAINS(outcome([&] { work->wait(); }).text, "the engine was shut down");
    CHECK_CONTAINS(outcome([&] { self.group.barrier()->wait(); }).text, "the engine was shut down");
  });
}

TEST(random_programs_with_one_fault_never_hang) {
  for (int seed = 0; seed < 12; ++seed) {
    WorldOptions options = impatient(std::chrono::milliseconds(500));
    options.max_delay_seconds = 0.0005;
    options.seed = static_cast<std::uint64_t>(seed);
    const int culprit = seed % 3, moment = seed % 5;
    on_ranks(
        3,
        [&](const Rank& self) {
          const Outcome result = outcome([&] {
            std::vector<std::vector<float>> data(6, std::vector<float>(3000, 1.0F));
            std::vector<WorkPtr> works;
            for (int i = 0; i < 6; ++i) {
              const bool wrong = self.rank == culprit && i == moment;
              if (wrong && seed % 2 == 0) continue;  // one collective is left out
              auto& mine = data[static_cast<std::size_t>(i)];
              works.push_back(self.group.all_reduce(mine.data(), wrong ? 2999 : 3000,
                                                    Dtype::kFloat32,
                                                    i % 2 == 0 ? ReduceOp::kSum : ReduceOp::kMax));
            }
            for (const auto& work : works) work->wait();
            self.group.barrier()->wait();
          });
          CHECK_EQUAL(result.type, "mismatch");
        },
        options);
  }
}
