/* SPDX-License-Identifier: MIT
 * Lower bounds of a plan on a partial order: bytes that are live at once in some execution.
 *
 * A moment of an execution is a set of nodes that have started and, of these, nodes that have ended, with all that
 * comes before a started node ended. The bytes live in it are those of the items whose alloc node has started and whose
 * free node has not ended, in the ways of choices that are taken. Each moment gives a valid bound.
 */
#ifndef RONDO_PLAN_PARTIAL_ORDER_ORDER_BOUND_H
#define RONDO_PLAN_PARTIAL_ORDER_ORDER_BOUND_H

#include "plan/partial_order/order_branch.h"

typedef struct rondo_order_bound {
  size_t bytes;    /* live at the moment found */
  uint32_t *taken; /* of each choice, the way that is taken in it, a number of rondo_branches */
} rondo_order_bound;

/* The most bytes live in a few serial executions: the order of the nodes' numbers, and one that takes the nodes that
 * allocate first. Work: nodes, edges and items, with a logarithm.
 * Errors: OUT_OF_MEMORY. */
RONDO_MUST_USE rondo_status rondo_serial_bound(rondo_scratch *scratch, const rondo_plan_problem *problem,
                                               const rondo_branches *branches, rondo_order_bound *bound);

/* The same of a problem by itself: no plan has fewer bytes. */
RONDO_MUST_USE rondo_status rondo_serial_bytes(const rondo_allocator *allocator, const rondo_plan_problem *problem,
                                               size_t *out_bytes);

/* The most bytes live at any moment of any execution that takes the ways given: a closure of greatest weight in the
 * graph of starts and ends, by one maximum flow (Picard, "Maximal closure of a graph and applications to combinatorial
 * problems", 1976). Memory is taken when it is made, and it is run once, by any thread. */
typedef struct rondo_closure rondo_closure;

/* Errors: OUT_OF_MEMORY. */
RONDO_MUST_USE rondo_status rondo_closure_make(rondo_scratch *scratch, const rondo_plan_problem *problem,
                                               const rondo_branches *branches, rondo_closure **out);

/* Ends early after `most_work` looks at edges or `deadline_ns`, and then returns the bytes of some moment. `taken` is
 * of each choice the way taken. *out_exact: not ended early. */
size_t rondo_closure_run(rondo_closure *closure, const uint32_t *taken, uint64_t most_work, uint64_t deadline_ns,
                         bool *out_exact);

/* From another thread: ends a run early, or one to come. */
void rondo_closure_stop(rondo_closure *closure);

#endif
