/* SPDX-License-Identifier: MIT
 * Contents that only captures bring into a graph (GX-8): programmatic edges, which are in the topological order and in
 * dumps but impose no order; foreign nodes; bound graphs; kernels with more arguments than Rondo's own.
 */
#include <stdio.h>
#include <stdlib.h>

#include "graph/edges.h"
#include "graph/graph.h"
#include "graph/graph_clone.h"
#include "graph/node.h"
#include "graph/topological_order.h"
#include "unit/graph/graph_tests.h"

static rondo_status link_nodes(rondo_graph *graph, rondo_node from, rondo_node to, uint8_t port) {
  const rondo_programmatic_edge edge = {
      .from = rondo_node_number(from), .to = rondo_node_number(to), .from_port = port, .type = 1};
  return rondo_graph_link_programmatic(graph, &edge);
}

static rondo_node add_foreign(rondo_graph *graph, const char *what, uint64_t bytes, bool is_bound) {
  return add_node(graph,
                  &(rondo_node_params){.kind = RONDO_NODE_FOREIGN,
                                       .as.foreign = {.what = what, .bytes = bytes, .is_bound = is_bound}},
                  NULL, 0);
}

/* A node whose size JSON could not be read back with. */
GRAPH_TEST(test_foreign_memory_fits_the_address_space) {
  const rondo_node_params params = {.kind = RONDO_NODE_FOREIGN,
                                    .as.foreign = {.what = "memory", .bytes = (uint64_t)PTRDIFF_MAX + 1}};
  rondo_node node;
  assert_invalid(rondo_graph_insert(fixture->graph, NULL, 0, &params, &node), RONDO_REASON_BAD_SIZE);
  assert_message("'memory'");
  (void)add_foreign(fixture->graph, "memory", PTRDIFF_MAX, false);
}

/* Programmatic edges ---------------------------------------------------------------------------------------------- */

GRAPH_TEST(test_edges_are_kept_in_order) {
  rondo_graph *graph = fixture->graph;
  rondo_node n[4], from[4], to[4];
  for (int i = 0; i < 4; i++) n[i] = add_empty(graph, NULL, 0);
  assert_ok(link_nodes(graph, n[2], n[3], 1));
  assert_ok(link_nodes(graph, n[0], n[3], 1));
  assert_ok(link_nodes(graph, n[0], n[1], 2));
  assert_invalid(link_nodes(graph, n[0], n[1], 1), RONDO_REASON_DUPLICATE_EDGE);
  assert_invalid(link_nodes(graph, n[1], n[1], 1), RONDO_REASON_SELF_EDGE);
  assert_invalid(rondo_graph_link_programmatic(graph, &(rondo_programmatic_edge){.to = 9}), RONDO_REASON_UNKNOWN_NODE);
  add_edge(graph, n[1], n[2]);
  assert_invalid(link_nodes(graph, n[1], n[2], 1), RONDO_REASON_DUPLICATE_EDGE);
  size_t count = 4;
  assert_ok(rondo_graph_programmatic_edges(graph, from, to, NULL, &count));
  expect_nodes(from, count, n[0], n[0], n[2]);
  expect_nodes(to, count, n[1], n[3], n[3]);
  assert_int_equal(from[3].id, 0);
  assert_int_equal(test_edge_count(graph), 1);
  assert_invalid(rondo_graph_programmatic_edges(graph, from, NULL, NULL, &count), RONDO_REASON_NULL_ARGUMENT);
  rondo_graph_programmatic_to(graph, 3, &count);
  assert_int_equal(count, 2);
  rondo_graph_programmatic_to(graph, 0, &count);
  assert_int_equal(count, 0);
  assert_ok(rondo_graph_erase(graph, 3));
  assert_ok(rondo_graph_programmatic_edges(graph, NULL, NULL, NULL, &count));
  assert_int_equal(count, 1);
}

GRAPH_TEST(test_they_are_in_the_order_and_order_nothing) { /* B10 */
  rondo_graph *graph = fixture->graph;
  const rondo_node late = add_empty(graph, NULL, 0), first = add_empty(graph, NULL, 0),
                   after = add_empty(graph, &late, 1);
  rondo_node sorted[3];
  size_t count = 3;
  assert_ok(link_nodes(graph, first, late, 1));
  assert_ok(rondo_graph_sort(graph, sorted, &count));
  expect_nodes(sorted, count, first, late, after);
  bool marks[3] = {false};
  assert_ok(rondo_graph_mark_ancestors(graph, &(uint32_t){2}, 1, marks));
  assert_true(marks[0] && marks[2]);
  assert_false(marks[1]);
}

