/* SPDX-License-Identifier: MIT
 * See capture_import.h.
 */
#include "exec/capture/capture_import.h"

#include <assert.h>

#include "device/device.h"
#include "exec/build/graph_build.h"
#include "exec/build/node_device.h"
#include "graph/edges.h"
#include "graph/graph.h"
#include "graph/launch_config.h"
#include "memory/node_addresses.h"
#include "memory/peer_access.h"
#include "memory/symbol_memory.h"

static const rondo_allocator *allocator_of(const rondo_importer *importer) { return &importer->graph->allocator; }

/* Names ----------------------------------------------------------------------------------------------------------- */

static bool find_slot(const rondo_importer *importer, uint64_t name, uint32_t *out) {
  uint64_t value;
  const bool is_known = rondo_handle_map_get(&importer->slots, name, &value);
  *out = is_known ? (uint32_t)(value - 1) : RONDO_NO_NODE;
  return is_known;
}

static bool is_known(const rondo_importer *importer, uint64_t name) {
  uint32_t slot;
  return find_slot(importer, name, &slot);
}

/* 0: it has none. */
static uint64_t name_of(const rondo_importer *importer, uint32_t slot) {
  return slot < importer->names.count ? importer->names.items[slot] : 0;
}

/* Adds a node after all nodes that it depends on: depth first, with the stack `pending`. `visit` adds the node of a
 * key, or pushes the dependencies that are not there. */
static rondo_status add_in_order(rondo_importer *importer, uint64_t key,
                                 bool (*is_there)(const rondo_importer *importer, uint64_t key),
                                 rondo_status (*visit)(rondo_importer *importer, uint64_t key)) {
  assert(key != 0);
  importer->pending.count = 0;
  if (is_there(importer, key)) return RONDO_OK;
  RONDO_TRY(visit(importer, key));
  if (importer->pending.count == 0) return RONDO_OK; /* usually */
  importer->pending.count = 0;
  RONDO_TRY(rondo_array_push(allocator_of(importer), &importer->pending, &key));
  while (importer->pending.count > 0) {
    const size_t count = importer->pending.count;
    const uint64_t top = importer->pending.items[count - 1];
    if (!is_there(importer, top)) RONDO_TRY(visit(importer, top));
    if (importer->pending.count == count) importer->pending.count--;
  }
  return RONDO_OK;
}

/* Reserves for `more` new nodes of the graph. */
static inline rondo_status reserve_names(rondo_importer *importer, size_t more) {
  RONDO_TRY(rondo_handle_map_reserve(allocator_of(importer), &importer->slots, more));
  return rondo_array_reserve(allocator_of(importer), &importer->names, importer->graph->nodes.count + more);
}

rondo_status rondo_importer_reserve(rondo_importer *importer) { return reserve_names(importer, 1); }

void rondo_importer_know(rondo_importer *importer, uint64_t name, uint32_t slot) {
  rondo_graph_node *node = rondo_graph_at(importer->graph, slot);
  assert(name != 0 && !is_known(importer, name) && slot < importer->names.capacity);
  rondo_handle_map_put(&importer->slots, name, (uint64_t)slot + 1);
  if (slot >= importer->names.count) importer->names.count = (size_t)slot + 1; /* unused capacity is zero */
  importer->names.items[slot] = name;
  if (node->captured == 0) node->captured = name; /* else it is from an earlier capture into the same graph */
}

static bool has_name(const rondo_importer *importer, uint64_t key) {
  return name_of(importer, (uint32_t)(key - 1)) != 0;
}

