/* SPDX-License-Identifier: MIT
 * Growing arrays. Capacity doubles, so that n pushes copy at most 2n items. The type of the items is not known here, so
 * the pointer to them is read and written as bytes.
 */
#include "base/array.h"

#include <assert.h>
#include <stdint.h>
#include <string.h>

#include "base/error.h"

#define FIRST_CAPACITY 8

static char *load_items(const void *items) {
  void *pointer;
  memcpy(&pointer, items, sizeof pointer);
  return pointer;
}

/* The larger of `want` and twice the old capacity, unless that overflows. */
static size_t next_capacity(size_t capacity, size_t want) {
  size_t doubled = FIRST_CAPACITY;
  if (capacity > 0 && !rondo_checked_multiply(capacity, 2, &doubled)) return want;
  return want > doubled ? want : doubled;
}

rondo_status rondo_array_reserve_bytes(const rondo_allocator *allocator, void *items, size_t *capacity, size_t want,
                                       size_t item_bytes) {
  assert(item_bytes > 0 && (load_items(items) == NULL) == (*capacity == 0));
  if (want <= *capacity) return RONDO_OK;
  const size_t grown = next_capacity(*capacity, want);
  void *fresh;
  RONDO_TRY(rondo_reallocate(allocator, load_items(items), *capacity, grown, item_bytes, &fresh));
  memcpy(items, &fresh, sizeof fresh);
  *capacity = grown;
  return RONDO_OK;
}

rondo_status rondo_array_push_bytes(const rondo_allocator *allocator, void *items, size_t *count, size_t *capacity,
                                    const void *value, size_t item_bytes) {
  const uintptr_t start = (uintptr_t)load_items(items);
  const uintptr_t offset = (uintptr_t)value - start;
  assert(*count <= *capacity && value != NULL);
  const bool own = start != 0 && (uintptr_t)value >= start && offset < *count * item_bytes;
  if (*count == *capacity) {
    size_t want;
    if (!rondo_checked_add(*count, 1, &want))
      return rondo_fail(RONDO_OUT_OF_MEMORY, RONDO_REASON_ALLOCATION_FAILED,
                        "an array of %zu items of %zu bytes cannot grow any further: use fewer items", *count,
                        item_bytes);
    RONDO_TRY(rondo_array_reserve_bytes(allocator, items, capacity, want, item_bytes));
  }
  char *base = load_items(items);
  memcpy(base + *count * item_bytes, own ? base + offset : value, item_bytes);
  (*count)++;
  return RONDO_OK;
}

rondo_status rondo_array_copy_bytes(const rondo_allocator *allocator, void *items, size_t *count, size_t *capacity,
                                    const void *from, size_t from_count, size_t item_bytes) {
  void *copy;
  assert(*capacity == 0 && *count == 0 && load_items(items) == NULL);
  if (from_count == 0) return RONDO_OK;
  RONDO_TRY(rondo_allocate_copy(allocator, from, from_count, item_bytes, &copy));
  memcpy(items, &copy, sizeof copy);
  *count = *capacity = from_count;
  return RONDO_OK;
}
