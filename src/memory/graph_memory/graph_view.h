/* SPDX-License-Identifier: MIT
 * What an address space knows of one graph, the last that was built: which allocations are open, that is, allocated and
 * not freed by it, and which node freed the others (rondo_graph_allocation.open, .free_slot). Building another graph of
 * the space starts again.
 *
 * A new alloc node may not overlap the allocations that are live before it: those that are not freed by a node that it
 * comes after. Nodes are mostly added after the last ones, on one branch or on a few in turn. So for each branch the
 * view keeps a point: the nodes that it comes after, and what is live there. The next point on a branch is built from
 * the previous one, and only the new nodes are walked. When a graph has more branches than there are points, the least
 * recently used point is replaced, which walks all nodes before it. In a relocatable space all allocations are live.
 *
 * Threads: under the lock of the device's memory.
 */
#ifndef RONDO_MEMORY_GRAPH_MEMORY_GRAPH_VIEW_H
#define RONDO_MEMORY_GRAPH_MEMORY_GRAPH_VIEW_H

#include "base/array.h"
#include "graph/graph_internal.h"

#define RONDO_GRAPH_POINTS 64

typedef struct rondo_graph_allocation rondo_graph_allocation;
typedef struct rondo_address_space rondo_address_space;

typedef RONDO_ARRAY(uint8_t) rondo_slot_bytes; /* by slot */

typedef struct rondo_graph_point {
  uint64_t used;          /* when it was last used; 0: it is empty */
  rondo_slots roots;      /* the nodes that it comes after, without those before them */
  rondo_slot_bytes marks; /* 1: a node that it comes after; those that a later edge adds may be missing */
  RONDO_ARRAY(rondo_graph_allocation *) live; /* not freed before it, by address */
  size_t noted;                               /* how many of the noted records have been considered */
  size_t widest;                              /* no gap between the live ones is wider; SIZE_MAX: not known */
  char *end;                                  /* after all of them, when `widest` is known */
} rondo_graph_point;

typedef struct rondo_graph_points {
  rondo_graph_point items[RONDO_GRAPH_POINTS];
  uint64_t uses;
  RONDO_ARRAY(rondo_graph_allocation *) noted; /* records made since the first use */
  rondo_slot_bytes root_of;                    /* 1 + the last point that has the slot among its roots; 0: none */
  rondo_slot_bytes seen;                       /* for one search */
  rondo_slots walked;                          /* for one search */
} rondo_graph_points;

typedef struct rondo_graph_view {
  uint32_t serial; /* of the graph; 0: none */
  size_t viewed;   /* how many of its slots have been viewed */
  rondo_graph_points points;
} rondo_graph_view;

/* Brings the view up to date with the graph. */
void rondo_graph_view_refresh(rondo_address_space *space, const rondo_graph *graph);

/* The open allocation that begins at the address; NULL when there is none. */
rondo_graph_allocation *rondo_graph_view_find_open(const rondo_address_space *space, const void *address);

/* Nodes or edges were removed from the graph. */
void rondo_address_space_note_removal(const rondo_graph *graph);

/* The point after the slots of the viewed graph. The view is up to date. */
RONDO_MUST_USE rondo_status rondo_graph_point_find(rondo_address_space *space, const rondo_graph *graph,
                                                   const uint32_t *slots, size_t count, rondo_graph_point **out);

/* Whether the viewed graph frees the allocation before the point. */
bool rondo_graph_point_frees(const rondo_graph_point *point, const rondo_graph_allocation *record);

/* A record was made, or is allocated again: it is live at points that do not come after its free. */
void rondo_graph_points_note(rondo_address_space *space, rondo_graph_allocation *record);

/* Another graph is viewed, the graph lost nodes or edges, or the space a record: all points become empty. */
void rondo_graph_points_reset(rondo_address_space *space);
void rondo_graph_points_free(rondo_address_space *space);

#endif
