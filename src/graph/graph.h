/* SPDX-License-Identifier: MIT
 * The life of a graph: creating it, adding and removing nodes, and freeing it.
 */
#ifndef RONDO_GRAPH_GRAPH_H
#define RONDO_GRAPH_GRAPH_H

#include "base/component.h"
#include "graph/graph_internal.h"

#include "graph/node.h"

/* For the JSON reader: inserts a node in the slot `number`, which must be at least nodes.count. The slots between
 * become holes. The parameters must pass rondo_node_shape_check; addresses may be NULL. On success the graph owns the
 * child. */
RONDO_MUST_USE rondo_status rondo_graph_insert_at(rondo_graph *graph, uint32_t number, const rondo_node_params *params);

/* The graph has changed: invalidates what was noted about it and about the graphs that contain it. */
void rondo_graph_note_change(rondo_graph *graph);

/* The driver's form was built from all nodes as they are now. */
void rondo_graph_clear_changes(rondo_graph *graph);

/* Fails with UNKNOWN_NODE unless the slot has a live node. */
RONDO_MUST_USE rondo_status rondo_graph_check_slot(const rondo_graph *graph, uint32_t slot);

/* A graph for a device. This layer uses only the device's identity and the allocator. `allocator` is resolved. */
RONDO_MUST_USE rondo_status rondo_graph_make(rondo_device *device, const rondo_allocator *allocator, const char *name,
                                             rondo_graph **out);

/* For graph_clone.c: the parts of rondo_graph_make. A graph without storage for nodes, and such storage. */
RONDO_MUST_USE rondo_status rondo_graph_make_empty(rondo_device *device, const rondo_allocator *allocator,
                                                   const char *name, rondo_graph **out);
RONDO_MUST_USE rondo_status rondo_graph_make_storage(const rondo_allocator *allocator, rondo_node_storage **out);
/* Frees the nodes, unless other graphs share them. The graph has none then, and no storage. */
void rondo_graph_leave_nodes(rondo_graph *graph);

/* Retains a device besides the graph's own for nodes of the graph, as long as the graph and those around it. `index` is
 * the device's. Once is enough. */
RONDO_MUST_USE rondo_status rondo_graph_retain_device(rondo_graph *graph, rondo_device *device, uint32_t index);
/* The same for the device of a child graph, unless it is the graph's own, and for what the child retains. */
RONDO_MUST_USE rondo_status rondo_graph_retain_device_of(rondo_graph *graph, const rondo_graph *child, uint32_t index);
/* Undoes all retaining of devices, also of the graph's own. The list stays. */
void rondo_graph_end_hold(rondo_graph *graph);
/* Whether the device is the graph's, or one that it retains so. */
bool rondo_graph_has_device(const rondo_graph *graph, const rondo_device *device);
/* The number of a device that the graph has retained so (rondo_other_device); 0 for NULL. */
uint16_t rondo_graph_device_number(const rondo_graph *graph, const rondo_device *device);
/* Retains the kernel as long as the graph, for its symbols. Once is enough. */
RONDO_MUST_USE rondo_status rondo_graph_retain_kernel(rondo_graph *graph, rondo_kernel *kernel);
/* The symbol that contains the address, among those of kernels that were retained so, or NULL. */
const rondo_code_symbol *rondo_graph_symbol_at(const rondo_graph *graph, const void *address,
                                               const rondo_kernel **out_kernel);
void rondo_graph_free(rondo_graph *graph); /* without the checks of rondo_graph_destroy; NULL is fine */

/* The next child graph whose node has the slot or a later one; moves the slot past it. NULL when there is none:
 *
 *   for (uint32_t at = 0; (child = rondo_graph_next_child(graph, &at)) != NULL;) ... */
rondo_graph *rondo_graph_next_child(const rondo_graph *graph, uint32_t *inout_slot);

/* True when a stream captures into the graph or into a child at any depth. */
bool rondo_graph_is_captured_into(const rondo_graph *graph);

/* The slot of a node id. Fails with UNKNOWN_NODE, which names the graph. */
RONDO_MUST_USE rondo_status rondo_graph_find(const rondo_graph *graph, rondo_node node, uint32_t *out_slot);

/* The slots of a list, which messages call `list`. */
RONDO_MUST_USE rondo_status rondo_graph_find_all(const rondo_graph *graph, const char *list, const rondo_node *nodes,
                                                 size_t count, uint32_t *out_slots);
