/* SPDX-License-Identifier: MIT
 * Lowest-skyline placing. Time runs to the right and offsets go up; what is placed makes a skyline of segments. Again
 * and again the lowest segment takes the item that comes first in a given order among those whose lifetime fits into
 * it; where none fits, the segment is lifted to its lower neighbour and joins it.
 */
#ifndef RONDO_PLAN_SKYLINE_H
#define RONDO_PLAN_SKYLINE_H

#include "plan/plan_internal.h"

/* Places all items; `ranks[i]` is item i's place in the order of preference, each number once. offsets has room for one
 * an item. Work: a placement looks at the unplaced items that begin within the lowest segment.
 * Errors: LIMIT_EXCEEDED (an offset does not fit in a size_t), OUT_OF_MEMORY. */
RONDO_MUST_USE rondo_status rondo_skyline_place(const rondo_allocator *allocator, const rondo_plan_problem *problem,
                                                const uint32_t *ranks, size_t *offsets, size_t *out_peak);

#endif
