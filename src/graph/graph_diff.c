/* SPDX-License-Identifier: MIT
 * Compares and hashes graphs. Both walk nodes in topological order and describe an edge by the indices of its ends in
 * that order. So node numbers, which depend on how a graph was built, have no effect. Two graphs without a difference
 * (addresses ignored) have the same fingerprint.
 */
#include <assert.h>
#include <string.h>

#include "base/error.h"
#include "base/hash.h"
#include "graph/edges.h"
#include "graph/graph.h"
#include "graph/launch_config.h"
#include "graph/node.h"
#include "graph/node_fields.h"
#include "graph/node_params.h"
#include "graph/topological_order.h"

/* A graph with the order of its nodes and, for each slot, its index in the order. */
typedef struct ordered_graph {
  const rondo_graph *graph;
  const rondo_graph *root; /* the graph that the caller passed, for errors */
  uint32_t *order;
  uint32_t *index;
} ordered_graph;

static void close_order(ordered_graph *ordered) {
  const rondo_graph *graph = ordered->graph;
  rondo_release(&graph->allocator, ordered->order, graph->live_count, sizeof(uint32_t));
  rondo_release(&graph->allocator, ordered->index, graph->nodes.count, sizeof(uint32_t));
}

static rondo_status open_order(const rondo_graph *graph, const rondo_graph *root, ordered_graph *out) {
  *out = (ordered_graph){.graph = graph, .root = root};
  RONDO_TRY(rondo_graph_order_in(graph, root, &out->order));
  const rondo_status status =
      rondo_allocate_items(&graph->allocator, graph->nodes.count, sizeof(uint32_t), &out->index);
  if (status != RONDO_OK) {
    close_order(out);
    return status;
  }
  for (uint32_t i = 0; i < graph->live_count; i++) out->index[out->order[i]] = i;
  return RONDO_OK;
}

static const rondo_graph_node *node_at(const ordered_graph *ordered, uint32_t index) {
  return rondo_graph_at(ordered->graph, ordered->order[index]);
}

/* Differences ----------------------------------------------------------------------------------------------------- */

typedef struct graph_comparison {
  ordered_graph a, b;
  bool ignore_addresses;
  uint32_t *stamps; /* by index: 1 + the index of the last node to which a has an edge from there */
  rondo_difference *differences;
  size_t capacity, count;
} graph_comparison;

static void report(graph_comparison *comparison, rondo_difference_kind kind, uint32_t index) {
  if (comparison->count < comparison->capacity) {
    rondo_difference *out = &comparison->differences[comparison->count];
    *out = (rondo_difference){.kind = kind};
    if (kind != RONDO_DIFFERENCE_NODE_EXTRA) out->a = rondo_graph_id(comparison->a.graph, comparison->a.order[index]);
    if (kind != RONDO_DIFFERENCE_NODE_MISSING) out->b = rondo_graph_id(comparison->b.graph, comparison->b.order[index]);
  }
  comparison->count++;
}

static bool same_dependencies(graph_comparison *comparison, uint32_t index) {
  const rondo_slots *a = &node_at(&comparison->a, index)->dependencies;
  const rondo_slots *b = &node_at(&comparison->b, index)->dependencies;
  if (a->count != b->count) return false;
  for (size_t i = 0; i < a->count; i++) comparison->stamps[comparison->a.index[a->items[i]]] = index + 1;
  for (size_t i = 0; i < b->count; i++)
    if (comparison->stamps[comparison->b.index[b->items[i]]] != index + 1) return false;
  return true;
}

/* Compares the programmatic edges that enter the nodes at an index. */
static bool same_programmatic(const graph_comparison *comparison, uint32_t index) {
  const ordered_graph *a = &comparison->a, *b = &comparison->b;
  size_t a_count, b_count, matched = 0;
  const rondo_programmatic_edge *of_a = rondo_graph_programmatic_to(a->graph, a->order[index], &a_count);
  const rondo_programmatic_edge *of_b = rondo_graph_programmatic_to(b->graph, b->order[index], &b_count);
  for (size_t i = 0; i < a_count; i++)
    for (size_t k = 0; k < b_count; k++)
      matched += a->index[of_a[i].from] == b->index[of_b[k].from] && rondo_programmatic_same(&of_a[i], &of_b[k]);
  return a_count == b_count && matched == a_count;
}

static rondo_status count_differences(const graph_comparison *around, const rondo_graph *a, const rondo_graph *b,
                                      size_t *out_count);

/* Devices are compared by their numbers, which a graph that is only data has too. */
static int compare_params(const graph_comparison *comparison, const rondo_node_params *a, const rondo_node_params *b) {
  rondo_node_params alike = *b;
  alike.device = a->device;
  if (a->kind == RONDO_NODE_KERNEL && b->kind == RONDO_NODE_KERNEL &&
      rondo_kernel_same_code(a->as.kernel.kernel, b->as.kernel.kernel))
    alike.as.kernel.kernel = a->as.kernel.kernel;
  return rondo_node_params_compare(a, &alike, comparison->ignore_addresses);
}

