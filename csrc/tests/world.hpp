// Ranks as threads: runs a function on every rank of a small world and rethrows the first error.
#pragma once

#include <exception>
#include <functional>
#include <memory>
#include <numeric>
#include <thread>
#include <vector>

#include "engine/engine.hpp"
#include "transport/delayed.hpp"
#include "transport/threads.hpp"

namespace minitorch::check {

struct WorldOptions {
  bool threaded = true;
  double max_delay_seconds = 0;  // of injected random message delays
  std::uint64_t seed = 1;
  std::chrono::nanoseconds timeout = std::chrono::seconds(20);
  Tuning tuning = {};
};

struct Rank {
  int rank;
  int size;
  Engine& engine;
  Group& group;  // of the whole world
};

// Short segments: even small arrays then travel in several pieces.
inline Tuning small_pieces() {
  Tuning tuning;
  tuning.segment_bytes = 5000;
  tuning.min_segment_bytes = 1000;
  tuning.small_bytes = 64;
  return tuning;
}

template <class Body>
void on_ranks(int size, Body body, const WorldOptions& options = {}) {
  const auto transports = threads_world(size);
  std::vector<int> everyone(static_cast<std::size_t>(size));
  std::iota(everyone.begin(), everyone.end(), 0);
  std::vector<std::unique_ptr<Engine>> engines;
  // Made before any rank runs: one that starts late may find that another has failed already.
  std::vector<std::shared_ptr<Group>> groups;
  for (int rank = 0; rank < size; ++rank) {
    auto transport = transports[static_cast<std::size_t>(rank)];
    if (options.max_delay_seconds > 0)
      transport = delayed(transport, options.seed, options.max_delay_seconds);
    engines.push_back(std::make_unique<Engine>(transport, options.threaded, options.tuning));
    groups.push_back(engines.back()->new_group(everyone, options.timeout));
  }
  std::vector<std::exception_ptr> errors(static_cast<std::size_t>(size));
  std::vector<std::thread> threads;
  for (int rank = 0; rank < size; ++rank) {
    threads.emplace_back([&, rank] {
      Engine& engine = *engines[static_cast<std::size_t>(rank)];
      try {
        body(Rank{rank, size, engine, *groups[static_cast<std::size_t>(rank)]});
      } catch (const std::exception& error) {
        errors[static_cast<std::size_t>(rank)] = std::current_exception();
        engine.fail(error.what());
      }
    });
  }
  for (auto& thread : threads) thread.join();
  for (const auto& error : errors)
    if (error) std::rethrow_exception(error);
}

}  // namespace minitorch::check
