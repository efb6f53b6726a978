/* SPDX-License-Identifier: MIT
 * Searches for better plans of the parts that end highest. It works on the highest part until the whole is good enough,
 * another part is the highest, or the budget is used up. The work and its slices do not depend on the budget, which
 * only cuts it short: so a larger budget is never worse.
 */
#ifndef RONDO_PLAN_SEARCH_IMPROVE_PARTS_H
#define RONDO_PLAN_SEARCH_IMPROVE_PARTS_H

#include "plan/interval/plan_parts.h"

typedef struct rondo_improvement {
  const rondo_plan_options *options;
  uint64_t target;      /* stop when every part ends there or below */
  uint64_t deadline_ns; /* of rondo_clock_ns; 0: none */
  uint64_t steps;       /* out: boxes placed */
} rondo_improvement;

/* All parts must have plans, with offsets relative to the part's base. Errors: OUT_OF_MEMORY; the plans are still
 * valid. */
RONDO_MUST_USE rondo_status rondo_parts_improve(const rondo_allocator *allocator, rondo_parts *parts,
                                                rondo_improvement *improvement, uint64_t *offsets);

#endif
