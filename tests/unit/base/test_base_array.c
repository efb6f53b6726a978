/* SPDX-License-Identifier: MIT
 * Growing arrays.
 */

#include "base/array.h"
#include "base/error.h"
#include "support/rondo_test.h"

typedef struct triple {
  uint32_t a;
  double b;
  char c;
} triple;

ALLOCATOR_TEST(test_push_keeps_the_items) {
  RONDO_ARRAY(triple) array = {0};
  for (uint32_t i = 0; i < 1000; i++) {
    const triple value = {.a = i, .b = i / 3.0, .c = (char)(i % 100)};
    assert_ok(rondo_array_push(&counting->table, &array, &value));
  }
  assert_int_equal(array.count, 1000);
  assert_true(array.capacity >= 1000);
  for (uint32_t i = 0; i < 1000; i++) {
    assert_int_equal(array.items[i].a, i);
    assert_true(array.items[i].b == i / 3.0);
    assert_int_equal(array.items[i].c, i % 100);
  }
  assert_true(counting->calls < 12); /* capacity doubles */
  rondo_array_free(&counting->table, &array);
  assert_null(array.items);
  assert_int_equal(array.count + array.capacity, 0);
}

UNIT_TEST(test_push_takes_one_of_its_own) {
  const rondo_allocator allocator = rondo_allocator_default();
  RONDO_ARRAY(uint64_t) array = {0};
  const uint64_t first = 42;
  assert_ok(rondo_array_push(&allocator, &array, &first));
  for (size_t i = 0; i < 100; i++) assert_ok(rondo_array_push(&allocator, &array, &array.items[array.count - 1]));
  for (size_t i = 0; i < array.count; i++) assert_int_equal(array.items[i], 42);
  rondo_array_free(&allocator, &array);
}

ALLOCATOR_TEST(test_reserve) {
  RONDO_ARRAY(uint16_t) array = {0};
  assert_ok(rondo_array_reserve(&counting->table, &array, array.count));
  assert_null(array.items);
  assert_ok(rondo_array_reserve(&counting->table, &array, 100));
  assert_int_equal(array.count, 0);
  const uint16_t *items = array.items;
  const size_t calls = counting->calls;
  for (uint16_t i = 0; i < 100; i++) assert_ok(rondo_array_push(&counting->table, &array, &i));
  assert_ok(rondo_array_reserve(&counting->table, &array, 50));
  assert_ptr_equal(array.items, items);
  assert_int_equal(counting->calls, calls);
  rondo_array_free(&counting->table, &array);
  rondo_array_free(&counting->table, &array);
}

UNIT_TEST(test_a_grown_array_is_zero_after_its_items) {
  const rondo_allocator allocator = rondo_allocator_default();
  RONDO_ARRAY(uint32_t) array = {0};
  for (uint32_t i = 1; i <= 8; i++) assert_ok(rondo_array_push(&allocator, &array, &i));
  assert_ok(rondo_array_reserve(&allocator, &array, 1000));
  for (uint32_t i = 0; i < array.capacity; i++) assert_int_equal(array.items[i], i < 8 ? i + 1 : 0);
  rondo_array_free(&allocator, &array);
}

ALLOCATOR_TEST(test_copy) {
  RONDO_ARRAY(uint32_t) array = {0}, copy = {0}, none = {0};
  for (uint32_t i = 0; i < 9; i++) assert_ok(rondo_array_push(&counting->table, &array, &i));
  assert_ok(rondo_array_copy(&counting->table, &copy, &none));
  assert_null(copy.items);
  assert_ok(rondo_array_copy(&counting->table, &copy, &array));
  assert_int_equal(copy.count, 9);
  assert_int_equal(copy.capacity, 9);
  for (uint32_t i = 0; i < 9; i++) assert_int_equal(copy.items[i], i);
  assert_ok(rondo_array_push(&counting->table, &copy, &copy.items[4]));
  assert_int_equal(copy.items[9], 4);
  assert_int_equal(array.count, 9);
  rondo_array_free(&counting->table, &array);
  rondo_array_free(&counting->table, &copy);
}

UNIT_TEST(test_absurd_reserve_changes_nothing) {
  const rondo_allocator allocator = rondo_allocator_default();
  RONDO_ARRAY(uint64_t) array = {0};
  const uint64_t value = 9;
  assert_ok(rondo_array_push(&allocator, &array, &value));
  const uint64_t *items = array.items;
  assert_int_equal(rondo_array_reserve(&allocator, &array, SIZE_MAX), RONDO_OUT_OF_MEMORY);
  assert_int_equal(rondo_array_reserve(&allocator, &array, SIZE_MAX / 16), RONDO_OUT_OF_MEMORY);
  assert_ptr_equal(array.items, items);
  assert_int_equal(array.count, 1);
  assert_int_equal(array.items[0], 9);
  rondo_array_free(&allocator, &array);
}
