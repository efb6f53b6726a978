/* SPDX-License-Identifier: MIT
 * Few entries are inserted one by one. Many are distributed by one byte of the keys after the other, from the lowest;
 * bytes that all keys share are left out.
 */
#include "plan/radix_sort.h"

#include <string.h>

enum { DIGITS = 8, VALUES = 256, FEW = 48 };

static void insert_all(rondo_sort_entry *entries, size_t count) {
  for (size_t i = 1; i < count; i++) {
    const rondo_sort_entry moved = entries[i];
    size_t at = i;
    for (; at > 0 && entries[at - 1].key > moved.key; at--) entries[at] = entries[at - 1];
    entries[at] = moved;
  }
}

static uint32_t digit_of(uint64_t key, int digit) { return (uint32_t)(key >> (8 * digit)) & (VALUES - 1); }

/* From counts to where each value starts. */
static void sum_up(size_t counts[VALUES]) {
  size_t sum = 0;
  for (int i = 0; i < VALUES; i++) {
    const size_t count = counts[i];
    counts[i] = sum;
    sum += count;
  }
}

static void distribute(const rondo_sort_entry *from, rondo_sort_entry *to, size_t count, int digit,
                       size_t starts[VALUES]) {
  for (size_t i = 0; i < count; i++) to[starts[digit_of(from[i].key, digit)]++] = from[i];
}

void rondo_sort_entries(rondo_sort_entry *entries, rondo_sort_entry *scratch, size_t count) {
  if (count <= FEW) {
    insert_all(entries, count);
    return;
  }
  size_t counts[DIGITS][VALUES] = {{0}};
  for (size_t i = 0; i < count; i++) {
    for (int digit = 0; digit < DIGITS; digit++) counts[digit][digit_of(entries[i].key, digit)]++;
  }
  rondo_sort_entry *from = entries;
  rondo_sort_entry *to = scratch;
  for (int digit = 0; digit < DIGITS; digit++) {
    if (counts[digit][digit_of(from[0].key, digit)] == count) continue;
    sum_up(counts[digit]);
    distribute(from, to, count, digit, counts[digit]);
    rondo_sort_entry *const other = from;
    from = to;
    to = other;
  }
  if (from != entries) memcpy(entries, from, count * sizeof *entries);
}
