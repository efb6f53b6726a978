/* SPDX-License-Identifier: MIT
 * Dependencies between positions. Positions rise along edges, so what is known of all before p is known at p.
 */
#include "tensor/compile/operator_edges.h"

#include <assert.h>

#include "base/error.h"

rondo_status rondo_edges_make(const rondo_allocator *allocator, uint32_t count, size_t room, rondo_edges *out) {
  *out = (rondo_edges){.count = count, .room = room};
  RONDO_TRY(rondo_allocate_items(allocator, (size_t)count + 1, sizeof *out->start, &out->start));
  return rondo_allocate_items(allocator, room, sizeof *out->items, &out->items);
}

void rondo_edges_free(const rondo_allocator *allocator, rondo_edges *edges) {
  rondo_release(allocator, edges->start, (size_t)edges->count + 1, sizeof *edges->start);
  rondo_release(allocator, edges->items, edges->room, sizeof *edges->items);
  *edges = (rondo_edges){0};
}

/* Counts into start[p + 1], sums, and fills each list from its beginning with a moving copy in start[p]. */
rondo_status rondo_edges_turn(const rondo_allocator *allocator, const rondo_edges *edges, rondo_edges *out) {
  const uint32_t count = edges->count, total = edges->start[count];
  assert(edges->start[0] == 0 && total <= edges->room);
  RONDO_TRY(rondo_edges_make(allocator, count, total, out));
  for (uint32_t i = 0; i < total; i++) out->start[edges->items[i] + 1]++;
  for (uint32_t p = 0; p < count; p++) out->start[p + 1] += out->start[p];
  for (uint32_t p = 0; p < count; p++) {
    for (uint32_t i = edges->start[p]; i < edges->start[p + 1]; i++) out->items[out->start[edges->items[i]]++] = p;
  }
  for (uint32_t p = count; p > 0; p--) out->start[p] = out->start[p - 1];
  out->start[0] = 0;
  return RONDO_OK;
}

/* Ancestors -------------------------------------------------------------------------------------------------------- */

/* p comes before q, and so does all that comes before p: in the words up to p's. */
static void join_ancestors(const rondo_ancestors *ancestors, uint32_t p, uint32_t q) {
  assert(p < q && p / 64 < ancestors->words);
  uint64_t *mine = ancestors->bits + q * ancestors->words;
  const uint64_t *theirs = ancestors->bits + p * ancestors->words;
  for (size_t w = 0; w <= p / 64; w++) mine[w] |= theirs[w];
  mine[p / 64] |= UINT64_C(1) << p % 64;
}

static rondo_status allocate_ancestors(const rondo_allocator *allocator, uint32_t count, rondo_ancestors *out) {
  *out = (rondo_ancestors){.words = count / 64 + 1};
  out->room = count * out->words;
  return rondo_allocate_items(allocator, out->room, sizeof *out->bits, &out->bits);
}

rondo_status rondo_ancestors_make(const rondo_allocator *allocator, const rondo_edges *edges, rondo_ancestors *out) {
  RONDO_TRY(allocate_ancestors(allocator, edges->count, out));
  for (uint32_t q = 0; q < edges->count; q++) {
    for (uint32_t i = edges->start[q]; i < edges->start[q + 1]; i++) join_ancestors(out, edges->items[i], q);
  }
  return RONDO_OK;
}

void rondo_ancestors_free(const rondo_allocator *allocator, rondo_ancestors *ancestors) {
  rondo_release(allocator, ancestors->bits, ancestors->room, sizeof *ancestors->bits);
  *ancestors = (rondo_ancestors){0};
}

/* Fewer and more edges --------------------------------------------------------------------------------------------- */

/* An edge p -> q is implied when p is an ancestor of another one right before q, which is then a later one: from the
 * last on, only those are kept, and cost a look at all ancestors, that are none yet. */
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
  if (edges->count > RONDO_MOST_REDUCED) return RONDO_OK;
  RONDO_TRY(allocate_ancestors(allocator, edges->count, &ancestors));
  drop_implied(edges, &ancestors);
  rondo_ancestors_free(allocator, &ancestors);
  return RONDO_OK;
}

rondo_status rondo_edges_narrow(const rondo_allocator *allocator, const rondo_edges *edges, uint32_t width,
                                rondo_edges *out) {
  uint32_t kept = 0;
  RONDO_TRY(rondo_edges_make(allocator, edges->count, (size_t)edges->start[edges->count] + edges->count, out));
  for (uint32_t p = 0; p < edges->count; p++) {
    const uint32_t further = p >= width ? p - width : UINT32_MAX;
    bool is_there = further == UINT32_MAX;
    out->start[p] = kept;
    for (uint32_t i = edges->start[p]; i < edges->start[p + 1]; i++) {
      if (!is_there && edges->items[i] >= further) {
        if (edges->items[i] > further) out->items[kept++] = further;
        is_there = true;
      }
      out->items[kept++] = edges->items[i];
    }
    if (!is_there) out->items[kept++] = further;
  }
  out->start[edges->count] = kept;
  return rondo_edges_reduce(allocator, out);
}

bool rondo_edges_are_straight(const rondo_edges *edges) {
  for (uint32_t p = 1; p < edges->count; p++) {
    if (edges->start[p + 1] - edges->start[p] != 1 || edges->items[edges->start[p]] != p - 1) return false;
  }
  return true;
}
