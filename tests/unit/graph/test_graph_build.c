/* SPDX-License-Identifier: MIT
 * Building and reading graphs: nodes of all kinds (GX-1), what is copied (B3), refused dependencies (B2), queries (B7),
 * replacing parameters, removing nodes (B8).
 */
#include "unit/graph/graph_tests.h"

#include "graph/graph.h"

static rondo_status try_insert(rondo_graph *graph, const rondo_node *dependencies, size_t count) {
  const size_t nodes = test_node_count(graph), edges = test_edge_count(graph);
  const rondo_node_params params = {.kind = RONDO_NODE_EMPTY};
  rondo_node node = {.id = 1};
  const rondo_status status = rondo_graph_insert(graph, dependencies, count, &params, &node);
  assert_int_equal(node.id, 0);
  assert_int_equal(test_node_count(graph), nodes);
  assert_int_equal(test_edge_count(graph), edges);
  return status;
}

GRAPH_TEST(test_gx1_all_kinds) {
  add_all_kinds(fixture, fixture->graph);
  for (int i = 0; i < KIND_COUNT; i++) {
    rondo_node_params params = test_node_params(fixture->graph, fixture->nodes[i]);
    assert_int_equal(params.kind, i + 1);
    assert_int_equal(rondo_node_number(fixture->nodes[i]), i);
    assert_non_null(params.name);
  }
  assert_true(fixture->graph->has_memory);
  assert_int_equal(test_edge_count(fixture->graph), KIND_COUNT - 1);
}

GRAPH_TEST(test_names) {
  rondo_node_params params = kernel_params(fixture);
  const rondo_node by_kernel = add_node(fixture->graph, &params, NULL, 0);
  char given[] = "first layer";
  params.name = given;
  const rondo_node by_user = add_node(fixture->graph, &params, NULL, 0);
  given[0] = 'F';
  params = test_node_params(fixture->graph, by_kernel);
  assert_string_equal(params.name, "saxpy");
  params = test_node_params(fixture->graph, by_user);
  assert_string_equal(params.name, "first layer");
  params = alloc_params(fixture->memory, 64, "scratch");
  const rondo_node by_allocation = add_node(fixture->graph, &params, NULL, 0);
  params.name = "grow";
  params.as.alloc.name = NULL;
  const rondo_node by_node = add_node(fixture->graph, &params, NULL, 0);
  params = test_node_params(fixture->graph, by_allocation);
  assert_string_equal(params.name, "scratch");
  assert_string_equal(params.as.alloc.name, "scratch");
  params = test_node_params(fixture->graph, by_node);
  assert_string_equal(params.name, "grow");
  assert_string_equal(params.as.alloc.name, "grow");
}

GRAPH_TEST(test_arguments_are_copied) { /* B3 */
  rondo_node_params params = kernel_params(fixture);
  const rondo_node node = add_node(fixture->graph, &params, NULL, 0);
  float *const y = fixture->y;
  fixture->a = 7;
  fixture->y = NULL;
  params = test_node_params(fixture->graph, node);
  assert_int_equal(params.as.kernel.arg_count, 3);
  assert_true(*(const float *)params.as.kernel.args[0] == 2);
  assert_ptr_equal(*(float *const *)params.as.kernel.args[2], y);
  for (size_t i = 0; i < 3; i++)
    assert_int_equal((uintptr_t)params.as.kernel.args[i] % fixture->kernel->parameters[i].alignment, 0);
}

GRAPH_TEST(test_kernel_without_parameters) {
  rondo_kernel *kernel;
  assert_ok(
      rondo_kernel_make(TEST_DEVICE, &fixture->allocator.table, &(rondo_kernel_options){.name = "none"}, &kernel));
  rondo_node_params params = {.kind = RONDO_NODE_KERNEL, .as.kernel = {.kernel = kernel, .grid = {1, 0, 0}}};
  const rondo_node node = add_node(fixture->graph, &params, NULL, 0);
  rondo_kernel_release(kernel);
  params = test_node_params(fixture->graph, node);
  assert_int_equal(params.as.kernel.arg_count, 0);
}

