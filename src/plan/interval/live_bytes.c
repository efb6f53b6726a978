/* SPDX-License-Identifier: MIT
 * An update goes from the leaves up, and leaves its amount at the nodes that cover the range. A query goes down and
 * adds these amounts to what it compares with. Leaves after the last section are 0.
 */
#include "plan/interval/live_bytes.h"

#include <assert.h>

#include "base/error.h"

static uint64_t larger(uint64_t a, uint64_t b) { return a > b ? a : b; }

rondo_status rondo_live_bytes_make(rondo_scratch *scratch, const rondo_boxes *boxes, rondo_live_bytes *out) {
  *out = (rondo_live_bytes){.width = 1, .section_count = boxes->section_count};
  while (out->width < out->section_count) out->width *= 2;
  RONDO_TRY(rondo_scratch_take(scratch, 2 * (size_t)out->width, sizeof *out->tree, &out->tree));
  RONDO_TRY(rondo_scratch_take(scratch, (size_t)out->section_count + 1, sizeof *out->whole, &out->whole));
  for (uint32_t i = 0; i < boxes->count; i++) {
    out->whole[boxes->boxes[i].lower] += boxes->boxes[i].bytes;
    out->whole[boxes->boxes[i].upper] -= boxes->boxes[i].bytes;
  }
  for (uint32_t i = 1; i < out->section_count; i++) out->whole[i] += out->whole[i - 1];
  rondo_live_bytes_reset(out);
  return RONDO_OK;
}

/* Recomputes an inner node. */
static void refresh(rondo_live_bytes *live, uint32_t node) {
  rondo_live_node *of = &live->tree[node];
  of->max = larger(live->tree[2 * node].max, live->tree[2 * node + 1].max) - of->taken;
}

void rondo_live_bytes_reset(rondo_live_bytes *live) {
  for (uint32_t i = 0; i < live->width; i++) {
    live->tree[live->width + i] = (rondo_live_node){.max = i < live->section_count ? live->whole[i] : 0};
  }
  for (uint32_t node = live->width - 1; node > 0; node--) {
    live->tree[node].taken = 0;
    refresh(live, node);
  }
}

static void take(rondo_live_node *of, uint64_t bytes) {
  of->max -= bytes;
  of->taken += bytes;
}

void rondo_live_bytes_take(rondo_live_bytes *live, const rondo_box *box) {
  const uint32_t first = live->width + box->lower;
  const uint32_t last = live->width + box->upper - 1;
  for (uint32_t low = first, high = last; low <= high; low /= 2, high /= 2) {
    if (low % 2 == 1) take(&live->tree[low++], box->bytes);
    if (high % 2 == 0) take(&live->tree[high--], box->bytes);
  }
  for (uint32_t node = first / 2; node > 0; node /= 2) refresh(live, node);
  for (uint32_t node = last / 2; node > 0; node /= 2) refresh(live, node);
}

typedef struct query {
  const rondo_live_bytes *live;
  uint32_t lower, upper;
} query;

/* In the sections [first, end), which are those below the node. */
static uint32_t find_below(const query *q, uint32_t node, uint32_t first, uint32_t end, uint64_t bytes) {
  const rondo_live_node *of = &q->live->tree[node];
  if (end <= q->lower || first >= q->upper || of->max <= bytes) return RONDO_NO_SECTION;
  if (end - first == 1) return first;
  if (bytes > UINT64_MAX - of->taken) return RONDO_NO_SECTION;
  const uint32_t middle = first + (end - first) / 2;
  const bool left_first = q->live->tree[2 * node].max >= q->live->tree[2 * node + 1].max;
  for (int turn = 0; turn < 2; turn++) {
    const uint32_t found = left_first == (turn == 0) ? find_below(q, 2 * node, first, middle, bytes + of->taken)
                                                     : find_below(q, 2 * node + 1, middle, end, bytes + of->taken);
    if (found != RONDO_NO_SECTION) return found;
  }
  return RONDO_NO_SECTION;
}

uint32_t rondo_live_bytes_above(const rondo_live_bytes *live, uint32_t lower, uint32_t upper, uint64_t bytes) {
  const query q = {live, lower, upper};
  return find_below(&q, 1, 0, live->width, bytes);
}

uint64_t rondo_live_bytes_max(const rondo_live_bytes *live, uint32_t lower, uint32_t upper) {
  assert(lower < upper && upper <= live->section_count);
  uint64_t max = 0;
  uint32_t low = live->width + lower, high = live->width + upper;
  for (; low < high; low /= 2, high /= 2) {
    if (low % 2 == 1) max = larger(max, live->tree[low++].max);
    if (high % 2 == 1) max = larger(max, live->tree[--high].max);
  }
  return max;
}
