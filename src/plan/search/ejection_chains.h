/* SPDX-License-Identifier: MIT
 * Placing what is out of a plan into it, by ejection chains: a box goes where it lies on the least of what is there,
 * which goes out in its place, until nothing is out. Boxes are as dear as they are hard to place, and dearer each time
 * they are put out, so that those that fight for the same bytes look elsewhere after a while.
 */
#ifndef RONDO_PLAN_SEARCH_EJECTION_CHAINS_H
#define RONDO_PLAN_SEARCH_EJECTION_CHAINS_H

#include "plan/interval/overlapping_boxes.h"

typedef struct rondo_repair {
  const rondo_boxes *boxes;     /* without alignments and obstacles */
  rondo_neighbours *neighbours; /* of the boxes */
  const uint32_t *order;        /* all of them: in which order those that are out go in at first */
  const uint8_t *states;        /* of each: RONDO_REPAIR_ */
  uint64_t limit;               /* no box ends above it, and none has more bytes */
  uint64_t most_scans;          /* of boxes that overlap one that goes in */
  uint64_t deadline_ns;         /* of rondo_clock_ns; 0: none */
  uint64_t stop_scans;          /* it is cut short after so many, and up to there goes on as without; 0: never */
} rondo_repair;

enum {
  RONDO_REPAIR_IN,
  RONDO_REPAIR_DEAR, /* in, and better left there */
  RONDO_REPAIR_OUT
};

/* *out_done: all are in, and the offsets are a plan. Else it was given up, and the offsets are of no use. *out_scans:
 * done. Errors: OUT_OF_MEMORY. */
RONDO_MUST_USE rondo_status rondo_repair_run(const rondo_allocator *allocator, const rondo_repair *repair,
                                             uint64_t *inout_offsets, bool *out_done, uint64_t *out_scans);

#endif