GRAPH_TEST(test_b2_dependencies) {
  rondo_graph *graph = fixture->graph, *other = make_graph(fixture, "");
  const rondo_node a = add_empty(graph, NULL, 0), b = add_empty(graph, NULL, 0), c = add_empty(graph, NULL, 0);
  const rondo_node foreign = add_empty(other, NULL, 0);
  assert_invalid(try_insert(graph, NULL, 1), RONDO_REASON_NULL_ARGUMENT);
  assert_invalid(try_insert(graph, (rondo_node[]){a, b, a}, 3), RONDO_REASON_DUPLICATE_EDGE);
  assert_int_equal(rondo_last_error()->node, 0);
  assert_invalid(try_insert(graph, (rondo_node[]){a, foreign}, 2), RONDO_REASON_UNKNOWN_NODE);
  assert_message("does not belong to graph 'test'");
  assert_invalid(try_insert(other, &a, 1), RONDO_REASON_UNKNOWN_NODE);
  assert_invalid(try_insert(graph, &(rondo_node){0}, 1), RONDO_REASON_UNKNOWN_NODE);
  assert_invalid(try_insert(graph, &(rondo_node){.id = a.id + 3}, 1), RONDO_REASON_UNKNOWN_NODE);
  assert_ok(rondo_graph_erase(graph, 1));
  assert_invalid(try_insert(graph, &b, 1), RONDO_REASON_UNKNOWN_NODE);
  assert_message("removed");
  const rondo_node d = add_empty(graph, (rondo_node[]){c, a}, 2);
  rondo_node found[3];
  size_t count = 3;
  assert_ok(rondo_graph_dependencies(graph, d, found, &count));
  expect_nodes(found, count, a, c);
  add_empty(graph, &a, 0);
}

GRAPH_TEST(test_bad_parameters_change_nothing) { /* B2 */
  const rondo_node a = add_empty(fixture->graph, NULL, 0);
  rondo_node_params params = kernel_params(fixture);
  params.as.kernel.arg_count = 1;
  rondo_node node;
  assert_invalid(rondo_graph_insert(fixture->graph, &a, 1, &params, &node), RONDO_REASON_ARGUMENT_COUNT);
  assert_message("test: kernel 'saxpy'");
  assert_invalid(rondo_graph_insert(fixture->graph, &a, 1, NULL, &node), RONDO_REASON_NULL_ARGUMENT);
  assert_int_equal(test_node_count(fixture->graph), 1);
  assert_int_equal(test_edge_count(fixture->graph), 0);
}

GRAPH_TEST(test_b7_bad_queries) {
  rondo_graph *graph = fixture->graph;
  size_t count = 1;
  rondo_node node;
  rondo_node_params params;
  assert_invalid(rondo_graph_nodes(NULL, NULL, &count), RONDO_REASON_NULL_ARGUMENT);
  assert_message("rondo_graph_nodes");
  assert_invalid(rondo_graph_nodes(graph, NULL, NULL), RONDO_REASON_NULL_ARGUMENT);
  assert_invalid(rondo_graph_roots(graph, NULL, NULL), RONDO_REASON_NULL_ARGUMENT);
  assert_invalid(rondo_graph_sort(NULL, NULL, &count), RONDO_REASON_NULL_ARGUMENT);
  assert_invalid(rondo_graph_edges(graph, &node, NULL, &count), RONDO_REASON_NULL_ARGUMENT);
  assert_invalid(rondo_graph_edges(graph, NULL, &node, &count), RONDO_REASON_NULL_ARGUMENT);
  assert_invalid(rondo_graph_edges(NULL, NULL, NULL, &count), RONDO_REASON_NULL_ARGUMENT);
  assert_invalid(rondo_graph_dependencies(graph, (rondo_node){0}, NULL, &count), RONDO_REASON_UNKNOWN_NODE);
  assert_invalid(rondo_graph_dependents(graph, (rondo_node){0}, NULL, &count), RONDO_REASON_UNKNOWN_NODE);
  assert_invalid(rondo_graph_get_params(graph, (rondo_node){0}, &params), RONDO_REASON_UNKNOWN_NODE);
  assert_invalid(rondo_graph_get_params(graph, (rondo_node){0}, NULL), RONDO_REASON_NULL_ARGUMENT);
  assert_invalid(rondo_graph_get_params(NULL, (rondo_node){0}, &params), RONDO_REASON_NULL_ARGUMENT);
}

GRAPH_TEST(test_numbers) {
  assert_int_equal(rondo_node_number((rondo_node){0}), RONDO_NO_NODE);
  const rondo_node a = add_empty(fixture->graph, NULL, 0);
  assert_int_equal(rondo_node_number(a), 0);
  assert_ok(rondo_graph_erase(fixture->graph, 0));
  assert_int_equal(rondo_node_number(add_empty(fixture->graph, NULL, 0)), 1); /* a number is never given twice */
}

