/* SPDX-License-Identifier: MIT
 * Placement on the lowest skyline. Time runs to the right and offsets go up; placed boxes make a skyline of segments.
 * In each step, a segment that is lower than its neighbours takes the first box in a given order of preference whose
 * life fits into it. If none fits, the segment is raised to its lower neighbour and joins it. An obstacle joins the
 * skyline when a segment reaches it; below it, only boxes fit that do not overlap it.
 *
 * A skyline is working memory that is used repeatedly; one thread at a time.
 */
#ifndef RONDO_PLAN_INTERVAL_SKYLINE_H
#define RONDO_PLAN_INTERVAL_SKYLINE_H

#include "plan/interval/box_tree.h"
#include "plan/interval/boxes.h"
#include "plan/interval/live_bytes.h"

typedef struct rondo_skyline_segment rondo_skyline_segment;

/* Why a run failed: the boxes that are still to be placed in `section` do not fit above the segment of sections [lower,
 * upper), on which nothing fits any more. */
typedef struct rondo_skyline_conflict {
  uint32_t section, lower, upper;
} rondo_skyline_conflict;

typedef struct rondo_skyline {
  const rondo_boxes *boxes;
  rondo_box_tree tree;
  rondo_skyline_segment *segments;
  uint32_t *spare; /* unused segments */
  uint32_t spare_count;
  uint32_t capacity;      /* capacity in segments */
  rondo_live_bytes *live; /* bytes still to be placed, to end a run early that cannot succeed; NULL: not counted */
  rondo_skyline_conflict conflict; /* of the last run, if it failed */
} rondo_skyline;

/* Makes a skyline for at most `boxes` boxes over `sections` sections. Errors: OUT_OF_MEMORY. */
RONDO_MUST_USE rondo_status rondo_skyline_make(rondo_scratch *scratch, uint32_t boxes, uint32_t sections,
                                               rondo_skyline *out);

/* Sets the boxes to place, with `live` NULL. They must stay until the next call. */
void rondo_skyline_bind(rondo_skyline *skyline, const rondo_boxes *boxes);

/* Places the boxes, order[0] preferred. False as soon as a box would end above `limit` or, with `live`, as soon as one
 * must: then the offsets are unusable, and `conflict` says why. *out_peak is where the highest box ends. */
bool rondo_skyline_place(rondo_skyline *skyline, const uint32_t *order, uint64_t limit, uint64_t *offsets,
                         uint64_t *out_peak);

#endif
