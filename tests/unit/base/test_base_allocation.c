/* SPDX-License-Identifier: MIT
 * Host memory through the allocator hook: requested and freed sizes, and each call failing in turn.
 */

#include <string.h>

#include "base/array.h"
#include "base/error.h"
#include "base/text.h"
#include "support/rondo_test.h"

ALLOCATOR_TEST(test_resolve) {
  rondo_allocator resolved;
  assert_ok(rondo_allocator_resolve(NULL, &resolved));
  assert_non_null(resolved.allocate);
  assert_non_null(resolved.release);
  assert_ok(rondo_allocator_resolve(&counting->table, &resolved));
  assert_ptr_equal(resolved.self, counting);

  const rondo_allocator half = {.self = counting, .allocate = counting->table.allocate};
  assert_invalid(rondo_allocator_resolve(&half, &resolved), RONDO_REASON_NULL_ARGUMENT);
  assert_message("release");
  assert_null(resolved.allocate);
}

ALLOCATOR_TEST(test_memory_is_zeroed_and_given_back_whole) {
  void *pointer;
  assert_ok(rondo_allocate(&counting->table, 10, 12, &pointer));
  assert_int_equal(counting->live_bytes, 120);
  assert_int_equal((uintptr_t)pointer % 16, 0);
  for (size_t i = 0; i < 120; i++) assert_int_equal(((unsigned char *)pointer)[i], 0);
  rondo_release(&counting->table, pointer, 10, 12);
  rondo_release(&counting->table, NULL, 10, 12);
}

ALLOCATOR_TEST(test_nothing_is_null) {
  void *pointer = counting;
  assert_ok(rondo_allocate(&counting->table, 0, 12, &pointer));
  assert_null(pointer);
  pointer = counting;
  assert_ok(rondo_allocate(&counting->table, 5, 0, &pointer));
  assert_null(pointer);
  assert_int_equal(counting->calls, 0);
}

ALLOCATOR_TEST(test_a_pointer_of_any_type_is_set) {
  double *numbers = NULL;
  assert_ok(rondo_allocate_items(&counting->table, 3, sizeof *numbers, &numbers));
  for (size_t i = 0; i < 3; i++) numbers[i] += (double)i;
  assert_true(numbers[2] > 1.5 && numbers[2] < 2.5);
  rondo_release(&counting->table, numbers, 3, sizeof *numbers);
  assert_int_equal(rondo_allocate_items(&counting->table, SIZE_MAX, sizeof *numbers, &numbers), RONDO_OUT_OF_MEMORY);
  assert_null(numbers);
}

UNIT_TEST(test_alignment) {
  const rondo_allocator allocator = rondo_allocator_default();
  for (size_t alignment = 16; alignment <= 1 << 16; alignment *= 2) {
    void *pointer;
    assert_ok(rondo_allocate_aligned(&allocator, 3, 5, alignment, &pointer));
    assert_int_equal((uintptr_t)pointer % alignment, 0);
    rondo_release(&allocator, pointer, 3, 5);
  }
}

ALLOCATOR_TEST(test_overflow_and_absurd_sizes) {
  void *pointer = counting;
  assert_int_equal(rondo_allocate(&counting->table, SIZE_MAX / 2, 3, &pointer), RONDO_OUT_OF_MEMORY);
  assert_null(pointer);
  assert_int_equal(rondo_last_error()->reason, RONDO_REASON_ALLOCATION_FAILED);
  assert_int_equal(counting->calls, 0);

  const rondo_allocator libc = rondo_allocator_default();
  pointer = counting;
  assert_int_equal(rondo_allocate(&libc, SIZE_MAX / 4, 1, &pointer), RONDO_OUT_OF_MEMORY);
  assert_null(pointer);
  assert_message("4611686018427387903 bytes (4.0 EiB)");
}

ALLOCATOR_TEST(test_text) {
  char *copy, *empty;
  assert_ok(rondo_allocate_text(&counting->table, "theme", &copy));
  assert_ok(rondo_allocate_text(&counting->table, NULL, &empty));
  assert_string_equal(copy, "theme");
  assert_string_equal(empty, "");
  rondo_release_text(&counting->table, copy);
  rondo_release_text(&counting->table, empty);
  rondo_release_text(&counting->table, NULL);
}

