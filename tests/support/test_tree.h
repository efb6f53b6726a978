/* SPDX-License-Identifier: MIT
 * What the tests of trees share: a tree on the fixture's device, functions whose results show which work ran on which
 * contents, and short forms of calls.
 */
#ifndef RONDO_TESTS_SUPPORT_TEST_TREE_H
#define RONDO_TESTS_SUPPORT_TEST_TREE_H

#include "support/rondo_test.h"

/* What the body of a function does: output 0 = input 0 * factor + term, word by word, by way of scratch memory. */
typedef struct test_work {
  test_fixture *fixture;
  uint32_t factor, term;
  uint32_t runs; /* of the body */
} test_work;

/* As test_teardown, which also proves that the device's memory is as if nothing had been: nothing allocated, nothing
 * after an arena, nothing kept for later. */
int test_tree_teardown(void **state);
#define TREE_TEST(name) TEST_DEFINE(name, test_fixture *t, test_setup, test_tree_teardown)

rondo_tree *test_tree(test_fixture *fixture, const rondo_tree_options *options); /* NULL: the defaults */
void test_tree_destroy(rondo_tree *tree);

/* A function with that body and one input of this kind. */
rondo_function *test_tree_function(rondo_tree *tree, const char *name, uint32_t input, test_work *work);

/* A body's parts: copies input `index`'s words into new output `output`, and returns it; failing asserts. */
uint32_t *test_body_copy(rondo_call *call, size_t index, size_t output);
rondo_status test_body_affine(rondo_call *call, void *work);

/* Calls with one input and one output; the buffer is the caller's. */
rondo_buffer *test_call_words(test_fixture *fixture, rondo_function *function, const uint32_t *words, size_t count);
rondo_buffer *test_call_buffer(test_fixture *fixture, rondo_function *function, rondo_buffer *buffer);

/* The buffer's words are `count` times the value, or counting up from it by `step`. */
void test_assert_buffer(test_fixture *fixture, const rondo_buffer *buffer, uint32_t first, uint32_t step);

rondo_tree_info test_tree_info(rondo_tree *tree);
rondo_function_info test_function_info(const rondo_function *function);
rondo_call_info test_last_call(rondo_tree *tree);

/* How the tree's last call went. */
#define assert_outcome(tree, expected) assert_int_equal(test_last_call(tree).outcome, (expected))
#define assert_skip(tree, expected)                                             \
  do {                                                                          \
    assert_int_equal(test_last_call(tree).outcome, RONDO_CALL_EAGER);           \
    assert_string_equal(rondo_skip_name(test_last_call(tree).skip), #expected); \
  } while (0)

#endif
