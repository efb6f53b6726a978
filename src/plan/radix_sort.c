/* SPDX-License-Identifier: MIT
 * Few entries are inserted one by one. More are distributed by one digit of the keys after the other, from the lowest
 * to the highest; digits that all keys share are skipped.
 */
#include "plan/radix_sort.h"

#include <string.h>

enum { FEW = 48, MANY = 2048, SMALL_DIGIT = 8, LARGE_DIGIT = 11 };

static void insert_all(rondo_sort_entry *entries, size_t count) {
  for (size_t i = 1; i < count; i++) {
    const rondo_sort_entry moved = entries[i];
    size_t at = i;
    for (; at > 0 && entries[at - 1].key > moved.key; at--) entries[at] = entries[at - 1];
    entries[at] = moved;
  }
}

/* Sorts by one digit: the bits of `mask` after a shift. */
static void distribute(const rondo_sort_entry *from, rondo_sort_entry *to, size_t count, uint32_t shift,
                       uint32_t mask) {
  uint32_t starts[1 << LARGE_DIGIT]; /* of each value: its count at first, then where it starts */
  uint32_t sum = 0;
  memset(starts, 0, (mask + 1) * sizeof *starts);
  for (size_t i = 0; i < count; i++) starts[(uint32_t)(from[i].key >> shift) & mask]++;
  for (uint32_t i = 0; i <= mask; i++) {
    const uint32_t own = starts[i];
    starts[i] = sum;
    sum += own;
  }
  for (size_t i = 0; i < count; i++) to[starts[(uint32_t)(from[i].key >> shift) & mask]++] = from[i];
}

void rondo_sort_entries(rondo_sort_entry *entries, rondo_sort_entry *scratch, size_t count) {
  if (count <= FEW) {
    insert_all(entries, count);
    return;
  }
  const uint32_t bits = count < MANY ? SMALL_DIGIT : LARGE_DIGIT, mask = (1U << bits) - 1;
  uint64_t differing = 0; /* bits that are not the same in all keys */
  for (size_t i = 1; i < count; i++) differing |= entries[i].key ^ entries[0].key;
  rondo_sort_entry *from = entries, *to = scratch;
  for (uint32_t shift = 0; shift < 64 && differing >> shift != 0; shift += bits) {
    if ((differing >> shift & mask) == 0) continue;
    distribute(from, to, count, shift, mask);
    rondo_sort_entry *const sorted = to;
    to = from;
    from = sorted;
  }
  if (from != entries) memcpy(entries, from, count * sizeof *entries);
}
