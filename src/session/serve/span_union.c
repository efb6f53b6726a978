/* SPDX-License-Identifier: MIT
 * The union of time spans, as a sorted array of disjoint spans. When the array is full, the oldest span is settled: its
 * length is added to a sum.
 */
#include "session/serve/span_union.h"

#include <assert.h>
#include <string.h>

/* Replaces the spans first to last - 1, which the new span covers. */
static void replace(rondo_span_union *b, size_t first, size_t last, double begin, double end) {
  const size_t after = b->count - last;
  memmove(b->begin + first + 1, b->begin + last, after * sizeof *b->begin);
  memmove(b->end + first + 1, b->end + last, after * sizeof *b->end);
  b->begin[first] = begin;
  b->end[first] = end;
  b->count = first + 1 + after;
}

static void settle_first(rondo_span_union *b) {
  assert(b->count > 0 && b->settled_end <= b->begin[0]);
  b->settled_us += b->end[0] - b->begin[0];
  b->settled_end = b->end[0];
  b->count--;
  memmove(b->begin, b->begin + 1, b->count * sizeof *b->begin);
  memmove(b->end, b->end + 1, b->count * sizeof *b->end);
}

void rondo_span_union_check(const rondo_span_union *spans) {
  assert(spans->count <= RONDO_SPAN_UNION_CAPACITY);
  assert(spans->count == 0 || spans->settled_end <= spans->begin[0]);
  for (size_t i = 0; i < spans->count; i++) {
    assert(spans->begin[i] < spans->end[i]);
    assert(i == 0 || spans->end[i - 1] < spans->begin[i]);
  }
  (void)spans;
}

void rondo_span_union_add(rondo_span_union *spans, double begin, double end) {
  if (begin < spans->settled_end) begin = spans->settled_end;
  if (!(end > begin)) return;
  size_t last = spans->count;
  while (last > 0 && spans->begin[last - 1] > end) last--;
  size_t first = last;
  while (first > 0 && spans->end[first - 1] >= begin) first--;
  if (first < last) {
    if (spans->begin[first] < begin) begin = spans->begin[first];
    if (spans->end[last - 1] > end) end = spans->end[last - 1];
  }
  replace(spans, first, last, begin, end);
  if (spans->count > RONDO_SPAN_UNION_CAPACITY) settle_first(spans);
}

double rondo_span_union_us(const rondo_span_union *spans) {
  double us = spans->settled_us;
  for (size_t i = 0; i < spans->count; i++) us += spans->end[i] - spans->begin[i];
  return us;
}
