/* SPDX-License-Identifier: MIT
 * The checks of a tree and of its path: they pass after each call of a sequence, and find faults.
 */
#include "support/test_assertion.h"
#include "support/test_tree.h"
#include "tree/tree.h"
#include "tree/tree_check.h"

static void check(rondo_tree *tree) {
  assert_ok(rondo_tree_enter(tree, "check"));
  rondo_path_check(tree);
  rondo_tree_check(tree);
  rondo_tree_leave(tree);
}

static void check_wrong_count(void *tree) {
  ((rondo_tree *)tree)->info.recordings++;
  check(tree);
}

static void check_a_wrong_parent(void *tree) {
  rondo_tree *of = tree;
  of->last->parent = of->last;
  check(of);
}

/* rondo_tree_check checks the path as well, so this calls the path's own check. */
static void check_a_lost_output(void *tree) {
  ((rondo_tree *)tree)->live[0] = 0;
  rondo_path_check(tree);
}

/* Two functions, the second on the output of the first, with as many words as the round asks. Each step is run eagerly,
 * recorded and replayed. */
static void run_steps(test_fixture *t, rondo_tree *tree, rondo_function *f, rondo_function *g) {
  const uint32_t *words = test_counting_words(t, 32, 0);
  for (size_t round = 0; round < 8; round++) {
    assert_ok(rondo_tree_mark_step(tree));
    check(tree);
    rondo_buffer *first = test_call_words(t, f, words, round % 2 == 0 ? 32 : 16);
    check(tree);
    rondo_buffer *second = test_call_buffer(t, g, first);
    check(tree);
    rondo_buffer_release(first);
    check(tree);
    test_assert_buffer(t, second, 17, 15);
    rondo_buffer_release(second);
    check(tree);
  }
}

TREE_TEST(test_the_checks_of_a_tree) {
  test_work triple = {.fixture = t, .factor = 3, .term = 3}, fivefold = {.fixture = t, .factor = 5, .term = 2};
  rondo_tree *tree = test_tree(t, NULL);
  rondo_function *f = test_tree_function(tree, "f", RONDO_INPUT_MOVING, &triple);
  rondo_function *g = test_tree_function(tree, "g", RONDO_INPUT_MOVING, &fivefold);
  check(tree);
  run_steps(t, tree, f, g);
  assert_int_equal(test_tree_info(tree).recordings, 4);
  rondo_buffer *out = test_call_words(t, f, test_counting_words(t, 32, 0), 32);
  assert_int_equal(test_tree_info(tree).live_outputs, 1);
  test_assertion_fails(check_wrong_count, tree, "tree->info.recordings == count");
  test_assertion_fails(check_a_wrong_parent, tree, "at->parent == parent");
  test_assertion_fails(check_a_lost_output, tree, "is_live == (holder != NULL)");
  rondo_buffer_release(out);
  check(tree);
}
