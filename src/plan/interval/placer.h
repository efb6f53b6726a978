/* SPDX-License-Identifier: MIT
 * Working memory for placing boxes repeatedly. After an attempt, the offsets are in `trial` until the next one. One
 * thread at a time.
 */
#ifndef RONDO_PLAN_INTERVAL_PLACER_H
#define RONDO_PLAN_INTERVAL_PLACER_H

#include "plan/interval/placement_rules.h"
#include "plan/interval/skyline.h"

#define RONDO_NO_LIMIT (UINT64_MAX - 1)

typedef struct rondo_placer {
  const rondo_boxes *boxes;
  rondo_skyline skyline;
  uint64_t *trial;
  uint32_t *order;
  uint32_t *placed;
  rondo_sort_entry *entries; /* 2 for each box */
} rondo_placer;

/* Errors: OUT_OF_MEMORY. */
RONDO_MUST_USE rondo_status rondo_placer_make(rondo_scratch *scratch, uint32_t boxes, uint32_t sections,
                                              rondo_placer *out);

/* Sets the boxes to place. They must stay until the next call. */
void rondo_placer_bind(rondo_placer *placer, const rondo_boxes *boxes);

/* Each function tries to place the boxes with no end above `limit`, at most RONDO_NO_LIMIT; false if this fails. */
bool rondo_placer_by_rule(rondo_placer *placer, const rondo_rule *rule, uint64_t limit, uint64_t *out_peak);
bool rondo_placer_by_order(rondo_placer *placer, uint64_t limit, uint64_t *out_peak); /* placer->order */

/* For few boxes without obstacles, because each box is compared with all that may be in its way. First fit places the
 * largest boxes first, each at the lowest offset where it fits. Sweep goes forward in time and places each box into the
 * smallest gap that holds it, as an allocator at run time does. */
bool rondo_placer_by_first_fit(rondo_placer *placer, uint64_t limit, uint64_t *out_peak);
bool rondo_placer_by_sweep(rondo_placer *placer, uint64_t limit, uint64_t *out_peak);

/* For boxes without alignments and obstacles. If all have one size, places them with the optimal peak; else returns
 * false. */
bool rondo_placer_by_slots(rondo_placer *placer, uint64_t *out_peak);

#endif
