/* SPDX-License-Identifier: MIT
 * A problem of intervals as one of an order that is a single chain, for what only orders have: branches.
 */
#ifndef RONDO_PLAN_PARTIAL_ORDER_ORDER_CHAIN_H
#define RONDO_PLAN_PARTIAL_ORDER_ORDER_CHAIN_H

#include <rondo/plan.h>

#include "base/array.h"

typedef struct rondo_chain_problem {
  rondo_plan_problem problem; /* as given, with the lists and the order below */
  rondo_plan_order order;
  RONDO_ARRAY(uint32_t) steps; /* in which something begins or ends, ascending */
  rondo_plan_item *items;
  rondo_plan_obstacle *obstacles;
  uint32_t *successor_start, *successors;
} rondo_chain_problem;

/* Errors: OUT_OF_MEMORY; *out can be freed either way. */
RONDO_MUST_USE rondo_status rondo_chain_problem_make(const rondo_allocator *allocator, const rondo_plan_problem *given,
                                                     rondo_chain_problem *out);
void rondo_chain_problem_free(const rondo_allocator *allocator, rondo_chain_problem *chain);

#endif
