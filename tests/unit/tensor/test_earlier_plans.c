/* SPDX-License-Identifier: MIT
 * The list of earlier plans (PR-6): plans are found by their structure and replaced, the oldest are dropped beyond the
 * limit of bytes, and nothing is left when an allocation fails.
 */
#include "support/rondo_test.h"
#include "tensor/compile/earlier_plans.h"

static rondo_earlier_plan make_plan(const rondo_allocator *allocator, uint64_t structure, size_t count) {
  rondo_earlier_plan plan = {.structure = structure, .positions = 2, .count = count, .width = (uint32_t)count};
  assert_ok(rondo_allocate_items(allocator, count, sizeof *plan.offsets, &plan.offsets));
  assert_ok(rondo_allocate_items(allocator, plan.positions, sizeof *plan.order, &plan.order));
  assert_ok(rondo_allocate_items(allocator, plan.positions, sizeof *plan.joined, &plan.joined));
  assert_ok(rondo_edges_make(allocator, plan.positions, 1, &plan.before));
  return plan;
}

ALLOCATOR_TEST(test_plans_are_found_and_replaced) {
  rondo_earlier_plans plans = {.allocator = counting->table};
  for (size_t i = 0; i < 3; i++) {
    rondo_earlier_plan plan = make_plan(&counting->table, 10 + i, 4 + i);
    assert_ok(rondo_earlier_plans_keep(&plans, &plan));
    assert_null(plan.offsets);
  }
  assert_null(rondo_earlier_plans_find(&plans, 9));
  assert_int_equal(rondo_earlier_plans_find(&plans, 11)->count, 5);
  rondo_earlier_plan other = make_plan(&counting->table, 11, 7);
  assert_ok(rondo_earlier_plans_keep(&plans, &other));
  assert_int_equal(rondo_earlier_plans_find(&plans, 11)->count, 7);
  assert_int_equal(plans.items.count, 3);
  rondo_earlier_plans_free(&plans);
}

ALLOCATOR_TEST(test_the_oldest_plans_are_dropped) {
  const size_t third = RONDO_EARLIER_PLANS_BYTES / sizeof(size_t) / 3;
  rondo_earlier_plans plans = {.allocator = counting->table};
  for (uint64_t i = 0; i < 4; i++) {
    rondo_earlier_plan plan = make_plan(&counting->table, i, third);
    assert_ok(rondo_earlier_plans_keep(&plans, &plan));
    assert_true(plans.bytes <= RONDO_EARLIER_PLANS_BYTES);
  }
  assert_null(rondo_earlier_plans_find(&plans, 0));
  assert_non_null(rondo_earlier_plans_find(&plans, 3));
  rondo_earlier_plan large = make_plan(&counting->table, 9, 4 * third);
  assert_ok(rondo_earlier_plans_keep(&plans, &large));
  assert_null(rondo_earlier_plans_find(&plans, 9));
  assert_null(large.offsets);
  rondo_earlier_plans_free(&plans);
}

ALLOCATOR_TEST(test_a_plan_that_cannot_be_kept_is_freed) {
  rondo_earlier_plans plans = {.allocator = counting->table};
  rondo_earlier_plan plan = make_plan(&counting->table, 1, 3);
  atomic_store(&counting->fail_at, atomic_load(&counting->calls) + 1);
  assert_fails(rondo_earlier_plans_keep(&plans, &plan), RONDO_OUT_OF_MEMORY);
  assert_null(plan.offsets);
  rondo_earlier_plans_free(&plans);
}
