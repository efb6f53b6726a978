/* SPDX-License-Identifier: MIT
 * A problem of intervals as one of an order that is a single chain, for what only orders have: branches.
 */
#ifndef RONDO_PLAN_PARTIAL_ORDER_ORDER_CHAIN_H
#define RONDO_PLAN_PARTIAL_ORDER_ORDER_CHAIN_H

#include <rondo/plan.h>

#include "base/allocation.h"

typedef struct rondo_chain_problem {
  rondo_plan_problem problem; /* as given, with the lists and the order below */
  rondo_plan_order order;
  uint32_t *steps; /* in which something begins or ends, ascending */
  size_t step_count;
  rondo_plan_item *items;
  rondo_plan_obstacle *obstacles;
  uint32_t *successor_start, *successors;
} rondo_chain_problem;

/* Errors: LIMIT_EXCEEDED (too many steps), OUT_OF_MEMORY. */
RONDO_MUST_USE rondo_status rondo_chain_problem_make(rondo_scratch *scratch, const rondo_plan_problem *given,
                                                     rondo_chain_problem *out);

#endif
