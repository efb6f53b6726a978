/* SPDX-License-Identifier: MIT
 * Boxes that live within the window's sections are placed again. Boxes that live across its ends stay. Boxes outside do
 * not matter.
 */
#include "plan/search/window_search.h"

#include <string.h>

#include "base/error.h"

typedef struct view {
  rondo_scratch scratch;
  const rondo_boxes *whole;
  uint32_t lower, upper;   /* sections of the whole */
  uint32_t *inside;        /* boxes of the whole that are placed again */
  rondo_obstacle *outside; /* ranges of boxes that stay */
  uint32_t inside_count, outside_count;
  rondo_obstacles obstacles;
  rondo_boxes boxes; /* the boxes inside, with sections relative to the window */
  uint64_t *offsets; /* of those inside */
} view;

static uint64_t top_of(const rondo_boxes *boxes, const uint64_t *offsets, uint32_t box) {
  return offsets[box] + boxes->boxes[box].bytes;
}

static uint32_t highest(const rondo_boxes *boxes, const uint64_t *offsets) {
  uint32_t found = 0;
  for (uint32_t i = 1; i < boxes->count; i++) {
    if (top_of(boxes, offsets, i) > top_of(boxes, offsets, found)) found = i;
  }
  return found;
}

/* Boxes are sorted by their beginnings, so as many begin before the middle one as after it. */
static void choose_sections(view *v, uint32_t middle, uint32_t boxes) {
  const rondo_box *all = v->whole->boxes;
  const uint32_t half = boxes / 2;
  const uint32_t last = v->whole->count - 1;
  v->lower = all[middle > half ? middle - half : 0].lower;
  v->upper = all[last - middle > half ? middle + half : last].lower + 1;
  if (all[middle].upper > v->upper) v->upper = all[middle].upper;
}

static bool is_inside(const view *v, const rondo_box *box) { return box->lower >= v->lower && box->upper <= v->upper; }

static bool overlaps(const view *v, const rondo_box *box) { return box->lower < v->upper && box->upper > v->lower; }

static void count_boxes(view *v) {
  for (uint32_t i = 0; i < v->whole->count && v->whole->boxes[i].lower < v->upper; i++) {
    const rondo_box *box = &v->whole->boxes[i];
    if (is_inside(v, box)) {
      v->inside_count++;
    } else if (overlaps(v, box)) {
      v->outside_count++;
    }
  }
}

static rondo_obstacle range_of(const view *v, uint32_t box, const uint64_t *offsets) {
  const rondo_box *of = &v->whole->boxes[box];
  return (rondo_obstacle){.offset = offsets[box],
                          .end = top_of(v->whole, offsets, box),
                          .lower = of->lower > v->lower ? of->lower - v->lower : 0,
                          .upper = (of->upper < v->upper ? of->upper : v->upper) - v->lower};
}

static void list_boxes(view *v, const uint64_t *offsets) {
  uint32_t inside = 0;
  uint32_t outside = 0;
  for (uint32_t i = 0; i < v->whole->count && v->whole->boxes[i].lower < v->upper; i++) {
    const rondo_box *box = &v->whole->boxes[i];
    if (is_inside(v, box)) {
      v->boxes.boxes[inside] = (rondo_box){box->bytes, box->lower - v->lower, box->upper - v->lower};
      v->boxes.steps[inside] = v->whole->steps[i];
      v->boxes.crowding[inside] = v->whole->crowding[i];
      if (v->whole->alignments != NULL) v->boxes.alignments[inside] = v->whole->alignments[i];
      v->offsets[inside] = offsets[i];
      v->inside[inside++] = i;
    } else if (overlaps(v, box)) {
      v->outside[outside++] = range_of(v, i, offsets);
    }
  }
}

static rondo_status open_view(view *v, uint32_t middle, uint32_t boxes, const uint64_t *offsets) {
  choose_sections(v, middle, boxes);
  count_boxes(v);
  const size_t count = v->inside_count;
  RONDO_TRY(rondo_scratch_take(&v->scratch, count, sizeof *v->inside, &v->inside));
  RONDO_TRY(rondo_scratch_take(&v->scratch, v->outside_count, sizeof *v->outside, &v->outside));
  RONDO_TRY(rondo_scratch_take(&v->scratch, count, sizeof *v->offsets, &v->offsets));
  RONDO_TRY(rondo_scratch_take(&v->scratch, count, sizeof *v->boxes.boxes, &v->boxes.boxes));
  RONDO_TRY(rondo_scratch_take(&v->scratch, count, sizeof *v->boxes.steps, &v->boxes.steps));
  RONDO_TRY(rondo_scratch_take(&v->scratch, count, sizeof *v->boxes.crowding, &v->boxes.crowding));
  if (v->whole->alignments != NULL) {
    RONDO_TRY(rondo_scratch_take(&v->scratch, count, sizeof *v->boxes.alignments, &v->boxes.alignments));
  }
  list_boxes(v, offsets);
  RONDO_TRY(rondo_obstacles_make(&v->scratch, v->outside, v->outside_count, &v->obstacles));
  v->boxes.count = v->inside_count;
  v->boxes.section_count = v->upper - v->lower;
  if (v->obstacles.count > 0) v->boxes.obstacles = &v->obstacles;
  return RONDO_OK;
}

static rondo_status improve_view(const view *v, const rondo_restarts *restarts, rondo_window *window, uint64_t *offsets,
                                 uint64_t *out_steps) {
  uint64_t runs = 0;
  uint64_t peak = rondo_boxes_peak(v->boxes.boxes, v->inside_count, v->offsets);
  const uint64_t before = peak;
  rondo_restarts within = *restarts;
  within.boxes = &v->boxes;
  if (within.runs > window->most_steps / v->inside_count) within.runs = window->most_steps / v->inside_count;
  RONDO_TRY(rondo_restarts_improve(v->scratch.allocator, &within, v->offsets, &peak, &runs));
  for (uint32_t i = 0; i < v->inside_count; i++) offsets[v->inside[i]] = v->offsets[i];
  window->lowered = peak < before;
  *out_steps = runs * v->inside_count;
  return RONDO_OK;
}

rondo_status rondo_window_improve(const rondo_allocator *allocator, const rondo_restarts *restarts,
                                  rondo_window *window, uint64_t *inout_offsets, uint64_t *inout_peak,
                                  uint64_t *out_steps) {
  view v = {.scratch.allocator = allocator, .whole = restarts->boxes};
  window->lowered = false;
  *out_steps = 0;
  rondo_status status = open_view(&v, highest(v.whole, inout_offsets), window->boxes, inout_offsets);
  if (status == RONDO_OK) status = improve_view(&v, restarts, window, inout_offsets, out_steps);
  rondo_scratch_free(&v.scratch);
  if (window->lowered) *inout_peak = rondo_boxes_peak(v.whole->boxes, v.whole->count, inout_offsets);
  return status;
}
