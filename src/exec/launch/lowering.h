/* SPDX-License-Identifier: MIT
 * Lowering: a graph and all graphs inside it become one list of nodes in topological order, the form that drivers take.
 *
 * The nodes of a child graph replace the child node. Its roots depend on the predecessors of the child node, and the
 * successors of the child node depend on its sinks. An empty node, a *join*, is added where that saves edges, and for
 * an empty child. Joins belong to no graph.
 *
 * `indices` maps a node of any of the graphs to its index in the list. The graphs are clones made for the exec, but the
 * user knows the graphs that were cloned. So the maps are found by the serials of those.
 */
#ifndef RONDO_EXEC_LAUNCH_LOWERING_H
#define RONDO_EXEC_LAUNCH_LOWERING_H

#include "base/array.h"
#include "exec/api_check.h"
#include "graph/graph_internal.h"
#include "graph/verify/happens_before.h"

#define RONDO_INDEX_NONE UINT32_MAX        /* no such node */
#define RONDO_INDEX_CHILD (UINT32_MAX - 1) /* a child node, which is not in the list */

/* The map for one of the graphs. */
typedef struct rondo_graph_indices {
  uint32_t serial;   /* of the original graph */
  size_t count;      /* slots */
  uint32_t *indices; /* by slot */
  uint32_t around;   /* number of the outermost child node that the graph is inside of; RONDO_NO_NODE */
} rondo_graph_indices;

/* The node that was lowered. */
typedef struct rondo_lowered_origin {
  rondo_graph *graph; /* the clone; NULL for joins */
  uint32_t slot;      /* in it */
  rondo_node tag;     /* in the original graph, as the user knows it; no node for joins */
} rondo_lowered_origin;

/* A child node, in the order in which the walk gets to it. */
typedef struct rondo_lowered_child {
  rondo_graph *graph; /* the clone that contains it */
  uint32_t slot;      /* in it */
  rondo_node tag; /* as the user knows it; no node if the exec was updated with a graph that has another one there */
  uint32_t first, count; /* its nodes in the list, with joins */
} rondo_lowered_child;

typedef struct rondo_lowering {
  rondo_allocator allocator;
  RONDO_ARRAY(rondo_lowered_node) nodes;
  RONDO_ARRAY(rondo_lowered_origin) origins; /* one for each node */
  RONDO_ARRAY(rondo_graph_indices) graphs;   /* by serial */
  RONDO_ARRAY(rondo_lowered_child) children;
  RONDO_ARRAY(char *) paths; /* of the child graphs: `inside` of their nodes */
  uint32_t *successor_start; /* nodes.count + 1 */
  uint32_t *successors;
  RONDO_ARRAY(uint32_t) predecessor_start; /* nodes.count + 1 */
  RONDO_ARRAY(uint32_t) predecessors;      /* as many as successors */
  size_t join_count;
  RONDO_ARRAY(rondo_lowered_edge) programmatic;
  const rondo_graph *root; /* the outermost graph */
} rondo_lowering;

/* `graph` must outlive the lowering. Errors: CYCLE, LIMIT_EXCEEDED, OUT_OF_MEMORY. */
RONDO_MUST_USE rondo_status rondo_lower(rondo_graph *graph, rondo_lowering *out);

/* The same without the graphs inside it: its child nodes are in the list. */
RONDO_MUST_USE rondo_status rondo_lower_level(rondo_graph *graph, rondo_lowering *out);
void rondo_lowering_free(rondo_lowering *lowering); /* zeros are allowed */

/* The edges, for questions about the order of nodes. */
static inline rondo_flat_edges rondo_lowering_edges(const rondo_lowering *lowering) {
  return (rondo_flat_edges){.node_count = lowering->nodes.count,
                            .successor_start = lowering->successor_start,
                            .successors = lowering->successors};
}

/* The index of the node with the user's tag; RONDO_INDEX_NONE if no graph has it. */
uint32_t rondo_lowering_find(const rondo_lowering *lowering, rondo_node node);

/* The child node with the user's tag; NULL: there is none any more. */
const rondo_lowered_child *rondo_lowering_find_child(const rondo_lowering *lowering, rondo_node node);

/* The number of the outermost child node that contains the node with the user's tag; RONDO_NO_NODE: none. */
uint32_t rondo_lowering_around(const rondo_lowering *lowering, rondo_node node);

/* Moves the maps and tags of `from` to `to`, which has as many nodes. Child nodes with the same nodes correspond. */
void rondo_lowering_move_tags(rondo_lowering *from, rondo_lowering *to);

/* Compares two lowerings with as many nodes: the first node with other dependencies, or RONDO_INDEX_NONE; and whether
 * their programmatic edges are equal. */
uint32_t rondo_lowering_find_other_edges(const rondo_lowering *a, const rondo_lowering *b);
bool rondo_lowering_same_programmatic(const rondo_lowering *a, const rondo_lowering *b);

/* The form that the driver takes. */
rondo_lowered_graph rondo_lowering_view(const rondo_lowering *lowering, const char *name);

/* A node in the form that the driver takes. `captured` is its name in a captured graph, or 0. */
rondo_lowered_node rondo_lowered_of(const rondo_node_params *params, rondo_device *device,
                                    const rondo_node_where *where, uint64_t captured);

/* rondo_node_label_at for an index; returns buffer. */
const char *rondo_lowering_label(const rondo_lowering *lowering, size_t index, char buffer[RONDO_LABEL_BYTES]);

#endif
