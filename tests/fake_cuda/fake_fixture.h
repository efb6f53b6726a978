/* SPDX-License-Identifier: MIT
 * The fixture of rondo_test.h on the fake CUDA driver, for tests of the driver calls that the library makes. The setup
 * resets the driver. The teardown asserts that nothing was misused and nothing is left.
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

static const rondo_grid one_block = {1, 1, 1};

/* Adds a kernel that writes the value to the word. */
static inline rondo_node add_set(test_fixture *t, rondo_graph *graph, const rondo_node *before, size_t count,
                                 uint32_t value, uint32_t *at) {
  rondo_node node = {0};
  assert_ok(rondo_graph_add_kernel(graph, before, count, test_kernel(t, TEST_KERNEL_SET), one_block,
                                   RONDO_ARGS(&value, &at), &node));
  return node;
}

static inline void launch_and_expect(test_fixture *t, rondo_exec *exec, const uint32_t *word, uint32_t value) {
  test_launch(t, exec);
  assert_int_equal(test_word(t, word), value);
}

#define FAKE_TEST(name) TEST_DEFINE(name, test_fixture *t, fake_setup, fake_teardown)

#endif
