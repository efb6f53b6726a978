/* SPDX-License-Identifier: MIT
 * Lifetimes of graph memory as numbers, handed to the planner: the allocations of a DAG that frees them, or some of
 * them, planned together when all of it is known. A graph whose nodes can only run in one order is planned as
 * intervals, which the planner packs best; any other on its exact order.
 *
 * Stateless; any thread.
 */
#ifndef RONDO_MEMORY_PROFILE_LIFETIMES_H
#define RONDO_MEMORY_PROFILE_LIFETIMES_H

#include <rondo/plan.h>

#include "graph/graph_internal.h"
#include "graph/verify/happens_before.h"

typedef struct rondo_lifetime {
  size_t bytes;          /* as rounded by rondo_pool_round */
  uint32_t alloc, freed; /* nodes of the DAG; freed > alloc, or RONDO_PLAN_FOREVER */
} rondo_lifetime;

/* Plans the lifetimes on a DAG whose successors ascend and stand behind; options may be NULL. The caller destroys the
 * plan. */
RONDO_MUST_USE rondo_status rondo_lifetimes_plan(const rondo_allocator *allocator, const rondo_flat_edges *edges,
                                                 const rondo_lifetime *lifetimes, size_t count,
                                                 const rondo_plan_options *options, rondo_plan **out_plan);

/* An edge from each node to the next: the nodes run in one order only. Successors ascend. */
bool rondo_lifetimes_is_line(const rondo_flat_edges *edges);

/* A graph's nodes in an order of their own. */
typedef struct rondo_ordered_graph {
  rondo_flat_edges flat;
  const rondo_graph *graph;
  uint32_t *slots;  /* by place; flat.node_count */
  uint32_t *places; /* by slot */
  uint32_t *starts, *successors;
  size_t edge_count;
} rondo_ordered_graph;

/* Orders the graph's nodes, without looking into children. Freed with rondo_ordered_graph_free, also after a failure.
 * Errors: CYCLE, OUT_OF_MEMORY, LIMIT_EXCEEDED. */
RONDO_MUST_USE rondo_status rondo_ordered_graph_make(const rondo_graph *graph, rondo_ordered_graph *out);
void rondo_ordered_graph_free(rondo_ordered_graph *ordered);

#endif