GRAPH_TEST(test_replacing) {
  rondo_graph *graph = fixture->graph;
  rondo_node_params params = kernel_params(fixture);
  const rondo_node node = add_node(graph, &params, NULL, 0);
  params = test_node_params(graph, node);
  params.as.kernel.grid.x = 9; /* what was read back may be written back */
  params.name = "again";
  assert_ok(rondo_graph_replace(graph, 0, &params));
  params = test_node_params(graph, node);
  assert_int_equal(params.as.kernel.grid.x, 9);
  assert_string_equal(params.name, "again");
  assert_true(*(const float *)params.as.kernel.args[0] == 2);
  params.as.kernel.grid.x = 0;
  assert_invalid(rondo_graph_replace(graph, 0, &params), RONDO_REASON_BAD_SIZE);
  assert_message("kernel 'again' (node 0)");
  assert_invalid(rondo_graph_replace(graph, 0, NULL), RONDO_REASON_NULL_ARGUMENT);
  assert_invalid(rondo_graph_replace(graph, 1, &params), RONDO_REASON_UNKNOWN_NODE);
  params = copy_params(fixture);
  assert_invalid(rondo_graph_replace(graph, 0, &params), RONDO_REASON_NODE_KIND);
  params = test_node_params(graph, node);
  assert_int_equal(params.as.kernel.grid.x, 9);
}

GRAPH_TEST(test_what_cannot_be_replaced) {
  add_all_kinds(fixture, fixture->graph);
  for (uint32_t i = 0; i < KIND_COUNT; i++) {
    rondo_node_params params = test_node_params(fixture->graph, fixture->nodes[i]);
    const rondo_status status = rondo_graph_replace(fixture->graph, i, &params);
    if (params.kind == RONDO_NODE_CHILD || params.kind == RONDO_NODE_ALLOC || params.kind == RONDO_NODE_FREE)
      assert_error(status, RONDO_UNSUPPORTED, RONDO_REASON_NODE_KIND);
    else
      assert_ok(status);
  }
}

GRAPH_TEST(test_b8_removing) {
  rondo_graph *graph = fixture->graph;
  const rondo_node a = add_empty(graph, NULL, 0), b = add_empty(graph, &a, 1), c = add_empty(graph, &b, 1);
  assert_ok(rondo_graph_erase(graph, 1));
  assert_int_equal(test_node_count(graph), 2);
  assert_int_equal(test_edge_count(graph), 0);
  size_t count = 0;
  assert_invalid(rondo_graph_dependents(graph, b, NULL, &count), RONDO_REASON_UNKNOWN_NODE);
  assert_invalid(rondo_graph_erase(graph, 1), RONDO_REASON_UNKNOWN_NODE);
  assert_invalid(rondo_graph_erase(graph, 3), RONDO_REASON_UNKNOWN_NODE);
  assert_message("never made");
  add_edge(graph, a, c);
  assert_int_equal(test_edge_count(graph), 1);
}

GRAPH_TEST(test_no_removing_while_captured_into) {
  rondo_graph *graph = fixture->graph, *given = make_graph(fixture, "inner");
  const rondo_node child_node = add_child(graph, given);
  free_now(fixture, given);
  rondo_node_params params = test_node_params(graph, child_node);
  params.as.child->captures = 1;
  assert_true(rondo_graph_is_captured_into(graph));
  assert_error(rondo_graph_erase(graph, 0), RONDO_INVALID_STATE, RONDO_REASON_CAPTURING_INTO);
  params.as.child->captures = 0;
  graph->captures = 1;
  assert_error(rondo_graph_erase(graph, 0), RONDO_INVALID_STATE, RONDO_REASON_CAPTURING_INTO);
  graph->captures = 0;
  assert_false(rondo_graph_is_captured_into(graph));
  assert_ok(rondo_graph_erase(graph, 0));
}

static int attached;
static void retain_attachment(void *object) { (void)object, attached++; }
static void release_attachment(void *object) { (void)object, attached--; }

/* The layer that keeps devices open is called for every graph that this layer makes. */
GRAPH_TEST(test_attachments) {
  rondo_graph *graph = make_graph(fixture, "held"), *sole = make_graph(fixture, "sole");
  const rondo_graph_attachment attachment = {fixture, retain_attachment, release_attachment};
  attached = 2;
  graph->memory = attachment;
  graph->hold = attachment;
  rondo_graph *clone = clone_of(fixture, graph);
  assert_int_equal(attached, 4);
  add_child(sole, graph);
  assert_int_equal(attached, 6);
  free_now(fixture, sole);
  free_now(fixture, clone);
  assert_int_equal(attached, 2);
  free_now(fixture, graph);
  assert_int_equal(attached, 0);
}