/* Adds a slot to the driver's graph. All its dependencies have names. */
static rondo_status place(rondo_importer *importer, uint32_t slot) {
  const rondo_slots *dependencies = &rondo_graph_at(importer->graph, slot)->dependencies;
  const rondo_allocator *allocator = allocator_of(importer);
  uint64_t *before, name;
  RONDO_TRY(rondo_importer_reserve(importer));
  RONDO_TRY(rondo_allocate_items(allocator, dependencies->count, sizeof *before, &before));
  for (size_t i = 0; i < dependencies->count; i++) before[i] = name_of(importer, dependencies->items[i]);
  for (size_t i = 0; i < dependencies->count; i++) assert(before[i] != 0);
  const rondo_status status =
      importer->captured->ops->place(importer->captured, NULL, before, dependencies->count, &name);
  rondo_release(allocator, before, dependencies->count, sizeof *before);
  if (status == RONDO_OK) rondo_importer_know(importer, name, slot);
  return status;
}

/* Places the slot key - 1, or pushes its dependencies without a name. */
static rondo_status visit_slot(rondo_importer *importer, uint64_t key) {
  const rondo_slots *dependencies = &rondo_graph_at(importer->graph, (uint32_t)(key - 1))->dependencies;
  const size_t pending = importer->pending.count;
  for (size_t i = 0; i < dependencies->count; i++) {
    const uint64_t dependency = (uint64_t)dependencies->items[i] + 1;
    if (!has_name(importer, dependency))
      RONDO_TRY(rondo_array_push(allocator_of(importer), &importer->pending, &dependency));
  }
  return importer->pending.count > pending ? RONDO_OK : place(importer, (uint32_t)(key - 1));
}

rondo_status rondo_importer_name(rondo_importer *importer, uint32_t slot, uint64_t *out) {
  RONDO_TRY(add_in_order(importer, (uint64_t)slot + 1, has_name, visit_slot));
  *out = name_of(importer, slot);
  assert(*out != 0);
  return RONDO_OK;
}

/* Order ----------------------------------------------------------------------------------------------------------- */

static inline rondo_status add_to_order(rondo_importer *importer, uint32_t slot) {
  const rondo_node node = rondo_graph_id(importer->graph, slot);
  for (size_t i = 0; i < importer->order.count; i++)
    if (importer->order.items[i].id == node.id) return RONDO_OK;
  return rondo_array_push(allocator_of(importer), &importer->order, &node);
}

/* Adds to the order the sources of programmatic edges to nodes in it. */
static rondo_status add_sources(rondo_importer *importer) {
  const rondo_graph *graph = importer->graph;
  for (size_t i = 0; i < importer->order.count; i++) {
    size_t count;
    const uint32_t slot = rondo_node_number(importer->order.items[i]);
    const rondo_programmatic_edge *edges = rondo_graph_programmatic_to(graph, slot, &count);
    for (size_t e = 0; e < count; e++) RONDO_TRY(add_to_order(importer, edges[e].from));
  }
  return RONDO_OK;
}

static inline rondo_status complete_order(rondo_importer *importer) {
  return importer->graph->programmatic.count > 0 ? add_sources(importer) : RONDO_OK;
}

rondo_status rondo_importer_order_after(rondo_importer *importer, const uint64_t *names, size_t count) {
  importer->order.count = 0;
  for (size_t i = 0; i < count; i++) {
    uint32_t slot;
    const bool found = find_slot(importer, names[i], &slot);
    assert(found);
    (void)found;
    RONDO_TRY(add_to_order(importer, slot));
  }
  return complete_order(importer);
}

/* Collects the dependencies and the programmatic edges of a node. Those that are not known are pushed on the stack
 * `pending`. */
static rondo_status collect_edges(rondo_importer *importer, uint64_t name) {
  rondo_captured *captured = importer->captured;
  const rondo_captured_edge *edges;
  size_t count;
  importer->order.count = importer->loose.count = 0;
  RONDO_TRY(captured->ops->before(captured, name, &edges, &count));
  for (size_t i = 0; i < count; i++) {
    rondo_programmatic_edge loose = {
        .from_port = edges[i].from_port, .to_port = edges[i].to_port, .type = edges[i].type};
    if (!find_slot(importer, edges[i].node, &loose.from))
      RONDO_TRY(rondo_array_push(allocator_of(importer), &importer->pending, &edges[i].node));
    else if (edges[i].is_programmatic)
      RONDO_TRY(rondo_array_push(allocator_of(importer), &importer->loose, &loose));
    else
      RONDO_TRY(add_to_order(importer, loose.from));
  }
  return complete_order(importer);
}

