/* SPDX-License-Identifier: MIT
 * rondo graph: reads the JSON dump of a graph and summarizes or converts it.
 */
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#include "commands/commands.h"
#include "commands/graph_file.h"
#include "common/options.h"
#include "common/tool.h"

typedef struct graph_settings {
  bool dot, json, fingerprint, no_addresses;
} graph_settings;

static const graph_settings defaults = {0};

static const option_row rows[] = {
    {"dot", NULL, OPTION_FLAG, offsetof(graph_settings, dot), 0, 0, "convert to DOT, for Graphviz"},
    {"json", NULL, OPTION_FLAG, offsetof(graph_settings, json), 0, 0, "print the dump again, as one JSON object"},
    {"fingerprint", NULL, OPTION_FLAG, offsetof(graph_settings, fingerprint), 0, 0, "print only the fingerprint"},
    {"no-addresses", NULL, OPTION_FLAG, offsetof(graph_settings, no_addresses), 0, 0,
     "omit addresses from --dot and --json, so that two runs give the same output"},
};

static const option_table table = {
    .command = "rondo graph",
    GRAPH_FILE_OPERAND,
    .description =
        "Reads the JSON dump of a graph. Prints a summary (nodes by kind, edges, roots, nodes on the longest path,\n"
        "and fingerprint) or converts the graph.",
    OPTION_ROWS(rows, defaults),
};

#define KIND_COUNT (RONDO_NODE_SEMAPHORE_WAIT + 1)

typedef struct graph_summary {
  size_t nodes, edges, roots, depth;
  size_t of_kind[KIND_COUNT]; /* child graphs included */
  uint64_t fingerprint;
} graph_summary;

/* Calls a query that fills an array. Returns the nodes, which the caller frees, and their number. */
static int query_nodes(const rondo_graph *graph, rondo_status (*query)(const rondo_graph *, rondo_node *, size_t *),
                       rondo_node **out_nodes, size_t *out_count) {
  *out_nodes = NULL;
  if (query(graph, NULL, out_count)) return tool_fail_status("the graph could not be read");
  *out_nodes = calloc(*out_count ? *out_count : 1, sizeof **out_nodes);
  if (!*out_nodes) return tool_fail_memory("the graph's %zu nodes", *out_count);
  return query(graph, *out_nodes, out_count) ? tool_fail_status("the graph could not be read") : TOOL_OK;
}

static int count_kinds(const rondo_graph *graph, graph_summary *out) {
  rondo_node *nodes = NULL;
  size_t count = 0;
  int result = query_nodes(graph, rondo_graph_nodes, &nodes, &count);
  for (size_t i = 0; result == TOOL_OK && i < count; i++) {
    rondo_node_params params;
    if (rondo_graph_get_params(graph, nodes[i], &params)) {
      result = tool_fail_status("node %" PRIu32, rondo_node_number(nodes[i]));
      break;
    }
    out->of_kind[params.kind]++;
    if (params.kind == RONDO_NODE_CHILD) result = count_kinds(params.as.child, out);
  }
  free(nodes);
  return result;
}

/* The longest path, in nodes: one more than the longest path of the dependencies. `order` is topological. `depths`,
 * indexed by number, and `dependencies` have space for all nodes. */
static int measure_depth(const rondo_graph *graph, const rondo_node *order, size_t count, size_t *depths,
                         rondo_node *dependencies, size_t *out_depth) {
  for (size_t i = 0; i < count; i++) {
    size_t dependency_count = 0, longest = 0;
    if (rondo_graph_dependencies(graph, order[i], NULL, &dependency_count) ||
        rondo_graph_dependencies(graph, order[i], dependencies, &dependency_count))
      return tool_fail_status("the graph could not be read");
    for (size_t d = 0; d < dependency_count; d++) {
      const size_t depth = depths[rondo_node_number(dependencies[d])];
      if (depth > longest) longest = depth;
    }
    depths[rondo_node_number(order[i])] = longest + 1;
    if (longest + 1 > *out_depth) *out_depth = longest + 1;
  }
  return TOOL_OK;
}

