/* SPDX-License-Identifier: MIT
 * The boxes to place: the items that have bytes, over sections of time. If every size is a multiple of the largest
 * alignment, offsets that are sums of sizes are aligned by themselves, and alignment is ignored. Sizes are rounded up
 * for this if it costs nothing, or next to nothing.
 */
#ifndef RONDO_PLAN_INTERVAL_BOXES_H
#define RONDO_PLAN_INTERVAL_BOXES_H

#include "plan/interval/obstacles.h"
#include "plan/plan_internal.h"

/* Boxes that are placed together. The arrays are parallel, sorted by `lower`, and then by `upper`, largest first. */
typedef struct rondo_boxes {
  rondo_box *boxes;
  uint32_t *items;     /* their numbers in the problem */
  uint32_t *steps;     /* lengths of the lives */
  uint64_t *crowding;  /* the maximum of these boxes' bytes that are live at once during the life of each */
  uint8_t *alignments; /* logarithms; NULL: not needed, offsets that are sums of sizes are aligned */
  uint32_t count;
  uint32_t section_count;
  const rondo_obstacles *obstacles; /* NULL: none */
} rondo_boxes;

/* All boxes of a problem. The set owns the arrays. `crowding` is allocated here, and filled when the boxes are grouped
 * into parts. */
typedef struct rondo_box_set {
  rondo_boxes all;
  rondo_obstacles obstacles;
  size_t capacity;      /* of the arrays */
  uint64_t lower_bound; /* of the peak of the items, with their own sizes */
  bool rounded;         /* sizes were rounded: a plan at the boxes' bound may be above the items' bound */
} rondo_box_set;

/* Errors: OUT_OF_MEMORY. */
RONDO_MUST_USE rondo_status rondo_box_set_make(rondo_scratch *scratch, const rondo_plan_problem *problem,
                                               rondo_box_set *out);

/* Debug checks of pairs are limited to this many boxes. */
#define RONDO_CHECKED_BOXES 32

/* Where the highest box ends. */
uint64_t rondo_boxes_peak(const rondo_box *boxes, uint32_t count, const uint64_t *offsets);

/* The lowest aligned offset of the box from `height` on; UINT64_MAX: there is none. */
static inline uint64_t rondo_box_offset(const rondo_boxes *boxes, uint32_t box, uint64_t height) {
  if (boxes->alignments == NULL) return height;
  const uint64_t rest = ((uint64_t)1 << boxes->alignments[box]) - 1;
  return height > UINT64_MAX - rest ? UINT64_MAX : (height + rest) & ~rest;
}

#ifdef NDEBUG
static inline void rondo_boxes_check(const rondo_boxes *boxes) { (void)boxes; }
static inline void rondo_boxes_check_plan(const rondo_boxes *boxes, const uint64_t *offsets, uint64_t peak) {
  (void)boxes;
  (void)offsets;
  (void)peak;
}
#else
/* Asserts that the boxes are sorted by their first sections and are within the sections. Linear. */
void rondo_boxes_check(const rondo_boxes *boxes);
/* Asserts that the offsets are aligned and that no box ends above `peak`. For few boxes, also asserts that no two boxes
 * overlap, and no box overlaps an obstacle. */
void rondo_boxes_check_plan(const rondo_boxes *boxes, const uint64_t *offsets, uint64_t peak);
#endif

#endif
