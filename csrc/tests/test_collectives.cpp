// Every collective on worlds of 1 to 8 ranks, against closed forms, with delayed messages and short
// segments; and the same bits on all ranks, whatever the schedule.
#include <array>
#include <cstring>
#include <vector>

#include "check.hpp"
#include "kernels/half.hpp"
#include "world.hpp"

using namespace minitorch;
using check::on_ranks;
using check::Rank;
using check::WorldOptions;

namespace {

constexpr std::array kAlgorithms = {Algorithm::kAuto,
                                    Algorithm::kRing,
                                    Algorithm::kNaive,
                                    Algorithm::kTree,
                                    Algorithm::kHalvingDoubling,
                                    Algorithm::kRecursiveDoubling};
constexpr std::array<std::size_t, 7> kCounts = {0, 1, 5, 97, 1009, 4099, 20011};

// Rank r's element i is (r + 1) * (i % 7 + 1): the sum over ranks is n(n+1)/2 * (i % 7 + 1).
template <class T>
std::vector<T> input(int rank, std::size_t elements) {
  std::vector<T> data(elements);
  for (std::size_t i = 0; i < elements; ++i)
    data[i] = static_cast<T>(static_cast<std::size_t>(rank + 1) * (i % 7 + 1));
  return data;
}

template <class T>
std::vector<T> times(std::size_t factor, std::size_t elements) {
  return input<T>(static_cast<int>(factor) - 1, elements);
}

std::size_t sum_of_ranks(int size) {
  const auto n = static_cast<std::size_t>(size);
  return n * (n + 1) / 2;
}

WorldOptions rough(int size) {
  WorldOptions options;
  options.max_delay_seconds = 0.0001;
  options.seed = static_cast<std::uint64_t>(size);
  options.tuning = check::small_pieces();
  return options;
}

// 0.1, 0.3, ...: sums that depend on the order of summation.
std::vector<float> awkward(int rank, std::size_t elements) {
  std::vector<float> data(elements);
  for (std::size_t i = 0; i < elements; ++i)
    data[i] = 0.1F * static_cast<float>(rank + 1) +
              1e4F / static_cast<float>(i + 1 + 3 * static_cast<std::size_t>(rank));
  return data;
}

// Checks that all ranks hold the same bytes, by comparing with what rank 0 broadcasts.
void check_same_bits(const Rank& self, const std::vector<float>& data) {
  auto of_root = data;
  self.group.broadcast(of_root.data(), of_root.size(), Dtype::kFloat32, 0)->wait();
  CHECK(data.empty() || std::memcmp(of_root.data(), data.data(), data.size() * 4) == 0);
}

template <class T>
void check_all_reduce(const Rank& self, Dtype dtype, std::size_t elements) {
  auto sum = input<T>(self.rank, elements);
  self.group.all_reduce(sum.data(), elements, dtype, ReduceOp::kSum)->wait();
  CHECK_EQUAL(sum, times<T>(sum_of_ranks(self.size), elements));
  auto highest = input<T>(self.rank, elements);
  self.group.all_reduce(highest.data(), elements, dtype, ReduceOp::kMax)->wait();
  CHECK_EQUAL(highest, times<T>(static_cast<std::size_t>(self.size), elements));
  auto lowest = input<T>(self.rank, elements);
  self.group.all_reduce(lowest.data(), elements, dtype, ReduceOp::kMin)->wait();
  CHECK_EQUAL(lowest, times<T>(1, elements));
  std::vector<T> product(elements, T{2});
  self.group.all_reduce(product.data(), elements, dtype, ReduceOp::kProduct)->wait();
  CHECK_EQUAL(product, std::vector<T>(elements, static_cast<T>(std::size_t{1} << (self.size % 8))));
}

}  // namespace

TEST(all_reduce_by_every_algorithm) {
  for (int size = 1; size <= 8; ++size) {
    on_ranks(
        size,
        [](const Rank& self) {
          for (const Algorithm algorithm : kAlgorithms) {
            for (const std::size_t elements : kCounts) {
              auto data = input<float>(self.rank, elements);
              self.group
                  .all_reduce(data.data(), elements, Dtype::kFloat32, ReduceOp::kSum,
                              {.algorithm = algorithm})
                  ->wait();
              CHECK_EQUAL(data, times<float>(sum_of_ranks(self.size), elements));
              auto mean = awkward(self.rank, elements);
              self.group
                  .all_reduce(mean.data(), elements, Dtype::kFloat32, ReduceOp::kSum,
                              {.scale = 1.0 / self.size, .algorithm = algorithm})
                  ->wait();
              check_same_bits(self, mean);
            }
          }
        },
        rough(size));
  }
}

