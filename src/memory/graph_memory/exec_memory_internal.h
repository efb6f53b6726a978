/* SPDX-License-Identifier: MIT
 * What the two halves of an exec's graph memory share: alloc_free_pairs.c fills the struct in, exec_memory.c frames
 * launches.
 */
#ifndef RONDO_MEMORY_GRAPH_MEMORY_EXEC_MEMORY_INTERNAL_H
#define RONDO_MEMORY_GRAPH_MEMORY_EXEC_MEMORY_INTERNAL_H

#include "memory/graph_memory/exec_memory.h"

/* An allocation that a launch leaves alive, or that it frees. */
typedef struct rondo_outside {
  rondo_graph_allocation *allocation;
  rondo_node_where where; /* of the free node, its text a copy; of what a launch leaves alive not set */
  rondo_life before;      /* scratch of a launch: to take it back */
} rondo_outside;

typedef struct rondo_byte_range {
  const char *begin, *end;
} rondo_byte_range;

struct rondo_exec_memory {
  rondo_device_memory *memory;
  bool auto_free;
  rondo_heap *heap; /* bound to when last looked at, at `version`; NULL before the first launch or upload */
  uint64_t version;
  uint64_t bytes;
  RONDO_ARRAY(rondo_space_need) needs;
  RONDO_ARRAY(rondo_outside) unfreed;
  RONDO_ARRAY(rondo_outside) frees;
  RONDO_ARRAY(rondo_byte_range) extents;         /* what its alloc nodes cover, by address, apart from each other */
  RONDO_ARRAY(rondo_graph_allocation *) held;    /* references to records */
  RONDO_ARRAY(rondo_graph_allocation *) awaited; /* scratch of a launch: freed relatives it comes behind; references */
  RONDO_ARRAY(rondo_address_space *) spaces;     /* references to spaces */
};

/* Pairs the alloc and free nodes and sums up what they need, into an exec that has only `memory` and `auto_free` set.
 * What was filled in before a failure is freed with the exec. */
RONDO_MUST_USE rondo_status rondo_exec_memory_pair(rondo_exec_memory *exec, const rondo_memory_node *nodes,
                                                   size_t count);

#endif
