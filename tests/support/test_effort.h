/* SPDX-License-Identifier: MIT
 * How much a test tries of what one thread computes, or several do again and again: cases drawn at random, rounds,
 * steps of a budget. A sanitizer makes each many times as long, and what it looks for shows in the first ones. The
 * assertions are the same everywhere; what they say of all cases together is said of so many. A GPU's sanitizers look
 * at programs as they are built: RONDO_TEST_SERIAL=1 says that one does.
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

/* Whether each launch runs to its end before the next, and takes long. */
static inline bool test_is_serial(void) {
  const char *value = getenv("RONDO_TEST_SERIAL");
  return value != NULL && strcmp(value, "1") == 0;
}

static inline uint32_t test_effort_divisor(void) { return test_is_serial() ? 20 : TEST_EFFORT_DIVISOR; }

/* So many without a sanitizer; at least one. */
static inline uint32_t test_effort(uint32_t count) {
  const uint32_t divisor = test_effort_divisor();
  return (count + divisor - 1) / divisor;
}

/* Of failures that are tried one after another, the next one's distance: each comes in the build with asserts and
 * without sanitizers; the other builds look for what one in a few shows as well. */
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
