/* SPDX-License-Identifier: MIT
 * What the files of this layer share and no other layer sees: the contents of a node, sorted vectors of slots, and the
 * checks at the front door.
 */
#ifndef RONDO_GRAPH_NODE_H
#define RONDO_GRAPH_NODE_H

#include "graph/graph_internal.h"

/* Child graphs stand at most this deep inside each other, so that recursion over them is bounded. */
#define RONDO_GRAPH_MAX_NESTING 16

/* What rondo_node_params_check looks at apart from addresses, functions and devices: what a graph read from a file must
 * keep to as well. */
RONDO_MUST_USE rondo_status rondo_node_shape_check(const char *where, const rondo_node_params *params);

/* Makes the contents (params, arguments) of a node of `owner` from checked parameters. A child graph is cloned, or with
 * `take_child` taken over when the call succeeds. `out` is all zero before, and after a failure. */
RONDO_MUST_USE rondo_status rondo_node_contents_make(rondo_graph *owner, const rondo_node_params *params,
                                                     bool take_child, rondo_graph_node *out);
void rondo_node_contents_free(rondo_graph *owner, rondo_graph_node *node);

/* Clones with another allocator; see rondo_graph_clone. */
RONDO_MUST_USE rondo_status rondo_graph_clone_with(const rondo_allocator *allocator, const rondo_graph *graph,
                                                   rondo_graph **out);

/* Puts a node into the slot `number`, which is not below nodes.count; the slots between become holes. The parameters
 * keep to rondo_node_shape_check, addresses may be NULL; a child is taken over on success. For the JSON reader. */
RONDO_MUST_USE rondo_status rondo_graph_insert_at(rondo_graph *graph, uint32_t number, const rondo_node_params *params);

/* Where `slot` stands or would stand; true when it is there. */
bool rondo_slots_find(const rondo_slots *slots, uint32_t slot, size_t *out_index);
/* Vectors of a node of the graph: room for `want` in all; a copy in `out`, which is empty, with no more room than that.
 * Nothing changes on failure. */
RONDO_MUST_USE rondo_status rondo_slots_reserve(rondo_graph *graph, rondo_slots *slots, size_t want);
RONDO_MUST_USE rondo_status rondo_slots_copy(rondo_graph *graph, const rondo_slots *from, rondo_slots *out);
void rondo_slots_insert(rondo_slots *slots, uint32_t slot); /* room is reserved; the slot is not there */
void rondo_slots_remove(rondo_slots *slots, uint32_t slot); /* the slot is there */

/* What was noted of the graph and those around it holds no more. */
void rondo_graph_note_change(rondo_graph *graph);
/* Drops the programmatic edges of a slot. */
void rondo_graph_cut_programmatic(rondo_graph *graph, uint32_t slot);

/* UNKNOWN_NODE unless a live node stands in the slot. */
RONDO_MUST_USE rondo_status rondo_graph_check_slot(const rondo_graph *graph, uint32_t slot);

#endif