rondo_node rondo_graph_id(const rondo_graph *graph, uint32_t slot);
RONDO_PRIVATE const char *rondo_graph_label(char buffer[RONDO_LABEL_BYTES], const rondo_graph *graph);
const char *rondo_graph_name_label(char buffer[RONDO_LABEL_BYTES], const char *name);

/* Adds a node of any kind. Checks the list of dependencies and the parameters (B2 to B4), copies them, retains the
 * kernel and clones the child. The memory layer has already set the address of an ALLOC. Nothing changes on failure. */
RONDO_MUST_USE rondo_status rondo_graph_insert(rondo_graph *graph, const rondo_node *dependencies, size_t count,
                                               const rondo_node_params *params, rondo_node *out);

/* The same with parameters that have passed rondo_node_params_check for the device of the node. That device is NULL in
 * the parameters if it is the graph's, and else the graph retains it. */
RONDO_MUST_USE rondo_status rondo_graph_insert_checked(rondo_graph *graph, const rondo_node *dependencies, size_t count,
                                                       const rondo_node_params *params, rondo_node *out);

/* Checks and replaces a node's parameters; the old ones stay on failure. NODE_KIND if the kind differs, UNSUPPORTED for
 * kinds CHILD, ALLOC and FREE. `params` may point into the node. */
RONDO_MUST_USE rondo_status rondo_graph_replace(rondo_graph *graph, uint32_t slot, const rondo_node_params *params);

/* The same in two steps, with checked parameters of the node's kind, for a graph that owns its nodes. `prepare` makes
 * the new contents. `put` installs them, and `discard` frees them; neither can fail. */
RONDO_MUST_USE rondo_status rondo_graph_prepare(rondo_graph *graph, uint32_t slot, const rondo_node_params *params,
                                                rondo_graph_node *out);
void rondo_graph_put(rondo_graph *graph, uint32_t slot, rondo_graph_node *prepared);
void rondo_graph_discard(rondo_graph *graph, rondo_graph_node *prepared);

/* Puts a clone of another graph into a child node, which keeps its name unless `params` has one. Errors as
 * rondo_graph_insert. */
RONDO_MUST_USE rondo_status rondo_graph_replace_child(rondo_graph *graph, uint32_t slot,
                                                      const rondo_node_params *params);

/* Whether rondo_graph_overwrite can store the resolved parameters in the memory of the node: its arguments fit, and its
 * name is the same. The graph that is overwritten owns its nodes. */
bool rondo_graph_fits(const rondo_graph *graph, uint32_t slot, const rondo_node_params *params);
void rondo_graph_overwrite(rondo_graph *graph, uint32_t slot, const rondo_node_params *params);

/* The same for a kernel, in an exec's clone, of which nothing is noted that a change would invalidate. */
static inline void rondo_graph_store_launch(rondo_graph_node *node, const rondo_kernel_node *launch) {
  const rondo_kernel *kernel = launch->kernel;
  node->params.as.kernel.grid = launch->grid;
  for (uint32_t i = 0; i < kernel->parameter_count; i++)
    rondo_argument_set((char *)node->arguments + kernel->offsets[i], launch->args[i], kernel->parameters[i].bytes);
}

/* Removes a node with its edges. Errors: UNSUPPORTED/FOREIGN_WORK (the graph is bound), UNKNOWN_NODE (the slot has no
 * live node), INVALID_STATE/CAPTURING_INTO (C12; for the graph or the node's child), OUT_OF_MEMORY only if other graphs
 * share its nodes. Before it, the caller checks whether the node's order is needed (address reuse).
 * rondo_graph_check_erase makes the checks only. */
RONDO_PRIVATE RONDO_MUST_USE rondo_status rondo_graph_erase(rondo_graph *graph, uint32_t slot);
RONDO_PRIVATE RONDO_MUST_USE rondo_status rondo_graph_check_erase(const rondo_graph *graph, uint32_t slot);
const char *rondo_graph_bound_text(const rondo_graph *graph, char buffer[RONDO_BOUND_TEXT]);

/* Fails with UNSUPPORTED/FOREIGN_WORK for a bound graph. `what` follows the graph's name: "cannot ...". */
RONDO_MUST_USE rondo_status rondo_graph_refuse_bound(const rondo_graph *graph, const char *what);

#endif
