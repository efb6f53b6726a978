/* SPDX-License-Identifier: MIT
 * Searching for better plans of the parts that stand out: the part whose plan ends highest is worked on, until it is
 * good enough, another one stands out, or the budget is used up. What is done, in which slices, does not depend on the
 * budget, which only cuts it short: so more of it is never worse.
 */
#ifndef RONDO_PLAN_SEARCH_IMPROVE_PARTS_H
#define RONDO_PLAN_SEARCH_IMPROVE_PARTS_H

#include "plan/interval/plan_parts.h"

typedef struct rondo_improvement {
  const rondo_plan_options *options;
  uint64_t target;      /* stop when every part ends there or below */
  uint64_t deadline_ns; /* of rondo_clock_ns; 0: none */
  uint64_t steps;       /* done: boxes placed */
} rondo_improvement;

/* All parts have plans, whose offsets above the part's base are given. Errors: OUT_OF_MEMORY; the plans are still ones.
 */
RONDO_MUST_USE rondo_status rondo_parts_improve(const rondo_allocator *allocator, rondo_parts *parts,
                                                rondo_improvement *improvement, uint64_t *offsets);

#endif
