/* SPDX-License-Identifier: MIT
 * Both keep the boxes that may be in the way sorted by offset.
 */
#include "plan/interval/best_fit.h"

#include <string.h>

#include "base/binary_search.h"

/* What is being placed, and the boxes in the way, by offset. */
typedef struct fit {
  const rondo_boxes *boxes;
  uint64_t limit;
  uint64_t *offsets;
  uint32_t *placed;
  uint32_t count;
  uint64_t peak;
} fit;

/* Puts the box at the offset, behind `place` of the placed ones. */
static bool put(fit *f, uint32_t box, uint32_t place, uint64_t offset) {
  const uint64_t bytes = f->boxes->boxes[box].bytes;
  if (offset > f->limit || bytes > f->limit - offset) return false;
  memmove(f->placed + place + 1, f->placed + place, (f->count - place) * sizeof *f->placed);
  f->placed[place] = box;
  f->count++;
  f->offsets[box] = offset;
  if (offset + bytes > f->peak) f->peak = offset + bytes;
  return true;
}

/* First fit -------------------------------------------------------------------------------------------------------- */

static uint32_t place_of_offset(const fit *f, uint64_t offset) {
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
  return put(f, box, place_of_offset(f, offset), offset);
}

bool rondo_first_fit(const rondo_boxes *boxes, const uint32_t *order, uint64_t limit, uint32_t *placed,
                     uint64_t *offsets, uint64_t *out_peak) {
  fit f = {.boxes = boxes, .limit = limit, .offsets = offsets, .placed = placed};
  for (uint32_t i = 0; i < boxes->count; i++) {
    if (!put_first(&f, order[i])) return false;
  }
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
  uint32_t place = f->count;
  uint64_t end = 0; /* of what lies below the gap */
  for (uint32_t i = 0; i < f->count; i++) {
    const uint64_t offset = rondo_box_offset(f->boxes, box, end);
    const uint64_t start = f->offsets[f->placed[i]];
    if (start >= offset && start - offset >= bytes && start - end < least) {
      least = start - end;
      best = offset;
      place = i;
    }
    end = start + f->boxes->boxes[f->placed[i]].bytes;
  }
  return put(f, box, place, least == UINT64_MAX ? rondo_box_offset(f->boxes, box, end) : best);
}

bool rondo_sweep_fit(const rondo_boxes *boxes, uint64_t limit, uint32_t *live, uint64_t *offsets, uint64_t *out_peak) {
  fit f = {.boxes = boxes, .limit = limit, .offsets = offsets, .placed = live};
  for (uint32_t i = 0; i < boxes->count; i++) {
    if (i > 0 && boxes->boxes[i].lower > boxes->boxes[i - 1].lower) forget_before(&f, boxes->boxes[i].lower);
    if (!put_best(&f, i)) return false;
  }
  *out_peak = f.peak;
  return true;
}
