// Bytes are counted, not guessed: what each operation sent and received, payload and headers apart.
#pragma once

#include <array>
#include <cstdint>
#include <mutex>

#include "collectives/channel.hpp"

namespace minitorch {

struct Usage {
  std::uint64_t calls = 0;
  Traffic traffic;
};

class Meter {
 public:
  using Table = std::array<Usage, kOperations>;  // indexed by Operation

  void add(Operation operation, const Traffic& traffic);
  Table read() const;
  void reset();

 private:
  mutable std::mutex mutex_;
  Table table_{};
};

}  // namespace minitorch
