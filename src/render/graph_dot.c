/* SPDX-License-Identifier: MIT
 * A graph as text for Graphviz. Nodes are sorted by number and edges by their ends, so the same graph always gives the
 * same text. A child graph is a cluster around its node. The name of a node contains the numbers of the nodes around
 * it: n3_1 is node 1 of the child graph of node 3. Names are escaped as in JSON, which DOT also reads, and long ones
 * are cut.
 */
#include <assert.h>
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>

#include "base/error.h"
#include "graph/node.h"
#include "render/node_details.h"

#define PATH_BYTES (12 * (RONDO_GRAPH_MAX_NESTING + 2))

typedef struct dot_writer {
  rondo_text text;
  bool with_addresses;
} dot_writer;

/* The current graph: the prefix of the names of its nodes, and its indentation. */
typedef struct dot_position {
  char path[PATH_BYTES];
  int indent;
} dot_position;

static const char *const shapes[] = {[RONDO_NODE_KERNEL] = "box",
                                     [RONDO_NODE_HOST] = "ellipse",
                                     [RONDO_NODE_COPY] = "parallelogram",
                                     [RONDO_NODE_FILL] = "trapezium",
                                     [RONDO_NODE_EMPTY] = "circle",
                                     [RONDO_NODE_CHILD] = "folder",
                                     [RONDO_NODE_EVENT_RECORD] = "cds",
                                     [RONDO_NODE_EVENT_WAIT] = "octagon",
                                     [RONDO_NODE_ALLOC] = "house",
                                     [RONDO_NODE_FREE] = "invhouse",
                                     [RONDO_NODE_FOREIGN] = "component",
                                     [RONDO_NODE_MEMORY_OPERATIONS] = "cylinder",
                                     [RONDO_NODE_SEMAPHORE_SIGNAL] = "lpromoter",
                                     [RONDO_NODE_SEMAPHORE_WAIT] = "rpromoter"};

static const char *shape_of(rondo_node_kind kind) {
  assert(kind < sizeof shapes / sizeof shapes[0] && shapes[kind] != NULL);
  return shapes[kind];
}

static void add_nodes(dot_writer *writer, const rondo_graph *graph, const dot_position *position);

/* Adds the rest of a child node's cluster, which contains the node itself already. */
static void add_inside(dot_writer *writer, const rondo_graph *child, uint32_t slot, const dot_position *position) {
  dot_position inside = {.indent = position->indent};
  snprintf(inside.path, sizeof inside.path, "%.*s%" PRIu32 "_", PATH_BYTES - 12, position->path, slot);
  rondo_text_add(&writer->text, "%*slabel=\"", inside.indent, "");
  rondo_dot_add_name(&writer->text, child->name);
  rondo_text_add(&writer->text, "\";\n");
  add_nodes(writer, child, &inside);
}

static void add_node(dot_writer *writer, const rondo_graph *graph, uint32_t slot, const dot_position *position) {
  const rondo_graph_node *node = &graph->nodes.items[slot];
  rondo_text *text = &writer->text;
  const rondo_node_params *params = &node->params;
  dot_position at = *position;
  if (params->kind == RONDO_NODE_CHILD) {
    rondo_text_add(text, "%*ssubgraph cluster_%s%" PRIu32 " {\n", at.indent, "", at.path, slot);
    at.indent += 2;
  }
  rondo_text_add(text, "%*s%s%" PRIu32 " [shape=%s, label=\"%" PRIu32 " %s", at.indent, "", at.path, slot,
                 shape_of(params->kind), slot, rondo_node_kind_name(params->kind));
  if (params->name[0] != '\0') {
    rondo_text_add(text, " ");
    rondo_dot_add_name(text, params->name);
  }
  const rondo_node_details details = {.text = text,
                                      .graph = graph,
                                      .is_dot = true,
                                      .with_addresses = writer->with_addresses,
                                      .max_parameters = RONDO_MAX_PARAMETERS};
  rondo_node_details_add(&details, node);
  rondo_text_add(text, "\"];\n");
  if (params->kind == RONDO_NODE_CHILD) {
    add_inside(writer, params->as.child, slot, &at);
    rondo_text_add(text, "%*s}\n", position->indent, "");
  }
}

static void add_nodes(dot_writer *writer, const rondo_graph *graph, const dot_position *position) {
  for (size_t i = 0; i < graph->nodes.count; i++)
    if (graph->nodes.items[i].live) add_node(writer, graph, (uint32_t)i, position);
  for (size_t i = 0; i < graph->nodes.count; i++) {
    const rondo_slots *dependents = &graph->nodes.items[i].dependents;
    for (size_t d = 0; d < dependents->count; d++)
      rondo_text_add(&writer->text, "%*s%s%zu -> %s%" PRIu32 ";\n", position->indent, "", position->path, i,
                     position->path, dependents->items[d]);
  }
  for (size_t i = 0; i < graph->programmatic.count; i++)
    rondo_text_add(&writer->text, "%*s%s%" PRIu32 " -> %s%" PRIu32 " [style=dashed];\n", position->indent, "",
                   position->path, graph->programmatic.items[i].from, position->path, graph->programmatic.items[i].to);
}

rondo_status rondo_graph_to_dot(const rondo_graph *graph, bool with_addresses, char **out_text) {
  RONDO_TRY(rondo_require("rondo_graph_to_dot", "the out-parameter", out_text));
  *out_text = NULL;
  RONDO_TRY(rondo_require("rondo_graph_to_dot", "the graph", graph));
  dot_writer writer = {.with_addresses = with_addresses};
  rondo_text_init(&writer.text, &graph->allocator);
  rondo_text_add(&writer.text, "digraph \"");
  rondo_dot_add_name(&writer.text, graph->name);
  rondo_text_add(&writer.text, "\" {\n");
  add_nodes(&writer, graph, &(dot_position){.path = "n", .indent = 2});
  rondo_text_add(&writer.text, "}\n");
  return rondo_text_hand_out(&writer.text, out_text);
}
