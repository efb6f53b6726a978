/* SPDX-License-Identifier: MIT
 * Sorting numbers by 64-bit keys in linear time: a stable radix sort. Planning sorts a million keys a few times, and
 * hundreds of keys thousands of times a second.
 */
#ifndef RONDO_PLAN_RADIX_SORT_H
#define RONDO_PLAN_RADIX_SORT_H

#include <stddef.h>
#include <stdint.h>

typedef struct rondo_sort_entry {
  uint64_t key;
  uint32_t value;
} rondo_sort_entry;

/* Ascending; entries with equal keys stay in order. `scratch` holds `count` entries; `count` is at most 2^32. */
void rondo_sort_entries(rondo_sort_entry *entries, rondo_sort_entry *scratch, size_t count);

#endif
