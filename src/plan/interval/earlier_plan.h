/* SPDX-License-Identifier: MIT
 * A plan from that of the same items in other sizes: the items keep the order of their offsets, so each rests on what
 * it rested on, or on what was below it and has grown. One thread at a time.
 */
#ifndef RONDO_PLAN_INTERVAL_EARLIER_PLAN_H
#define RONDO_PLAN_INTERVAL_EARLIER_PLAN_H

#include "plan/plan_internal.h"

/* Writes to `ranks`, by item, its place in the order of the offsets `start`, and of the numbers for equal offsets.
 * Errors: OUT_OF_MEMORY. */
RONDO_MUST_USE rondo_status rondo_earlier_ranks(rondo_scratch *scratch, const size_t *start, size_t count,
                                                uint32_t *ranks);

/* Plans a problem of intervals without obstacles in O(n log n). `offsets` has room for each item. *out_peak: SIZE_MAX
 * where an offset does not fit in a size_t. Errors: OUT_OF_MEMORY. */
RONDO_MUST_USE rondo_status rondo_earlier_stack(rondo_scratch *scratch, const rondo_plan_problem *problem,
                                                const size_t *start, size_t *offsets, size_t *out_peak);

#endif
