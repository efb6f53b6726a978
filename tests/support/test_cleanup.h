/* SPDX-License-Identifier: MIT
 * Objects that the teardown destroys if the test has not. For functions that create objects.
 */
#ifndef RONDO_TESTS_SUPPORT_TEST_CLEANUP_H
#define RONDO_TESTS_SUPPORT_TEST_CLEANUP_H

#include "support/rondo_test.h"

/* In the order of destruction; within a kind, newest first. */
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
  TEST_LEFT_OTHER, /* from test_leave */
  TEST_LEFT_STREAM,
  TEST_LEFT_GATE,
  TEST_LEFT_DEVICE,
  TEST_LEFT_KIND_COUNT
} test_left_kind;

/* Makes the teardown destroy the object. `device` is the device of words, otherwise NULL. */
void test_leave_kind(test_left_kind kind, void *object, rondo_device *device);

/* The same, for kinds of components, whose functions tests of the core are linked without (test_program.c,
 * test_session.c). */
void test_leave_with(test_left_kind kind, void *object, rondo_status (*destroy)(void *object));

/* Before an object is destroyed, takes it from the list; NULL if it is not in the list. After the destruction, an
 * object that refused it goes back into the list. After any other failure it is destroyed, as a stream is whose work
 * failed. */
typedef struct test_left test_left;
test_left *test_left_take(const void *object);
rondo_status test_left_settle(test_left *entry, rondo_status status);

/* Define test_destroy_<kind>: of kinds whose destruction may be refused, and of others. */
#define TEST_DESTROYS(kind)                                           \
  rondo_status test_destroy_##kind(rondo_##kind *object) {            \
    test_left *entry = test_left_take(object);                        \
    return test_left_settle(entry, (rondo_##kind##_destroy)(object)); \
  }
#define TEST_DESTROYS_ALWAYS(kind)                 \
  void test_destroy_##kind(rondo_##kind *object) { \
    test_left *entry = test_left_take(object);     \
    (rondo_##kind##_destroy)(object);              \
    (void)test_left_settle(entry, RONDO_OK);       \
  }

/* Returns true if the status is OK; otherwise prints what could not be destroyed. */
bool test_took_down(rondo_status status, const char *what);

#endif
