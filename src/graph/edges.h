/* SPDX-License-Identifier: MIT
 * Edges: adding and removing lists of them, and programmatic edges.
 */
#ifndef RONDO_GRAPH_EDGES_H
#define RONDO_GRAPH_EDGES_H

#include "base/component.h"
#include "graph/graph_internal.h"

#include "graph/node.h"

/* Whether the slot is in the list. *out_index is its index, or the index at which to insert it. */
bool rondo_slots_find(const rondo_slots *slots, uint32_t slot, size_t *out_index);
void rondo_slots_remove(rondo_slots *slots, uint32_t slot); /* the slot is there */

/* Whether the graph has a full edge between the live slots. */
bool rondo_graph_has_edge(const rondo_graph *graph, uint32_t from, uint32_t to);

/* Removes all programmatic edges of a slot. */
void rondo_graph_cut_programmatic(rondo_graph *graph, uint32_t slot);

/* Adds or removes the edges from[i] -> to[i] between live slots, all or none. Adding fails with SELF_EDGE,
 * DUPLICATE_EDGE (it exists already, or is twice in the lists), UNKNOWN_NODE or OUT_OF_MEMORY. Removing fails with
 * MISSING_EDGE (it does not exist, or is twice in the lists), UNKNOWN_NODE or UNSUPPORTED/FOREIGN_WORK (the graph is
 * bound), but never because of memory. */
RONDO_PRIVATE RONDO_MUST_USE rondo_status rondo_graph_link_edges(rondo_graph *graph, const uint32_t *from,
                                                                 const uint32_t *to, size_t count);
RONDO_PRIVATE RONDO_MUST_USE rondo_status rondo_graph_erase_edges(rondo_graph *graph, const uint32_t *from,
                                                                  const uint32_t *to, size_t count);

/* The same for edges with data, as rondo_graph_add_edges_with; `data` may be NULL. Removing edges with data may fail
 * because of memory. */
RONDO_MUST_USE rondo_status rondo_graph_link_edges_with(rondo_graph *graph, const uint32_t *from, const uint32_t *to,
                                                        const rondo_edge_data *data, size_t count);
RONDO_MUST_USE rondo_status rondo_graph_erase_edges_with(rondo_graph *graph, const uint32_t *from, const uint32_t *to,
                                                         const rondo_edge_data *data, size_t count);

/* Adds one programmatic edge. Fails with DUPLICATE_EDGE if its ends already have an edge of either kind. */
RONDO_MUST_USE rondo_status rondo_graph_link_programmatic(rondo_graph *graph, const rondo_programmatic_edge *edge);

/* The programmatic edges that enter a slot, and their number in *out_count. */
const rondo_programmatic_edge *rondo_graph_programmatic_to(const rondo_graph *graph, uint32_t slot, size_t *out_count);

#endif
