/* SPDX-License-Identifier: MIT
 * What some work allocates, noted to be planned later: the lifetimes of its allocations in the order of making, on the
 * DAG of its calls; and where it gives up what it did not allocate. Noted of work that ran (warm_up_log.h) or of a
 * graph.
 *
 * Immutable; held by reference, so thread-safe.
 */
#ifndef RONDO_MEMORY_PROFILE_LIFETIME_LOG_H
#define RONDO_MEMORY_PROFILE_LIFETIME_LOG_H

#include <stdatomic.h>

#include "memory/profile/lifetimes.h"

/* The work gives up memory from before it, which the holder knows by a key (rondo_arena_block.key). */
typedef struct rondo_noted_end {
  uint64_t key;  /* not 0 */
  uint32_t node; /* of the DAG: nothing uses the memory behind it */
} rondo_noted_end;

typedef struct rondo_noted_lifetimes {
  rondo_allocator allocator;
  atomic_uint references;
  uint32_t node_count;
  uint32_t *starts; /* node_count + 1 */
  uint32_t *successors;
  RONDO_ARRAY(rondo_lifetime) lifetimes; /* RONDO_PLAN_FOREVER: what the work leaves */
  RONDO_ARRAY(rondo_noted_end) ends;     /* by key, each once */
} rondo_noted_lifetimes;

/* Copies what is noted; edges as rondo_lifetimes_plan takes them. */
RONDO_MUST_USE rondo_status rondo_noted_lifetimes_make(const rondo_allocator *allocator, const rondo_flat_edges *edges,
                                                       const rondo_lifetime *lifetimes, size_t count,
                                                       const rondo_noted_end *ends, size_t end_count,
                                                       rondo_noted_lifetimes **out);

/* Of the graph's own alloc and free nodes, in the order of their numbers; frees of blocks of the setting that it was
 * recorded with (arena.h) are ends with the blocks' keys. The graph may be one of data that has its addresses. Errors
 * as rondo_profile_create. */
RONDO_MUST_USE rondo_status rondo_noted_lifetimes_of_graph(const rondo_graph *graph, rondo_noted_lifetimes **out);

static inline rondo_flat_edges rondo_noted_edges(const rondo_noted_lifetimes *noted) {
  return (rondo_flat_edges){
      .node_count = noted->node_count, .successor_start = noted->starts, .successors = noted->successors};
}

/* The end with the key; NULL when there is none. */
const rondo_noted_end *rondo_noted_find_end(const rondo_noted_lifetimes *noted, uint64_t key);

void rondo_noted_lifetimes_retain(rondo_noted_lifetimes *noted);
void rondo_noted_lifetimes_release(rondo_noted_lifetimes *noted); /* NULL is fine */

#endif