TEST(all_reduce_every_dtype_and_operation) {
  for (const int size : {1, 2, 3, 7}) {
    on_ranks(size, [](const Rank& self) {
      for (const std::size_t elements : {1, 97, 5003}) {
        check_all_reduce<float>(self, Dtype::kFloat32, elements);
        check_all_reduce<double>(self, Dtype::kFloat64, elements);
        check_all_reduce<std::int32_t>(self, Dtype::kInt32, elements);
        check_all_reduce<std::int64_t>(self, Dtype::kInt64, elements);
        check_all_reduce<std::uint8_t>(self, Dtype::kUInt8, elements);
      }
    });
  }
}

TEST(all_reduce_of_sixteen_bits) {
  on_ranks(4, [](const Rank& self) {
    for (const std::size_t elements : {3, 20011}) {
      const auto r = static_cast<float>(self.rank + 1);
      std::vector<std::uint16_t> half(elements, kernels::float_to_half(r));
      self.group
          .all_reduce(half.data(), elements, Dtype::kFloat16, ReduceOp::kSum, {.scale = 0.25})
          ->wait();
      CHECK_EQUAL(half, std::vector<std::uint16_t>(elements, kernels::float_to_half(2.5F)));
      std::vector<std::uint16_t> brain(elements, kernels::float_to_bfloat16(r));
      self.group.all_reduce(brain.data(), elements, Dtype::kBFloat16, ReduceOp::kSum)->wait();
      CHECK_EQUAL(brain, std::vector<std::uint16_t>(elements, kernels::float_to_bfloat16(10.0F)));
    }
  });
}

TEST(reduce_scatter_and_all_gather) {
  for (int size = 1; size <= 8; ++size) {
    on_ranks(
        size,
        [](const Rank& self) {
          const auto ranks = static_cast<std::size_t>(self.size);
          const auto rank = static_cast<std::size_t>(self.rank);
          for (const std::size_t elements : kCounts) {
            const auto in = input<float>(self.rank, elements * ranks);
            const auto before = in;
            std::vector<float> part(elements, -1.0F);
            self.group
                .reduce_scatter(part.data(), in.data(), elements, Dtype::kFloat32, ReduceOp::kSum)
                ->wait();
            const auto sums = times<float>(sum_of_ranks(self.size), elements * ranks);
            const auto begin = sums.begin() + static_cast<std::ptrdiff_t>(rank * elements);
            CHECK_EQUAL(part,
                        std::vector<float>(begin, begin + static_cast<std::ptrdiff_t>(elements)));
            CHECK_EQUAL(in, before);  // only read

            std::vector<float> all(elements * ranks, -1.0F);
            self.group.all_gather(all.data(), part.data(), elements, Dtype::kFloat32)->wait();
            CHECK_EQUAL(all, sums);
            // The own part may already be in place.
            std::vector<float> in_place(elements * ranks, -1.0F);
            std::copy(part.begin(), part.end(),
                      in_place.begin() + static_cast<std::ptrdiff_t>(rank * elements));
            self.group
                .all_gather(in_place.data(), in_place.data() + rank * elements, elements,
                            Dtype::kFloat32)
                ->wait();
            CHECK_EQUAL(in_place, sums);
          }
        },
        rough(size));
  }
}

TEST(broadcast_and_reduce_with_every_root) {
  for (const int size : {1, 2, 3, 5, 8}) {
    on_ranks(
        size,
        [](const Rank& self) {
          for (int root = 0; root < self.size; ++root) {
            for (const std::size_t elements : kCounts) {
              auto data = input<double>(self.rank, elements);
              self.group.broadcast(data.data(), elements, Dtype::kFloat64, root)->wait();
              CHECK_EQUAL(data, input<double>(root, elements));

              data = input<double>(self.rank, elements);
              self.group
                  .reduce(data.data(), elements, Dtype::kFloat64, ReduceOp::kSum, root,
                          {.scale = 0.5})
                  ->wait();
              auto expected = input<double>(self.rank, elements);  // untouched elsewhere
              if (self.rank == root) {
                expected = times<double>(sum_of_ranks(self.size), elements);
                for (double& value : expected) value *= 0.5;
              }
              CHECK_EQUAL(data, expected);
            }
          }
        },
        rough(size));
  }
}

