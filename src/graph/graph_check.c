/* SPDX-License-Identifier: MIT
 * Walks a graph and asserts its invariants. Debug builds check a node when it is added or changed, and a whole graph
 * where a call takes time in proportion to it anyway: cloning, reading, the end of a capture, instantiating.
 *
 * Threads: as the graph.
 */
#include "graph/graph_check.h"

#ifndef NDEBUG

#include <assert.h>

#include "graph/edges.h"
#include "graph/graph.h"
#include "graph/launch_config.h"
#include "graph/node.h"
#include "graph/user_object.h"

/* Contents --------------------------------------------------------------------------------------------------------- */

/* The values are at their offsets in the block of the node, and the list points to them. */
static void check_kernel(const rondo_graph_node *node) {
  const rondo_kernel_node *work = &node->params.as.kernel;
  const rondo_kernel *kernel = work->kernel;
  assert(kernel != NULL && atomic_load(&kernel->references) > 0);
  assert(work->grid.x > 0 && work->grid.y > 0 && work->grid.z > 0);
  assert(work->arg_count == kernel->parameter_count);
  assert(work->args == node->argument_list);
  assert((work->args == NULL) == (work->arg_count == 0));
  rondo_launch_config config;
  assert(rondo_launch_config_resolve(work, &config) == (work->config != NULL));
  assert(work->config == NULL || rondo_launch_config_same(work->config, &config));
  for (size_t i = 0; i < work->arg_count; i++)
    assert(work->args[i] == (const char *)node->arguments + kernel->offsets[i]);
}

static void check_child(const rondo_graph *graph, const rondo_graph_node *node, uint32_t slot) {
  const rondo_graph *child = node->params.as.child;
  assert(child != NULL && child != graph);
  assert(child->is_child && child->parent == graph && child->parent_slot == slot);
  assert(child->device == rondo_graph_node_device(graph, node));
  assert(!child->is_bound);
  assert(graph->has_memory || !child->has_memory);
}

/* Defaults are filled in, and no name is NULL. */
static void check_contents(const rondo_graph *graph, const rondo_graph_node *node, uint32_t slot) {
  const rondo_node_params *params = &node->params;
  assert(params->kind >= RONDO_NODE_KERNEL && params->kind <= RONDO_NODE_LAST);
  assert(params->name != NULL);
  assert(params->device == NULL || (params->device != graph->device && graph->device != NULL));
  assert(graph->device == NULL || node->device_number == rondo_graph_device_number(graph, params->device));
  assert(params->kind == RONDO_NODE_KERNEL || node->argument_list == NULL);
  if (params->kind == RONDO_NODE_KERNEL) check_kernel(node);
  if (params->kind == RONDO_NODE_CHILD) check_child(graph, node, slot);
  if (params->kind == RONDO_NODE_COPY) {
    const rondo_copy *copy = &params->as.copy;
    assert(copy->width > 0 && copy->height > 0 && copy->depth > 0);
    assert(copy->dst_pitch >= copy->width && copy->src_pitch >= copy->width);
  }
  if (params->kind == RONDO_NODE_FILL)
    assert(params->as.fill.height > 0 && params->as.fill.pitch >= params->as.fill.width);
  if (params->kind == RONDO_NODE_MEMORY_OPERATIONS)
    assert(params->as.memory_operations.count > 0 && params->as.memory_operations.operations == node->arguments);
  if (rondo_node_names_semaphores(params))
    assert(params->as.semaphores.count > 0 && params->as.semaphores.values == node->arguments);
  if (rondo_node_is_memory(params)) assert(graph->has_memory);
  if (params->kind == RONDO_NODE_ALLOC)
    assert(params->as.alloc.name != NULL && (params->as.alloc.address != NULL || graph->device == NULL));
  if (params->kind == RONDO_NODE_FOREIGN)
    assert(params->as.foreign.what != NULL &&
           (!params->as.foreign.is_bound || graph->is_bound || graph->device == NULL));
}

/* Edges ------------------------------------------------------------------------------------------------------------ */

