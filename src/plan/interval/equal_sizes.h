/* SPDX-License-Identifier: MIT
 * Boxes that all have one size: the one case that is easy to plan at the bound. Each takes the lowest slot that is
 * free when it begins, as in colouring an interval graph.
 */
#ifndef RONDO_PLAN_INTERVAL_EQUAL_SIZES_H
#define RONDO_PLAN_INTERVAL_EQUAL_SIZES_H

#include "plan/interval/boxes.h"

bool rondo_boxes_are_equal(const rondo_boxes *boxes);

/* For equal boxes without obstacles or alignments. `entries` has room for 2 a box, `slots` for one. */
void rondo_equal_place(const rondo_boxes *boxes, rondo_sort_entry *entries, uint32_t *slots, uint64_t *offsets,
                       uint64_t *out_peak);

#endif
