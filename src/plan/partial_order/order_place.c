/* SPDX-License-Identifier: MIT
 * Entries are in blocks. A block knows the lowest offset of its unplaced entries and the preferred entry there. A
 * tournament tree over the blocks has the entry to place next. Placing an item raises the lowest offsets of all entries
 * that conflict with it. A block whose entries are all raised stores one number; a block of which a part is raised
 * becomes stale, and is refreshed only when it is next. A stale value is a lower bound, so nothing is placed too early.
 */
#include "plan/partial_order/order_place.h"

#include "base/error.h"

#define PLACED UINT32_MAX
#define BLOCK 32

struct rondo_order_placer_block {
  size_t floor;  /* the lowest offset of its unplaced entries, or less if stale; SIZE_MAX: all are placed */
  size_t lift;   /* all entries are at least at this offset */
  uint32_t best; /* the preferred entry at the floor */
  bool is_stale;
};
typedef struct rondo_order_placer_block block;

/* Blocks ----------------------------------------------------------------------------------------------------------- */

/* Computes the floor and the best entry from all entries. */
static void refresh(rondo_order_placer *p, uint32_t number) {
  block *own = &p->blocks[number];
  const uint32_t begin = number * BLOCK;
  const uint32_t end = p->index->count - begin > BLOCK ? begin + BLOCK : p->index->count;
  own->floor = SIZE_MAX;
  own->best = begin;
  own->is_stale = false;
  for (uint32_t i = begin; i < end; i++) {
    if (p->lowest[i] < own->lift) p->lowest[i] = own->lift;
    if (p->ranks[i] == PLACED || p->lowest[i] > own->floor) continue;
    if (p->lowest[i] < own->floor || p->ranks[i] < p->ranks[own->best]) own->best = i;
    own->floor = p->lowest[i];
  }
}

static bool goes_before(const rondo_order_placer *p, uint32_t a, uint32_t b) {
  const block *x = &p->blocks[a];
  const block *y = &p->blocks[b];
  return x->floor != y->floor ? x->floor < y->floor : p->ranks[x->best] < p->ranks[y->best];
}

static void update_winner(rondo_order_placer *p, uint32_t node) {
  const uint32_t left = p->winners[2 * node];
  const uint32_t right = p->winners[2 * node + 1];
  p->winners[node] = right < p->block_count && goes_before(p, right, left) ? right : left;
}

static void fill_winners(rondo_order_placer *p) {
  for (uint32_t i = 0; i < p->leaves; i++) p->winners[p->leaves + i] = i;
  for (uint32_t node = p->leaves; node-- > 1;) update_winner(p, node);
}

static void refresh_and_update(rondo_order_placer *p, uint32_t number) {
  refresh(p, number);
  for (uint32_t node = (p->leaves + number) / 2; node > 0; node /= 2) update_winner(p, node);
}

static void lift_entry(rondo_order_placer *p, uint32_t entry, size_t top) {
  block *own = &p->blocks[entry / BLOCK];
  if (p->lowest[entry] < top) p->lowest[entry] = top;
  if (own->floor < top) own->is_stale = true;
}

static void lift_range(rondo_order_placer *p, rondo_index_range range, size_t top) {
  for (uint32_t at = range.begin; at < range.end;) {
    block *own = &p->blocks[at / BLOCK];
    const uint32_t end = range.end - at > BLOCK - at % BLOCK ? at + BLOCK - at % BLOCK : range.end;
    if (own->floor < top) own->is_stale = true;
    if (end - at == BLOCK) {
      if (own->lift < top) own->lift = top;
    } else {
      for (uint32_t i = at; i < end; i++) p->lowest[i] = p->lowest[i] < top ? top : p->lowest[i];
    }
    at = end;
  }
}

static void lift_conflicts(rondo_order_placer *p, uint32_t entry, size_t top) {
  rondo_order_index_find(p->index, entry, &p->conflicts);
  for (uint32_t i = 0; i < p->conflicts.range_count; i++) lift_range(p, p->conflicts.ranges[i], top);
  for (uint32_t i = 0; i < p->conflicts.other_count; i++) lift_entry(p, p->conflicts.others[i], top);
}

/* Placing ---------------------------------------------------------------------------------------------------------- */

/* The lowest offset, from `from` on, at which the entry is aligned and overlaps no obstacle. False if there is none. */
static bool find_fit(const rondo_order_placer *p, uint32_t entry, size_t from, size_t *out) {
  const rondo_lifetimes *lifetimes = p->index->lifetimes;
  const rondo_plan_item *item = &lifetimes->problem->items[p->index->items[entry]];
  const size_t alignment = item->alignment == 0 ? 1 : item->alignment;
  const rondo_conflict conflict = rondo_conflict_of(lifetimes, &p->index->by_entry[entry]);
  size_t top = 0;
  if (!rondo_checked_align(from, alignment, out) || !rondo_checked_add(*out, item->bytes, &top)) return false;
  for (size_t i = 0; i < lifetimes->by_offset_count && lifetimes->by_offset[i].key < top; i++) {
    const uint32_t number = lifetimes->by_offset[i].value;
    const size_t end = lifetimes->by_offset[i].key + lifetimes->problem->obstacles[number].bytes;
    if (end <= *out || !rondo_conflict_one(lifetimes, &conflict, &lifetimes->obstacles[number])) continue;
    if (!rondo_checked_align(end, alignment, out) || !rondo_checked_add(*out, item->bytes, &top)) return false;
  }
  return true;
}

static rondo_status fail_high(const rondo_lifetimes *lifetimes, uint32_t item, size_t offset) {
  return rondo_fail(RONDO_LIMIT_EXCEEDED, RONDO_REASON_BAD_SIZE,
                    "item %u of a plan (%zu bytes) does not fit at offset %zu or above: offsets have %zu bits: make "
                    "the items smaller",
                    item, lifetimes->problem->items[item].bytes, offset, 8 * sizeof(size_t));
}

