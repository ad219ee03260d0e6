// Coroutines as resumable steps: order, nesting, errors, and being destroyed half-way.
#include <stdexcept>
#include <string>

#include "check.hpp"
#include "collectives/buffers.hpp"
#include "collectives/task.hpp"

using namespace minitorch;

namespace {

struct Flag final : Condition {
  bool set = false;
  bool ready() override { return set; }
};

Task two_waits(Flag& a, Flag& b, std::string& log) {
  log += "1";
  co_await a;
  log += "2";
  co_await b;
  log += "3";
}

Task outer(Flag& a, Flag& b, std::string& log) {
  log += "(";
  Task inner = two_waits(a, b, log);
  co_await inner;
  log += ")";
}

Task throws_after(Flag& a) {
  co_await a;
  throw std::runtime_error("inside");
}

Task passes_on(Flag& a, std::string& log) {
  Task inner = throws_after(a);
  try {
    co_await inner;
  } catch (const std::runtime_error& error) {
    log += error.what();
    throw;
  }
}

struct Noisy {
  std::string& log;
  ~Noisy() { log += "~"; }
};

Task holds(Flag& a, std::string& log) {
  const Noisy noisy{log};
  co_await a;
}

Task holds_deep(Flag& a, std::string& log) {
  const Noisy noisy{log};
  Task inner = holds(a, log);
  co_await inner;
}

}  // namespace

TEST(advances_as_far_as_conditions_allow) {
  Flag a, b;
  std::string log;
  Task task = two_waits(a, b, log);
  CHECK_EQUAL(log, "");  // nothing runs before the first advance
  CHECK(task.advance() == Task::Progress::kMoved);
  CHECK_EQUAL(log, "1");
  CHECK(task.advance() == Task::Progress::kBlocked);
  CHECK(task.waiting_for() == &a);
  a.set = true;
  CHECK(task.advance() == Task::Progress::kMoved);
  CHECK_EQUAL(log, "12");
  b.set = true;
  CHECK(task.advance() == Task::Progress::kDone);
  CHECK(task.advance() == Task::Progress::kDone);
  CHECK_EQUAL(log, "123");
}

TEST(what_is_there_needs_no_suspension) {
  Flag a, b;
  a.set = b.set = true;
  std::string log;
  Task task = outer(a, b, log);
  CHECK(task.advance() == Task::Progress::kDone);
  CHECK_EQUAL(log, "(123)");
}

TEST(tasks_nest) {
  Flag a, b;
  std::string log;
  Task task = outer(a, b, log);
  static_cast<void>(task.advance());
  CHECK(task.waiting_for() == &a);
  a.set = b.set = true;
  CHECK(task.advance() == Task::Progress::kDone);
  CHECK_EQUAL(log, "(123)");
}

TEST(errors_travel_outwards) {
  Flag a;
  std::string log;
  Task task = passes_on(a, log);
  static_cast<void>(task.advance());
  a.set = true;
  CHECK_EQUAL(check::message_of<std::runtime_error>([&] { static_cast<void>(task.advance()); }),
              "inside");
  CHECK_EQUAL(log, "inside");
}

TEST(destroyed_half_way) {
  Flag a;
  std::string log;
  {
    Task task = holds_deep(a, log);
    static_cast<void>(task.advance());
    CHECK_EQUAL(log, "");
  }
  CHECK_EQUAL(log, "~~");
}

TEST(buffers_are_used_again) {
  Buffers buffers;
  std::byte* first;
  {
    const auto block = buffers.take(100);
    first = block.data();
    CHECK_EQUAL(reinterpret_cast<std::uintptr_t>(first) % 64, std::uintptr_t{0});
  }
  const auto again = buffers.take(4000);  // the same size class
  CHECK(again.data() == first);
  const auto larger = buffers.take(5000);
  CHECK(larger.data() != first);
}
