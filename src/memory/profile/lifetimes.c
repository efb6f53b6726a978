/* SPDX-License-Identifier: MIT
 * Handing lifetimes to the planner, and a graph's nodes and edges as the planner takes them.
 */
#include "memory/profile/lifetimes.h"

#include "base/error.h"
#include "graph/topological_order.h"
#include "memory/pool/block_pool.h"

/* Planning -------------------------------------------------------------------------------------------------------- */

bool rondo_lifetimes_is_line(const rondo_flat_edges *edges) {
  for (size_t i = 0; i + 1 < edges->node_count; i++) {
    const uint32_t start = edges->successor_start[i];
    if (start == edges->successor_start[i + 1] || edges->successors[start] != i + 1) return false;
  }
  return true;
}

static void fill_items(const rondo_lifetime *lifetimes, size_t count, rondo_plan_item *items) {
  for (size_t i = 0; i < count; i++)
    items[i] = (rondo_plan_item){.bytes = lifetimes[i].bytes,
                                 .alignment = RONDO_BLOCK_ALIGNMENT,
                                 .lower = lifetimes[i].alloc,
                                 .upper = lifetimes[i].freed};
}

rondo_status rondo_lifetimes_plan(const rondo_allocator *allocator, const rondo_flat_edges *edges,
                                  const rondo_lifetime *lifetimes, size_t count, const rondo_plan_options *options,
                                  rondo_plan **out_plan) {
  *out_plan = NULL;
  void *items;
  rondo_plan_options asked = {RONDO_PLAN_OPTIONS_INIT};
  if (options != NULL) asked = *options;
  if (asked.allocator == NULL) asked.allocator = allocator;
  const rondo_plan_order nodes = {.node_count = (uint32_t)edges->node_count,
                                  .successor_start = edges->successor_start,
                                  .successors = edges->successors};
  RONDO_TRY(rondo_allocate(allocator, count, sizeof(rondo_plan_item), &items));
  fill_items(lifetimes, count, items);
  const rondo_plan_problem problem = {RONDO_PLAN_PROBLEM_INIT, .items = items, .count = count,
                                      .order = rondo_lifetimes_is_line(edges) ? NULL : &nodes};
  const rondo_status status = rondo_plan_make(&problem, &asked, out_plan);
  rondo_release(allocator, items, count, sizeof(rondo_plan_item));
  return status;
}

/* Graphs ---------------------------------------------------------------------------------------------------------- */

static void count_edges(rondo_ordered_graph *ordered) {
  uint32_t sum = 0;
  for (size_t i = 0; i < ordered->flat.node_count; i++) {
    ordered->starts[i] = sum;
    sum += (uint32_t)rondo_graph_at(ordered->graph, ordered->slots[i])->dependents.count;
  }
  ordered->starts[ordered->flat.node_count] = sum;
}

/* Walks the nodes that edges lead to in order, so that each node's successors ascend. */
static void fill_successors(rondo_ordered_graph *ordered) {
  const size_t count = ordered->flat.node_count;
  for (size_t i = 0; i < count; i++) {
    const rondo_slots *dependencies = &rondo_graph_at(ordered->graph, ordered->slots[i])->dependencies;
    for (size_t k = 0; k < dependencies->count; k++)
      ordered->successors[ordered->starts[ordered->places[dependencies->items[k]]]++] = (uint32_t)i;
  }
  for (size_t i = count; i > 0; i--) ordered->starts[i] = ordered->starts[i - 1];
  ordered->starts[0] = 0;
}

static rondo_status allocate_order(rondo_ordered_graph *ordered) {
  const rondo_graph *graph = ordered->graph;
  void *memory;
  size_t edges = 0;
  for (size_t i = 0; i < graph->nodes.count; i++) edges += graph->nodes.items[i].dependencies.count;
  if (edges > UINT32_MAX)
    return rondo_fail(RONDO_LIMIT_EXCEEDED, RONDO_REASON_OUT_OF_RANGE, "a graph of %zu edges cannot be planned", edges);
  RONDO_TRY(rondo_allocate(&graph->allocator, graph->nodes.count, sizeof(uint32_t), &memory));
  ordered->places = memory;
  RONDO_TRY(rondo_allocate(&graph->allocator, (size_t)graph->live_count + 1, sizeof(uint32_t), &memory));
  ordered->starts = memory;
  RONDO_TRY(rondo_allocate(&graph->allocator, edges, sizeof(uint32_t), &memory));
  ordered->successors = memory;
  ordered->edge_count = edges;
  return RONDO_OK;
}

rondo_status rondo_ordered_graph_make(const rondo_graph *graph, rondo_ordered_graph *out) {
  *out = (rondo_ordered_graph){.graph = graph, .flat.node_count = graph->live_count};
  RONDO_TRY(rondo_graph_order(graph, &out->slots));
  RONDO_TRY(allocate_order(out));
  for (uint32_t i = 0; i < graph->live_count; i++) out->places[out->slots[i]] = i;
  count_edges(out);
  fill_successors(out);
  out->flat.successor_start = out->starts;
  out->flat.successors = out->successors;
  return RONDO_OK;
}

void rondo_ordered_graph_free(rondo_ordered_graph *ordered) {
  const rondo_allocator *allocator = &ordered->graph->allocator;
  const size_t count = ordered->flat.node_count;
  rondo_release(allocator, ordered->successors, ordered->edge_count, sizeof(uint32_t));
  if (ordered->starts != NULL) rondo_release(allocator, ordered->starts, count + 1, sizeof(uint32_t));
  rondo_release(allocator, ordered->places, ordered->graph->nodes.count, sizeof(uint32_t));
  rondo_release(allocator, ordered->slots, count, sizeof(uint32_t));
}
