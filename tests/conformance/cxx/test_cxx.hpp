/* SPDX-License-Identifier: MIT
 * Support for the tests of rondo.hpp. A failed assertion leaves the test by a long jump past its destructors, which is
 * good enough for a test that has failed.
 */
#ifndef RONDO_TESTS_CONFORMANCE_CXX_TEST_CXX_HPP
#define RONDO_TESTS_CONFORMANCE_CXX_TEST_CXX_HPP

#include <cstdlib>
#include <cstring>
#include <type_traits>
#include <utility>

#include <rondo/rondo.hpp>

extern "C" {
#include "support/test_cases.h"
}

/* cmocka converts what it asserts with a cast, which an explicit operator bool refuses. */
#define assert_yes(value) assert_true(static_cast<bool>(value))
#define assert_no(value) assert_false(static_cast<bool>(value))
#define assert_contains(text, part) assert_non_null(std::strstr((text), (part)))

inline const char *test_device_name() {
  const char *name = std::getenv("RONDO_TEST_DEVICE");
  return name == nullptr ? "cpu" : name;
}

#ifdef RONDO_NO_EXCEPTIONS
/* The value, which there has to be. */
template <class T>
T must(rondo::result<T> result) {
  if (!result) fail_msg("%s", result.error().what());
  return std::move(result).value();
}
inline void must(rondo::result<void> result) {
  if (!result) fail_msg("%s", result.error().what());
}
#else
/* What the call throws. */
template <class Error = rondo::error, class F>
Error thrown_by(F &&call) {
  try {
    call();
  } catch (const Error &error) {
    return error;
  }
  fail_msg("the call throws nothing");
  std::abort();
}
#endif

#endif