TEST(gather_scatter_all_to_all) {
  for (const int size : {1, 2, 3, 6}) {
    on_ranks(
        size,
        [](const Rank& self) {
          const auto ranks = static_cast<std::size_t>(self.size);
          const auto rank = static_cast<std::size_t>(self.rank);
          for (const std::size_t elements : kCounts) {
            const int root = self.size - 1;
            const auto mine = input<std::int64_t>(self.rank, elements);
            std::vector<std::int64_t> all(self.rank == root ? elements * ranks : 0);
            self.group.gather(all.data(), mine.data(), elements, Dtype::kInt64, root)->wait();
            if (self.rank == root) {
              std::vector<std::int64_t> expected;
              for (int peer = 0; peer < self.size; ++peer) {
                const auto part = input<std::int64_t>(peer, elements);
                expected.insert(expected.end(), part.begin(), part.end());
              }
              CHECK_EQUAL(all, expected);
            }
            std::vector<std::int64_t> part(elements, -1);
            self.group.scatter(part.data(), all.data(), elements, Dtype::kInt64, root)->wait();
            CHECK_EQUAL(part, mine);

            // Element = sender * 1000 + receiver.
            std::vector<std::int32_t> in, out(elements * ranks), expected;
            for (std::size_t peer = 0; peer < ranks; ++peer) {
              in.insert(in.end(), elements, static_cast<std::int32_t>(rank * 1000 + peer));
              expected.insert(expected.end(), elements,
                              static_cast<std::int32_t>(peer * 1000 + rank));
            }
            const std::vector<std::size_t> counts(ranks, elements);
            self.group.all_to_all(out.data(), in.data(), counts, counts, Dtype::kInt32)->wait();
            CHECK_EQUAL(out, expected);
          }
        },
        rough(size));
  }
}

TEST(all_to_all_with_uneven_parts) {
  on_ranks(4, [](const Rank& self) {
    // Rank i sends i + 2j elements to rank j.
    std::vector<std::size_t> in_counts, out_counts;
    std::vector<float> in, expected;
    for (int peer = 0; peer < self.size; ++peer) {
      in_counts.push_back(static_cast<std::size_t>(self.rank + 2 * peer));
      out_counts.push_back(static_cast<std::size_t>(peer + 2 * self.rank));
      in.insert(in.end(), in_counts.back(), static_cast<float>(10 * self.rank + peer));
      expected.insert(expected.end(), out_counts.back(), static_cast<float>(10 * peer + self.rank));
    }
    std::vector<float> out(expected.size());
    self.group.all_to_all(out.data(), in.data(), out_counts, in_counts, Dtype::kFloat32)->wait();
    CHECK_EQUAL(out, expected);
  });
}

TEST(barrier_waits_for_all) {
  for (const int size : {1, 2, 3, 5, 8}) {
    std::atomic<int> arrived{0};
    on_ranks(
        size,
        [&](const Rank& self) {
          for (int round = 1; round <= 5; ++round) {
            arrived.fetch_add(1);
            self.group.barrier()->wait();
            CHECK(arrived.load() >= round * self.size);
          }
        },
        rough(size));
  }
}

TEST(send_and_receive) {
  on_ranks(
      3,
      [](const Rank& self) {
        // In opposite orders on both sides; tags keep them apart.
        for (const std::size_t elements : {std::size_t{1}, std::size_t{5000}}) {
          if (self.rank == 0) {
            auto a = input<float>(0, elements), b = input<float>(1, elements);
            const auto first = self.group.send(a.data(), elements, Dtype::kFloat32, 1, 7);
            const auto second = self.group.send(b.data(), elements, Dtype::kFloat32, 1, 8);
            first->wait();
            second->wait();
          } else if (self.rank == 1) {
            std::vector<float> a(elements), b(elements);
            const auto second = self.group.recv(b.data(), elements, Dtype::kFloat32, 0, 8);
            const auto first = self.group.recv(a.data(), elements, Dtype::kFloat32, kAnySource, 7);
            first->wait();
            second->wait();
            CHECK_EQUAL(a, input<float>(0, elements));
            CHECK_EQUAL(b, input<float>(1, elements));
            CHECK_EQUAL(first->source(), 0);
          }
        }
      },
      rough(3));
}

TEST(messages_of_one_tag_keep_their_order) {
  on_ranks(
      2,
      [](const Rank& self) {
        constexpr int kMessages = 20;
        std::vector<std::vector<int>> data;
        std::vector<WorkPtr> works;
        for (int i = 0; i < kMessages; ++i) {
          // Long and short ones in turn, all started before any is awaited.
          const std::size_t elements = i % 2 == 0 ? 3000 : 2;
          data.emplace_back(elements, self.rank == 0 ? i : -1);
          works.push_back(self.rank == 0
                              ? self.group.send(data.back().data(), elements, Dtype::kInt32, 1)
                              : self.group.recv(data.back().data(), elements, Dtype::kInt32, 0));
        }
        for (const auto& work : works) work->wait();
        for (int i = 0; i < kMessages; ++i)
          CHECK_EQUAL(data[static_cast<std::size_t>(i)],
                      std::vector<int>(data[static_cast<std::size_t>(i)].size(), i));
      },
      rough(2));
}
