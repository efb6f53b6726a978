/* SPDX-License-Identifier: MIT
 * Objects that a test has not destroyed: the teardown does. For functions that make objects.
 */
#ifndef RONDO_TESTS_SUPPORT_TEST_CLEANUP_H
#define RONDO_TESTS_SUPPORT_TEST_CLEANUP_H

#include "support/rondo_test.h"

/* In the order in which they are destroyed; of a kind, the newest first. */
typedef enum test_left_kind {
  TEST_LEFT_SESSION,
  TEST_LEFT_TREE,
  TEST_LEFT_RECORDING,
  TEST_LEFT_COMPILED,
  TEST_LEFT_DIVIDED,
  TEST_LEFT_EXECUTOR,
  TEST_LEFT_PROGRAM,
  TEST_LEFT_EXEC,
  TEST_LEFT_GRAPH,
  TEST_LEFT_EVENT,
  TEST_LEFT_GENERATOR,
  TEST_LEFT_KERNEL,
  TEST_LEFT_WORDS,
  TEST_LEFT_OTHER, /* of test_leave */
  TEST_LEFT_STREAM,
  TEST_LEFT_GATE,
  TEST_LEFT_DEVICE,
  TEST_LEFT_KIND_COUNT
} test_left_kind;

/* Leaves the object to the teardown; `device` is that of words, else NULL. */
void test_leave_kind(test_left_kind kind, void *object, rondo_device *device);

/* True when OK; else says what could not be taken down. */
bool test_took_down(rondo_status status, const char *what);

#endif
