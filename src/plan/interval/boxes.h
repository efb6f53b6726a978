/* SPDX-License-Identifier: MIT
 * What is placed: boxes, which are the items that have bytes, over sections of time. Alignment is folded into the sizes
 * where that loses nothing, or next to nothing: where every size is a multiple of the largest alignment, offsets that
 * are sums of sizes are aligned by themselves.
 */
#ifndef RONDO_PLAN_INTERVAL_BOXES_H
#define RONDO_PLAN_INTERVAL_BOXES_H

#include "plan/interval/obstacles.h"
#include "plan/plan_internal.h"

/* Boxes that are placed together; the arrays are parallel, in the order of `lower`, then of `upper` from the last. */
typedef struct rondo_boxes {
  rondo_box *boxes;
  uint32_t *items;     /* their numbers in the problem */
  uint32_t *steps;     /* lengths of the lives */
  uint64_t *crowding;  /* most bytes of these boxes live at once during each one's life */
  uint8_t *alignments; /* logarithms; NULL: offsets that are sums of sizes are aligned */
  uint32_t count;
  uint32_t section_count;
  const rondo_obstacles *obstacles; /* NULL: none */
} rondo_boxes;

/* All boxes of a problem, which own their arrays. crowding has room, but is filled by those who group the boxes. */
typedef struct rondo_box_set {
  rondo_boxes all;
  rondo_obstacles obstacles;
  size_t room;          /* entries allocated */
  uint64_t lower_bound; /* of the items' peak, in their own sizes */
  bool rounded;         /* sizes were changed: a plan at the boxes' bound may lie above the items' */
} rondo_box_set;

/* Errors: OUT_OF_MEMORY. */
RONDO_MUST_USE rondo_status rondo_box_set_make(rondo_scratch *scratch, const rondo_plan_problem *problem,
                                               rondo_box_set *out);

/* Checks that look at pairs look at no more boxes than this. */
#define RONDO_CHECKED_BOXES 32

/* Where the highest box ends. */
uint64_t rondo_boxes_peak(const rondo_box *boxes, uint32_t count, const uint64_t *offsets);

/* The lowest offset from `height` on to which the box is aligned; UINT64_MAX: there is none. */
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
/* Asserts that the offsets are aligned and that no box ends above `peak`; of few boxes, also that no two that live at
 * once overlap, and none overlaps an obstacle. */
void rondo_boxes_check_plan(const rondo_boxes *boxes, const uint64_t *offsets, uint64_t peak);
#endif

#endif
