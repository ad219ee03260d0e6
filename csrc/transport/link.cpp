#include "transport/link.hpp"

#include <algorithm>
#include <cmath>
#include <stdexcept>

namespace minitorch {
namespace {

using Seconds = std::chrono::duration<double>;

class Link final : public HeldTransport {
 public:
  Link(std::shared_ptr<Transport> inner, double bytes_per_second, double latency_seconds)
      : HeldTransport(std::move(inner)),
        bytes_per_second_(bytes_per_second),
        latency_(std::chrono::duration_cast<Clock::duration>(Seconds(latency_seconds))) {}

 protected:
  Clock::time_point release_time(int peer, std::size_t bytes) override {
    if (peer == rank()) return Clock::now();  // does not touch the wire
    const Seconds transfer(static_cast<double>(bytes) / bytes_per_second_);
    wire_free_ =
        std::max(Clock::now(), wire_free_) + std::chrono::duration_cast<Clock::duration>(transfer);
    return wire_free_ + latency_;
  }

 private:
  const double bytes_per_second_;
  const Clock::duration latency_;
  Clock::time_point wire_free_{};
};

}  // namespace

std::shared_ptr<Transport> shaped_link(std::shared_ptr<Transport> inner, double bytes_per_second,
                                       double latency_seconds) {
  if (!inner) throw std::invalid_argument("shaped_link: no transport to wrap");
  if (!(bytes_per_second > 0))  // infinite: latency only
    throw std::invalid_argument("shaped_link: bytes_per_second must be positive");
  if (!(latency_seconds >= 0) || !std::isfinite(latency_seconds))
    throw std::invalid_argument("shaped_link: latency_seconds must not be negative");
  return std::make_shared<Link>(std::move(inner), bytes_per_second, latency_seconds);
}

}  // namespace minitorch