static rondo_status compare_nodes(graph_comparison *comparison, uint32_t index) {
  const rondo_graph_node *of_a = node_at(&comparison->a, index), *of_b = node_at(&comparison->b, index);
  const rondo_node_params *a = &of_a->params, *b = &of_b->params;
  int difference = compare_params(comparison, a, b);
  if (difference == 0 && of_a->device_number != of_b->device_number) difference = RONDO_DIFFERENCE_PARAMS;
  if (difference == 0 && a->kind == RONDO_NODE_CHILD) {
    size_t inside;
    RONDO_TRY(count_differences(comparison, a->as.child, b->as.child, &inside));
    if (inside > 0) difference = RONDO_DIFFERENCE_PARAMS;
  }
  if (difference != 0) report(comparison, (rondo_difference_kind)difference, index);
  if (!same_dependencies(comparison, index) || !same_programmatic(comparison, index))
    report(comparison, RONDO_DIFFERENCE_EDGES, index);
  return RONDO_OK;
}

static rondo_status compare_all(graph_comparison *comparison) {
  const uint32_t a_count = comparison->a.graph->live_count, b_count = comparison->b.graph->live_count;
  const uint32_t shared = a_count < b_count ? a_count : b_count;
  for (uint32_t i = 0; i < shared; i++) RONDO_TRY(compare_nodes(comparison, i));
  for (uint32_t i = shared; i < a_count; i++) report(comparison, RONDO_DIFFERENCE_NODE_MISSING, i);
  for (uint32_t i = shared; i < b_count; i++) report(comparison, RONDO_DIFFERENCE_NODE_EXTRA, i);
  return RONDO_OK;
}

/* b may have more nodes than a, so there are stamps for the longer of the two. */
static rondo_status compare_with_stamps(graph_comparison *comparison) {
  const rondo_graph *a = comparison->a.graph, *b = comparison->b.graph;
  const uint32_t stamp_count = a->live_count > b->live_count ? a->live_count : b->live_count;
  RONDO_TRY(rondo_allocate_items(&a->allocator, stamp_count, sizeof(uint32_t), &comparison->stamps));
  const rondo_status status = compare_all(comparison);
  rondo_release(&a->allocator, comparison->stamps, stamp_count, sizeof(uint32_t));
  return status;
}

/* The roots are those of the comparison. */
static rondo_status compare_graphs(const rondo_graph *a, const rondo_graph *b, graph_comparison *comparison) {
  rondo_status status = open_order(a, comparison->a.root, &comparison->a);
  if (status != RONDO_OK) return rondo_fail_context(status, "the first graph");
  status = rondo_fail_context(open_order(b, comparison->b.root, &comparison->b), "the second graph");
  if (status == RONDO_OK) {
    status = compare_with_stamps(comparison);
    close_order(&comparison->b);
  }
  close_order(&comparison->a);
  return status;
}

/* Compares two child graphs; `around` compares the graphs that contain them. */
static rondo_status count_differences(const graph_comparison *around, const rondo_graph *a, const rondo_graph *b,
                                      size_t *out_count) {
  graph_comparison comparison = {
      .a.root = around->a.root, .b.root = around->b.root, .ignore_addresses = around->ignore_addresses};
  *out_count = 0;
  RONDO_TRY(compare_graphs(a, b, &comparison));
  *out_count = comparison.count;
  return RONDO_OK;
}

rondo_status rondo_graph_diff(const rondo_graph *a, const rondo_graph *b, bool ignore_addresses,
                              rondo_difference *differences, size_t *inout_count) {
  RONDO_TRY(rondo_require("rondo_graph_diff", "the first graph", a));
  RONDO_TRY(rondo_require("rondo_graph_diff", "the second graph", b));
  RONDO_TRY(rondo_require("rondo_graph_diff", "the count", inout_count));
  graph_comparison comparison = {.a.root = a,
                                 .b.root = b,
                                 .ignore_addresses = ignore_addresses,
                                 .differences = differences,
                                 .capacity = differences == NULL ? 0 : *inout_count};
  RONDO_TRY(rondo_fail_context(compare_graphs(a, b, &comparison), "rondo_graph_diff"));
  for (size_t i = comparison.count; i < comparison.capacity; i++) differences[i] = (rondo_difference){0};
  *inout_count = comparison.count;
  return RONDO_OK;
}

/* Fingerprints ---------------------------------------------------------------------------------------------------- */

