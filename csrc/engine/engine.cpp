// The public face: everything is in Core.
#include "engine/engine.hpp"

#include "engine/core.hpp"

namespace minitorch {

Engine::Engine(std::shared_ptr<Transport> transport, bool threaded, const Tuning& tuning)
    : core_(std::make_shared<Core>(std::move(transport), threaded, tuning)) {
  core_->start();
}

Engine::~Engine() {
  shutdown();
}

int Engine::rank() const {
  return core_->transport().rank();
}
int Engine::size() const {
  return core_->transport().size();
}
bool Engine::threaded() const {
  return core_->threaded();
}

std::shared_ptr<Group> Engine::new_group(const std::vector<int>& ranks,
                                         std::chrono::nanoseconds timeout) {
  return std::make_shared<Group>(core_, core_->new_group(ranks, timeout, nullptr));
}

std::shared_ptr<Group> Engine::new_group(const std::vector<int>& ranks,
                                         std::chrono::nanoseconds timeout, std::uint32_t id) {
  return std::make_shared<Group>(core_, core_->new_group(ranks, timeout, &id));
}

void Engine::fail(const std::string& message) {
  core_->fail(message);
}
void Engine::goodbye() {
  core_->goodbye();
}
void Engine::shutdown() {
  core_->shutdown();
}
std::string Engine::error() const {
  return core_->error();
}
Meter& Engine::meter() const {
  return core_->meter();
}
Trace& Engine::trace() const {
  return core_->trace();
}
void Engine::set_trace(std::shared_ptr<Trace> trace) {
  core_->set_trace(std::move(trace));
}
std::shared_ptr<Trace> Engine::shared_trace() const {
  return core_->shared_trace();
}

}  // namespace minitorch
