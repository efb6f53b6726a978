/* SPDX-License-Identifier: MIT
 * The driver's objects of an executable: its graph is made of the nodes, then instantiated. What was built is replaced
 * only once the new objects are complete. Threads: the executable's owner, in the device's context.
 */
#include <assert.h>
#include <stdio.h>

#include "base/allocation.h"
#include "device/cuda/cuda_context.h"
#include "device/cuda/cuda_foreign_nodes.h"
#include "device/cuda/cuda_graph_build.h"
#include "device/cuda/cuda_graph_node.h"
#include "device/cuda/cuda_operations.h"
#include "device/cuda/cuda_placeholder_memory.h"
#include "graph/byte_box.h"

/* Leaving nodes out ------------------------------------------------------------------------------------------------ */

/* Nodes are visited in topological order, each with the list of nodes that it comes after. A node between several nodes
 * before it and several after it is kept, because edges from each to each would be more than the edges to it and from
 * it. So is one with a long list, which many such nodes in a row would copy. */
#define LONGEST_LEFT_OUT 16

static void count_successors(const cuda_executable *executable, cuda_order *order) {
  const size_t edges = executable->predecessor_start[executable->count];
  for (size_t e = 0; e < edges; e++) order->nodes[executable->predecessors[e]].successors++;
}

static rondo_status list_once(const rondo_allocator *allocator, cuda_order *order, uint32_t i, uint32_t before) {
  cuda_node_order *node_order = &order->nodes[before];
  assert(before < i && !node_order->is_left_out);
  if (node_order->listed == i + 1) return RONDO_OK;
  node_order->listed = i + 1;
  order->nodes[i].count++;
  return rondo_array_push(allocator, &order->before, &before);
}

/* Lists what the node comes after because of one of its predecessors. */
static rondo_status list_before(const rondo_allocator *allocator, cuda_order *order, uint32_t i, uint32_t predecessor) {
  const cuda_node_order node_order = order->nodes[predecessor];
  if (!node_order.is_left_out) return list_once(allocator, order, i, predecessor);
  for (size_t k = 0; k < node_order.count; k++)
    RONDO_TRY(list_once(allocator, order, i, order->before.items[node_order.first + k]));
  return RONDO_OK;
}

/* If its only predecessor is left out, it shares the list of that. */
static rondo_status list(const cuda_executable *executable, cuda_order *order, uint32_t i) {
  const uint32_t first = executable->predecessor_start[i], past = executable->predecessor_start[i + 1];
  const cuda_node_order *only = past - first == 1 ? &order->nodes[executable->predecessors[first]] : NULL;
  cuda_node_order *node_order = &order->nodes[i];
  node_order->first = order->before.count;
  if (only != NULL && only->is_left_out) {
    node_order->first = only->first;
    node_order->count = only->count;
    return RONDO_OK;
  }
  for (uint32_t e = first; e < past; e++)
    RONDO_TRY(list_before(cuda_allocator_of(executable), order, i, executable->predecessors[e]));
  return RONDO_OK;
}

static bool can_be_left_out(const cuda_node *node, const cuda_node_order *node_order) {
  if (!cuda_is_order_alone(node)) return false;
  return node_order->count <= 1 || node_order->successors == 0 ||
         (node_order->successors == 1 && node_order->count <= LONGEST_LEFT_OUT);
}

static rondo_status make_node_orders(const cuda_executable *executable, cuda_order *out) {
  const rondo_allocator *allocator = cuda_allocator_of(executable);
  const size_t count = out->node_count = executable->count;
  RONDO_TRY(rondo_allocate_items(allocator, count, sizeof *out->nodes, &out->nodes));
  RONDO_TRY(rondo_array_reserve(allocator, &out->before, executable->predecessor_start[count]));
  count_successors(executable, out);
  for (uint32_t i = 0; i < count; i++) {
    cuda_node_order *node_order = &out->nodes[i];
    RONDO_TRY(list(executable, out, i));
    node_order->is_left_out = can_be_left_out(&executable->nodes[i], node_order);
    if (!node_order->is_left_out && node_order->count > out->most) out->most = node_order->count;
  }
  return RONDO_OK;
}

rondo_status cuda_order_make(const cuda_executable *executable, cuda_order *out) {
  *out = (cuda_order){.executable = executable};
  if (!executable->is_exported && executable->has_order) return make_node_orders(executable, out);
  out->most = executable->most_before;
  return RONDO_OK;
}

void cuda_order_free(const rondo_allocator *allocator, cuda_order *order) {
  rondo_array_free(allocator, &order->before);
  rondo_release(allocator, order->nodes, order->node_count, sizeof *order->nodes);
}

