/* SPDX-License-Identifier: MIT
 * Lower bounds for a plan on a partial order: bytes that are live at once in some execution.
 *
 * A moment of an execution is a set of nodes that have started and a subset of them that has ended. All predecessors of
 * a started node have ended. The items live at that moment are those whose alloc node has started and whose free node
 * has not ended, in the branches that are taken. The live bytes of any moment are a valid bound.
 */
#ifndef RONDO_PLAN_PARTIAL_ORDER_ORDER_BOUND_H
#define RONDO_PLAN_PARTIAL_ORDER_ORDER_BOUND_H

#include "base/component.h"
#include "plan/partial_order/order_branch.h"

typedef struct rondo_order_bound {
  size_t bytes;    /* live at the moment found */
  uint32_t *taken; /* of each choice: the branch taken at that moment, a number of rondo_branches */
} rondo_order_bound;

/* The largest number of bytes live in two serial executions: the nodes by number, and the nodes that allocate most
 * first. Time: O(n log n) in nodes, edges and items. Errors: OUT_OF_MEMORY. */
RONDO_MUST_USE rondo_status rondo_serial_bound(rondo_scratch *scratch, const rondo_plan_problem *problem,
                                               const rondo_branches *branches, rondo_order_bound *bound);

/* The same for a problem by itself: no plan has a lower peak. */
RONDO_PRIVATE RONDO_MUST_USE rondo_status rondo_serial_bytes(const rondo_allocator *allocator,
                                                             const rondo_plan_problem *problem, size_t *out_bytes);

/* The largest number of bytes live at any moment of any execution that takes the given branches: a closure of maximum
 * weight in the graph of starts and ends, found with one maximum flow (Picard, "Maximal closure of a graph and
 * applications to combinatorial problems", 1976). Making it allocates all memory. Run it once, on any thread. */
typedef struct rondo_closure rondo_closure;

/* Errors: OUT_OF_MEMORY. */
RONDO_MUST_USE rondo_status rondo_closure_make(rondo_scratch *scratch, const rondo_plan_problem *problem,
                                               const rondo_branches *branches, rondo_closure **out);

/* Stops after `max_work` visits of edges, or at `deadline_ns`, and then returns the live bytes of some moment. `taken`
 * has the branch taken of each choice. *out_exact: it was not stopped. */
size_t rondo_closure_run(rondo_closure *closure, const uint32_t *taken, uint64_t max_work, uint64_t deadline_ns,
                         bool *out_exact);

/* Stops a run, also one that has not begun. Another thread may call it. */
void rondo_closure_stop(rondo_closure *closure);

#endif
