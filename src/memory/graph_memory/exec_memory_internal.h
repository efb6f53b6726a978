/* SPDX-License-Identifier: MIT
 * The struct of an exec's graph memory: alloc_free_pairs.c fills it in, exec_memory.c begins and ends launches.
 */
#ifndef RONDO_MEMORY_GRAPH_MEMORY_EXEC_MEMORY_INTERNAL_H
#define RONDO_MEMORY_GRAPH_MEMORY_EXEC_MEMORY_INTERNAL_H

#include "memory/graph_memory/address_map.h"
#include "memory/graph_memory/exec_memory.h"

/* An allocation that outlives a launch: one that it leaves allocated, or one of another graph that it frees. */
typedef struct rondo_outside {
  rondo_graph_allocation *allocation;
  rondo_node_where where; /* of the free node, with a copy of its text; otherwise not set */
  rondo_life before;      /* during a launch: the life before it, to undo the change */
} rondo_outside;

struct rondo_exec_memory {
  rondo_device_memory *memory;
  bool auto_free;
  rondo_heap *heap; /* it was last bound to, at `version`; NULL before the first launch or upload */
  uint64_t version;
  uint64_t bytes;
  RONDO_ARRAY(rondo_space_need) needs;
  RONDO_ARRAY(rondo_outside) unfreed;
  RONDO_ARRAY(rondo_outside) frees;
  rondo_address_map covered;                  /* the bytes of its alloc nodes; owners are used only while pairing */
  RONDO_ARRAY(rondo_graph_allocation *) held; /* references to records */
  /* During a launch: references to allocations of other execs whose stream-ordered frees it waits for. */
  RONDO_ARRAY(rondo_graph_allocation *) awaited;
  RONDO_ARRAY(rondo_address_space *) spaces; /* references to spaces */
};

/* Pairs the alloc and free nodes and sums up what they need, into an exec that has only `memory` and `auto_free` set.
 * After a failure, destroy the exec. */
RONDO_MUST_USE rondo_status rondo_exec_memory_pair(rondo_exec_memory *exec, const rondo_memory_node *nodes,
                                                   size_t count);

#endif
