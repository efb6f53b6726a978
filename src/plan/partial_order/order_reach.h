/* SPDX-License-Identifier: MIT
 * Decides whether one node of a DAG comes before another, for many pairs at once: 256 sources at a time, by propagating
 * bits along the edges. It does not use chains, so the check that uses it is independent of the planner.
 */
#ifndef RONDO_PLAN_PARTIAL_ORDER_ORDER_REACH_H
#define RONDO_PLAN_PARTIAL_ORDER_ORDER_REACH_H

#include <rondo/plan.h>

#include "base/allocation.h"

typedef struct rondo_reach_query {
  uint32_t from, to; /* is there a path with at least one edge? */
  uint32_t number;   /* for the caller */
  bool answer;
} rondo_reach_query;

/* Sorts the queries by `from` and fills in the answers. Time: for every 256 sources, the nodes and edges from the first
 * source to the last `to`. Errors: OUT_OF_MEMORY. */
RONDO_MUST_USE rondo_status rondo_reach_run(const rondo_allocator *allocator, const rondo_plan_order *order,
                                            rondo_reach_query *queries, size_t count);

#endif
