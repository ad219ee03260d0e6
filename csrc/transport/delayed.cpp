#include "transport/delayed.hpp"

#include <algorithm>
#include <random>
#include <stdexcept>
#include <vector>

namespace minitorch {
namespace {

class Delayed final : public HeldTransport {
 public:
  Delayed(std::shared_ptr<Transport> inner, std::uint64_t seed, double max_delay_seconds)
      : HeldTransport(std::move(inner)),
        delay_(0.0, max_delay_seconds),
        last_(static_cast<std::size_t>(size())) {
    // Ranks get different streams from one seed.
    generator_.seed(seed * 0x9E3779B97F4A7C15ULL + static_cast<std::uint64_t>(rank()));
  }

 protected:
  Clock::time_point release_time(int peer, std::size_t) override {
    const std::chrono::duration<double> late(delay_(generator_));
    Clock::time_point& last = last_[static_cast<std::size_t>(peer)];
    last = std::max(last, Clock::now() + std::chrono::duration_cast<Clock::duration>(late));
    return last;
  }

 private:
  std::mt19937_64 generator_;
  std::uniform_real_distribution<double> delay_;
  std::vector<Clock::time_point> last_;
};

}  // namespace

std::shared_ptr<Transport> delayed(std::shared_ptr<Transport> inner, std::uint64_t seed,
                                   double max_delay_seconds) {
  if (!inner) throw std::invalid_argument("delayed: no transport to wrap");
  if (!(max_delay_seconds >= 0))
    throw std::invalid_argument("delayed: max_delay_seconds must not be negative");
  return std::make_shared<Delayed>(std::move(inner), seed, max_delay_seconds);
}

}  // namespace minitorch
