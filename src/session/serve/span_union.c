/* SPDX-License-Identifier: MIT
 * The union of spans.
 */
#include "session/serve/span_union.h"

#include <string.h>

/* Puts the span in the place of those from `first` up to `last`, which it covers. */
static void replace(rondo_busy *b, size_t first, size_t last, double begin, double end) {
  const size_t behind = b->count - last;
  memmove(b->begin + first + 1, b->begin + last, behind * sizeof *b->begin);
  memmove(b->end + first + 1, b->end + last, behind * sizeof *b->end);
  b->begin[first] = begin;
  b->end[first] = end;
  b->count = first + 1 + behind;
}

static void settle_first(rondo_busy *b) {
  b->settled_us += b->end[0] - b->begin[0];
  b->settled_end = b->end[0];
  b->count--;
  memmove(b->begin, b->begin + 1, b->count * sizeof *b->begin);
  memmove(b->end, b->end + 1, b->count * sizeof *b->end);
}

void rondo_busy_add(rondo_busy *busy, double begin, double end) {
  if (begin < busy->settled_end) begin = busy->settled_end;
  if (!(end > begin)) return;
  size_t last = busy->count;
  while (last > 0 && busy->begin[last - 1] > end) last--;
  size_t first = last;
  while (first > 0 && busy->end[first - 1] >= begin) first--;
  if (first < last) {
    if (busy->begin[first] < begin) begin = busy->begin[first];
    if (busy->end[last - 1] > end) end = busy->end[last - 1];
  }
  replace(busy, first, last, begin, end);
  if (busy->count > RONDO_BUSY_SPANS) settle_first(busy);
}

double rondo_busy_us(const rondo_busy *busy) {
  double us = busy->settled_us;
  for (size_t i = 0; i < busy->count; i++) us += busy->end[i] - busy->begin[i];
  return us;
}
