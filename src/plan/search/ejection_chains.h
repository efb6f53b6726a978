/* SPDX-License-Identifier: MIT
 * Repairs a plan by ejection chains. A box that is out of the plan goes to the offset where it overlaps the least cost
 * of other boxes; those are ejected, until no box is out. The cost of a box grows with how hard it is to place and with
 * how often it was ejected, so boxes that compete for the same bytes soon look elsewhere.
 */
#ifndef RONDO_PLAN_SEARCH_EJECTION_CHAINS_H
#define RONDO_PLAN_SEARCH_EJECTION_CHAINS_H

#include "plan/interval/overlapping_boxes.h"

typedef struct rondo_repair {
  const rondo_boxes *boxes;     /* without alignments and obstacles */
  rondo_neighbours *neighbours; /* of the boxes */
  const uint32_t *order;        /* all boxes: the order in which those that are out go in at first */
  const uint8_t *states;        /* of each: RONDO_REPAIR_ */
  uint64_t limit;               /* no box ends above it, and none has more bytes */
  uint64_t most_scans;          /* a scan is a visit of a box that overlaps the one that goes in */
  uint64_t deadline_ns;         /* of rondo_clock_ns; 0: none */
  uint64_t stop_scans;          /* cut short after so many; until then, the result does not depend on it; 0: never */
} rondo_repair;

enum {
  RONDO_REPAIR_IN,
  RONDO_REPAIR_DEAR, /* in, and expensive to eject */
  RONDO_REPAIR_OUT
};

/* *out_done: all boxes are in, and the offsets are a plan. Else the repair stopped early, and the offsets are unusable.
 * *out_scans: the scans it took. Errors: OUT_OF_MEMORY. */
RONDO_MUST_USE rondo_status rondo_repair_run(const rondo_allocator *allocator, const rondo_repair *repair,
                                             uint64_t *inout_offsets, bool *out_done, uint64_t *out_scans);

#endif