/* One side of a node's edges: ascending, between live nodes, and stored at the other end too. */
static void check_edges(const rondo_graph *graph, uint32_t slot, bool forward) {
  const rondo_graph_node *node = rondo_graph_at(graph, slot);
  const rondo_slots *slots = forward ? &node->dependents : &node->dependencies;
  assert(slots->count <= slots->capacity);
  for (size_t i = 0; i < slots->count; i++) {
    assert(slots->items[i] != slot);
    assert(i == 0 || slots->items[i - 1] < slots->items[i]);
    const rondo_graph_node *other = rondo_graph_at(graph, slots->items[i]);
    size_t at;
    assert(rondo_slots_find(forward ? &other->dependencies : &other->dependents, slot, &at));
  }
}

static void check_programmatic(const rondo_graph *graph) {
  size_t leaving = 0;
  for (size_t i = 0; i < graph->nodes.count; i++) leaving += graph->nodes.items[i].leaving;
  assert(leaving == graph->programmatic.count);
  (void)leaving;
  for (size_t i = 0; i < graph->programmatic.count; i++) {
    const rondo_programmatic_edge *edge = &graph->programmatic.items[i];
    assert(edge->from != edge->to);
    assert(rondo_graph_has(graph, edge->from) && rondo_graph_has(graph, edge->to));
    assert(!rondo_graph_has_edge(graph, edge->from, edge->to));
    if (i == 0) continue;
    const rondo_programmatic_edge *before = &graph->programmatic.items[i - 1];
    assert(before->to < edge->to || (before->to == edge->to && before->from < edge->from));
  }
}

/* Nodes and graphs ------------------------------------------------------------------------------------------------- */

void rondo_graph_check_node(const rondo_graph *graph, uint32_t slot) {
  const rondo_graph_node *node = rondo_graph_at(graph, slot);
  check_contents(graph, node, slot);
  check_edges(graph, slot, false);
  check_edges(graph, slot, true);
  assert(node->captured == 0 || graph->captured.object != NULL || graph->captures > 0);
}

/* The list of changes is ascending. */
static void check_changes(const rondo_graph *graph) {
  const rondo_slots *changes = &graph->native_changes;
  rondo_array_check(changes);
  for (size_t i = 1; i < changes->count; i++) assert(changes->items[i - 1] < changes->items[i]);
}

static void check_hole(const rondo_graph_node *node) {
  assert(node->params.kind == 0 && node->params.name == NULL && node->arguments == NULL && node->device_number == 0);
  assert(node->dependencies.count == 0 && node->dependents.count == 0);
}

void rondo_graph_check(const rondo_graph *graph) {
  uint32_t live = 0, children = 0;
  assert(graph->serial != 0 && graph->name != NULL);
  assert(graph->nodes.count <= graph->nodes.capacity && graph->nodes.count <= RONDO_NO_NODE);
  assert(graph->is_child == (graph->parent != NULL));
  assert(graph->storage != NULL && atomic_load(&graph->storage->graphs) > 0);
  assert(graph->source_count == 0 || graph->source_serial != 0);
  for (uint32_t slot = 0; slot < graph->nodes.count; slot++) {
    const rondo_graph_node *node = &graph->nodes.items[slot];
    if (!node->live) {
      check_hole(node);
      continue;
    }
    rondo_graph_check_node(graph, slot);
    live++;
    if (node->params.kind != RONDO_NODE_CHILD) continue;
    children++;
    assert(!rondo_graph_shares_nodes(graph));
    rondo_graph_check(node->params.as.child);
  }
  assert(live == graph->live_count);
  assert(children == graph->child_count);
  check_programmatic(graph);
  rondo_array_check(&graph->symbol_kernels);
  for (size_t i = 0; i < graph->symbol_kernels.count; i++) {
    assert(graph->symbol_kernels.items[i]->symbol_count > 0);
    for (size_t j = 0; j < i; j++) assert(graph->symbol_kernels.items[j] != graph->symbol_kernels.items[i]);
  }
  rondo_array_check(&graph->others);
  for (size_t i = 0; i < graph->others.count; i++) {
    assert(graph->others.items[i].device != graph->device && graph->others.items[i].number > 0);
    for (size_t j = 0; j < i; j++) assert(graph->others.items[j].device != graph->others.items[i].device);
  }
  check_changes(graph);
  rondo_object_list_check(&graph->objects);
}

#endif