GRAPH_TEST(test_a_cycle_through_them) { /* B6 */
  rondo_graph *graph = fixture->graph;
  const rondo_node a = add_empty(graph, NULL, 0), b = add_empty(graph, &a, 1), c = add_empty(graph, &b, 1);
  size_t count = 0;
  assert_ok(link_nodes(graph, c, a, 1));
  assert_error(rondo_graph_sort(graph, NULL, &count), RONDO_INVALID_GRAPH, RONDO_REASON_CYCLE);
  assert_message("0 -> 1 -> 2 -> 0");
  const rondo_node own = add_empty(graph, NULL, 0), other = add_empty(graph, NULL, 0);
  assert_ok(link_nodes(graph, own, other, 1));
  assert_ok(link_nodes(graph, other, own, 1));
  assert_error(rondo_graph_sort(graph, NULL, &count), RONDO_INVALID_GRAPH, RONDO_REASON_CYCLE);
}

GRAPH_TEST(test_they_make_a_difference) { /* GX-2 */
  rondo_graph *graph = fixture->graph;
  rondo_node n[3];
  for (int i = 0; i < 3; i++) n[i] = add_empty(graph, NULL, 0);
  rondo_graph *clone = clone_of(fixture, graph);
  assert_ok(link_nodes(graph, n[0], n[1], 1));
  assert_int_equal(count_differences(graph, clone, true), 1);
  assert_int_not_equal(fingerprint(graph), fingerprint(clone));
  clone = clone_of(fixture, graph);
  assert_int_equal(count_differences(graph, clone, false), 0);
  assert_int_equal(fingerprint(graph), fingerprint(clone));
  clone->programmatic.items[0].from_port = 2;
  assert_int_equal(count_differences(graph, clone, true), 1);
  assert_int_not_equal(fingerprint(graph), fingerprint(clone));
}

/* Foreign nodes --------------------------------------------------------------------------------------------------- */

GRAPH_TEST(test_foreign_nodes_are_compared_by_what_they_are) {
  rondo_graph *other = make_graph(fixture, "other");
  add_foreign(fixture->graph, "host function", 0, false);
  add_foreign(other, "event record", 0, false);
  assert_int_equal(count_differences(fixture->graph, other, true), 1);
  assert_int_not_equal(fingerprint(fixture->graph), fingerprint(other));
  other = clone_of(fixture, fixture->graph);
  assert_int_equal(count_differences(fixture->graph, other, false), 0);
  rondo_node_params params = test_node_params(other, rondo_graph_id(other, 0));
  assert_string_equal(params.as.foreign.what, "host function");
  assert_error(rondo_graph_replace(other, 0, &params), RONDO_UNSUPPORTED, RONDO_REASON_NODE_KIND);
  params.as.foreign.what = NULL;
  rondo_node node;
  assert_invalid(rondo_graph_insert(other, NULL, 0, &params, &node), RONDO_REASON_NULL_ARGUMENT);
}

static void ignore_object(void *object) { (void)object; }

GRAPH_TEST(test_the_names_of_captured_nodes_go_along) {
  const rondo_node_params kernel = kernel_params(fixture);
  const rondo_node node = add_node(fixture->graph, &kernel, NULL, 0);
  fixture->graph->captured = (rondo_graph_attachment){fixture, ignore_object, ignore_object};
  rondo_graph_at(fixture->graph, rondo_node_number(node))->captured = 77;
  assert_ok(rondo_graph_replace(fixture->graph, 0, &kernel));
  rondo_graph *clone = clone_of(fixture, fixture->graph);
  assert_int_equal(rondo_graph_at(clone, 0)->captured, 77);
}

GRAPH_TEST(test_bound_graphs_are_not_taken_apart) { /* GX-8, decisions of GM-20 do not hold */
  rondo_graph *graph = fixture->graph, *around = make_graph(fixture, "around"), *copy;
  const rondo_node first = add_empty(graph, NULL, 0), second = add_empty(graph, &first, 1);
  add_foreign(graph, "memory allocation", 4096, true);
  rondo_node added;
  assert_error(rondo_graph_clone(graph, &copy), RONDO_UNSUPPORTED, RONDO_REASON_FOREIGN_WORK);
  assert_message("memory allocation of 4096 bytes (node 2)");
  assert_message("cublasSetWorkspace");
  assert_int_equal(rondo_last_error()->node, 2);
  assert_null(copy);
  assert_error(rondo_graph_erase(graph, 1), RONDO_UNSUPPORTED, RONDO_REASON_FOREIGN_WORK);
  assert_error(rondo_graph_erase_edges(graph, &(uint32_t){0}, &(uint32_t){1}, 1), RONDO_UNSUPPORTED,
               RONDO_REASON_FOREIGN_WORK);
  assert_error(
      rondo_graph_insert(around, NULL, 0, &(rondo_node_params){.kind = RONDO_NODE_CHILD, .as.child = graph}, &added),
      RONDO_UNSUPPORTED, RONDO_REASON_FOREIGN_WORK);
  add_empty(graph, &second, 1);
  assert_ok(rondo_graph_copy(graph, &copy)); /* for its exec */
  keep(fixture, copy, false);
  assert_true(copy->is_bound);
}