static uint64_t hash_kernel_node(uint64_t state, const rondo_kernel_node *node) {
  const rondo_kernel *kernel = node->kernel;
  state = rondo_hash_text(state, kernel->name);
  state = rondo_hash_u64(state, kernel->block_threads);
  state = rondo_hash_u64(state, kernel->parameter_count);
  for (uint32_t i = 0; i < kernel->parameter_count; i++) {
    state = rondo_hash_u64(state, (uint64_t)kernel->parameters[i].access);
    state = rondo_hash_u64(state, kernel->parameters[i].bytes);
    state = rondo_hash_u64(state, kernel->parameters[i].alignment);
  }
  state = rondo_hash_u64(state, node->grid.x);
  state = rondo_hash_u64(state, node->grid.y);
  state = rondo_hash_u64(state, node->grid.z);
  for (uint32_t i = 0; i < kernel->parameter_count && node->arg_bytes != NULL; i++)
    state = rondo_hash_u64(state, node->arg_bytes[i]);
  return rondo_launch_config_hash(state, node->config);
}

/* Values of operations are like arguments. */
static uint64_t hash_operations(uint64_t state, const rondo_memory_operations_node *node) {
  for (size_t i = 0; i < node->count; i++)
    state = rondo_hash_u64(state, (uint64_t)node->operations[i].kind << 8 | (uint64_t)node->operations[i].condition);
  return rondo_hash_u64(state, node->count);
}

static rondo_status hash_graph(const rondo_graph *graph, const rondo_graph *root, uint64_t *out);

static rondo_status hash_params(const rondo_node_params *params, const rondo_graph *root, uint64_t *inout) {
  const rondo_node_fields fields = rondo_node_fields_of(params->kind);
  uint64_t state = rondo_hash_u64(*inout, (uint64_t)params->kind);
  state = rondo_hash_text(state, params->name);
  for (size_t i = 0; i < fields.count; i++) state = rondo_node_field_hash(state, &fields.items[i], params);
  if (params->kind == RONDO_NODE_KERNEL) state = hash_kernel_node(state, &params->as.kernel);
  if (params->kind == RONDO_NODE_MEMORY_OPERATIONS) state = hash_operations(state, &params->as.memory_operations);
  if (rondo_node_names_semaphores(params)) state = rondo_hash_u64(state, params->as.semaphores.count);
  if (params->kind == RONDO_NODE_CHILD) {
    uint64_t inside;
    RONDO_TRY(hash_graph(params->as.child, root, &inside));
    state = rondo_hash_u64(state, inside);
  }
  *inout = state;
  return RONDO_OK;
}

/* Dependencies are in the order of slots, which must not affect the hash. A sum of hashes does not depend on order. */
static uint64_t hash_dependencies(uint64_t state, const ordered_graph *ordered, const rondo_slots *dependencies) {
  uint64_t sum = 0;
  for (size_t i = 0; i < dependencies->count; i++)
    sum += rondo_hash_u64(RONDO_HASH_START, ordered->index[dependencies->items[i]]);
  return rondo_hash_u64(rondo_hash_u64(state, dependencies->count), sum);
}

/* Like dependencies. A graph without programmatic edges adds nothing. */
static uint64_t hash_programmatic(uint64_t state, const ordered_graph *ordered, uint32_t slot) {
  size_t count;
  const rondo_programmatic_edge *edges = rondo_graph_programmatic_to(ordered->graph, slot, &count);
  uint64_t sum = 0;
  for (size_t i = 0; i < count; i++) {
    const uint64_t kind = (uint64_t)edges[i].orders << 24 | (uint64_t)edges[i].from_port << 16 |
                          (uint64_t)edges[i].to_port << 8 | edges[i].type;
    sum += rondo_hash_u64(rondo_hash_u64(RONDO_HASH_START, ordered->index[edges[i].from]), kind);
  }
  return count == 0 ? state : rondo_hash_u64(rondo_hash_u64(state, count), sum);
}

static rondo_status hash_nodes(const ordered_graph *ordered, uint64_t *inout) {
  for (uint32_t i = 0; i < ordered->graph->live_count; i++) {
    const rondo_graph_node *node = node_at(ordered, i);
    RONDO_TRY(hash_params(&node->params, ordered->root, inout));
    if (node->device_number != 0) *inout = rondo_hash_u64(*inout, node->device_number);
    *inout = hash_dependencies(*inout, ordered, &node->dependencies);
    *inout = hash_programmatic(*inout, ordered, ordered->order[i]);
  }
  return RONDO_OK;
}

static rondo_status hash_graph(const rondo_graph *graph, const rondo_graph *root, uint64_t *out) {
  ordered_graph ordered;
  RONDO_TRY(open_order(graph, root, &ordered));
  uint64_t state = rondo_hash_u64(RONDO_HASH_START, graph->live_count);
  const rondo_status status = hash_nodes(&ordered, &state);
  close_order(&ordered);
  if (status == RONDO_OK) *out = state;
  return status;
}

rondo_status rondo_graph_fingerprint(const rondo_graph *graph, uint64_t *out_fingerprint) {
  RONDO_TRY(rondo_require("rondo_graph_fingerprint", "the out-parameter", out_fingerprint));
  *out_fingerprint = 0;
  RONDO_TRY(rondo_require("rondo_graph_fingerprint", "the graph", graph));
  return rondo_fail_context(hash_graph(graph, graph, out_fingerprint), "rondo_graph_fingerprint");
}
