/* SPDX-License-Identifier: MIT
 * Boxes are sorted by their beginnings, longer lives first. So the boxes between two cuts are neighbours in the array,
 * and those that span the whole stretch come first. After n spanning boxes were taken away, time can be cut where
 * exactly n lives cross. The sections are sorted by how many lives cross into them, so a binary search finds the next
 * cuts.
 */
#include "plan/interval/plan_parts.h"

#include "base/array.h"
#include "base/binary_search.h"
#include "base/error.h"
#include "plan/interval/live_bytes.h"

/* Sections between two cuts, and their boxes that are not yet taken away. */
typedef struct stretch {
  uint32_t lower, upper; /* sections */
  uint32_t first, count; /* boxes */
  uint32_t taken;        /* spanning boxes that were taken away */
  uint64_t base;
} stretch;

typedef struct cutter {
  rondo_scratch scratch; /* freed when the parts are made */
  const rondo_box_set *set;
  uint64_t *offsets;
  rondo_parts *parts;
  RONDO_ARRAY(stretch) open;
  rondo_sort_entry *crossings; /* (lives that cross, section), one for each section, ascending */
  uint32_t crossing_count;
  rondo_sort_entry *entries; /* 4 for each box; NULL: the problem is not cut */
} cutter;

/* Crossings -------------------------------------------------------------------------------------------------------- */

static uint64_t crossing_key(uint32_t lives, uint32_t section) { return (uint64_t)lives << 32 | section; }

/* Counts the lives that cross into each section but the first. */
static void count_crossings(cutter *c) {
  const rondo_boxes *all = &c->set->all;
  rondo_sort_entry *crossings = c->crossings;
  for (uint32_t i = 0; i < all->count; i++) {
    const rondo_box *box = &all->boxes[i];
    if (box->upper - box->lower < 2) continue;
    crossings[box->lower + 1].key++;
    if (box->upper < all->section_count) crossings[box->upper].key--;
  }
  for (uint32_t i = 1; i < all->section_count; i++) crossings[i].key += crossings[i - 1].key;
  for (uint32_t i = 0; i < all->section_count; i++) crossings[i].key = crossing_key((uint32_t)crossings[i].key, i);
  c->crossing_count = all->section_count;
  rondo_sort_entries(crossings, c->entries, c->crossing_count);
}

static uint32_t first_crossing(const cutter *c, uint64_t key) {
  uint32_t low = 0, high = c->crossing_count;
  RONDO_BINARY_SEARCH(low, high, middle, c->crossings[middle].key < key)
  return low;
}

/* Stretches -------------------------------------------------------------------------------------------------------- */

static uint32_t first_box_from(const cutter *c, const stretch *within, uint32_t section) {
  uint32_t low = within->first, high = within->first + within->count;
  RONDO_BINARY_SEARCH(low, high, middle, c->set->all.boxes[middle].lower < section)
  return low;
}

static rondo_status open_stretch(cutter *c, const stretch *within, uint32_t lower, uint32_t upper) {
  stretch made = *within;
  made.lower = lower;
  made.upper = upper;
  made.first = first_box_from(c, within, lower);
  made.count = first_box_from(c, within, upper) - made.first;
  return made.count == 0 ? RONDO_OK : rondo_array_push(c->scratch.allocator, &c->open, &made);
}

/* Opens the stretches between the cuts. *out_cut: there was a cut. */
static rondo_status cut(cutter *c, const stretch *whole, bool *out_cut) {
  uint32_t lower = whole->lower;
  uint32_t at = first_crossing(c, crossing_key(whole->taken, whole->lower + 1));
  *out_cut = false;
  for (; at < c->crossing_count && c->crossings[at].key < crossing_key(whole->taken, whole->upper); at++) {
    const uint32_t section = (uint32_t)(c->crossings[at].key & UINT32_MAX);
    RONDO_TRY(open_stretch(c, whole, lower, section));
    lower = section;
    *out_cut = true;
  }
  return *out_cut ? open_stretch(c, whole, lower, whole->upper) : RONDO_OK;
}

