/* SPDX-License-Identifier: MIT
 * Plans memory if lifetimes are a partial order, or if choices have branches. Two items share bytes only if the free
 * node of one comes strictly before the alloc node of the other along the edges, or if they are in different branches
 * of one choice. Memory is linear in nodes, edges and items.
 */
#ifndef RONDO_PLAN_PARTIAL_ORDER_ORDER_PLAN_H
#define RONDO_PLAN_PARTIAL_ORDER_ORDER_PLAN_H

#include "plan/plan_internal.h"

/* For a checked problem with an order or with branches, and checked options. Fills the offsets (one for each item) and
 * the peak, lower_bound, steps, optimal and method of *info. Errors: INVALID_ARGUMENT (an item or obstacle whose free
 * node does not come after its alloc node), LIMIT_EXCEEDED, OUT_OF_MEMORY. */
RONDO_MUST_USE rondo_status rondo_order_plan(const rondo_allocator *allocator, const rondo_plan_problem *problem,
                                             const rondo_plan_options *options, size_t *offsets, rondo_plan_info *info);

/* As rondo_interval_check, for such problems. Proves every pair at any size: the items that share a byte are a chain of
 * lifetimes, so only neighbours need to be compared, by propagating bits along the edges. Time: with long lifetimes,
 * nodes and edges times the number of free nodes / 256; a second for some 100,000. */
RONDO_MUST_USE rondo_status rondo_order_check(const rondo_allocator *allocator, const rondo_plan_problem *problem,
                                              const size_t *offsets);

#endif
