/* SPDX-License-Identifier: MIT
 * Growing arrays of any type: declare with RONDO_ARRAY(type), zero is empty, grow by rondo_array_push or _reserve.
 *
 *   RONDO_ARRAY(uint32_t) numbers = {0};
 *   RONDO_TRY(rondo_array_push(&allocator, &numbers, &value));   // appends a copy of the value
 *   numbers.items[0], numbers.count
 *   rondo_array_free(&allocator, &numbers);
 */
#ifndef RONDO_BASE_ARRAY_H
#define RONDO_BASE_ARRAY_H

#include <assert.h>
#include <stddef.h>
#include <string.h>

#include "base/allocation.h"
#include "base/component.h"

#define RONDO_ARRAY(type) \
  struct {                \
    type *items;          \
    size_t count;         \
    size_t capacity;      \
  }

/* Asserts the invariant: the items fit into the capacity, and there is memory exactly when there is capacity. */
#define rondo_array_check(array)                                  \
  do {                                                            \
    assert((array)->count <= (array)->capacity);                  \
    assert(((array)->items == NULL) == ((array)->capacity == 0)); \
  } while (0)

/* Makes room for `want` items in all. The array is unchanged on failure. It is a comparison if there is room. `array`
 * and `want` may be evaluated more than once. */
#define rondo_array_reserve(allocator, array, want) \
  ((want) <= (array)->capacity                      \
       ? (rondo_status)RONDO_OK                     \
       : rondo_array_reserve_bytes((allocator), &(array)->items, &(array)->capacity, (want), sizeof *(array)->items))

/* `value` points to one item, which may be in the array. The array is unchanged on failure. It is a plain assignment if
 * there is capacity. `array` and `value` may be evaluated more than once. */
#define rondo_array_push(allocator, array, value)                                                  \
  ((array)->count < (array)->capacity                                                              \
       ? ((array)->items[(array)->count] = *(value), (array)->count++, (rondo_status)RONDO_OK)     \
       : rondo_array_push_bytes((allocator), &(array)->items, &(array)->count, &(array)->capacity, \
                                (1 ? (value) : (array)->items), sizeof *(array)->items))

/* Copies `from` to `to`, which must be empty. The copy has no spare capacity. `to` stays empty on failure. */
#define rondo_array_copy(allocator, to, from)                                                                         \
  rondo_array_copy_bytes((allocator), &(to)->items, &(to)->count, &(to)->capacity, (1 ? (from)->items : (to)->items), \
                         (from)->count, sizeof *(to)->items)

/* Insert a value before the item at `index`, in an array that has spare capacity; remove the item at `index`. The
 * arguments are evaluated more than once. */
#define rondo_array_insert(array, index, value)                    \
  (memmove((array)->items + (index) + 1, (array)->items + (index), \
           ((array)->count - (index)) * sizeof *(array)->items),   \
   (array)->items[index] = (value), (void)(array)->count++)
#define rondo_array_remove(array, index)                                                         \
  ((void)--(array)->count, (void)memmove((array)->items + (index), (array)->items + (index) + 1, \
                                         ((array)->count - (index)) * sizeof *(array)->items))

#define rondo_array_free(allocator, array)                                                 \
  do {                                                                                     \
    rondo_array_check(array);                                                              \
    rondo_release((allocator), (array)->items, (array)->capacity, sizeof *(array)->items); \
    (array)->items = NULL;                                                                 \
    (array)->count = (array)->capacity = 0;                                                \
  } while (0)

/* `items` is the address of a pointer of any type. It is a void * and is read with memcpy, because a void ** would
 * violate strict aliasing. */
RONDO_PRIVATE RONDO_MUST_USE rondo_status rondo_array_reserve_bytes(const rondo_allocator *allocator, void *items,
                                                                    size_t *capacity, size_t want, size_t item_bytes);
RONDO_PRIVATE RONDO_MUST_USE rondo_status rondo_array_push_bytes(const rondo_allocator *allocator, void *items,
                                                                 size_t *count, size_t *capacity, const void *value,
                                                                 size_t item_bytes);
RONDO_MUST_USE rondo_status rondo_array_copy_bytes(const rondo_allocator *allocator, void *items, size_t *count,
                                                   size_t *capacity, const void *from, size_t from_count,
                                                   size_t item_bytes);

#endif
