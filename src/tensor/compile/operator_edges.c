/* SPDX-License-Identifier: MIT
 * Dependencies between positions. Positions rise along edges, so one pass over the positions in order is enough to find
 * all ancestors.
 */
#include "tensor/compile/operator_edges.h"

#include <assert.h>
#include <string.h>

#include "base/error.h"

rondo_status rondo_edges_make(const rondo_allocator *allocator, uint32_t count, size_t capacity, rondo_edges *out) {
  *out = (rondo_edges){.count = count, .capacity = capacity};
  RONDO_TRY(rondo_allocate_items(allocator, (size_t)count + 1, sizeof *out->start, &out->start));
  return rondo_allocate_items(allocator, capacity, sizeof *out->items, &out->items);
}

void rondo_edges_free(const rondo_allocator *allocator, rondo_edges *edges) {
  rondo_release(allocator, edges->start, (size_t)edges->count + 1, sizeof *edges->start);
  rondo_release(allocator, edges->items, edges->capacity, sizeof *edges->items);
  *edges = (rondo_edges){0};
}

rondo_status rondo_edges_copy(const rondo_allocator *allocator, const rondo_edges *edges, rondo_edges *out) {
  const uint32_t total = edges->start[edges->count];
  RONDO_TRY(rondo_edges_make(allocator, edges->count, total, out));
  memcpy(out->start, edges->start, ((size_t)edges->count + 1) * sizeof *edges->start);
  if (total > 0) memcpy(out->items, edges->items, total * sizeof *edges->items);
  return RONDO_OK;
}

void rondo_edges_insert(const rondo_edges *edges, uint32_t position, uint32_t *inout_end, uint32_t from) {
  const uint32_t first = edges->start[position];
  uint32_t at = *inout_end;
  assert(first <= at && at <= edges->capacity);
  while (at > first && edges->items[at - 1] > from) at--;
  if (at > first && edges->items[at - 1] == from) return;
  assert(*inout_end < edges->capacity);
  memmove(edges->items + at + 1, edges->items + at, (*inout_end - at) * sizeof *edges->items);
  edges->items[at] = from;
  (*inout_end)++;
}

/* Counts into start[n + 1], sums, and fills each list from its beginning, with start[n] as its end. */
rondo_status rondo_edges_transpose(const rondo_allocator *allocator, const rondo_edges *edges, uint32_t count,
                                   rondo_edges *out) {
  const uint32_t total = edges->start[edges->count];
  assert(edges->start[0] == 0 && total <= edges->capacity);
  RONDO_TRY(rondo_edges_make(allocator, count, total, out));
  for (uint32_t i = 0; i < total; i++) out->start[edges->items[i] + 1]++;
  for (uint32_t n = 0; n < count; n++) out->start[n + 1] += out->start[n];
  for (uint32_t p = 0; p < edges->count; p++) {
    for (uint32_t i = edges->start[p]; i < edges->start[p + 1]; i++) out->items[out->start[edges->items[i]]++] = p;
  }
  for (uint32_t n = count; n > 0; n--) out->start[n] = out->start[n - 1];
  out->start[0] = 0;
  return RONDO_OK;
}

/* Ancestors -------------------------------------------------------------------------------------------------------- */

/* p comes before q, and so do the ancestors of p, whose bits are in the words up to p's. */
static void join_ancestors(const rondo_ancestors *ancestors, uint32_t p, uint32_t q) {
  assert(p < q && p / 64 < ancestors->words);
  uint64_t *mine = ancestors->bits + q * ancestors->words;
  const uint64_t *theirs = ancestors->bits + p * ancestors->words;
  for (size_t w = 0; w <= p / 64; w++) mine[w] |= theirs[w];
  mine[p / 64] |= UINT64_C(1) << p % 64;
}

static rondo_status allocate_ancestors(const rondo_allocator *allocator, uint32_t count, rondo_ancestors *out) {
  *out = (rondo_ancestors){.words = count / 64 + 1};
  out->capacity = count * out->words;
  return rondo_allocate_items(allocator, out->capacity, sizeof *out->bits, &out->bits);
}

rondo_status rondo_ancestors_make(const rondo_allocator *allocator, const rondo_edges *edges, rondo_ancestors *out) {
  RONDO_TRY(allocate_ancestors(allocator, edges->count, out));
  for (uint32_t q = 0; q < edges->count; q++) {
    for (uint32_t i = edges->start[q]; i < edges->start[q + 1]; i++) join_ancestors(out, edges->items[i], q);
  }
  return RONDO_OK;
}

void rondo_ancestors_free(const rondo_allocator *allocator, rondo_ancestors *ancestors) {
  rondo_release(allocator, ancestors->bits, ancestors->capacity, sizeof *ancestors->bits);
  *ancestors = (rondo_ancestors){0};
}

/* Fewer and more edges --------------------------------------------------------------------------------------------- */

/* An edge p -> q is implied if p is an ancestor of another direct predecessor of q, which is then later than p. So each
 * list is walked from its end, and the bits of q are those of the edges that were kept so far. */
static void drop_implied(rondo_edges *edges, const rondo_ancestors *ancestors) {
  uint32_t kept = 0;
  for (uint32_t q = 0; q < edges->count; q++) {
    const uint32_t first = edges->start[q], end = edges->start[q + 1];
    uint32_t left = end;
    for (uint32_t i = end; i > first; i--) {
      const uint32_t p = edges->items[i - 1];
      if (rondo_comes_before(ancestors, p, q)) continue;
      join_ancestors(ancestors, p, q);
      edges->items[--left] = p;
    }
    edges->start[q] = kept;
    while (left < end) edges->items[kept++] = edges->items[left++];
  }
  edges->start[edges->count] = kept;
}

rondo_status rondo_edges_reduce(const rondo_allocator *allocator, rondo_edges *edges) {
  rondo_ancestors ancestors;
  if (edges->count > RONDO_MAX_REDUCED) return RONDO_OK;
  RONDO_TRY(allocate_ancestors(allocator, edges->count, &ancestors));
  drop_implied(edges, &ancestors);
  rondo_ancestors_free(allocator, &ancestors);
  return RONDO_OK;
}

rondo_status rondo_edges_narrow(const rondo_allocator *allocator, const rondo_edges *edges, uint32_t width,
                                const bool *is_free, rondo_edges *out) {
  uint32_t kept = 0, counted = 0, earlier = 0; /* the position `width` counted ones before */
  assert(width > 0);
  RONDO_TRY(rondo_edges_make(allocator, edges->count, (size_t)edges->start[edges->count] + edges->count, out));
  for (uint32_t p = 0; p < edges->count; p++) {
    out->start[p] = kept;
    for (uint32_t i = edges->start[p]; i < edges->start[p + 1]; i++) out->items[kept++] = edges->items[i];
    if ((is_free != NULL && is_free[p]) || counted++ < width) continue;
    while (is_free != NULL && is_free[earlier]) earlier++;
    rondo_edges_insert(out, p, &kept, earlier++);
  }
  out->start[edges->count] = kept;
  return rondo_edges_reduce(allocator, out);
}

bool rondo_edges_are_chain(const rondo_edges *edges) {
  for (uint32_t p = 1; p < edges->count; p++) {
    if (edges->start[p + 1] - edges->start[p] != 1 || edges->items[edges->start[p]] != p - 1) return false;
  }
  return true;
}
