/* SPDX-License-Identifier: MIT
 * Macros that define and register tests: TEST(test_gx1_kernels) { ... }. A program without a main function of its own
 * runs the tests of its file in their order.
 *
 *   TEST, TEST_WORKERS  a test with the fixture `t`: a device and a stream (rondo_test.h)
 *   DEVICE_TEST         a test without a fixture that needs the device under test
 *   UNIT_TEST           a test without a fixture that needs no device
 *   TEST_DEFINE         a test with a fixture of its own file: parameter, setup and teardown
 *
 * A program skips all its tests where one of them needs the device under test and that device cannot be opened.
 */
#ifndef RONDO_TESTS_SUPPORT_TEST_CASES_H
#define RONDO_TESTS_SUPPORT_TEST_CASES_H

/* cmocka.h requires these headers before it. */
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
/* Like test_run_registered, with a setup and teardown for the whole group, and without a device. */
int test_run_registered_in(CMFixtureFunction setup, CMFixtureFunction teardown);

#endif
