/* SPDX-License-Identifier: MIT
 * Cloning. A clone has the numbers, edges and contents of its graph. The two share the memory of their nodes until one
 * of them changes, which first copies them. The attachments, devices, kernels of symbols and user objects of the graph
 * are retained by the clone.
 */
#include "graph/graph_clone.h"

#include <assert.h>
#include <inttypes.h>
#include <stdatomic.h>

#include "base/error.h"
#include "graph/graph.h"
#include "graph/graph_check.h"
#include "graph/node.h"
#include "graph/node_name.h"
#include "graph/user_object.h"

/* Nodes ------------------------------------------------------------------------------------------------------------ */

/* `out` is zero before the call. After a failure, freeing the nodes of `to` frees its contents. */
static rondo_status copy_node(rondo_graph *to, const rondo_graph_node *from, uint32_t slot, rondo_graph_node *out) {
  if (!from->live) return RONDO_OK;
  RONDO_TRY(rondo_node_contents_copy(to, from, out));
  out->live = true;
  out->captured = from->captured;
  out->leaving = from->leaving;
  if (from->params.kind == RONDO_NODE_CHILD) out->params.as.child->parent_slot = slot;
  RONDO_TRY(rondo_slots_copy(to, &from->dependencies, &out->dependencies));
  return rondo_slots_copy(to, &from->dependents, &out->dependents);
}

/* Copies the nodes of a graph to another one, which has none. After a failure it has none again. The nodes are zero
 * before they are copied to: unused capacity is zero. */
static rondo_status copy_nodes(const rondo_graph *graph, rondo_graph *to) {
  RONDO_TRY(rondo_graph_make_storage(&to->allocator, &to->storage));
  rondo_status status = rondo_array_reserve(&to->allocator, &to->nodes, graph->nodes.count);
  for (size_t i = 0; i < graph->nodes.count && status == RONDO_OK; i++) {
    rondo_graph_node *out = &to->nodes.items[to->nodes.count++];
    status = copy_node(to, &graph->nodes.items[i], (uint32_t)i, out);
  }
  if (status != RONDO_OK) rondo_graph_leave_nodes(to);
  return status;
}

rondo_status rondo_graph_copy_nodes(rondo_graph *graph) {
  rondo_graph shared = *graph;
  assert(graph->child_count == 0);
  graph->storage = NULL;
  graph->nodes.items = NULL;
  graph->nodes.count = graph->nodes.capacity = 0;
  const rondo_status status = copy_nodes(&shared, graph);
  if (status == RONDO_OK) {
    rondo_graph_leave_nodes(&shared);
  } else {
    graph->storage = shared.storage;
    graph->nodes.items = shared.nodes.items;
    graph->nodes.count = shared.nodes.count;
    graph->nodes.capacity = shared.nodes.capacity;
  }
  return status;
}

rondo_status rondo_graph_keep_nodes(rondo_graph *graph) {
  RONDO_TRY(rondo_graph_own_nodes(graph));
  graph->keeps_nodes = true;
  return RONDO_OK;
}

/* Graphs ----------------------------------------------------------------------------------------------------------- */

/* Whether a clone with this allocator can have the same nodes. A capture writes to nodes of its graph. */
static bool can_share(const rondo_graph *graph, const rondo_allocator *allocator) {
  const rondo_allocator *own = &graph->allocator;
  return graph->child_count == 0 && graph->captures == 0 && !graph->keeps_nodes && own->self == allocator->self &&
         own->allocate == allocator->allocate && own->release == allocator->release;
}

static rondo_status clone_nodes(const rondo_graph *graph, rondo_graph *clone) {
  clone->live_count = graph->live_count;
  clone->child_count = graph->child_count;
  if (!can_share(graph, &clone->allocator)) return copy_nodes(graph, clone);
  atomic_fetch_add_explicit(&graph->storage->graphs, 1, memory_order_relaxed);
  clone->storage = graph->storage;
  clone->nodes.items = graph->nodes.items;
  clone->nodes.count = graph->nodes.count;
  clone->nodes.capacity = graph->nodes.capacity;
  return RONDO_OK;
}

static void copy_attachment(rondo_graph_attachment *to, const rondo_graph_attachment *from) {
  *to = *from;
  if (to->object != NULL) to->retain(to->object);
}

static rondo_status copy_symbol_kernels(rondo_graph *clone, const rondo_graph *graph) {
  for (size_t i = 0; i < graph->symbol_kernels.count; i++)
    RONDO_TRY(rondo_graph_retain_kernel(clone, graph->symbol_kernels.items[i]));
  return RONDO_OK;
}

