/* SPDX-License-Identifier: MIT
 * The table of handles: every inserted handle is found, at any size of the table, and no other.
 */
/* cmocka.h wants these before it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "exec/capture/handle_map.h"
#include "support/test_allocator.h"

UNIT_TEST(test_what_was_put_is_found) {
  enum { COUNT = 5000 };
  test_allocator allocator;
  rondo_handle_map map = {0};
  uint64_t value = 1;
  test_allocator_init(&allocator);
  assert_false(rondo_handle_map_get(&map, 5, &value));
  assert_int_equal(value, 0);
  for (uint64_t i = 1; i <= COUNT; i++) {
    assert_int_equal(rondo_handle_map_reserve(&allocator.table, &map, 1), RONDO_OK);
    rondo_handle_map_put(&map, i << 12, i);
  }
  for (uint64_t i = 1; i <= COUNT; i++) {
    assert_true(rondo_handle_map_get(&map, i << 12, &value));
    assert_int_equal(value, i);
    assert_false(rondo_handle_map_get(&map, (i << 12) + 1, &value));
  }
  assert_int_equal(map.count, COUNT);
  rondo_handle_map_free(&allocator.table, &map);
  assert_true(test_allocator_is_clean(&allocator));
}

UNIT_TEST(test_growing_fails_without_harm) {
  test_allocator allocator;
  rondo_handle_map map = {0};
  uint64_t value, count = 0;
  test_allocator_init(&allocator);
  allocator.fail_at = 2;
  while (rondo_handle_map_reserve(&allocator.table, &map, 1) == RONDO_OK) {
    rondo_handle_map_put(&map, count + 1, count);
    count++;
  }
  assert_true(count > 10);
  for (uint64_t i = 0; i < count; i++) {
    assert_true(rondo_handle_map_get(&map, i + 1, &value));
    assert_int_equal(value, i);
  }
  assert_int_equal(rondo_handle_map_reserve(&allocator.table, &map, 1), RONDO_OK);
  rondo_handle_map_free(&allocator.table, &map);
  assert_int_equal(allocator.live, 0);
}
