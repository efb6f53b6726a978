/* SPDX-License-Identifier: MIT
 * The fixture of rondo_test.h on the fake CUDA driver, for tests that look at what the library asks of it: the driver
 * begins anew, and at the end nothing was misused and nothing is left.
 */
#ifndef RONDO_TESTS_FAKE_CUDA_FAKE_FIXTURE_H
#define RONDO_TESTS_FAKE_CUDA_FAKE_FIXTURE_H

#include "fake_cuda/fake_cuda.h"
#include "support/rondo_test.h"

static const fake_cuda_control *fake; /* of the running test */

static inline int fake_setup(void **state) {
  fake = fake_cuda_get();
  assert_non_null(fake);
  fake->reset();
  return test_setup(state);
}

static inline int fake_check(void) {
  char text[2048];
  fake->list_violations(text, sizeof text);
  if (fake->violations() > 0) print_error("misuse:\n%s", text);
  fake->list(text, sizeof text);
  if (fake->live(FAKE_CUDA_ANY) > 0) print_error("left:\n%s", text);
  return fake->violations() > 0 || fake->live(FAKE_CUDA_ANY) > 0 ? -1 : 0;
}

static inline int fake_teardown(void **state) {
  const int code = test_teardown(state);
  return fake_check() == 0 ? code : -1;
}

#define FAKE_TEST(name) TEST_DEFINE(name, test_fixture *t, fake_setup, fake_teardown)
#define fake_case(function) cmocka_unit_test_setup_teardown(function, fake_setup, fake_teardown)

#endif
