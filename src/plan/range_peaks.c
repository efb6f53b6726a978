/* SPDX-License-Identifier: MIT
 * A binary tree. A node knows what it was raised to as a whole, and the greatest below it; what it was raised to as a
 * whole is not handed down, so whoever asks takes it along.
 */
#include "plan/range_peaks.h"

#include <string.h>

#include "base/error.h"

struct rondo_range_peak {
  size_t whole; /* all entries are at least this */
  size_t most;
};

typedef struct span {
  uint32_t begin, end;
} span;

rondo_status rondo_range_peaks_make(const rondo_allocator *allocator, uint32_t length, rondo_range_peaks *out) {
  *out = (rondo_range_peaks){.leaves = 1};
  while (out->leaves < length) out->leaves *= 2;
  return rondo_allocate_items(allocator, out->leaves, 2 * sizeof *out->nodes, &out->nodes);
}

void rondo_range_peaks_free(const rondo_allocator *allocator, rondo_range_peaks *peaks) {
  rondo_release(allocator, peaks->nodes, peaks->leaves, 2 * sizeof *peaks->nodes);
  *peaks = (rondo_range_peaks){0};
}

void rondo_range_peaks_clear(rondo_range_peaks *peaks) {
  memset(peaks->nodes, 0, (size_t)peaks->leaves * 2 * sizeof *peaks->nodes);
}

static void raise_node(rondo_range_peaks *peaks, uint32_t node, span own, span range, size_t value) {
  struct rondo_range_peak *at = &peaks->nodes[node];
  if (range.begin >= own.end || range.end <= own.begin || at->whole >= value) return;
  if (at->most < value) at->most = value;
  if (range.begin <= own.begin && range.end >= own.end) {
    at->whole = value;
    return;
  }
  const uint32_t middle = own.begin + (own.end - own.begin) / 2;
  raise_node(peaks, 2 * node, (span){own.begin, middle}, range, value);
  raise_node(peaks, 2 * node + 1, (span){middle, own.end}, range, value);
}

void rondo_range_peaks_raise(rondo_range_peaks *peaks, uint32_t begin, uint32_t end, size_t value) {
  if (begin < end) raise_node(peaks, 1, (span){0, peaks->leaves}, (span){begin, end}, value);
}

static size_t most_of_node(const rondo_range_peaks *peaks, uint32_t node, span own, span range) {
  const struct rondo_range_peak *at = &peaks->nodes[node];
  if (range.begin >= own.end || range.end <= own.begin) return 0;
  if ((range.begin <= own.begin && range.end >= own.end) || at->most == at->whole) return at->most;
  const uint32_t middle = own.begin + (own.end - own.begin) / 2;
  const size_t left = most_of_node(peaks, 2 * node, (span){own.begin, middle}, range);
  const size_t right = most_of_node(peaks, 2 * node + 1, (span){middle, own.end}, range);
  const size_t most = left > right ? left : right;
  return most > at->whole ? most : at->whole;
}

size_t rondo_range_peaks_most(const rondo_range_peaks *peaks, uint32_t begin, uint32_t end) {
  return begin < end ? most_of_node(peaks, 1, (span){0, peaks->leaves}, (span){begin, end}) : 0;
}
