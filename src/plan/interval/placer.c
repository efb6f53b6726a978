/* SPDX-License-Identifier: MIT
 * The methods of placing boxes, which share working memory: the skyline in an order of preference; first fit and sweep,
 * which place boxes one by one; slots of one size. First fit and sweep keep the boxes that may be in the way sorted by
 * offset.
 */
#include "plan/interval/placer.h"

#include <string.h>

#include "base/binary_search.h"
#include "base/error.h"

rondo_status rondo_placer_make(rondo_scratch *scratch, uint32_t boxes, uint32_t sections, rondo_placer *out) {
  *out = (rondo_placer){0};
  RONDO_TRY(rondo_skyline_make(scratch, boxes, sections, &out->skyline));
  RONDO_TRY(rondo_scratch_take(scratch, boxes, sizeof *out->trial, &out->trial));
  RONDO_TRY(rondo_scratch_take(scratch, boxes, sizeof *out->order, &out->order));
  RONDO_TRY(rondo_scratch_take(scratch, boxes, sizeof *out->placed, &out->placed));
  return rondo_scratch_take(scratch, boxes, 2 * sizeof *out->entries, &out->entries);
}

void rondo_placer_bind(rondo_placer *placer, const rondo_boxes *boxes) {
  placer->boxes = boxes;
  rondo_skyline_bind(&placer->skyline, boxes);
}

bool rondo_placer_by_order(rondo_placer *placer, uint64_t limit, uint64_t *out_peak) {
  return rondo_skyline_place(&placer->skyline, placer->order, limit, placer->trial, out_peak);
}

bool rondo_placer_by_rule(rondo_placer *placer, const rondo_rule *rule, uint64_t limit, uint64_t *out_peak) {
  rondo_rule_order(rule, placer->boxes, placer->entries, placer->order);
  return rondo_placer_by_order(placer, limit, out_peak);
}

/* One by one ------------------------------------------------------------------------------------------------------- */

/* The state of placing boxes one by one. */
typedef struct fit {
  const rondo_boxes *boxes;
  uint64_t limit;
  uint64_t *offsets;
  uint32_t *placed; /* boxes that may be in the way, by offset */
  uint32_t count;   /* of them */
  uint64_t peak;
} fit;

/* Places the box at the offset. `index` is its index among the placed boxes. False: it would end above the limit. */
static bool put(fit *f, uint32_t box, uint32_t index, uint64_t offset) {
  const uint64_t bytes = f->boxes->boxes[box].bytes;
  if (offset > f->limit || bytes > f->limit - offset) return false;
  memmove(f->placed + index + 1, f->placed + index, (f->count - index) * sizeof *f->placed);
  f->placed[index] = box;
  f->count++;
  f->offsets[box] = offset;
  if (offset + bytes > f->peak) f->peak = offset + bytes;
  return true;
}

/* First fit -------------------------------------------------------------------------------------------------------- */

static uint32_t index_of_offset(const fit *f, uint64_t offset) {
  uint32_t low = 0, high = f->count;
  RONDO_BINARY_SEARCH(low, high, middle, f->offsets[f->placed[middle]] < offset)
  return low;
}

static bool put_first(fit *f, uint32_t box) {
  const rondo_box *own = &f->boxes->boxes[box];
  uint64_t offset = 0;
  for (uint32_t i = 0; i < f->count; i++) {
    const rondo_box *other = &f->boxes->boxes[f->placed[i]];
    const uint64_t start = f->offsets[f->placed[i]];
    if (other->lower >= own->upper || own->lower >= other->upper || start + other->bytes <= offset) continue;
    if (start >= offset && start - offset >= own->bytes) break;
    offset = rondo_box_offset(f->boxes, box, start + other->bytes);
  }
  return put(f, box, index_of_offset(f, offset), offset);
}