bool cuda_order_has_edge(const cuda_order *order, uint32_t from, uint32_t to) {
  size_t count;
  const uint32_t *before = cuda_order_before(order, to, &count);
  for (size_t i = 0; i < count; i++)
    if (before[i] == from) return true;
  return false;
}

/* Adding ----------------------------------------------------------------------------------------------------------- */

/* Whether the kernel may begin before the end of the kernel before it (rondo_launch_config.programmatic). Between the
 * two is no node that was left out. */
static bool begins_before(const cuda_executable *executable, uint32_t from, size_t to) {
  const cuda_node *before = &executable->nodes[from], *node = &executable->nodes[to];
  if (node->config == NULL || !node->config->programmatic || before->kind != RONDO_NODE_KERNEL) return false;
  if (!cuda_may_begin_early(cuda_device_of(executable->base.device))) return false;
  for (uint32_t e = executable->predecessor_start[to]; e < executable->predecessor_start[to + 1]; e++)
    if (executable->predecessors[e] == from) return true;
  return false;
}

/* The driver's node has a copy of the child graph, which uses what the child's executable owns. */
static rondo_status add_child(const cuda_executable *executable, const cuda_node *node, cu_graph graph,
                              const cu_graph_node *before, size_t count, cu_graph_node *out) {
  cuda_device *device = cuda_device_of(executable->base.device);
  cuda_executable *child = node->as.child;
  rondo_status status = cuda_build_graph(child, &child->built.graph, child->handles);
  if (status == RONDO_OK)
    status = cuda_check_node(device, device->api->graph_add_child(out, graph, before, count, child->built.graph), node,
                             "adding ", executable->label);
  cuda_built_free(child, &child->built);
  return status;
}

static rondo_status add_node(const cuda_executable *executable, const cuda_node *node, cu_graph graph,
                             const cu_graph_node *before, size_t count, cu_graph_node *out) {
  if (__builtin_expect(node->kind == RONDO_NODE_CHILD, 0))
    return add_child(executable, node, graph, before, count, out);
  const cu_result code = cuda_node_add(executable, node, graph, before, count, out);
  if (__builtin_expect(code == CU_OK, 1)) return RONDO_OK;
  return cuda_check_node(cuda_device_of(executable->base.device), code, node, "adding ", executable->label);
}

static rondo_status add_nodes(cuda_executable *executable, cu_graph graph, cu_graph_node *handles,
                              const cuda_order *order, cu_graph_node *before) {
  for (size_t i = 0; i < executable->count; i++) {
    const cuda_node *node = &executable->nodes[i];
    if (cuda_order_leaves_out(order, i)) continue;
    size_t listed, count = 0;
    const uint32_t *predecessors = cuda_order_before(order, i, &listed);
    for (size_t k = 0; k < listed; k++) {
      const cuda_node *predecessor = &executable->nodes[predecessors[k]];
      if (__builtin_expect(node->is_configured, 0) && begins_before(executable, predecessors[k], i)) continue;
      before[count++] = handles[predecessor->first + cuda_node_parts(predecessor) - 1];
    }
    RONDO_TRY(add_node(executable, node, graph, before, count, &handles[node->first]));
  }
  return RONDO_OK;
}

static rondo_status fail_edge(const cuda_executable *executable, cu_result code, const cuda_node *from,
                              const cuda_node *to) {
  char label[RONDO_LABEL_BYTES], doing[RONDO_LABEL_BYTES + 40];
  if (code == CU_OK) return RONDO_OK;
  (void)snprintf(doing, sizeof doing, "adding the programmatic edge from %s to ", cuda_node_label(label, from));
  return cuda_check_node(cuda_device_of(executable->base.device), code, to, doing, executable->label);
}

/* A programmatic edge is not needed if a full edge replaces a node between the two that is left out. */
static rondo_status add_programmatic(cuda_executable *executable, cu_graph graph, const cu_graph_node *handles,
                                     const cuda_order *order) {
  cuda_device *device = cuda_device_of(executable->base.device);
  for (size_t i = 0; i < executable->programmatic_count; i++) {
    const rondo_lowered_edge *edge = &executable->programmatic[i];
    if (edge->orders && !cuda_may_begin_early(device)) continue; /* it is a full edge */
    if (cuda_order_has_edge(order, edge->from, edge->to)) continue;
    const cuda_node *from = &executable->nodes[edge->from], *to = &executable->nodes[edge->to];
    const cu_edge_data data = {.from_port = edge->from_port, .to_port = edge->to_port, .type = edge->type};
    const cu_result code = device->api->graph_add_edges(graph, &handles[from->first], &handles[to->first], &data, 1);
    RONDO_TRY(fail_edge(executable, code, from, to));
  }
  return RONDO_OK;
}

