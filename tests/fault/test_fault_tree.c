/* SPDX-License-Identifier: MIT
 * Lets every host allocation fail while functions of a tree are created, warmed up, recorded, replayed, cloned, reset
 * and destroyed (TR-15). Each call returns OUT_OF_MEMORY or works without the allocation, nothing is left, and the tree
 * remains usable.
 */
#include "fault/tree_work.h"

static bool run(size_t at, size_t *inout_errors) {
  static tree_work w;
  tree_work_open(&w, "cpu");
  tree_fail_allocation(&w, at);
  const bool has_failed = tree_end_failing(&w, at, tree_do_all(&w), inout_errors);
  if (has_failed) tree_assert_usable(&w);
  tree_work_close(&w, at);
  return has_failed;
}

UNIT_TEST(test_tr15_an_allocation_fails) { tree_sweep(run, 200, 20); }
