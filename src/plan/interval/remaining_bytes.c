/* SPDX-License-Identifier: MIT
 * Updates go from the leaves up, and leave their amount at the nodes that cover the range; a look goes down and adds
 * these amounts to what it compares with. Leaves after the last section hold nothing.
 */
#include "plan/interval/remaining_bytes.h"

#include "base/error.h"

static uint32_t width_for(uint32_t sections) {
  uint32_t width = 1;
  while (width < sections) width *= 2;
  return width;
}

rondo_status rondo_loads_make(rondo_scratch *scratch, const rondo_boxes *boxes, rondo_loads *out) {
  *out = (rondo_loads){.width = width_for(boxes->section_count), .section_count = boxes->section_count};
  RONDO_TRY(rondo_scratch_take(scratch, 2 * (size_t)out->width, sizeof *out->tree, &out->tree));
  RONDO_TRY(rondo_scratch_take(scratch, (size_t)out->section_count + 1, sizeof *out->whole, &out->whole));
  for (uint32_t i = 0; i < boxes->count; i++) {
    out->whole[boxes->boxes[i].lower] += boxes->boxes[i].bytes;
    out->whole[boxes->boxes[i].upper] -= boxes->boxes[i].bytes;
  }
  for (uint32_t i = 1; i < out->section_count; i++) out->whole[i] += out->whole[i - 1];
  return RONDO_OK;
}

static void gather(rondo_loads *loads, uint32_t node) {
  rondo_load *of = &loads->tree[node];
  const uint64_t left = loads->tree[2 * node].most;
  const uint64_t right = loads->tree[2 * node + 1].most;
  of->most = (left > right ? left : right) - of->taken;
}

void rondo_loads_reset(rondo_loads *loads) {
  for (uint32_t i = 0; i < loads->width; i++) {
    loads->tree[loads->width + i] = (rondo_load){.most = i < loads->section_count ? loads->whole[i] : 0};
  }
  for (uint32_t node = loads->width - 1; node > 0; node--) {
    loads->tree[node].taken = 0;
    gather(loads, node);
  }
}

static void take(rondo_load *of, uint64_t bytes) {
  of->most -= bytes;
  of->taken += bytes;
}

void rondo_loads_take(rondo_loads *loads, const rondo_box *box) {
  const uint32_t first = loads->width + box->lower;
  const uint32_t last = loads->width + box->upper - 1;
  for (uint32_t low = first, high = last; low <= high; low /= 2, high /= 2) {
    if (low % 2 == 1) take(&loads->tree[low++], box->bytes);
    if (high % 2 == 0) take(&loads->tree[high--], box->bytes);
  }
  for (uint32_t node = first / 2; node > 0; node /= 2) gather(loads, node);
  for (uint32_t node = last / 2; node > 0; node /= 2) gather(loads, node);
}

typedef struct look {
  const rondo_loads *loads;
  uint32_t lower, upper;
} look;

/* Of the sections `first` up to `end`, which are those below the node. */
static uint32_t look_below(const look *l, uint32_t node, uint32_t first, uint32_t end, uint64_t bytes) {
  const rondo_load *of = &l->loads->tree[node];
  if (end <= l->lower || first >= l->upper || of->most <= bytes) return RONDO_NO_SECTION;
  if (end - first == 1) return first;
  if (bytes > UINT64_MAX - of->taken) return RONDO_NO_SECTION;
  const uint32_t middle = first + (end - first) / 2;
  const bool is_left = l->loads->tree[2 * node].most >= l->loads->tree[2 * node + 1].most;
  for (int turn = 0; turn < 2; turn++) {
    const uint32_t found = is_left == (turn == 0) ? look_below(l, 2 * node, first, middle, bytes + of->taken)
                                                  : look_below(l, 2 * node + 1, middle, end, bytes + of->taken);
    if (found != RONDO_NO_SECTION) return found;
  }
  return RONDO_NO_SECTION;
}

uint32_t rondo_loads_above(const rondo_loads *loads, uint32_t lower, uint32_t upper, uint64_t bytes) {
  const look asked = {loads, lower, upper};
  return look_below(&asked, 1, 0, loads->width, bytes);
}
