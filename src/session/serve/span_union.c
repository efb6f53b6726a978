/* SPDX-License-Identifier: MIT
 * The union of time spans, as a sorted array of disjoint spans. The oldest span is settled, that is added to a sum,
 * when the array is full.
 */
#include "session/serve/span_union.h"

#include <string.h>

/* Replaces the spans first .. last, which the new span covers. */
static void replace(rondo_span_union *b, size_t first, size_t last, double begin, double end) {
  const size_t behind = b->count - last;
  memmove(b->begin + first + 1, b->begin + last, behind * sizeof *b->begin);
  memmove(b->end + first + 1, b->end + last, behind * sizeof *b->end);
  b->begin[first] = begin;
  b->end[first] = end;
  b->count = first + 1 + behind;
}

static void settle_first(rondo_span_union *b) {
  b->settled_us += b->end[0] - b->begin[0];
  b->settled_end = b->end[0];
  b->count--;
  memmove(b->begin, b->begin + 1, b->count * sizeof *b->begin);
  memmove(b->end, b->end + 1, b->count * sizeof *b->end);
}

void rondo_span_union_add(rondo_span_union *utilised, double begin, double end) {
  if (begin < utilised->settled_end) begin = utilised->settled_end;
  if (!(end > begin)) return;
  size_t last = utilised->count;
  while (last > 0 && utilised->begin[last - 1] > end) last--;
  size_t first = last;
  while (first > 0 && utilised->end[first - 1] >= begin) first--;
  if (first < last) {
    if (utilised->begin[first] < begin) begin = utilised->begin[first];
    if (utilised->end[last - 1] > end) end = utilised->end[last - 1];
  }
  replace(utilised, first, last, begin, end);
  if (utilised->count > RONDO_SPAN_UNION_CAPACITY) settle_first(utilised);
}

double rondo_span_union_us(const rondo_span_union *utilised) {
  double us = utilised->settled_us;
  for (size_t i = 0; i < utilised->count; i++) us += utilised->end[i] - utilised->begin[i];
  return us;
}
