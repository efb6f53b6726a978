/* SPDX-License-Identifier: MIT
 * A graph's life: making, adding and removing nodes, cloning, freeing.
 */
#ifndef RONDO_GRAPH_GRAPH_H
#define RONDO_GRAPH_GRAPH_H

#include "graph/graph_internal.h"

#include "graph/node.h"

/* Clones with another allocator; see rondo_graph_clone. */
RONDO_MUST_USE rondo_status rondo_graph_clone_with(const rondo_allocator *allocator, const rondo_graph *graph,
                                                   rondo_graph **out);

/* Puts a node into the slot `number`, which is not below nodes.count; the slots between become holes. The parameters
 * keep to rondo_node_shape_check, addresses may be NULL; a child is taken over on success. For the JSON reader. */
RONDO_MUST_USE rondo_status rondo_graph_insert_at(rondo_graph *graph, uint32_t number, const rondo_node_params *params);

/* The graph has changed: what was noted of it, and of those around it, is not valid any more. */
void rondo_graph_note_change(rondo_graph *graph);

/* UNKNOWN_NODE unless a live node is in the slot. */
RONDO_MUST_USE rondo_status rondo_graph_check_slot(const rondo_graph *graph, uint32_t slot);

/* A graph for a device of which only the identity and the allocator are known here. `allocator` is resolved. */
RONDO_MUST_USE rondo_status rondo_graph_make(rondo_device *device, const rondo_allocator *allocator, const char *name,
                                             rondo_graph **out);

/* rondo_graph_clone, also of a bound graph: for its exec. */
RONDO_MUST_USE rondo_status rondo_graph_copy(const rondo_graph *graph, rondo_graph **out);
void rondo_graph_free(rondo_graph *graph); /* without the checks of rondo_graph_destroy; NULL is fine */

/* The next child graph whose node has the slot or a later one; moves the slot past it. NULL when there is none:
 *
 *   for (uint32_t at = 0; (child = rondo_graph_next_child(graph, &at)) != NULL;) ... */
rondo_graph *rondo_graph_next_child(const rondo_graph *graph, uint32_t *inout_slot);

/* True when a stream captures into the graph or into a child at any depth. */
bool rondo_graph_is_captured_into(const rondo_graph *graph);

/* The slot of a node id, checked: UNKNOWN_NODE naming the graph. */
RONDO_MUST_USE rondo_status rondo_graph_find(const rondo_graph *graph, rondo_node node, uint32_t *out_slot);

/* The slots of a list, which messages call `list`. */
RONDO_MUST_USE rondo_status rondo_graph_find_all(const rondo_graph *graph, const char *list, const rondo_node *nodes,
                                                 size_t count, uint32_t *out_slots);
rondo_node rondo_graph_id(const rondo_graph *graph, uint32_t slot);
const char *rondo_graph_label(char buffer[RONDO_LABEL_BYTES], const rondo_graph *graph);
const char *rondo_graph_name_label(char buffer[RONDO_LABEL_BYTES], const char *name);

/* Adds a node of any kind: checks the list of dependencies and the parameters (B2 to B4), copies, retains the kernel,
 * clones the child. For ALLOC the address must be set already; the memory layer has chosen it. Nothing changes on
 * failure. */
RONDO_MUST_USE rondo_status rondo_graph_insert(rondo_graph *graph, const rondo_node *dependencies, size_t count,
                                               const rondo_node_params *params, rondo_node *out);

/* The same with parameters that have passed rondo_node_params_check for the graph's device. */
RONDO_MUST_USE rondo_status rondo_graph_insert_checked(rondo_graph *graph, const rondo_node *dependencies, size_t count,
                                                       const rondo_node_params *params, rondo_node *out);

/* Replaces a node's parameters, checked; the old ones stay on failure. NODE_KIND when the kind is another one,
 * UNSUPPORTED for kinds CHILD, ALLOC and FREE. `params` may point into the node. */
RONDO_MUST_USE rondo_status rondo_graph_replace(rondo_graph *graph, uint32_t slot, const rondo_node_params *params);

/* The same in two steps, of which the second cannot fail, with parameters of the node's kind that were checked: makes
 * the contents that a node of the slot would get, and puts them there, or discards them. */
RONDO_MUST_USE rondo_status rondo_graph_prepare(rondo_graph *graph, uint32_t slot, const rondo_node_params *params,
                                                rondo_graph_node *out);
void rondo_graph_put(rondo_graph *graph, uint32_t slot, rondo_graph_node *prepared);
void rondo_graph_discard(rondo_graph *graph, rondo_graph_node *prepared);

/* Whether rondo_graph_overwrite may put the parameters, resolved, in place of the node's own: a kernel's arguments have
 * room there, and the name is the same. */
bool rondo_graph_fits(const rondo_graph *graph, uint32_t slot, const rondo_node_params *params);
void rondo_graph_overwrite(rondo_graph *graph, uint32_t slot, const rondo_node_params *params);

/* Removes a node with its edges. Errors: UNSUPPORTED/FOREIGN_WORK (the graph is bound); UNKNOWN_NODE (no live node in
 * that slot); INVALID_STATE/CAPTURING_INTO (C12), the graph or the node's child. Never fails for want of memory. What
 * relies on the node's order (address reuse) is the caller's to ask first. The check alone is what erasing begins with;
 * nothing else of it can fail. */
RONDO_MUST_USE rondo_status rondo_graph_erase(rondo_graph *graph, uint32_t slot);
RONDO_MUST_USE rondo_status rondo_graph_check_erase(const rondo_graph *graph, uint32_t slot);
const char *rondo_graph_bound_text(const rondo_graph *graph, char buffer[RONDO_BOUND_TEXT]);

/* For a graph that is bound: UNSUPPORTED/FOREIGN_WORK with that text. `what` follows the graph's name: "cannot ...". */
RONDO_MUST_USE rondo_status rondo_graph_refuse_bound(const rondo_graph *graph, const char *what);

#endif