/* Dumps ----------------------------------------------------------------------------------------------------------- */

GRAPH_TEST(test_dumps_read_back) { /* GX-7 */
  rondo_graph *graph = fixture->graph;
  const rondo_node_params kernel = kernel_params(fixture);
  const rondo_node a = add_node(graph, &kernel, NULL, 0), b = add_node(graph, &kernel, NULL, 0);
  assert_ok(link_nodes(graph, a, b, 1));
  add_foreign(graph, "memory allocation", 4096, true);
  const char *text = json(fixture, graph, true);
  assert_non_null(strstr(text, "\"programmatic\":[[0,1,0,1]]"));
  assert_non_null(strstr(text, "\"what\":\"memory allocation\",\"bytes\":4096,\"bound\":true"));
  rondo_graph *read = read_back(fixture, text);
  assert_false(read->is_bound); /* of data */
  assert_string_equal(text, json(fixture, read, true));
  text = dot(fixture, graph, true);
  assert_non_null(strstr(text, "n0 -> n1 [style=dashed]"));
  assert_non_null(strstr(text, "memory allocation of 4096 bytes"));
}

GRAPH_TEST(test_wrong_dumps_are_refused) {
  static const struct {
    const char *node;
    rondo_status status;
    rondo_reason reason;
  } cases[] = {
      {"\"kind\":\"empty\",\"name\":\"\",\"dependencies\":[],\"programmatic\":[[1,2,3]]", RONDO_INVALID_DATA,
       RONDO_REASON_MALFORMED},
      {"\"kind\":\"empty\",\"name\":\"\",\"dependencies\":[],\"programmatic\":[[0,256,0,0]]", RONDO_INVALID_DATA,
       RONDO_REASON_OUT_OF_RANGE},
      {"\"kind\":\"empty\",\"name\":\"\",\"dependencies\":[],\"programmatic\":[[0,1,0,1]]", RONDO_INVALID_GRAPH,
       RONDO_REASON_SELF_EDGE},
      {"\"kind\":\"empty\",\"name\":\"\",\"dependencies\":[],\"programmatic\":[[7,1,0,1]]", RONDO_INVALID_GRAPH,
       RONDO_REASON_UNKNOWN_NODE},
      {"\"kind\":\"foreign\",\"name\":\"\",\"dependencies\":[],\"what\":\"copy\",\"bytes\":0", RONDO_INVALID_DATA,
       RONDO_REASON_MALFORMED},
      {"\"kind\":\"foreign\",\"name\":\"\",\"dependencies\":[],\"bytes\":0,\"bound\":true", RONDO_INVALID_DATA,
       RONDO_REASON_MALFORMED},
  };
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    char text[300];
    rondo_graph *graph;
    (void)snprintf(text, sizeof text, "{\"rondo_graph\":1,\"name\":\"\",\"kernels\":[],\"nodes\":[{\"number\":0,%s}]}",
                   cases[i].node);
    assert_error(rondo_graph_read_json(&fixture->allocator.table, text, strlen(text), &graph), cases[i].status,
                 cases[i].reason);
    assert_null(graph);
  }
}

GRAPH_TEST(test_long_arguments) {
  enum { LENGTH = RONDO_MAX_PARAMETER_BYTES };
  rondo_kernel_options options = {RONDO_KERNEL_OPTIONS_INIT, .name = "gemm",
                                  .params = {{RONDO_ACCESS_SCALAR, LENGTH, 16}}};
  rondo_kernel *kernel;
  assert_ok(rondo_kernel_make(NULL, &fixture->allocator.table, &options, &kernel));
  unsigned char *bytes = malloc(LENGTH);
  assert_non_null(bytes);
  for (size_t i = 0; i < LENGTH; i++) bytes[i] = (unsigned char)(i * 7);
  const void *const args[] = {bytes};
  rondo_graph *graph;
  assert_ok(rondo_graph_make(NULL, &fixture->allocator.table, "", &graph));
  keep(fixture, graph, false);
  add_node(graph,
           &(rondo_node_params){.kind = RONDO_NODE_KERNEL,
                                .as.kernel = {.kernel = kernel, .grid = {.x = 1}, .args = args, .arg_count = 1}},
           NULL, 0);
  assert_int_equal(count_differences(graph, read_back(fixture, json(fixture, graph, false)), true), 0);
  rondo_kernel_release(kernel);
  free(bytes);
  options.params[0].bytes++;
  assert_invalid(rondo_kernel_make(NULL, &fixture->allocator.table, &options, &kernel), RONDO_REASON_BAD_SIZE);
}