static int find_depth(const rondo_graph *graph, size_t *out_depth) {
  rondo_node *order = NULL;
  size_t count = 0, numbers = 1;
  int result = query_nodes(graph, rondo_graph_sort, &order, &count);
  for (size_t i = 0; result == TOOL_OK && i < count; i++) {
    const size_t number = rondo_node_number(order[i]);
    if (number >= numbers) numbers = number + 1;
  }
  if (result == TOOL_OK) {
    size_t *depths = calloc(numbers, sizeof *depths);
    rondo_node *dependencies = calloc(numbers, sizeof *dependencies);
    result = depths && dependencies ? measure_depth(graph, order, count, depths, dependencies, out_depth)
                                    : tool_fail_memory("%zu depths", numbers);
    free(dependencies);
    free(depths);
  }
  free(order);
  return result;
}

static int summarize(const rondo_graph *graph, graph_summary *out) {
  *out = (graph_summary){0};
  if (rondo_graph_nodes(graph, NULL, &out->nodes) || rondo_graph_edges(graph, NULL, NULL, &out->edges) ||
      rondo_graph_roots(graph, NULL, &out->roots) || rondo_graph_fingerprint(graph, &out->fingerprint)) {
    return tool_fail_status("the graph could not be read");
  }
  const int result = count_kinds(graph, out);
  return result == TOOL_OK ? find_depth(graph, &out->depth) : result;
}

static int print_summary(const rondo_graph *graph) {
  graph_summary summary;
  const int result = summarize(graph, &summary);
  if (result != TOOL_OK) return result;
  printf("nodes        %zu\n", summary.nodes);
  for (size_t kind = 1; kind < KIND_COUNT; kind++) {
    if (summary.of_kind[kind] == 0) continue;
    printf("  %-12s %zu\n", rondo_node_kind_name((rondo_node_kind)kind), summary.of_kind[kind]);
  }
  printf("edges        %zu\nroots        %zu\ndepth        %zu\nfingerprint  %016" PRIx64 "\n", summary.edges,
         summary.roots, summary.depth, summary.fingerprint);
  return TOOL_OK;
}

static int print_fingerprint(const rondo_graph *graph) {
  uint64_t fingerprint = 0;
  if (rondo_graph_fingerprint(graph, &fingerprint)) return tool_fail_status("the graph could not be read");
  printf("%016" PRIx64 "\n", fingerprint);
  return TOOL_OK;
}

typedef rondo_status (*dump_function)(const rondo_graph *graph, bool with_addresses, char **out_text);

static int print_dump(const rondo_graph *graph, dump_function dump, bool with_addresses) {
  char *text = NULL;
  if (dump(graph, with_addresses, &text)) return tool_fail_status("the graph could not be read");
  fputs(text, stdout);
  const int result = tool_check_output();
  rondo_text_free(text);
  return result;
}

static int print_graph(const rondo_graph *graph, const char *path, const void *user) {
  const graph_settings *settings = user;
  (void)path;
  if (settings->fingerprint) return print_fingerprint(graph);
  if (settings->dot) return print_dump(graph, rondo_graph_to_dot, !settings->no_addresses);
  if (settings->json) return print_dump(graph, rondo_graph_to_json, !settings->no_addresses);
  return print_summary(graph);
}

static int check_settings(const void *user) {
  const graph_settings *settings = user;
  if (settings->dot + settings->json + settings->fingerprint <= 1) return TOOL_OK;
  return tool_fail_usage("use only one of --dot, --json and --fingerprint");
}

int command_graph(int argc, char **argv) {
  graph_settings settings = defaults;
  return graph_file_command(&table, argc, argv, &settings, check_settings, print_graph);
}
