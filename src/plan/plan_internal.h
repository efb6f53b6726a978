/* SPDX-License-Identifier: MIT
 * What the files of this layer share: the checked problem and options, and the planner for intervals. plan.c checks its
 * arguments once. All other files rely on it: a problem is valid, no needed pointer is NULL, and defaults are resolved.
 */
#ifndef RONDO_PLAN_PLAN_INTERNAL_H
#define RONDO_PLAN_PLAN_INTERNAL_H

#include <rondo/plan.h>

#include "base/allocation.h"

#define RONDO_PLAN_MOST_ITEMS ((size_t)1 << 30)
#define RONDO_PLAN_MOST_THREADS 256

/* Copies, checks every field. The arrays stay the caller's. Errors: as rondo_plan_make. */
RONDO_MUST_USE rondo_status rondo_plan_problem_read(const rondo_plan_problem *given, rondo_plan_problem *out);

/* Copies, checks, and resolves: threads >= 1, gap >= 1; budget_ms is 0 where the budget is in steps or there is no
 * search. The allocator is left to the caller. */
RONDO_MUST_USE rondo_status rondo_plan_options_read(const rondo_plan_options *given, rondo_plan_options *out);

/* One order of execution, no branches. Fills offsets (one an item), and of *info peak, lower_bound, steps, optimal and
 * method; plan.c fills the rest. Errors: LIMIT_EXCEEDED, OUT_OF_MEMORY. */
RONDO_MUST_USE rondo_status rondo_interval_plan(const rondo_allocator *allocator, const rondo_plan_problem *problem,
                                                const rondo_plan_options *options, size_t *offsets,
                                                rondo_plan_info *info);

/* As rondo_plan_check, for a checked problem of one order without branches. */
RONDO_MUST_USE rondo_status rondo_interval_check(const rondo_allocator *allocator, const rondo_plan_problem *problem,
                                                 const size_t *offsets);

#endif
