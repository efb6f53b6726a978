/* SPDX-License-Identifier: MIT
 * What is in the way of a new alloc node: the allocations of its space that are not freed before it. That depends on
 * which nodes it comes behind. Nodes are mostly made behind the last ones, on one branch or on a few in turn, so what
 * was found out is kept as a standpoint for each branch, and building on it walks through what is new there alone.
 *
 * Of a graph that has more branches at a time than there are standpoints, the one that was not used for longest is
 * taken over, which walks through all that comes before. In a relocatable space all allocations are in the way.
 *
 * Threads: under the lock of the device's memory.
 */
#ifndef RONDO_MEMORY_GRAPH_MEMORY_LIVE_BEFORE_NODE_H
#define RONDO_MEMORY_GRAPH_MEMORY_LIVE_BEFORE_NODE_H

#include "base/array.h"
#include "graph/graph_internal.h"

#define RONDO_STANDPOINTS 64

typedef struct rondo_graph_allocation rondo_graph_allocation;
typedef struct rondo_address_space rondo_address_space;

typedef RONDO_ARRAY(uint8_t) rondo_slot_bytes; /* by slot */

typedef struct rondo_standpoint {
  uint64_t used;          /* when it was last; 0: it stands nowhere */
  rondo_slots roots;      /* the nodes that it stands behind */
  rondo_slot_bytes marks; /* 1: the roots and what they come after; what an edge made later adds may be missing */
  RONDO_ARRAY(rondo_graph_allocation *) busy; /* in the way, by address */
  size_t noted;                               /* of the noted records, how many have been looked at */
  size_t widest;                              /* no gap between the busy ones is wider; SIZE_MAX: not known */
  char *end;                                  /* behind all of them, when `widest` is known */
} rondo_standpoint;

typedef struct rondo_standpoints {
  rondo_standpoint items[RONDO_STANDPOINTS];
  uint64_t uses;
  RONDO_ARRAY(rondo_graph_allocation *) noted; /* since the first use */
  rondo_slot_bytes root_of; /* 1 + the standpoint that has the slot among its roots, of several the last; or 0 */
  rondo_slot_bytes seen;    /* scratch */
  rondo_slots walked;       /* scratch */
} rondo_standpoints;

/* The standpoint behind the slots of the graph that the space's view shows (address_space.h), which is up to date. */
RONDO_MUST_USE rondo_status rondo_standpoints_find(rondo_address_space *space, const rondo_graph *graph,
                                                   const uint32_t *slots, size_t count, rondo_standpoint **out);

/* Whether the viewed graph frees the allocation before that. */
bool rondo_standpoint_frees(const rondo_standpoint *point, const rondo_graph_allocation *record);

/* A record was made, or is allocated once more: it is in the way of what does not come behind its free. */
void rondo_standpoints_note(rondo_address_space *space, rondo_graph_allocation *record);

/* Another graph is viewed, this one has lost nodes or edges, or the space a record: none stands anywhere. */
void rondo_standpoints_reset(rondo_address_space *space);
void rondo_standpoints_free(rondo_address_space *space);

#endif