UNIT_TEST(test_checked_arithmetic) {
  size_t out = 7;
  assert_false(rondo_checked_add(SIZE_MAX, 1, &out));
  assert_false(rondo_checked_multiply(SIZE_MAX / 2 + 1, 2, &out));
  assert_false(rondo_checked_align(SIZE_MAX - 14, 16, &out));
  assert_int_equal(out, 7);
  assert_true(rondo_checked_add(SIZE_MAX - 1, 1, &out));
  assert_int_equal(out, SIZE_MAX);
  assert_true(rondo_checked_multiply(SIZE_MAX, 1, &out));
  assert_int_equal(out, SIZE_MAX);
  assert_true(rondo_checked_multiply(0, SIZE_MAX, &out));
  assert_int_equal(out, 0);
  assert_true(rondo_checked_align(SIZE_MAX - 15, 16, &out));
  assert_int_equal(out, SIZE_MAX - 15);
  assert_true(rondo_checked_align(0, 4096, &out));
  assert_int_equal(out, 0);
  assert_true(rondo_checked_align(1, 4096, &out));
  assert_int_equal(out, 4096);
}

/* Each of these calls everything of one module that allocates, and leaks nothing. */
static rondo_status use_allocation(const rondo_allocator *allocator) {
  void *plain = NULL, *aligned = NULL;
  char *text = NULL;
  rondo_status status = rondo_allocate(allocator, 3, 8, &plain);
  if (status == RONDO_OK) status = rondo_allocate_aligned(allocator, 5, 8, 64, &aligned);
  if (status == RONDO_OK) status = rondo_allocate_text(allocator, "text", &text);
  rondo_release(allocator, plain, 3, 8);
  rondo_release(allocator, aligned, 5, 8);
  rondo_release_text(allocator, text);
  return status;
}

static rondo_status use_array(const rondo_allocator *allocator) {
  RONDO_ARRAY(uint64_t) array = {0};
  rondo_status status = RONDO_OK;
  for (uint64_t i = 0; i < 100 && status == RONDO_OK; i++) {
    const size_t count = array.count, capacity = array.capacity;
    status = rondo_array_push(allocator, &array, &i);
    if (status == RONDO_OK) continue;
    assert_int_equal(array.count, count);
    assert_int_equal(array.capacity, capacity);
  }
  for (size_t i = 0; i < array.count; i++) assert_int_equal(array.items[i], i);
  if (status == RONDO_OK) status = rondo_array_reserve(allocator, &array, 1000);
  rondo_array_free(allocator, &array);
  return status;
}

static rondo_status use_text(const rondo_allocator *allocator) {
  rondo_text text;
  char *taken = NULL;
  rondo_text_init(&text, allocator);
  rondo_json_object_begin(&text);
  for (int i = 0; i < 30; i++) {
    rondo_json_key(&text, "key");
    rondo_json_string(&text, "value\n");
  }
  rondo_json_object_end(&text);
  rondo_text_add(&text, "%100s", "");
  const rondo_status status = rondo_text_take(&text, &taken);
  assert_true((status == RONDO_OK) == (taken != NULL));
  rondo_release_text(allocator, taken);
  rondo_text_deinit(&text);
  return status;
}

static void sweep(rondo_status (*use)(const rondo_allocator *)) {
  test_allocator counting;
  test_allocator_init(&counting);
  assert_ok(use(&counting.table));
  const size_t calls = counting.calls;
  assert_true(calls > 1);
  for (size_t fail_at = 1; fail_at <= calls; fail_at++) {
    test_allocator_init(&counting);
    counting.fail_at = fail_at;
    assert_error(use(&counting.table), RONDO_OUT_OF_MEMORY, RONDO_REASON_ALLOCATION_FAILED);
    assert_int_equal(counting.live + counting.faults, 0);
  }
}

UNIT_TEST(test_each_call_fails_in_turn) {
  sweep(use_allocation);
  sweep(use_array);
  sweep(use_text);
}
