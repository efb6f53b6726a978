/* SPDX-License-Identifier: MIT
 * Planning where lifetimes are a partial order, or where choices have branches. Two items share bytes only if the free
 * node of one comes strictly before the alloc node of the other along the edges, or if they are in different ways of
 * one choice. Memory is linear in nodes, edges and items.
 */
#ifndef RONDO_PLAN_PARTIAL_ORDER_ORDER_PLAN_H
#define RONDO_PLAN_PARTIAL_ORDER_ORDER_PLAN_H

#include "plan/plan_internal.h"

/* For every checked problem with an order or with branches; options are read. Fills offsets (one an item), and of *info
 * peak, lower_bound, steps, optimal and method. Errors: INVALID_ARGUMENT (an item or obstacle whose free node does not
 * come after its alloc node), LIMIT_EXCEEDED, OUT_OF_MEMORY. */
RONDO_MUST_USE rondo_status rondo_order_plan(const rondo_allocator *allocator, const rondo_plan_problem *problem,
                                             const rondo_plan_options *options, size_t *offsets, rondo_plan_info *info);

/* As rondo_plan_check, for such problems. Proves every pair, at any size: items that have a byte in common are a chain
 * of lifetimes, so of all pairs only neighbours need to be looked at, and whether one comes before the other is found
 * by propagating bits along the edges. Time: nodes and edges times the number of free nodes / 256 when lifetimes are
 * long, a second for some 100,000. */
RONDO_MUST_USE rondo_status rondo_order_check(const rondo_allocator *allocator, const rondo_plan_problem *problem,
                                              const size_t *offsets);

#endif
