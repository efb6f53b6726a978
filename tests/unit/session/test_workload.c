/* SPDX-License-Identifier: MIT
 * The workload for which sizes are chosen (SE-7): single requests, and several together, whose weight falls with their
 * number, within the limits of rows and requests in a batch.
 */
#include "session/sizing/workload.h"

#include "support/rondo_test.h"
#include "support/test_allocator.h"

static rondo_workload make(const size_t *history, size_t count, size_t max_requests, size_t max_rows) {
  const rondo_allocator allocator = rondo_allocator_default();
  const rondo_workload_input input = {history, count, max_requests, max_rows};
  rondo_workload workload;
  assert_ok(rondo_workload_make(&allocator, &input, &workload));
  return workload;
}

static void assert_ascending(const rondo_workload *workload) {
  for (size_t i = 0; i < workload->count; i++) {
    assert_true(workload->items[i].requests > 0);
    if (i > 0) assert_true(workload->items[i].rows > workload->items[i - 1].rows);
  }
}

UNIT_TEST(test_se7_requests_by_themselves) {
  const size_t history[] = {3, 3, 5, 8, 8, 8};
  for (size_t alone = 0; alone < 2; alone++) { /* limited to one request, by number or by rows */
    rondo_workload workload = make(history, 6, alone == 0 ? 1 : 64, alone == 0 ? 100 : 5);
    const uint64_t unit = workload.items[1].requests;
    assert_ascending(&workload);
    assert_int_equal(workload.count, 3);
    assert_int_equal(workload.alone, 3);
    assert_int_equal(workload.items[0].rows, 3);
    assert_int_equal(workload.items[0].requests, 2 * unit);
    assert_int_equal(workload.items[2].rows, 8);
    assert_int_equal(workload.items[2].requests, 3 * unit);
    rondo_workload_free(&workload);
  }
}

UNIT_TEST(test_se7_requests_together) {
  const size_t history[] = {10, 10, 10};
  rondo_workload workload = make(history, 3, 4, 35); /* three requests fit */
  assert_ascending(&workload);
  assert_int_equal(workload.count, 3);
  assert_int_equal(workload.alone, 1);
  for (size_t k = 1; k <= 3; k++) assert_int_equal(workload.items[k - 1].rows, 10 * k);
  const double one = (double)workload.items[0].requests;
  assert_float_equal((float)((double)workload.items[1].requests / one), 0.1768F, 1e-3F); /* 2^-2.5 */
  assert_float_equal((float)((double)workload.items[2].requests / one), 0.0642F, 1e-3F);
  rondo_workload_free(&workload);
  workload = make(history, 3, 2, 35);
  assert_int_equal(workload.count, 2);
  rondo_workload_free(&workload);
}

/* It contains all sums of some requests, and none above the limit. */
UNIT_TEST(test_se7_sums_of_different_requests) {
  const size_t history[] = {1, 4, 9};
  rondo_workload workload = make(history, 3, 64, 18), again = make(history, 3, 64, 18);
  assert_ascending(&workload);
  assert_int_equal(workload.count, 18);
  assert_int_equal(workload.alone, 9);
  assert_int_equal(again.count, workload.count);
  assert_memory_equal(again.items, workload.items, workload.count * sizeof *workload.items);
  rondo_workload_free(&again);
  rondo_workload_free(&workload);
  rondo_workload_free(&workload);
}

UNIT_TEST(test_se7_no_memory_for_demands) {
  const size_t history[] = {1, 4, 9};
  const rondo_workload_input input = {history, 3, 64, 18};
  test_allocator allocator;
  rondo_workload workload;
  test_allocator_init(&allocator);
  atomic_store(&allocator.fail_at, 1);
  assert_error(rondo_workload_make(&allocator.table, &input, &workload), RONDO_OUT_OF_MEMORY,
               RONDO_REASON_ALLOCATION_FAILED);
  rondo_workload_free(&workload);
  assert_int_equal(atomic_load(&allocator.live), 0);
}
