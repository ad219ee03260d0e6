// A collective as resumable steps: a C++20 coroutine that the engine advances whenever it may get
// further.
//
// The body of a collective reads like the algorithm: `co_await incoming` stands where a blocking
// program would wait. Nothing blocks: `Task::advance()` tests what the coroutine waits for and
// resumes it only when that is there. One engine thread so drives many collectives at once.
//
// A task may await another task (all-reduce "naive" awaits a gather and a broadcast). The outermost
// one, the root, remembers which coroutine of the stack is to be resumed and what that one waits
// for.
#pragma once

#include <coroutine>
#include <exception>
#include <utility>
#include <vector>

namespace minitorch {

// What a suspended task waits for: a question that may be asked again and again without blocking.
struct Condition {
  virtual bool ready() = 0;
  // Group ranks that this waits for, for the error that a deadline raises.
  virtual void blame(std::vector<int>& peers) const { (void)peers; }

 protected:
  ~Condition() = default;
};

class [[nodiscard]] Task {
 public:
  enum class Progress { kBlocked, kMoved, kDone };

  struct promise_type;
  using Handle = std::coroutine_handle<promise_type>;

  // Runs into the awaited condition's `ready` once before it suspends: what has already arrived
  // costs no trip through the engine.
  struct AwaitCondition {
    Condition& condition;
    bool await_ready() { return condition.ready(); }
    void await_suspend(Handle self) noexcept;
    void await_resume() noexcept {}
  };

  struct AwaitTask {
    Handle child;
    bool await_ready() noexcept { return false; }
    Handle await_suspend(Handle self) noexcept;
    void await_resume();
  };

  struct AwaitFinal {
    bool await_ready() noexcept { return false; }
    std::coroutine_handle<> await_suspend(Handle self) noexcept;
    void await_resume() noexcept {}
  };

  struct promise_type {
    promise_type* root = this;
    Handle caller = nullptr;           // who awaits this task; null for the root
    Handle current = nullptr;          // root only: the innermost coroutine
    Condition* waiting_for = nullptr;  // root only
    std::exception_ptr error;

    Task get_return_object() {
      current = Handle::from_promise(*this);
      return Task(current);
    }
    std::suspend_always initial_suspend() noexcept { return {}; }
    AwaitFinal final_suspend() noexcept { return {}; }
    void return_void() noexcept {}
    void unhandled_exception() noexcept { error = std::current_exception(); }

    AwaitCondition await_transform(Condition& condition) noexcept { return {condition}; }
    AwaitTask await_transform(Task& task) noexcept { return {task.handle_}; }
  };

  Task() = default;
  Task(Task&& other) noexcept : handle_(std::exchange(other.handle_, nullptr)) {}
  Task& operator=(Task&& other) noexcept {
    std::swap(handle_, other.handle_);
    return *this;
  }
  ~Task() { reset(); }

  explicit operator bool() const { return static_cast<bool>(handle_); }

  // Frees the coroutine and all it owns (requests, scratch), wherever it stands.
  void reset() {
    if (handle_) std::exchange(handle_, nullptr).destroy();
  }

  // Goes as far as possible without waiting; rethrows what the body threw.
  Progress advance();

  // What it is suspended at; null before the start and after the end.
  const Condition* waiting_for() const { return handle_ ? handle_.promise().waiting_for : nullptr; }

 private:
  explicit Task(Handle handle) : handle_(handle) {}
  Handle handle_ = nullptr;
};

inline void Task::AwaitCondition::await_suspend(Handle self) noexcept {
  self.promise().root->waiting_for = &condition;
}

inline Task::Handle Task::AwaitTask::await_suspend(Handle self) noexcept {
  child.promise().caller = self;
  child.promise().root = self.promise().root;
  self.promise().root->current = child;
  return child;
}

inline void Task::AwaitTask::await_resume() {
  if (child.promise().error) std::rethrow_exception(std::exchange(child.promise().error, nullptr));
}

inline std::coroutine_handle<> Task::AwaitFinal::await_suspend(Handle self) noexcept {
  auto& promise = self.promise();
  if (!promise.caller) return std::noop_coroutine();
  promise.root->current = promise.caller;
  return promise.caller;
}

inline Task::Progress Task::advance() {
  auto& root = handle_.promise();
  Progress progress = Progress::kBlocked;
  while (!handle_.done()) {
    if (root.waiting_for != nullptr) {
      if (!root.waiting_for->ready()) return progress;
      root.waiting_for = nullptr;
    }
    progress = Progress::kMoved;
    root.current.resume();
    if (root.error) std::rethrow_exception(std::exchange(root.error, nullptr));
  }
  return Progress::kDone;
}

}  // namespace minitorch