/* Places the best entry of a block. If it must go higher than its lowest offset, raises that instead, and *out_top is
 * 0. */
static rondo_status place_best(rondo_order_placer *p, uint32_t number, size_t *offsets, size_t *out_top) {
  const rondo_lifetimes *lifetimes = p->index->lifetimes;
  const uint32_t entry = p->blocks[number].best;
  const uint32_t item = p->index->items[entry];
  const size_t lowest = p->lowest[entry];
  size_t offset = 0;
  size_t top = 0;
  *out_top = 0;
  if (!find_fit(p, entry, lowest, &offset)) return fail_high(lifetimes, item, lowest);
  p->blocks[number].is_stale = true;
  p->lowest[entry] = offset;
  if (offset > lowest) return RONDO_OK;
  offsets[item] = offset;
  *out_top = top = offset + lifetimes->problem->items[item].bytes;
  if (top == SIZE_MAX) return fail_high(lifetimes, item, offset); /* a floor of SIZE_MAX means placed */
  (void)rondo_checked_align(*out_top, p->index->grain, &top);     /* otherwise it remains the unaligned top */
  p->ranks[entry] = PLACED;
  lift_conflicts(p, entry, top);
  return RONDO_OK;
}

static void begin(rondo_order_placer *p, const uint32_t *ranks, size_t *offsets) {
  for (size_t i = 0; i < p->index->lifetimes->problem->count; i++) offsets[i] = 0;
  for (uint32_t i = 0; i < p->index->count; i++) {
    p->lowest[i] = 0;
    p->ranks[i] = ranks[p->index->items[i]];
  }
  for (uint32_t i = 0; i < p->block_count; i++) {
    p->blocks[i].lift = 0;
    refresh(p, i);
  }
  fill_winners(p);
}

rondo_status rondo_order_placer_run(rondo_order_placer *placer, const uint32_t *ranks, size_t *offsets,
                                    size_t *out_peak) {
  *out_peak = 0;
  if (placer->index->count == 0) return RONDO_OK;
  begin(placer, ranks, offsets);
  while (placer->blocks[placer->winners[1]].floor != SIZE_MAX) {
    const uint32_t number = placer->winners[1];
    size_t top = 0;
    if (!placer->blocks[number].is_stale) RONDO_TRY(place_best(placer, number, offsets, &top));
    if (top > *out_peak) *out_peak = top;
    if (placer->blocks[number].is_stale) refresh_and_update(placer, number);
  }
  return RONDO_OK;
}

/* Stacking --------------------------------------------------------------------------------------------------------- */

static bool stack_one(rondo_order_placer *p, uint32_t entry, size_t *offsets, size_t *inout_peak) {
  const uint32_t item = p->index->items[entry];
  const size_t lift = p->blocks[entry / BLOCK].lift;
  if (p->lowest[entry] < lift) p->lowest[entry] = lift;
  if (!find_fit(p, entry, p->lowest[entry], &offsets[item])) return false;
  const size_t top = offsets[item] + p->index->lifetimes->problem->items[item].bytes;
  if (top > *inout_peak) *inout_peak = top;
  lift_conflicts(p, entry, top);
  return true;
}

/* `entries` by rank; items without bytes have none. */
static void begin_stack(rondo_order_placer *p, const uint32_t *ranks, uint32_t *entries, size_t *offsets) {
  const size_t count = p->index->lifetimes->problem->count;
  for (size_t i = 0; i < count; i++) offsets[i] = 0, entries[i] = UINT32_MAX;
  for (uint32_t i = 0; i < p->index->count; i++) {
    entries[ranks[p->index->items[i]]] = i;
    p->lowest[i] = 0;
  }
  for (uint32_t i = 0; i < p->block_count; i++) p->blocks[i] = (block){.lift = 0};
}

rondo_status rondo_order_placer_stack(rondo_scratch *scratch, rondo_order_placer *placer, const uint32_t *ranks,
                                      size_t *offsets, size_t *out_peak) {
  const size_t count = placer->index->lifetimes->problem->count;
  uint32_t *entries;
  *out_peak = 0;
  RONDO_TRY(rondo_scratch_take(scratch, count, sizeof *entries, &entries));
  begin_stack(placer, ranks, entries, offsets);
  bool fits = true;
  for (size_t i = 0; i < count && fits; i++)
    if (entries[i] != UINT32_MAX) fits = stack_one(placer, entries[i], offsets, out_peak);
  if (!fits) *out_peak = SIZE_MAX;
  return RONDO_OK;
}

/* The whole -------------------------------------------------------------------------------------------------------- */

rondo_status rondo_order_placer_make(rondo_scratch *scratch, const rondo_order_index *index, rondo_order_placer *out) {
  *out = (rondo_order_placer){.index = index, .leaves = 1};
  out->block_count = index->count / BLOCK + (index->count % BLOCK > 0);
  while (out->leaves < out->block_count) out->leaves *= 2;
  RONDO_TRY(rondo_scratch_take(scratch, out->block_count, sizeof *out->blocks, &out->blocks));
  RONDO_TRY(rondo_scratch_take(scratch, 2 * (size_t)out->leaves, sizeof *out->winners, &out->winners));
  RONDO_TRY(rondo_scratch_take(scratch, index->count, sizeof *out->lowest, &out->lowest));
  RONDO_TRY(rondo_scratch_take(scratch, index->count, sizeof *out->ranks, &out->ranks));
  return rondo_index_conflicts_make(scratch, index, &out->conflicts);
}