/* Places the boxes that span the stretch at its bottom. */
static void take_spanning(cutter *c, stretch *of) {
  const rondo_box *boxes = c->set->all.boxes;
  while (of->count > 0 && boxes[of->first].lower == of->lower && boxes[of->first].upper == of->upper) {
    c->offsets[of->first] = of->base;
    of->base += boxes[of->first].bytes;
    of->first++;
    of->count--;
    of->taken++;
  }
  if (of->base > c->parts->bottom) c->parts->bottom = of->base;
}

/* Parts ------------------------------------------------------------------------------------------------------------ */

static rondo_boxes boxes_of(const rondo_boxes *all, uint32_t first, uint32_t count) {
  rondo_boxes some = *all;
  some.boxes += first;
  some.items += first;
  some.steps += first;
  some.crowding += first;
  if (some.alignments != NULL) some.alignments += first;
  some.count = count;
  return some;
}

static rondo_status add_part(cutter *c, const stretch *of) {
  rondo_part part = {.boxes = boxes_of(&c->set->all, of->first, of->count),
                     .first = of->first,
                     .base = of->base,
                     .peak = UINT64_MAX,
                     .method = "none"};
  const bool is_cut = c->entries != NULL; /* else the part has all boxes, whose sections are numbered */
  if (is_cut) part.boxes.section_count = rondo_sections_number(part.boxes.boxes, part.boxes.count, c->entries);
  rondo_live_bytes live;
  RONDO_TRY(rondo_live_bytes_make(&c->scratch, &part.boxes, &live));
  for (uint32_t i = 0; i < part.boxes.count; i++) {
    const rondo_box *box = &part.boxes.boxes[i];
    part.boxes.crowding[i] = rondo_live_bytes_max(&live, box->lower, box->upper);
  }
  rondo_boxes_check(&part.boxes);
  part.lower_bound = is_cut ? live.tree[1].max : c->set->lower_bound;
  return rondo_array_push(c->scratch.allocator, c->parts, &part);
}

static rondo_status cut_all(cutter *c) {
  while (c->open.count > 0) {
    stretch next = c->open.items[--c->open.count];
    bool is_cut = false;
    RONDO_TRY(cut(c, &next, &is_cut));
    if (is_cut) continue;
    const uint32_t before = next.count;
    take_spanning(c, &next);
    if (next.count == 0) continue;
    if (next.count < before) {
      RONDO_TRY(rondo_array_push(c->scratch.allocator, &c->open, &next));
    } else {
      RONDO_TRY(add_part(c, &next));
    }
  }
  return RONDO_OK;
}

static rondo_status make_parts(cutter *c) {
  const rondo_boxes *all = &c->set->all;
  const stretch whole = {.upper = all->section_count, .count = all->count};
  if (all->obstacles != NULL || all->alignments != NULL) return add_part(c, &whole);
  RONDO_TRY(rondo_scratch_take(&c->scratch, all->section_count, sizeof *c->crossings, &c->crossings));
  RONDO_TRY(rondo_scratch_take(&c->scratch, all->count, 4 * sizeof *c->entries, &c->entries));
  count_crossings(c);
  RONDO_TRY(rondo_array_push(c->scratch.allocator, &c->open, &whole));
  return cut_all(c);
}

rondo_status rondo_parts_make(const rondo_allocator *allocator, const rondo_box_set *set, uint64_t *offsets,
                              rondo_parts *out) {
  *out = (rondo_parts){0};
  if (set->all.count == 0) return RONDO_OK;
  cutter c = {.scratch.allocator = allocator, .set = set, .offsets = offsets, .parts = out};
  const rondo_status status = make_parts(&c);
  rondo_array_free(allocator, &c.open);
  rondo_scratch_free(&c.scratch);
  return status;
}

rondo_part *rondo_parts_highest(const rondo_parts *parts) {
  rondo_part *found = NULL;
  for (size_t i = 0; i < parts->count; i++) {
    rondo_part *part = &parts->items[i];
    const bool is_higher = found == NULL || rondo_part_top(part) > rondo_part_top(found);
    if (is_higher || (rondo_part_top(part) == rondo_part_top(found) && part->optimal && !found->optimal)) found = part;
  }
  return found;
}
