/* SPDX-License-Identifier: MIT
 * The tests that a program has defined.
 */
#include "support/test_cases.h"

#include <assert.h>

#include "support/rondo_test.h"

/* The tests of the program's file, by line. They register before main, in an order that the compiler chooses. */
static struct {
  struct CMUnitTest tests[256];
  int lines[256];
  size_t count;
  bool needs_device;
} registered;

void test_register(const struct CMUnitTest *test, int line, bool needs_device) {
  size_t at = registered.count++;
  assert(at < sizeof registered.tests / sizeof registered.tests[0]);
  for (; at > 0 && registered.lines[at - 1] > line; at--) {
    registered.tests[at] = registered.tests[at - 1];
    registered.lines[at] = registered.lines[at - 1];
  }
  registered.tests[at] = *test;
  registered.lines[at] = line;
  registered.needs_device |= needs_device;
}

int test_run_registered(void) {
  return test_run_group("tests", registered.tests, registered.count, registered.needs_device);
}

int test_run_registered_in(CMFixtureFunction setup, CMFixtureFunction teardown) {
  return _cmocka_run_group_tests("tests", registered.tests, registered.count, setup, teardown);
}
