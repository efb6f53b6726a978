/* SPDX-License-Identifier: MIT
 * The table of allocations: a lookup finds the allocation that a linear search finds (B4), also if allocations overlap
 * or start at the same address, as those of graphs do.
 */
#include "memory/allocation_table.h"

#include "memory/memory_check.h"
#include "support/rondo_test.h"

enum { COUNT = 300, STEPS = 3000, SPAN = 4000 };

static uintptr_t end_of(const rondo_allocation *record) { return (uintptr_t)record->address + record->bytes; }

/* The highest end of the records that contain the address; 0 when none does. */
static uintptr_t scan(const rondo_allocation *records, const bool *entered, uintptr_t address) {
  uintptr_t farthest = 0;
  for (size_t i = 0; i < COUNT; i++) {
    const bool holds = entered[i] && (uintptr_t)records[i].address <= address && end_of(&records[i]) > address;
    if (holds && end_of(&records[i]) > farthest) farthest = end_of(&records[i]);
  }
  return farthest;
}

UNIT_TEST(test_b4_the_allocation_around_an_address) {
  rondo_allocator allocator;
  static rondo_allocation_table table;
  static rondo_allocation records[COUNT];
  bool entered[COUNT] = {false};
  uint64_t random = 7;
  assert_ok(rondo_allocator_resolve(NULL, &allocator));
  assert_ok(rondo_allocation_table_init(&allocator, &table));
  for (int step = 0; step < STEPS; step++) {
    const uint32_t at = test_random_below(&random, COUNT);
    if (entered[at]) {
      rondo_allocation_table_remove(&table, &records[at]);
    } else {
      char *const address = (char *)(uintptr_t)(SPAN + 8 * test_random_below(&random, SPAN / 8));
      records[at] = (rondo_allocation){.address = address, .bytes = 1 + test_random_below(&random, 100)};
      rondo_allocation_table_insert(&allocator, &table, &records[at]);
    }
    entered[at] = !entered[at];
    rondo_allocation_table_check(&table);
    const uintptr_t asked = SPAN - 10 + test_random_below(&random, SPAN + 200);
    const rondo_allocation *found = rondo_allocation_table_around(&table, (const void *)asked);
    assert_int_equal(found == NULL ? 0 : end_of(found), scan(records, entered, asked));
    assert_true(found == NULL || (uintptr_t)found->address <= asked);
  }
  for (size_t i = 0; i < COUNT; i++)
    if (entered[i]) rondo_allocation_table_remove(&table, &records[i]);
  rondo_allocation_table_deinit(&allocator, &table);
}

static bool count_one(void *owner, void *user) {
  (void)owner;
  (*(size_t *)user)++;
  return true;
}

/* Entering never fails: a record that could not be entered into the index is found by a scan. */
UNIT_TEST(test_b4_without_memory_for_the_index) {
  test_allocator allocator;
  static rondo_allocation_table table;
  rondo_allocation records[] = {
      {.address = (char *)(uintptr_t)SPAN, .bytes = 100},
      {.address = (char *)(uintptr_t)(SPAN + 50), .bytes = 20},
  };
  size_t around = 0, all = 0;
  test_allocator_init(&allocator);
  assert_ok(rondo_allocation_table_init(&allocator.table, &table));
  allocator.fail_at = allocator.calls + 1;
  allocator.fail_on = true;
  for (size_t i = 0; i < 2; i++) rondo_allocation_table_insert(&allocator.table, &table, &records[i]);
  rondo_allocation_table_check(&table);
  assert_ptr_equal(rondo_allocation_table_around(&table, (void *)(uintptr_t)(SPAN + 60)), &records[0]);
  assert_null(rondo_allocation_table_around(&table, (void *)(uintptr_t)(SPAN + 100)));
  assert_null(rondo_allocation_table_around(&table, NULL));
  rondo_allocation_table_visit_around(&table, (void *)(uintptr_t)(SPAN + 60), count_one, &around);
  rondo_allocation_table_visit(&table, count_one, &all);
  assert_int_equal(around, 2);
  assert_int_equal(all, 2);
  for (size_t i = 0; i < 2; i++) rondo_allocation_table_remove(&table, &records[i]);
  rondo_allocation_table_deinit(&allocator.table, &table);
  assert_int_equal(allocator.live, 0);
}
