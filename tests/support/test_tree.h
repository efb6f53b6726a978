/* SPDX-License-Identifier: MIT
 * Support for tests of trees: a tree on the fixture's device, functions whose results show which work ran on which
 * contents, and short forms of calls.
 */
#ifndef RONDO_TESTS_SUPPORT_TEST_TREE_H
#define RONDO_TESTS_SUPPORT_TEST_TREE_H

#include "support/rondo_test.h"

/* The work of a body: output 0 = input 0 * factor + term for each word, through temporary memory. */
typedef struct test_work {
  test_fixture *fixture;
  uint32_t factor, term;
  uint32_t runs; /* of the body */
} test_work;

/* Like test_teardown. Also checks that the device's memory is as it was: nothing is allocated, no arena has memory, and
 * nothing is cached. */
int test_tree_teardown(void **state);
#define TREE_TEST(name) TEST_DEFINE(name, test_fixture *t, test_setup, test_tree_teardown)

rondo_tree *test_tree(test_fixture *fixture, const rondo_tree_options *options); /* NULL: default options */
void test_tree_destroy(rondo_tree *tree);

/* A function with test_body_affine and one input of this kind. */
rondo_function *test_tree_function(rondo_tree *tree, const char *name, uint32_t input, test_work *work);

/* For bodies: copies the words of input `index` into new output `output` and returns it. Asserts. */
uint32_t *test_body_copy(rondo_call *call, size_t index, size_t output);
rondo_status test_body_affine(rondo_call *call, void *work);

/* Words of the device that count up from `first`; at most 256. */
uint32_t *test_counting_words(test_fixture *fixture, size_t count, uint32_t first);

/* Calls with one input and one output. The caller releases the buffer. */
rondo_buffer *test_call_words(test_fixture *fixture, rondo_function *function, const uint32_t *words, size_t count);
rondo_buffer *test_call_buffer(test_fixture *fixture, rondo_function *function, rondo_buffer *buffer);

/* The buffer's words count up from `first` by `step`. */
void test_assert_buffer(test_fixture *fixture, const rondo_buffer *buffer, uint32_t first, uint32_t step);

/* A tree, a function "f" with one input, and words that count up from 0 for it. The body gives input * 3 + 1, and from
 * run `from_run` (1 unless the test sets another) on does `more` as well, where that is not NULL. */
enum { TEST_CASE_WORDS = 32 };
typedef struct test_tree_case {
  test_fixture *t;
  rondo_tree *tree;
  rondo_function *function;
  uint32_t *words;
  test_work work;
  rondo_status (*more)(rondo_call *call, struct test_tree_case *c);
  uint32_t from_run;
  void *user;     /* for the test's own use */
  uint32_t count; /* likewise */
} test_tree_case;
typedef rondo_status (*test_case_more)(rondo_call *call, test_tree_case *c);
/* Options may be NULL. A body of theirs gets the case as its user; an input is moving unless they say otherwise. */
void test_tree_case_make(test_tree_case *c, test_fixture *fixture, const rondo_tree_options *tree,
                         const rondo_function_options *function, test_case_more more);
#define TEST_TREE_OPTIONS(...) (&(const rondo_tree_options){RONDO_TREE_OPTIONS_INIT, __VA_ARGS__})
#define TEST_FUNCTION_OPTIONS(...) (&(const rondo_function_options){RONDO_FUNCTION_OPTIONS_INIT, __VA_ARGS__})
rondo_status test_tree_case_try(const test_tree_case *c, rondo_buffer **out); /* a call with the words */
void test_tree_case_call(const test_tree_case *c);                            /* its result is input * 3 + 1 */

/* The message of the tree's last call has this text. */
void test_assert_said(rondo_tree *tree, const char *text);

rondo_tree_info test_tree_info(rondo_tree *tree);
rondo_function_info test_function_info(const rondo_function *function);
rondo_call_info test_last_call(rondo_tree *tree);

/* The outcome of the tree's last call. */
#define assert_outcome(tree, expected) assert_int_equal(test_last_call(tree).outcome, (expected))
#define assert_skip(tree, expected)                                             \
  do {                                                                          \
    assert_int_equal(test_last_call(tree).outcome, RONDO_CALL_EAGER);           \
    assert_string_equal(rondo_skip_name(test_last_call(tree).skip), #expected); \
  } while (0)

#endif
