/* SPDX-License-Identifier: MIT
 * Defining tests. TEST(test_gx1_kernels) { ... } defines a test, and the program runs it: a program without a main of
 * its own runs all tests of its file in their order.
 *
 *   TEST, TEST_WORKERS  a fixture with a device and a stream, which is `t` (rondo_test.h)
 *   DEVICE_TEST         no fixture; left out, as the other tests of its file, where the device under test cannot be
 *                       opened
 *   UNIT_TEST           neither
 *   TEST_DEFINE         for a fixture of the file's own: its parameter, its setup and its teardown
 */
#ifndef RONDO_TESTS_SUPPORT_TEST_CASES_H
#define RONDO_TESTS_SUPPORT_TEST_CASES_H

/* cmocka.h wants these before it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#define DEVICE_TEST(name) TEST_DEFINE(name, void *no_fixture, NULL, NULL)
#define UNIT_TEST(name) TEST_REGISTER(name, void *no_fixture, NULL, NULL, false)
#define TEST_DEFINE(name, fixture, setup, teardown) TEST_REGISTER(name, fixture, setup, teardown, true)

#define TEST_REGISTER(name, fixture, setup, teardown, needs_device)            \
  static void name(fixture);                                                   \
  static void name##_run(void **state) { name(*state); }                       \
  __attribute__((constructor)) static void name##_register(void) {             \
    const struct CMUnitTest test = {#name, name##_run, setup, teardown, NULL}; \
    test_register(&test, __LINE__, needs_device);                              \
  }                                                                            \
  static void name(__attribute__((unused)) fixture)
void test_register(const struct CMUnitTest *test, int line, bool needs_device);
int test_run_registered(void);
/* The same where all tests of the program need one setup and teardown, and no device. */
int test_run_registered_in(CMFixtureFunction setup, CMFixtureFunction teardown);

#endif
