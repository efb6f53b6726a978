/* SPDX-License-Identifier: MIT
 * What sizes are chosen for (SE-7): requests as they came, and several of them together, of which there are the fewer
 * the more there are of them, within the rows and requests that may run together.
 */
#include "session/sizing/demand.h"

#include "support/rondo_test.h"
#include "support/test_allocator.h"

static rondo_demands make(const size_t *history, size_t count, size_t most_requests, size_t most_rows) {
  const rondo_allocator allocator = rondo_allocator_default();
  const rondo_demands_input input = {history, count, most_requests, most_rows};
  rondo_demands demands;
  assert_ok(rondo_demands_make(&allocator, &input, &demands));
  return demands;
}

static void assert_ascending(const rondo_demands *demands) {
  for (size_t i = 0; i < demands->count; i++) {
    assert_true(demands->items[i].requests > 0);
    if (i > 0) assert_true(demands->items[i].rows > demands->items[i - 1].rows);
  }
}

static void test_se7_requests_by_themselves(void **state) {
  const size_t history[] = {3, 3, 5, 8, 8, 8};
  (void)state;
  for (size_t alone = 0; alone < 2; alone++) { /* one at a time; no room for two */
    rondo_demands demands = make(history, 6, alone == 0 ? 1 : 64, alone == 0 ? 100 : 5);
    const uint64_t unit = demands.items[1].requests;
    assert_ascending(&demands);
    assert_int_equal(demands.count, 3);
    assert_int_equal(demands.alone, 3);
    assert_int_equal(demands.items[0].rows, 3);
    assert_int_equal(demands.items[0].requests, 2 * unit);
    assert_int_equal(demands.items[2].rows, 8);
    assert_int_equal(demands.items[2].requests, 3 * unit);
    rondo_demands_free(&demands);
  }
}

static void test_se7_requests_together(void **state) {
  const size_t history[] = {10, 10, 10};
  (void)state;
  rondo_demands demands = make(history, 3, 4, 35); /* there is room for three */
  assert_ascending(&demands);
  assert_int_equal(demands.count, 3);
  assert_int_equal(demands.alone, 1);
  for (size_t k = 1; k <= 3; k++) assert_int_equal(demands.items[k - 1].rows, 10 * k);
  const double one = (double)demands.items[0].requests;
  assert_float_equal((float)((double)demands.items[1].requests / one), 0.1768F, 1e-3F); /* 2^-2.5 */
  assert_float_equal((float)((double)demands.items[2].requests / one), 0.0642F, 1e-3F);
  rondo_demands_free(&demands);
  demands = make(history, 3, 2, 35);
  assert_int_equal(demands.count, 2);
  rondo_demands_free(&demands);
}

/* All sums of some requests are among them, and none beyond the room. */
static void test_se7_sums_of_different_requests(void **state) {
  const size_t history[] = {1, 4, 9};
  (void)state;
  rondo_demands demands = make(history, 3, 64, 18), again = make(history, 3, 64, 18);
  assert_ascending(&demands);
  assert_int_equal(demands.count, 18);
  assert_int_equal(demands.alone, 9);
  assert_int_equal(again.count, demands.count);
  assert_memory_equal(again.items, demands.items, demands.count * sizeof *demands.items);
  rondo_demands_free(&again);
  rondo_demands_free(&demands);
  rondo_demands_free(&demands);
}

static void test_se7_no_memory_for_demands(void **state) {
  const size_t history[] = {1, 4, 9};
  const rondo_demands_input input = {history, 3, 64, 18};
  test_allocator allocator;
  rondo_demands demands;
  (void)state;
  test_allocator_init(&allocator);
  atomic_store(&allocator.fail_at, 1);
  assert_error(rondo_demands_make(&allocator.table, &input, &demands), RONDO_OUT_OF_MEMORY,
               RONDO_REASON_ALLOCATION_FAILED);
  rondo_demands_free(&demands);
  assert_int_equal(atomic_load(&allocator.live), 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_se7_requests_by_themselves),
      cmocka_unit_test(test_se7_requests_together),
      cmocka_unit_test(test_se7_sums_of_different_requests),
      cmocka_unit_test(test_se7_no_memory_for_demands),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
