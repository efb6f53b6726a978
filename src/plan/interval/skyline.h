/* SPDX-License-Identifier: MIT
 * Lowest-skyline placing. Time runs to the right and offsets go up; what is placed makes a skyline of segments. Again
 * and again a segment that is lower than its neighbours takes the box that comes first in a given order among those
 * whose life fits into it; where none fits, the segment is lifted to its lower neighbour and joins it. An obstacle
 * joins the skyline where a segment reaches it; below it, only boxes that leave it alone fit.
 *
 * A skyline is working memory that is used repeatedly; one thread at a time.
 */
#ifndef RONDO_PLAN_INTERVAL_SKYLINE_H
#define RONDO_PLAN_INTERVAL_SKYLINE_H

#include "plan/interval/box_tree.h"
#include "plan/interval/boxes.h"
#include "plan/interval/live_bytes.h"

typedef struct rondo_skyline_segment rondo_skyline_segment;

/* Why a run failed: what is still to be placed in `section` has no room above the segment of sections `lower` up to
 * `upper`, on which nothing fits any more. */
typedef struct rondo_skyline_conflict {
  uint32_t section, lower, upper;
} rondo_skyline_conflict;

typedef struct rondo_skyline {
  const rondo_boxes *boxes;
  rondo_box_tree tree;
  rondo_skyline_segment *segments;
  uint32_t *spare; /* segments that are not in use */
  uint32_t spare_count;
  uint32_t room;                   /* segments allocated */
  rondo_live_bytes *live;          /* of the boxes: runs that cannot succeed end early; NULL: not kept */
  rondo_skyline_conflict conflict; /* of the last run, where it failed */
} rondo_skyline;

/* Room for `boxes` boxes over `sections` sections. Errors: OUT_OF_MEMORY. */
RONDO_MUST_USE rondo_status rondo_skyline_make(rondo_scratch *scratch, uint32_t boxes, uint32_t sections,
                                               rondo_skyline *out);

/* What is placed from now on, without live; it must stay until the next call. */
void rondo_skyline_bind(rondo_skyline *skyline, const rondo_boxes *boxes);

/* Places the boxes, order[0] preferred. False as soon as one would end above `limit`, or with loads as soon as one
 * must; offsets are then not to be used, and the skyline's conflict says why. *out_peak is where the highest box ends.
 */
bool rondo_skyline_place(rondo_skyline *skyline, const uint32_t *order, uint64_t limit, uint64_t *offsets,
                         uint64_t *out_peak);

#endif