/* The capacity is reserved. If there is also a full edge, the programmatic edge is dropped. */
static void link_loose(rondo_importer *importer, uint32_t slot) {
  for (size_t i = 0; i < importer->loose.count; i++) {
    rondo_programmatic_edge edge = importer->loose.items[i];
    bool is_ordered = false;
    for (size_t k = 0; k < importer->order.count; k++)
      is_ordered = is_ordered || rondo_node_number(importer->order.items[k]) == edge.from;
    edge.to = slot;
    if (!is_ordered)
      rondo_status_ignore(rondo_graph_link_programmatic(importer->graph, &edge), "both ends are there, it is new");
  }
}

/* Nodes ----------------------------------------------------------------------------------------------------------- */

static rondo_status insert_work(rondo_importer *importer, const rondo_captured_work *work, rondo_node *out);

/* Imports the graph of a child node; the node gets a clone of it. */
static rondo_status insert_child(rondo_importer *importer, const rondo_captured_work *work, rondo_node *out) {
  rondo_captured_work with_graph = *work;
  rondo_importer inside = {.captured = importer->captured};
  const rondo_graph_options options = {RONDO_GRAPH_OPTIONS_INIT};
  RONDO_TRY(rondo_build_graph("importing a child graph", importer->graph->device, &options, &inside.graph));
  rondo_captured_attach(importer->captured, &inside.graph->captured);
  rondo_status status = rondo_importer_add_all(&inside, work->child);
  with_graph.child = 0;
  with_graph.params.as.child = inside.graph;
  if (status == RONDO_OK) status = rondo_graph_retain_device_of(importer->graph, inside.graph, 0);
  if (status == RONDO_OK) status = insert_work(importer, &with_graph, out);
  rondo_graph *graph = inside.graph;
  rondo_importer_free(&inside);
  rondo_graph_free(graph);
  return status;
}

/* The driver gives a kernel of the device all its arguments, so that only the launch is checked. */
static rondo_status check_launch(const rondo_kernel_node *node) {
  rondo_grid grid;
  if (!rondo_grid_is_small(node->grid)) RONDO_TRY(rondo_grid_check(node->kernel->name, node->grid, &grid));
  return node->config == NULL ? RONDO_OK : rondo_launch_config_check(node);
}

static rondo_status insert_work(rondo_importer *importer, const rondo_captured_work *work, rondo_node *out) {
  rondo_graph *graph = importer->graph;
  if (work->child != 0) return insert_child(importer, work, out);
  RONDO_TRY(rondo_symbols_retain(graph, &work->params));
  if (work->params.kind != RONDO_NODE_KERNEL)
    return rondo_graph_insert(graph, importer->order.items, importer->order.count, &work->params, out);
  RONDO_TRY(check_launch(&work->params.as.kernel));
  return rondo_graph_insert_checked(graph, importer->order.items, importer->order.count, &work->params, out);
}

/* The device of memory to which the graph's device has no access; NULL if it has access to all. */
static rondo_device *find_owner(const rondo_graph *graph, const rondo_node_params *params) {
  rondo_node_address named[RONDO_MAX_PARAMETERS];
  const size_t count = rondo_node_addresses(params, named);
  for (size_t i = 0; i < count; i++) {
    rondo_peer_memory memory;
    if (!rondo_peers_find(graph->device, named[i].address, &memory) || memory.allowed) continue;
    rondo_device *owner = rondo_peers_owner(named[i].address);
    if (owner != NULL && rondo_device_shares_driver(graph->device, owner)) return owner;
  }
  return NULL;
}

/* A kernel runs in its context. The driver does not say in which context a copy or fill runs: it is that of the graph's
 * device, unless this has no access. */