bool rondo_placer_by_first_fit(rondo_placer *placer, uint64_t limit, uint64_t *out_peak) {
  fit f = {.boxes = placer->boxes, .limit = limit, .offsets = placer->trial, .placed = placer->placed};
  rondo_rule_order(rondo_first_fit_rule(), placer->boxes, placer->entries, placer->order);
  for (uint32_t i = 0; i < placer->boxes->count; i++) {
    if (!put_first(&f, placer->order[i])) return false;
  }
  rondo_boxes_check_plan(placer->boxes, placer->trial, f.peak);
  *out_peak = f.peak;
  return true;
}

/* Sweep ------------------------------------------------------------------------------------------------------------ */

static void forget_before(fit *f, uint32_t section) {
  uint32_t kept = 0;
  for (uint32_t i = 0; i < f->count; i++) {
    if (f->boxes->boxes[f->placed[i]].upper > section) f->placed[kept++] = f->placed[i];
  }
  f->count = kept;
}

static bool put_best(fit *f, uint32_t box) {
  const uint64_t bytes = f->boxes->boxes[box].bytes;
  uint64_t least = UINT64_MAX;
  uint64_t best = 0;
  uint32_t index = f->count;
  uint64_t end = 0; /* of the box below the gap */
  for (uint32_t i = 0; i < f->count; i++) {
    const uint64_t offset = rondo_box_offset(f->boxes, box, end);
    const uint64_t start = f->offsets[f->placed[i]];
    if (start >= offset && start - offset >= bytes && start - end < least) {
      least = start - end;
      best = offset;
      index = i;
    }
    end = start + f->boxes->boxes[f->placed[i]].bytes;
  }
  return put(f, box, index, least == UINT64_MAX ? rondo_box_offset(f->boxes, box, end) : best);
}

bool rondo_placer_by_sweep(rondo_placer *placer, uint64_t limit, uint64_t *out_peak) {
  const rondo_boxes *boxes = placer->boxes;
  fit f = {.boxes = boxes, .limit = limit, .offsets = placer->trial, .placed = placer->placed};
  for (uint32_t i = 0; i < boxes->count; i++) {
    if (i > 0 && boxes->boxes[i].lower > boxes->boxes[i - 1].lower) forget_before(&f, boxes->boxes[i].lower);
    if (!put_best(&f, i)) return false;
  }
  rondo_boxes_check_plan(placer->boxes, placer->trial, f.peak);
  *out_peak = f.peak;
  return true;
}

/* Equal sizes ------------------------------------------------------------------------------------------------------ */

static bool are_equal(const rondo_boxes *boxes) {
  for (uint32_t i = 1; i < boxes->count; i++) {
    if (boxes->boxes[i].bytes != boxes->boxes[0].bytes) return false;
  }
  return true;
}

/* Goes over the boxes by their beginnings, and over their ends at the same time. Free slots are on a stack. A new slot
 * is made only if none is free, as in colouring an interval graph. */
bool rondo_placer_by_slots(rondo_placer *placer, uint64_t *out_peak) {
  const rondo_boxes *boxes = placer->boxes;
  rondo_sort_entry *const entries = placer->entries;
  uint32_t *const slots = placer->placed;
  uint64_t *const offsets = placer->trial;
  if (!are_equal(boxes)) return false;
  const uint64_t bytes = boxes->boxes[0].bytes;
  for (uint32_t i = 0; i < boxes->count; i++) entries[i] = (rondo_sort_entry){boxes->boxes[i].upper, i};
  rondo_sort_entries(entries, entries + boxes->count, boxes->count);
  uint32_t made = 0;
  uint32_t free_count = 0;
  for (uint32_t i = 0, ended = 0; i < boxes->count; i++) {
    for (; entries[ended].key <= boxes->boxes[i].lower; ended++) {
      slots[free_count++] = (uint32_t)(offsets[entries[ended].value] / bytes);
    }
    offsets[i] = (free_count > 0 ? slots[--free_count] : made++) * bytes;
  }
  rondo_boxes_check_plan(boxes, offsets, made * bytes);
  *out_peak = made * bytes;
  return true;
}
