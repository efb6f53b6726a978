/* SPDX-License-Identifier: MIT
 * Queries of a graph (B7). All use one writer, which counts the nodes, stores those that fit and clears the rest.
 */
#include <string.h>

#include "base/error.h"
#include "graph/graph.h"
#include "graph/graph_clone.h"
#include "graph/node.h"
#include "graph/topological_order.h"

/* Writes nodes to `from`, or edges to `from` and `to`. An array may be NULL. */
typedef struct node_writer {
  const rondo_graph *graph;
  rondo_node *from, *to;
  size_t capacity; /* of each array */
  size_t count;
} node_writer;

static rondo_status begin(const char *call, const rondo_graph *graph, rondo_node *nodes, const size_t *inout_count,
                          node_writer *out) {
  RONDO_TRY(rondo_require(call, "the graph", graph));
  RONDO_TRY(rondo_require(call, "the count", inout_count));
  *out = (node_writer){.graph = graph, .from = nodes, .capacity = nodes == NULL ? 0 : *inout_count};
  return RONDO_OK;
}

static void store(const node_writer *writer, size_t index, rondo_node from, rondo_node to) {
  writer->from[index] = from;
  if (writer->to != NULL) writer->to[index] = to;
}

static void put_edge(node_writer *writer, uint32_t from, uint32_t to) {
  if (writer->count < writer->capacity)
    store(writer, writer->count, rondo_graph_id(writer->graph, from), rondo_graph_id(writer->graph, to));
  writer->count++;
}

static void put(node_writer *writer, uint32_t slot) { put_edge(writer, slot, slot); }

static rondo_status finish(const node_writer *writer, size_t *inout_count) {
  for (size_t i = writer->count; i < writer->capacity; i++) store(writer, i, (rondo_node){0}, (rondo_node){0});
  *inout_count = writer->count;
  return RONDO_OK;
}

static rondo_status list_nodes(const char *call, const rondo_graph *graph, bool roots_only, rondo_node *nodes,
                               size_t *inout_count) {
  node_writer writer;
  RONDO_TRY(begin(call, graph, nodes, inout_count, &writer));
  for (size_t i = 0; i < graph->nodes.count; i++) {
    const rondo_graph_node *node = &graph->nodes.items[i];
    if (node->live && (!roots_only || node->dependencies.count == 0)) put(&writer, (uint32_t)i);
  }
  return finish(&writer, inout_count);
}

rondo_status rondo_graph_nodes(const rondo_graph *graph, rondo_node *nodes, size_t *inout_count) {
  return list_nodes("rondo_graph_nodes", graph, false, nodes, inout_count);
}

rondo_status rondo_graph_roots(const rondo_graph *graph, rondo_node *nodes, size_t *inout_count) {
  return list_nodes("rondo_graph_roots", graph, true, nodes, inout_count);
}

/* Requires both arrays or neither. */
static rondo_status begin_edges(const char *call, const rondo_graph *graph, rondo_node *from, rondo_node *to,
                                const size_t *inout_count, node_writer *out) {
  if (from != NULL || to != NULL) {
    RONDO_TRY(rondo_require(call, "one of the two arrays", from));
    RONDO_TRY(rondo_require(call, "one of the two arrays", to));
  }
  RONDO_TRY(begin(call, graph, from, inout_count, out));
  out->to = to;
  return RONDO_OK;
}

rondo_status rondo_graph_programmatic_edges(const rondo_graph *graph, rondo_node *from, rondo_node *to,
                                            rondo_edge_data *data, size_t *inout_count) {
  node_writer writer;
  RONDO_TRY(begin_edges("rondo_graph_programmatic_edges", graph, from, to, inout_count, &writer));
  for (size_t i = 0; i < graph->programmatic.count; i++) {
    const rondo_programmatic_edge *edge = &graph->programmatic.items[i];
    if (data != NULL && i < *inout_count)
      data[i] = (rondo_edge_data){.from_port = edge->from_port, .to_port = edge->to_port, .type = edge->type};
    put_edge(&writer, edge->from, edge->to);
  }
  return finish(&writer, inout_count);
}

rondo_status rondo_graph_edges(const rondo_graph *graph, rondo_node *from, rondo_node *to, size_t *inout_count) {
  node_writer writer;
  RONDO_TRY(begin_edges("rondo_graph_edges", graph, from, to, inout_count, &writer));
  for (size_t i = 0; i < graph->nodes.count; i++) {
    const rondo_slots *dependents = &graph->nodes.items[i].dependents;
    for (size_t d = 0; d < dependents->count; d++) put_edge(&writer, (uint32_t)i, dependents->items[d]);
  }
  return finish(&writer, inout_count);
}

static rondo_status find_node(const char *call, const rondo_graph *graph, rondo_node node, uint32_t *out_slot) {
  const rondo_status status = rondo_graph_find(graph, node, out_slot);
  return status == RONDO_OK ? RONDO_OK : rondo_fail_context(status, "%s", call);
}

static rondo_status list_neighbours(const char *call, const rondo_graph *graph, rondo_node node, bool dependents,
                                    rondo_node *nodes, size_t *inout_count) {
  node_writer writer;
  uint32_t slot;
  RONDO_TRY(begin(call, graph, nodes, inout_count, &writer));
  RONDO_TRY(find_node(call, graph, node, &slot));
  const rondo_graph_node *found = rondo_graph_at(graph, slot);
  const rondo_slots *neighbours = dependents ? &found->dependents : &found->dependencies;
  for (size_t i = 0; i < neighbours->count; i++) put(&writer, neighbours->items[i]);
  return finish(&writer, inout_count);
}

rondo_status rondo_graph_dependencies(const rondo_graph *graph, rondo_node node, rondo_node *nodes,
                                      size_t *inout_count) {
  return list_neighbours("rondo_graph_dependencies", graph, node, false, nodes, inout_count);
}

rondo_status rondo_graph_dependents(const rondo_graph *graph, rondo_node node, rondo_node *nodes, size_t *inout_count) {
  return list_neighbours("rondo_graph_dependents", graph, node, true, nodes, inout_count);
}

rondo_status rondo_graph_sort(const rondo_graph *graph, rondo_node *nodes, size_t *inout_count) {
  node_writer writer;
  uint32_t *order;
  RONDO_TRY(begin("rondo_graph_sort", graph, nodes, inout_count, &writer));
  RONDO_TRY(rondo_fail_context(rondo_graph_order(graph, &order), "rondo_graph_sort"));
  for (uint32_t i = 0; i < graph->live_count; i++) put(&writer, order[i]);
  rondo_release(&graph->allocator, order, graph->live_count, sizeof *order);
  return finish(&writer, inout_count);
}

rondo_status rondo_graph_get_params(const rondo_graph *graph, rondo_node node, rondo_node_params *out_params) {
  RONDO_TRY(rondo_require("rondo_graph_get_params", "the out-parameter", out_params));
  *out_params = (rondo_node_params){0};
  RONDO_TRY(rondo_require("rondo_graph_get_params", "the graph", graph));
  uint32_t slot;
  RONDO_TRY(find_node("rondo_graph_get_params", graph, node, &slot));
  RONDO_TRY(rondo_fail_context(rondo_graph_keep_nodes((rondo_graph *)(uintptr_t)graph), "rondo_graph_get_params"));
  *out_params = rondo_node_given_params(rondo_graph_at(graph, slot));
  return RONDO_OK;
}
