/* SPDX-License-Identifier: MIT
 * Every allocation of host memory may fail while functions of a tree are made, warmed up, recorded, replayed, cloned
 * out, reset and destroyed (TR-15): the error is OUT_OF_MEMORY or the call does without, nothing is left, and the same
 * tree goes on.
 */
#include "fault/tree_work.h"
#include "support/test_effort.h"

/* False when the work makes fewer allocations than that. */
static bool run(size_t at, size_t *inout_heard) {
  static tree_work w;
  tree_work_open(&w, "cpu");
  atomic_store(&w.allocator.calls, 0);
  atomic_store(&w.allocator.fail_at, at);
  const rondo_status status = tree_do_all(&w);
  const bool has_failed = atomic_load(&w.allocator.calls) >= at;
  atomic_store(&w.allocator.fail_at, 0);
  if (status != RONDO_OK && status != RONDO_OUT_OF_MEMORY)
    fail_msg("allocation %zu: heard was %s: %s", at, rondo_status_name(status), rondo_last_error()->message);
  *inout_heard += status != RONDO_OK;
  if (has_failed) tree_assert_usable(&w);
  tree_work_close(&w, at);
  assert_true(test_allocator_is_clean(&w.allocator));
  return has_failed;
}

UNIT_TEST(test_tr15_an_allocation_fails) {
  size_t at = 1, heard = 0, count = 0;
  for (; run(at, &heard); at += test_failure_step()) count++;
  assert_true(count > 200 / test_failure_step());
  assert_true(heard > 20 / test_failure_step());
}
