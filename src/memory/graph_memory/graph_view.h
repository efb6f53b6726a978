/* SPDX-License-Identifier: MIT
 * An address space's view of the graph to which nodes were added last: which allocations are open (allocated and not
 * freed by the graph), and which node freed the others (rondo_graph_allocation.open, .free_slot). Adding to another
 * graph of the space resets the view.
 *
 * A new alloc node must not overlap the allocations that are live before it: those that none of its ancestors frees.
 * Nodes are usually added at the end of one branch, or of a few in alternation. So the view keeps a point for each
 * branch: its ancestors, and the allocations that are live there. The next point of a branch is made from the previous
 * one by walking only the new nodes. If a graph has more branches than points, the least recently used point is
 * replaced, which walks all ancestors again. In a relocatable space all allocations are live.
 *
 * Threads: under the lock of the device's memory.
 */
#ifndef RONDO_MEMORY_GRAPH_MEMORY_GRAPH_VIEW_H
#define RONDO_MEMORY_GRAPH_MEMORY_GRAPH_VIEW_H

#include "base/array.h"
#include "base/component.h"
#include "graph/graph_internal.h"

#define RONDO_GRAPH_POINTS 64

typedef struct rondo_graph_allocation rondo_graph_allocation;
typedef struct rondo_address_space rondo_address_space;

typedef RONDO_ARRAY(uint8_t) rondo_slot_bytes; /* one byte for each slot */

typedef struct rondo_graph_point {
  uint64_t used;                              /* when it was last used; 0: it is empty */
  rondo_slots roots;                          /* its direct dependencies */
  rondo_slot_bytes marks;                     /* 1: an ancestor; those that a later edge adds may be missing */
  RONDO_ARRAY(rondo_graph_allocation *) live; /* not freed before the point; by address */
  size_t noted;                               /* how many of rondo_graph_points.noted are included */
  size_t widest;                              /* no gap between them is wider; SIZE_MAX: not known */
  char *end;                                  /* the highest end, when `widest` is known */
} rondo_graph_point;

typedef struct rondo_graph_points {
  rondo_graph_point items[RONDO_GRAPH_POINTS];
  uint64_t uses;
  RONDO_ARRAY(rondo_graph_allocation *) noted; /* records that were created or opened since the first use */
  rondo_slot_bytes root_of;                    /* 1 + the last point with the slot in its roots; 0: none */
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

/* Resets the view after nodes or edges were removed from the graph. */
RONDO_PRIVATE void rondo_address_space_note_removal(const rondo_graph *graph);

/* Finds or makes the point that depends on the slots of the viewed graph. The view must be up to date. */
RONDO_MUST_USE rondo_status rondo_graph_point_find(rondo_address_space *space, const rondo_graph *graph,
                                                   const uint32_t *slots, size_t count, rondo_graph_point **out);

/* Whether the viewed graph frees the allocation before the point. */
bool rondo_graph_point_frees(const rondo_graph_point *point, const rondo_graph_allocation *record);

/* Notes that a record was created or is allocated again: it is live at points that do not come after its free. */
void rondo_graph_points_note(rondo_address_space *space, rondo_graph_allocation *record);

/* Empties all points: another graph is viewed, the graph lost nodes or edges, or the space lost a record. */
void rondo_graph_points_reset(rondo_address_space *space);
void rondo_graph_points_free(rondo_address_space *space);

#endif
