/* SPDX-License-Identifier: MIT
 * The two classical ways of placing boxes one after the other, for boxes without obstacles. Both look at all boxes that
 * may be in the way, so they are for few boxes.
 */
#ifndef RONDO_PLAN_INTERVAL_BEST_FIT_H
#define RONDO_PLAN_INTERVAL_BEST_FIT_H

#include "plan/interval/boxes.h"

/* Boxes in the given order, each at the lowest offset where it fits. `placed` has room for one entry a box. False as
 * soon as one would end above `limit`. */
bool rondo_first_fit(const rondo_boxes *boxes, const uint32_t *order, uint64_t limit, uint32_t *placed,
                     uint64_t *offsets, uint64_t *out_peak);

/* Boxes in the order of time, each into the smallest gap that holds it among what is live then, as an allocator at run
 * time does. `live` has room for one entry a box. */
bool rondo_sweep_fit(const rondo_boxes *boxes, uint64_t limit, uint32_t *live, uint64_t *offsets, uint64_t *out_peak);

#endif
