#include "engine/work.hpp"

#include "engine/core.hpp"

namespace minitorch {
namespace {

std::atomic<void (*)()> interrupt{nullptr};

}  // namespace

void Work::set_interrupt(void (*check)()) {
  interrupt.store(check);
}

Work::Work(std::shared_ptr<Core> core, std::shared_ptr<GroupState> group,
           const Channel::Route& route, const Header& header, Options&& options)
    : core_(std::move(core)),
      group_(std::move(group)),
      keep_alive_(std::move(options.keep_alive)),
      label_(std::move(options.label)),
      channel_(route, header) {
  if (const auto line = label_.find('\n'); line != std::string::npos) {
    origin_ = label_.substr(line + 1);
    label_.resize(line);
  }
  if (options.parent)
    root_ = options.parent->root_ ? options.parent->root_ : std::move(options.parent);
}

Work::~Work() = default;

bool Work::is_completed() const {
  const State state = state_.load();
  return state == State::kFinished || state == State::kFailed;
}

bool Work::failed() const {
  return state_.load() == State::kFailed;
}

std::string Work::error() const {
  return failed() ? error_ : std::string();
}

std::string Work::describe() const {
  std::string text = minitorch::describe(channel_.header());
  if (!label_.empty()) text += " '" + label_ + "'";
  return text;
}

void Work::throw_if_failed() const {
  if (!failed()) return;
  switch (error_kind_) {
    case Error::kMismatch:
      throw CollectiveMismatch(error_);
    case Error::kTimeout:
      throw CollectiveTimeout(error_);
    case Error::kPlain:
      throw CollectiveError(error_);
  }
}

void Work::set_timeout(std::chrono::nanoseconds timeout) {
  deadline_ns_.store(now_ns() + timeout.count());
  core_->poke();
}

bool Work::wait_for(std::chrono::nanoseconds slice) {
  return core_->wait_for(*this, slice);
}

void Work::wait(std::chrono::nanoseconds timeout) {
  if (timeout.count() > 0 && !is_completed()) set_timeout(timeout);
  while (!wait_for(std::chrono::milliseconds(100)))
    if (const auto check = interrupt.load()) check();
  throw_if_failed();
}

}  // namespace minitorch
