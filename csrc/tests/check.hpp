// A test framework in a page: `TEST(name) { ... }` registers itself, checks print both sides and go
// on.
//
//   CHECK(condition)  CHECK_EQUAL(got, expected)  CHECK_NEAR(got, expected, tolerance)
//   CHECK_CONTAINS(text, part)  CHECK_THROWS(expression, Type)  message_of<Type>([&] { ... })
//
// Checks may be used by several threads. `test_x --list`, `test_x part-of-a-name`. main() is in
// check.cpp.
#pragma once

#include <cmath>
#include <cstddef>
#include <sstream>
#include <string>
#include <type_traits>

namespace minitorch::check {

struct Registration {
  Registration(const char* name, void (*run)());
};

// Counts a failure of the running test and prints it.
void report(const char* file, int line, const std::string& text);

template <class T>
std::string shown(const T& value) {
  std::ostringstream text;
  text.precision(17);
  if constexpr (std::is_enum_v<T>) {
    text << static_cast<long long>(value);
  } else if constexpr (requires { text << value; }) {
    text << value;
  } else if constexpr (requires { value.begin(); }) {
    text << "[";
    std::size_t i = 0;
    for (const auto& item : value) {
      if (i++ == 20) {
        text << " ... of " << value.size();
        break;
      }
      text << (i > 1 ? ", " : "") << shown(item);
    }
    text << "]";
  } else {
    text << "(a value of " << sizeof(T) << " bytes)";
  }
  return text.str();
}

template <class Error, class Call>
std::string message_of(Call call) {
  try {
    call();
  } catch (const Error& error) {
    return error.what();
  }
  return {};
}

}  // namespace minitorch::check

#define TEST(name)                                                                 \
  static void test_##name();                                                       \
  static const minitorch::check::Registration register_##name(#name, test_##name); \
  static void test_##name()

#define CHECK(condition)                                                              \
  do {                                                                                \
    if (!(condition))                                                                 \
      minitorch::check::report(__FILE__, __LINE__, "CHECK(" #condition ") is false"); \
  } while (false)

#define CHECK_EQUAL(got, expected)                                                            \
  do {                                                                                        \
    const auto check_got = (got);                                                             \
    const auto check_expected = (expected);                                                   \
    if (!(check_got == check_expected))                                                       \
      minitorch::check::report(__FILE__, __LINE__,                                            \
                               #got "\n      is  " + minitorch::check::shown(check_got) +     \
                                   "\n      not " + minitorch::check::shown(check_expected)); \
  } while (false)

#define CHECK_NEAR(got, expected, tolerance)                                                  \
  do {                                                                                        \
    const double check_got = static_cast<double>(got);                                        \
    const double check_expected = static_cast<double>(expected);                              \
    if (!(std::abs(check_got - check_expected) <= (tolerance)))                               \
      minitorch::check::report(__FILE__, __LINE__,                                            \
                               #got "\n      is  " + minitorch::check::shown(check_got) +     \
                                   "\n      not " + minitorch::check::shown(check_expected) + \
                                   " +- " #tolerance);                                        \
  } while (false)

#define CHECK_CONTAINS(text, part)                                                      \
  do {                                                                                  \
    const std::string check_text = (text);                                              \
    const std::string check_part = (part);                                              \
    if (check_text.find(check_part) == std::string::npos)                               \
      minitorch::check::report(                                                         \
          __FILE__, __LINE__,                                                           \
          #text "\n      is '" + check_text + "'\n      without '" + check_part + "'"); \
  } while (false)

#define CHECK_THROWS(expression, Type)                                                    \
  do {                                                                                    \
    bool check_thrown = false;                                                            \
    try {                                                                                 \
      static_cast<void>(expression);                                                      \
    } catch (const Type&) {                                                               \
      check_thrown = true;                                                                \
    }                                                                                     \
    if (!check_thrown)                                                                    \
      minitorch::check::report(__FILE__, __LINE__, #expression " does not throw " #Type); \
  } while (false)