/* Whether a node of the graph itself runs on the device, or names a symbol of it. */
static bool uses_device(const rondo_graph *graph, const rondo_other_device *other) {
  for (size_t i = 0; i < graph->symbol_kernels.count; i++)
    if (graph->symbol_kernels.items[i]->device == other->device) return true;
  for (size_t i = 0; i < graph->nodes.count; i++)
    if (graph->nodes.items[i].live && graph->nodes.items[i].params.device == other->device) return true;
  return false;
}

/* Or one of its children, of which only the devices that they need were copied. */
static bool needs_device(const rondo_graph *clone, const rondo_other_device *other) {
  const rondo_graph *child;
  if (uses_device(clone, other)) return true;
  for (uint32_t at = 0; (child = rondo_graph_next_child(clone, &at)) != NULL;)
    if (rondo_graph_has_device(child, other->device)) return true;
  return false;
}

/* Without those whose nodes were removed: the clone does not keep them open. Comes after the nodes. */
static rondo_status copy_others(rondo_graph *clone, const rondo_graph *graph) {
  for (size_t i = 0; i < graph->others.count; i++)
    if (needs_device(clone, &graph->others.items[i]))
      RONDO_TRY(rondo_array_push(&clone->allocator, &clone->others, &graph->others.items[i]));
  return RONDO_OK;
}

/* The list was copied before. */
static void copy_hold(rondo_graph *clone, const rondo_graph *graph) {
  copy_attachment(&clone->hold, &graph->hold);
  for (size_t i = 0; i < clone->others.count && clone->hold.object != NULL; i++)
    clone->hold.retain(clone->others.items[i].device);
}

rondo_status rondo_graph_clone_with(const rondo_allocator *allocator, const rondo_graph *graph, rondo_graph **out) {
  *out = NULL;
  rondo_graph *clone;
  RONDO_TRY(rondo_graph_make_empty(graph->device, allocator, graph->name, &clone));
  rondo_status status = clone_nodes(graph, clone);
  if (status == RONDO_OK) status = rondo_array_copy(&clone->allocator, &clone->programmatic, &graph->programmatic);
  if (status == RONDO_OK) status = copy_symbol_kernels(clone, graph);
  if (status == RONDO_OK) status = copy_others(clone, graph);
  if (status == RONDO_OK) status = rondo_object_list_copy(&clone->allocator, &clone->objects, &graph->objects);
  if (status != RONDO_OK) {
    rondo_graph_free(clone);
    return status;
  }
  clone->source_serial = graph->serial;
  clone->source_count = (uint32_t)graph->nodes.count;
  clone->has_memory = graph->has_memory;
  clone->is_bound = graph->is_bound;
  copy_attachment(&clone->memory, &graph->memory);
  copy_hold(clone, graph);
  copy_attachment(&clone->captured, &graph->captured);
  copy_attachment(&clone->random, &graph->random);
  rondo_graph_check(clone);
  *out = clone;
  return RONDO_OK;
}

rondo_status rondo_graph_copy(const rondo_graph *graph, rondo_graph **out) {
  return rondo_graph_clone_with(&graph->allocator, graph, out);
}

rondo_status rondo_graph_find_in_clone(const rondo_graph *clone, rondo_node node, rondo_node *out_node) {
  RONDO_TRY(rondo_require("rondo_graph_find_in_clone", "the out-parameter", out_node));
  *out_node = (rondo_node){0};
  RONDO_TRY(rondo_require("rondo_graph_find_in_clone", "the clone", clone));
  const uint32_t number = rondo_node_number(node);
  char label[RONDO_LABEL_BYTES];
  if (node.id == 0 || node.id >> 32 != clone->source_serial)
    return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_UNKNOWN_NODE,
                      "rondo_graph_find_in_clone: %s was not cloned from the graph of the node id 0x%" PRIx64
                      ": pass the clone, and the id of a node of the graph that was cloned",
                      rondo_graph_label(label, clone), node.id);
  if (number >= clone->source_count || !clone->nodes.items[number].live)
    return rondo_fail_node(RONDO_INVALID_ARGUMENT, RONDO_REASON_UNKNOWN_NODE, number,
                           "rondo_graph_find_in_clone: %s has no copy of node %" PRIu32
                           ": it was added after the graph was cloned, or its copy was removed",
                           rondo_graph_label(label, clone), number);
  *out_node = rondo_graph_id(clone, number);
  return RONDO_OK;
}