/* The edges from the kernels before whose end a kernel may begin. */
static rondo_status add_early(cuda_executable *executable, cu_graph graph, const cu_graph_node *handles, size_t to) {
  const cu_edge_data data = {.from_port = CU_PORT_PROGRAMMATIC, .type = CU_EDGE_PROGRAMMATIC};
  cuda_device *device = cuda_device_of(executable->base.device);
  const cuda_node *node = &executable->nodes[to];
  for (uint32_t e = executable->predecessor_start[to]; e < executable->predecessor_start[to + 1]; e++) {
    const cuda_node *from = &executable->nodes[executable->predecessors[e]];
    if (!begins_before(executable, executable->predecessors[e], to)) continue;
    const cu_result code = device->api->graph_add_edges(graph, &handles[from->first], &handles[node->first], &data, 1);
    RONDO_TRY(fail_edge(executable, code, from, node));
  }
  return RONDO_OK;
}

static rondo_status add_all(cuda_executable *executable, cu_graph graph, cu_graph_node *handles,
                            const cuda_order *order) {
  const rondo_allocator *allocator = cuda_allocator_of(executable);
  cu_graph_node *before;
  RONDO_TRY(rondo_allocate_items(allocator, order->most, sizeof *before, &before));
  rondo_status status = add_nodes(executable, graph, handles, order, before);
  if (status == RONDO_OK) status = add_programmatic(executable, graph, handles, order);
  for (size_t i = 0; executable->has_configs && i < executable->count && status == RONDO_OK; i++)
    if (executable->nodes[i].is_configured) status = add_early(executable, graph, handles, i);
  rondo_release(allocator, before, order->most, sizeof *before);
  return status;
}

rondo_status cuda_build_graph(cuda_executable *executable, cu_graph *out, cu_graph_node *handles) {
  cuda_device *device = cuda_device_of(executable->base.device);
  cuda_order order;
  rondo_status status = cuda_order_make(executable, &order);
  if (status == RONDO_OK)
    status = cuda_check(device, device->api->graph_create(out, 0), "making %s on device '%s'", executable->label,
                        device->base.name);
  if (status == RONDO_OK) status = add_all(executable, *out, handles, &order);
  cuda_order_free(cuda_allocator_of(executable), &order);
  return status;
}

/* The node of a handle. NULL if the graph has no such node. */
static const cuda_node *find_node(const cuda_executable *executable, const cu_graph_node *handles, cu_graph_node node) {
  if (node == NULL) return NULL;
  for (size_t i = 0; handles != NULL && i < executable->count; i++) {
    const cuda_node *at = &executable->nodes[i];
    for (size_t part = 0; part < cuda_node_parts(at); part++)
      if (handles[at->first + part] == node) return at;
  }
  return NULL;
}

/* The driver reports a failure by a code and by the node at fault. */
static rondo_status fail_instantiate(cuda_executable *executable, const cu_graph_node *handles, cu_result code,
                                     const cu_instantiate_params *params) {
  cuda_device *device = cuda_device_of(executable->base.device);
  const cuda_node *node = find_node(executable, handles, params->error_node);
  if (node == NULL)
    return cuda_check(device, code, "device '%s' does not instantiate %s (result %d)", device->base.name,
                      executable->label, params->result);
  return rondo_fail_context(cuda_check_node(device, code, node, "instantiating ", executable->label),
                            "device '%s' (result %d)", device->base.name, params->result);
}

/* A launch frees what a library's nodes left allocated in the launch before, else there could be only one. */
rondo_status cuda_instantiate(cuda_executable *executable, cuda_built *built, const cu_graph_node *handles) {
  const cuda_api *api = cuda_device_of(executable->base.device)->api;
  cu_instantiate_params params = {.flags = built->is_captured ? CU_INSTANTIATE_AUTO_FREE : 0};
  if (executable->has_priorities) params.flags |= CU_INSTANTIATE_NODE_PRIORITY;
  const cu_result code = api->graph_instantiate(&built->exec, built->graph, &params);
  if (code == CU_OK && params.result == CU_INSTANTIATE_SUCCESS) return RONDO_OK;
  return fail_instantiate(executable, handles, code != CU_OK ? code : CU_INVALID_VALUE, &params);
}

static rondo_status switch_off(cuda_executable *executable, const cuda_built *built, const cu_graph_node *handles) {
  for (size_t i = 0; i < executable->count && executable->disabled_count > 0; i++) {
    const cuda_node *node = &executable->nodes[i];
    if (node->enabled) continue;
    const cu_result code = cuda_node_switch(executable, built, handles, node, false);
    RONDO_TRY(
        cuda_check_node(cuda_device_of(executable->base.device), code, node, "switching off ", executable->label));
  }
  return RONDO_OK;
}