static rondo_status set_device(rondo_graph *graph, rondo_captured_work *work) {
  rondo_node_params *params = &work->params;
  const bool is_copy_or_fill = params->kind == RONDO_NODE_COPY || params->kind == RONDO_NODE_FILL;
  rondo_device *device;
  if (work->child != 0 || (rondo_node_is_plainly_own(graph, params) && !is_copy_or_fill)) return RONDO_OK;
  if (is_copy_or_fill && rondo_peers_others_have_memory(graph->device)) params->device = find_owner(graph, params);
  return rondo_node_device_set("a captured node", graph, params, &device);
}

/* Imports a node whose edges were collected. Everything that can fail comes before the node is added. */
static rondo_status import_node(rondo_importer *importer, uint64_t name) {
  rondo_graph *graph = importer->graph;
  rondo_captured_work work;
  rondo_node node;
  RONDO_TRY(reserve_names(importer, 1));
  RONDO_TRY(
      rondo_array_reserve(&graph->allocator, &graph->programmatic, graph->programmatic.count + importer->loose.count));
  RONDO_TRY(importer->captured->ops->read(importer->captured, name, &work));
  rondo_status status = set_device(graph, &work);
  if (status == RONDO_OK) status = insert_work(importer, &work, &node);
  if (status != RONDO_OK) return rondo_fail_context(status, "work that a library captured");
  rondo_importer_know(importer, name, rondo_node_number(node));
  if (importer->loose.count > 0) link_loose(importer, rondo_node_number(node));
  return RONDO_OK;
}

/* Imports the node, or pushes its unknown dependencies. */
static rondo_status visit_name(rondo_importer *importer, uint64_t name) {
  const size_t pending = importer->pending.count;
  RONDO_TRY(collect_edges(importer, name));
  return importer->pending.count > pending ? RONDO_OK : import_node(importer, name);
}

rondo_status rondo_importer_add(rondo_importer *importer, uint64_t name) {
  return add_in_order(importer, name, is_known, visit_name);
}

/* Reserves for the nodes of a list that are not known, so that nothing grows node by node. */
static rondo_status reserve_all(rondo_importer *importer, size_t listed) {
  rondo_graph *graph = importer->graph;
  const size_t known = importer->slots.count, more = listed > known ? listed - known : 0;
  RONDO_TRY(reserve_names(importer, more));
  return rondo_array_reserve(&graph->allocator, &graph->nodes, graph->nodes.count + more);
}

/* Copies the driver's list, which is valid only until the next call. */
rondo_status rondo_importer_add_all(rondo_importer *importer, uint64_t graph) {
  const uint64_t *listed;
  uint64_t *names;
  size_t count;
  RONDO_TRY(importer->captured->ops->nodes(importer->captured, graph, &listed, &count));
  RONDO_TRY(rondo_allocate_copy(allocator_of(importer), listed, count, sizeof *names, &names));
  rondo_status status = reserve_all(importer, count);
  for (size_t i = 0; i < count && status == RONDO_OK; i++) status = rondo_importer_add(importer, names[i]);
  rondo_release(allocator_of(importer), names, count, sizeof *names);
  return status;
}

/* Life ------------------------------------------------------------------------------------------------------------ */

void rondo_importer_forget(rondo_importer *importer) {
  for (size_t i = 0; i < importer->graph->nodes.count; i++) {
    rondo_graph_node *node = &importer->graph->nodes.items[i];
    if (node->live && node->captured == name_of(importer, (uint32_t)i)) node->captured = 0;
  }
}

void rondo_importer_free(rondo_importer *importer) {
  const rondo_allocator *allocator = allocator_of(importer);
  if (importer->captured != NULL) importer->captured->ops->end_reading(importer->captured);
  rondo_handle_map_free(allocator, &importer->slots);
  rondo_array_free(allocator, &importer->names);
  rondo_array_free(allocator, &importer->pending);
  rondo_array_free(allocator, &importer->order);
  rondo_array_free(allocator, &importer->loose);
}
