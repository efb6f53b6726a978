/* SPDX-License-Identifier: MIT
 * The lifetimes of the allocations of some work: a DAG of its mallocs and frees, the nodes at which each lifetime
 * begins and ends, and the nodes that free memory which the work did not allocate. They are logged from eager work
 * (warm_up_log.h) or from a graph, and planned later.
 *
 * A log is immutable and reference-counted, so any thread may use it. The other functions have no state.
 */
#ifndef RONDO_MEMORY_PROFILE_LIFETIME_LOG_H
#define RONDO_MEMORY_PROFILE_LIFETIME_LOG_H

#include <stdatomic.h>

#include <rondo/plan.h>

#include "graph/graph_internal.h"
#include "graph/verify/happens_before.h"

typedef struct rondo_lifetime {
  size_t bytes;          /* rounded by rondo_pool_round */
  uint32_t alloc, freed; /* nodes of the DAG; freed > alloc, or RONDO_PLAN_FOREVER */
} rondo_lifetime;

/* Plans the lifetimes on a DAG in topological order, whose successors ascend. If the nodes can run in one order only,
 * they are planned as intervals, which the planner packs best; otherwise on the exact order. options may be NULL. The
 * caller destroys the plan. */
RONDO_MUST_USE rondo_status rondo_lifetimes_plan(const rondo_allocator *allocator, const rondo_flat_edges *edges,
                                                 const rondo_lifetime *lifetimes, size_t count,
                                                 const rondo_plan_options *options, rondo_plan **out_plan);

/* Whether each node has an edge to the next one, so that they run in one order only. Successors ascend. */
bool rondo_lifetimes_is_line(const rondo_flat_edges *edges);

/* A free of memory that existed before the work, identified by its owner's key (rondo_arena_block.key). */
typedef struct rondo_noted_end {
  uint64_t key;  /* not 0 */
  uint32_t node; /* of the DAG: no node after it uses the memory */
} rondo_noted_end;

typedef struct rondo_noted_edge {
  uint32_t from, to; /* from < to */
} rondo_noted_edge;

/* Collects the contents of a log. A zeroed draft is empty. */
typedef struct rondo_lifetime_draft {
  uint32_t node_count;
  RONDO_ARRAY(rondo_noted_edge) edges;   /* by `to` */
  RONDO_ARRAY(rondo_lifetime) lifetimes; /* in the order of the allocations */
  RONDO_ARRAY(rondo_noted_end) ends;     /* the first of several with one key counts */
} rondo_lifetime_draft;

void rondo_lifetime_draft_free(const rondo_allocator *allocator, rondo_lifetime_draft *draft);

typedef struct rondo_noted_lifetimes {
  rondo_allocator allocator;
  atomic_uint references;
  uint32_t node_count;
  uint32_t *starts;                      /* node_count + 1 */
  uint32_t *successors;                  /* those of each node ascend */
  RONDO_ARRAY(rondo_lifetime) lifetimes; /* RONDO_PLAN_FOREVER: the work does not free it */
  RONDO_ARRAY(rondo_noted_end) ends;     /* by key, each once */
} rondo_noted_lifetimes;

/* Makes a log from a draft, which it copies. */
RONDO_MUST_USE rondo_status rondo_noted_lifetimes_make(const rondo_allocator *allocator,
                                                       const rondo_lifetime_draft *draft, rondo_noted_lifetimes **out);

/* Logs the graph's own alloc nodes, in the order of their numbers. Frees of the blocks of its recording (arena.h) are
 * ends with the blocks' keys. The graph may have been loaded with its addresses. Errors as for rondo_profile_create. */
RONDO_MUST_USE rondo_status rondo_noted_lifetimes_of_graph(const rondo_graph *graph, rondo_noted_lifetimes **out);

static inline rondo_flat_edges rondo_noted_edges(const rondo_noted_lifetimes *noted) {
  return (rondo_flat_edges){
      .node_count = noted->node_count, .successor_start = noted->starts, .successors = noted->successors};
}

/* The end with the key; NULL when there is none. */
const rondo_noted_end *rondo_noted_find_end(const rondo_noted_lifetimes *noted, uint64_t key);

void rondo_noted_lifetimes_retain(rondo_noted_lifetimes *noted);
void rondo_noted_lifetimes_release(rondo_noted_lifetimes *noted); /* NULL is allowed */

#endif
