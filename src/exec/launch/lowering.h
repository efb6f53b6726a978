/* SPDX-License-Identifier: MIT
 * Lowering: a graph and all graphs inside it become one list of nodes in topological order, as a driver takes it.
 *
 * The nodes of a child take the place of the child node. Its roots depend on what the child node depends on, and what
 * depends on the child node depends on its sinks. Where an empty node in between saves edges, such a node (a *join*) is
 * added; also for an empty child. Joins belong to no graph.
 *
 * `places` leads from a node of any of the graphs to its number in the list. The graphs are clones made for the exec.
 * Places are therefore kept under the serials of the graphs that were cloned, which the user knows.
 */
#ifndef RONDO_EXEC_LAUNCH_LOWERING_H
#define RONDO_EXEC_LAUNCH_LOWERING_H

#include "base/array.h"
#include "exec/api_check.h"
#include "graph/graph_internal.h"
#include "graph/verify/happens_before.h"

#define RONDO_PLACE_NONE UINT32_MAX        /* no such node */
#define RONDO_PLACE_CHILD (UINT32_MAX - 1) /* a child node, which has no place of its own */

/* One of the graphs. */
typedef struct rondo_graph_places {
  uint32_t serial;  /* of the graph it was cloned from */
  size_t count;     /* slots */
  uint32_t *places; /* by slot */
  uint32_t around;  /* number of the outermost child node that the graph is inside of; RONDO_NO_NODE */
} rondo_graph_places;

/* Where a lowered node comes from. */
typedef struct rondo_lowered_origin {
  rondo_graph *graph; /* the clone; NULL for joins */
  uint32_t slot;      /* in it */
  rondo_node tag;     /* the user's: of the graph that was cloned; no node for joins */
} rondo_lowered_origin;

typedef struct rondo_lowering {
  rondo_allocator allocator;
  RONDO_ARRAY(rondo_lowered_node) nodes;
  RONDO_ARRAY(rondo_lowered_origin) origins; /* as many */
  RONDO_ARRAY(rondo_graph_places) graphs;    /* by serial */
  RONDO_ARRAY(char *) paths;                 /* where the child graphs stand: `inside` of their nodes */
  uint32_t *successor_start;                 /* nodes.count + 1 */
  uint32_t *successors;
  RONDO_ARRAY(uint32_t) predecessor_start; /* nodes.count + 1 */
  RONDO_ARRAY(uint32_t) predecessors;      /* as many as successors */
  size_t join_count;
  RONDO_ARRAY(rondo_lowered_edge) programmatic;
  const rondo_graph *root; /* the graph around all */
} rondo_lowering;

/* `graph` is a clone and must stay as long as the lowering. Errors: CYCLE, LIMIT_EXCEEDED,
 * OUT_OF_MEMORY. */
RONDO_MUST_USE rondo_status rondo_lower(rondo_graph *graph, rondo_lowering *out);
void rondo_lowering_free(rondo_lowering *lowering); /* a zeroed one is fine */

/* Its edges, as they are asked for orders. */
static inline rondo_flat_edges rondo_lowering_edges(const rondo_lowering *lowering) {
  return (rondo_flat_edges){.node_count = lowering->nodes.count,
                            .successor_start = lowering->successor_start,
                            .successors = lowering->successors};
}

/* The place of a node by the user's tag; RONDO_PLACE_NONE when it is of none of the graphs. */
uint32_t rondo_lowering_find(const rondo_lowering *lowering, rondo_node node);

/* The number of the outermost child node that a node of the user's is inside of; RONDO_NO_NODE when there is none. */
uint32_t rondo_lowering_around(const rondo_lowering *lowering, rondo_node node);

/* Lets the places and tags of `to` be those of `from`, which has as many nodes and loses them. */
void rondo_lowering_move_tags(rondo_lowering *from, rondo_lowering *to);

/* Of two with as many nodes: the first with other dependencies, RONDO_PLACE_NONE when there is none; and whether their
 * programmatic edges are the same. */
uint32_t rondo_lowering_find_other_edges(const rondo_lowering *a, const rondo_lowering *b);
bool rondo_lowering_same_programmatic(const rondo_lowering *a, const rondo_lowering *b);

/* As the driver takes it. */
rondo_lowered_graph rondo_lowering_view(const rondo_lowering *lowering, const char *name);

/* A node as the driver takes it. `captured` is its name in a captured graph, or 0. */
rondo_lowered_node rondo_lowered_of(const rondo_node_params *params, const rondo_node_where *where, uint64_t captured);

/* rondo_node_label_at of a place; returns buffer. */
const char *rondo_lowering_label(const rondo_lowering *lowering, size_t index, char buffer[RONDO_LABEL_BYTES]);

#endif
