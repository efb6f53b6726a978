/* SPDX-License-Identifier: MIT
 * How much a test tries when it repeats work: random cases, rounds, steps. A sanitizer makes each repetition many times
 * slower, and its findings appear in the first ones, so there are fewer. The assertions are the same; those about all
 * cases refer to the smaller number. A GPU's sanitizers run ordinary builds, so RONDO_TEST_SERIAL=1 says that one is
 * used.
 */
#ifndef RONDO_TESTS_SUPPORT_TEST_EFFORT_H
#define RONDO_TESTS_SUPPORT_TEST_EFFORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#if defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define TEST_HAS_THREAD_SANITIZER 1
#define TEST_EFFORT_DIVISOR 20
#elif __has_feature(address_sanitizer)
#define TEST_EFFORT_DIVISOR 4
#endif
#elif defined(__SANITIZE_THREAD__)
#define TEST_HAS_THREAD_SANITIZER 1
#define TEST_EFFORT_DIVISOR 20
#elif defined(__SANITIZE_ADDRESS__)
#define TEST_EFFORT_DIVISOR 4
#endif
#ifndef TEST_HAS_THREAD_SANITIZER
#define TEST_HAS_THREAD_SANITIZER 0
#endif
#ifndef TEST_EFFORT_DIVISOR
#define TEST_EFFORT_DIVISOR 1
#endif

/* Whether a tool completes each launch before the next and makes it slow. */
static inline bool test_is_serial(void) {
  const char *value = getenv("RONDO_TEST_SERIAL");
  return value != NULL && strcmp(value, "1") == 0;
}

static inline uint32_t test_effort_divisor(void) { return test_is_serial() ? 20 : TEST_EFFORT_DIVISOR; }

/* `count` without a sanitizer, otherwise fewer; at least one. */
static inline uint32_t test_effort(uint32_t count) {
  const uint32_t divisor = test_effort_divisor();
  return (count + divisor - 1) / divisor;
}

/* The distance between two points of failure that are tried. Every failure is tried in the build with asserts and
 * without sanitizers; the other builds try one of several. */
static inline size_t test_failure_step(void) {
#ifdef NDEBUG
  const bool is_asserted = false;
#else
  const bool is_asserted = true;
#endif
  if (test_effort_divisor() >= 20) return 7;
  if (test_effort_divisor() > 1) return 5;
  return is_asserted ? 1 : 3;
}

#endif
