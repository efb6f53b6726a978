/* SPDX-License-Identifier: MIT
 * How messages name nodes: by kind, name and number. For a node in child graphs, the child nodes that contain it
 * follow, the innermost first, as in "kernel 'saxpy' (node 3 of child 'inner' (node 7))". rondo_error.node is the
 * number of the outermost child node, in the graph that the caller passed. A path that is too long keeps its two ends.
 *
 * Threads: any thread that may read the graph. Only copies allocate.
 */
#ifndef RONDO_GRAPH_NODE_NAME_H
#define RONDO_GRAPH_NODE_NAME_H

#include "base/component.h"
#include "graph/graph_internal.h"

RONDO_PRIVATE const char *rondo_node_label(char buffer[RONDO_LABEL_BYTES], const rondo_node_params *params,
                                           uint32_t number);
const char *rondo_node_label_at(char buffer[RONDO_LABEL_BYTES], const rondo_node_params *params,
                                const rondo_node_where *where);

/* Names the node in the slot of a graph. For `root` see rondo_node_where_in. */
RONDO_PRIVATE const char *rondo_node_label_in(char buffer[RONDO_LABEL_BYTES], const rondo_graph *graph,
                                              const rondo_graph *root, uint32_t slot);

/* Names a node by its kind and name, which is "" or NULL if it has none. If `where` is NULL, names work in a stream:
 * "kernel 'saxpy'", "a copy". */
const char *rondo_kind_label(char buffer[RONDO_LABEL_BYTES], rondo_node_kind kind, const char *name,
                             const rondo_node_where *where);

/* The part in brackets: "node 3 of child 'inner' (node 7)". */
const char *rondo_node_where_text(char buffer[RONDO_LABEL_BYTES], const rondo_node_where *where);

/* The edge that orders one node after another: "an edge 2 -> 5", if possible in the outermost graph. */
const char *rondo_node_edge_text(char buffer[RONDO_EDGE_TEXT], const rondo_node_where *from,
                                 const rondo_node_where *to);

/* The position of the node in the slot of a graph, which may be a child graph of `root` or, if that is NULL, of any
 * graph. Its `inside`, from rondo_graph_inside, points into the buffer. */
rondo_node_where rondo_node_where_in(char buffer[RONDO_INSIDE_BYTES], const rondo_graph *graph, const rondo_graph *root,
                                     uint32_t slot);
const char *rondo_graph_inside(char buffer[RONDO_INSIDE_BYTES], const rondo_graph *graph, const rondo_graph *root);

/* The number, in `root`, of the outermost child node that contains the graph; `slot` if there is none. */
RONDO_PRIVATE uint32_t rondo_graph_outer_number(const rondo_graph *graph, const rondo_graph *root, uint32_t slot);

/* A copy with its own text from the allocator; and freeing that text. */
RONDO_MUST_USE rondo_status rondo_node_where_copy(const rondo_allocator *allocator, const rondo_node_where *from,
                                                  rondo_node_where *out);
void rondo_node_where_free(const rondo_allocator *allocator, rondo_node_where *where);

#endif
