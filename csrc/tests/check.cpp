#include "check.hpp"

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <exception>
#include <mutex>
#include <vector>

namespace minitorch::check {
namespace {

struct Test {
  const char* name;
  void (*run)();
};

std::vector<Test>& tests() {
  static std::vector<Test> all;
  return all;
}

std::atomic<int> failures{0};
std::mutex print_mutex;

// One wrong loop may fail thousands of times; the first few tell enough.
constexpr int kShown = 20;

}  // namespace

Registration::Registration(const char* name, void (*run)()) {
  tests().push_back({name, run});
}

void report(const char* file, int line, const std::string& text) {
  if (failures.fetch_add(1) >= kShown) return;
  const std::lock_guard lock(print_mutex);
  std::printf("    %s:%d: %s\n", file, line, text.c_str());
  std::fflush(stdout);
}

int run_all(const char* filter) {
  int ran = 0, failed = 0;
  for (const Test& test : tests()) {
    if (filter != nullptr && std::strstr(test.name, filter) == nullptr) continue;
    failures = 0;
    ++ran;
    const auto begin = std::chrono::steady_clock::now();
    try {
      test.run();
    } catch (const std::exception& error) {
      report(test.name, 0, std::string("uncaught exception: ") + error.what());
    }
    const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin;
    if (failures > kShown) std::printf("    ... %d failed checks in all\n", failures.load());
    std::printf("%s %s (%.2f s)\n", failures == 0 ? "ok    " : "FAILED", test.name,
                seconds.count());
    std::fflush(stdout);
    if (failures != 0) ++failed;
  }
  std::printf("%d of %d tests passed\n", ran - failed, ran);
  return failed == 0 && ran > 0 ? 0 : 1;
}

void list_all() {
  for (const Test& test : tests()) std::printf("%s\n", test.name);
}

}  // namespace minitorch::check

int main(int argc, char** argv) {
  if (argc > 1 && std::strcmp(argv[1], "--list") == 0) {
    minitorch::check::list_all();
    return 0;
  }
  return minitorch::check::run_all(argc > 1 ? argv[1] : nullptr);
}