void cuda_built_free(const cuda_executable *executable, cuda_built *built) {
  const cuda_api *api = cuda_device_of(executable->base.device)->api;
  /* On a lost device these are gone already. */
  if (built->exec != NULL) (void)api->exec_destroy(built->exec);
  if (built->graph != NULL && !built->is_captured) (void)api->graph_destroy(built->graph);
  *built = (cuda_built){0};
}

/* Only the first build can use a captured graph: changes of it cannot be built again. */
static bool is_bound(const cuda_executable *executable) {
  if (!executable->has_foreign) return false;
  for (size_t i = 0; i < executable->count; i++)
    if (executable->nodes[i].is_bound) return !executable->is_made;
  return false;
}

/* A fill is a kernel, except in a captured graph, where it is as the library made it. */
static bool needs_placeholders(const cuda_node *node, bool is_in_bound) {
  if (node->kind == RONDO_NODE_MEMORY_OPERATIONS) return true;
  return node->kind == RONDO_NODE_COPY || (node->kind == RONDO_NODE_FILL && is_in_bound && node->captured != 0);
}

static rondo_status add_placeholders(const cuda_executable *executable, bool is_in_bound, cuda_placeholders *to) {
  for (size_t i = 0; i < executable->count; i++) {
    const cuda_node *node = &executable->nodes[i];
    if (!needs_placeholders(node, is_in_bound)) continue;
    if (node->kind == RONDO_NODE_MEMORY_OPERATIONS) {
      RONDO_TRY(cuda_operations_add_placeholders(to, node->storage, node->storage_bytes / sizeof(cu_memory_operation)));
      continue;
    }
    RONDO_TRY(node->kind == RONDO_NODE_COPY
                  ? cuda_placeholders_add_copy(to, &node->as.copy)
                  : cuda_placeholders_add(to, node->as.fill.dst, rondo_fill_bytes(&node->as.fill)));
  }
  return RONDO_OK;
}

static bool has_any(const cuda_executable *executable, bool is_in_bound) {
  size_t i = executable->has_copies ? 0 : executable->count;
  while (i < executable->count && !needs_placeholders(&executable->nodes[i], is_in_bound)) i++;
  return i < executable->count;
}

rondo_status cuda_with_placeholders(cuda_executable *executable, rondo_status (*make)(cuda_executable *, void *),
                                    void *user) {
  const bool is_in_bound = is_bound(executable);
  cuda_placeholders placeholders;
  if (!has_any(executable, is_in_bound)) return make(executable, user);
  rondo_status status = cuda_placeholders_begin(cuda_device_of(executable->base.device), &placeholders);
  if (status == RONDO_OK) status = add_placeholders(executable, is_in_bound, &placeholders);
  if (status == RONDO_OK) status = make(executable, user);
  cuda_placeholders_end(&placeholders);
  return status;
}

/* A graph, and where its handles go. */
typedef struct building {
  cuda_built *built;
  cu_graph_node *handles;
} building;

static rondo_status build_and_instantiate(cuda_executable *executable, void *user) {
  const building *self = user;
  if (is_bound(executable))
    RONDO_TRY(cuda_build_captured(executable, self->built, self->handles));
  else
    RONDO_TRY(cuda_build_graph(executable, &self->built->graph, self->handles));
  return cuda_instantiate(executable, self->built, self->handles);
}

rondo_status cuda_build(cuda_executable *executable, cuda_built *out, cu_graph_node *handles) {
  *out = (cuda_built){0};
  building self = {out, handles};
  rondo_status status = cuda_with_placeholders(executable, build_and_instantiate, &self);
  if (status == RONDO_OK) status = switch_off(executable, out, handles);
  if (status != RONDO_OK) cuda_built_free(executable, out);
  return status;
}

rondo_status cuda_executable_rebuild(cuda_executable *executable) {
  cuda_device *device = cuda_device_of(executable->base.device);
  const rondo_allocator *allocator = cuda_allocator_of(executable);
  cu_graph_node *handles;
  cuda_built built;
  RONDO_TRY(rondo_allocate_items(allocator, executable->handle_count, sizeof *handles, &handles));
  const rondo_status status = cuda_build(executable, &built, handles);
  if (status != RONDO_OK) {
    rondo_release(allocator, handles, executable->handle_count, sizeof *handles);
    return status;
  }
  if (executable->before == NULL) { /* else the replaced executable graph was never launched */
    executable->before = executable->built.exec;
    executable->built.exec = NULL;
  }
  cuda_built_free(executable, &executable->built);
  rondo_release(allocator, executable->handles, executable->handle_count, sizeof *handles);
  executable->built = built;
  executable->handles = handles;
  executable->is_stale = false;
  cuda_note_direct(executable);
  cuda_executable_check(executable);
  atomic_fetch_add_explicit(&device->rebuilds, 1, memory_order_relaxed);
  return RONDO_OK;
}
