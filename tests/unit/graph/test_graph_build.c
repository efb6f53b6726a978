/* SPDX-License-Identifier: MIT
 * Building and reading graphs: nodes of all kinds (GX-1), what is copied (B3), refused dependencies (B2), queries (B7),
 * replacing parameters, removing nodes (B8).
 */
#include "unit/graph/graph_tests.h"

#include "graph/graph.h"

#define BAD RONDO_INVALID_ARGUMENT

static rondo_status try_insert(rondo_graph *graph, const rondo_node *dependencies, size_t count) {
  const size_t nodes = count_nodes(graph), edges = count_edges(graph);
  const rondo_node_params params = {.kind = RONDO_NODE_EMPTY};
  rondo_node node = {.id = 1};
  const rondo_status status = rondo_graph_insert(graph, dependencies, count, &params, &node);
  assert_int_equal(node.id, 0);
  assert_int_equal(count_nodes(graph), nodes);
  assert_int_equal(count_edges(graph), edges);
  return status;
}

static void test_gx1_all_kinds(void **state) {
  graph_fixture *fixture = *state;
  add_all_kinds(fixture, fixture->graph);
  for (int i = 0; i < KIND_COUNT; i++) {
    rondo_node_params params = params_of(fixture->graph, fixture->nodes[i]);
    assert_int_equal(params.kind, i + 1);
    assert_int_equal(rondo_node_number(fixture->nodes[i]), i);
    assert_non_null(params.name);
  }
  assert_true(fixture->graph->has_memory);
  assert_int_equal(count_edges(fixture->graph), KIND_COUNT - 1);
}

static void test_names(void **state) {
  graph_fixture *fixture = *state;
  rondo_node_params params = kernel_params(fixture);
  const rondo_node by_kernel = add_node(fixture->graph, &params, NULL, 0);
  char given[] = "first layer";
  params.name = given;
  const rondo_node by_user = add_node(fixture->graph, &params, NULL, 0);
  given[0] = 'F';
  params = params_of(fixture->graph, by_kernel);
  assert_string_equal(params.name, "saxpy");
  params = params_of(fixture->graph, by_user);
  assert_string_equal(params.name, "first layer");
  params = alloc_params(fixture->memory, 64, "scratch");
  const rondo_node by_allocation = add_node(fixture->graph, &params, NULL, 0);
  params.name = "grow";
  params.as.alloc.name = NULL;
  const rondo_node by_node = add_node(fixture->graph, &params, NULL, 0);
  params = params_of(fixture->graph, by_allocation);
  assert_string_equal(params.name, "scratch");
  assert_string_equal(params.as.alloc.name, "scratch");
  params = params_of(fixture->graph, by_node);
  assert_string_equal(params.name, "grow");
  assert_string_equal(params.as.alloc.name, "grow");
}

static void test_arguments_are_copied(void **state) { /* B3 */
  graph_fixture *fixture = *state;
  rondo_node_params params = kernel_params(fixture);
  const rondo_node node = add_node(fixture->graph, &params, NULL, 0);
  float *const y = fixture->y;
  fixture->a = 7;
  fixture->y = NULL;
  params = params_of(fixture->graph, node);
  assert_int_equal(params.as.kernel.arg_count, 3);
  assert_true(*(const float *)params.as.kernel.args[0] == 2);
  assert_ptr_equal(*(float *const *)params.as.kernel.args[2], y);
  for (size_t i = 0; i < 3; i++)
    assert_int_equal((uintptr_t)params.as.kernel.args[i] % fixture->kernel->parameters[i].alignment, 0);
}

static void test_kernel_without_parameters(void **state) {
  graph_fixture *fixture = *state;
  rondo_kernel *kernel;
  expect_ok(
      rondo_kernel_make(TEST_DEVICE, &fixture->allocator.table, &(rondo_kernel_options){.name = "none"}, &kernel));
  rondo_node_params params = {.kind = RONDO_NODE_KERNEL, .as.kernel = {.kernel = kernel, .grid = {1, 0, 0}}};
  const rondo_node node = add_node(fixture->graph, &params, NULL, 0);
  rondo_kernel_release(kernel);
  params = params_of(fixture->graph, node);
  assert_int_equal(params.as.kernel.arg_count, 0);
}

static void test_b2_dependencies(void **state) {
  graph_fixture *fixture = *state;
  rondo_graph *graph = fixture->graph, *other = make_graph(fixture, "");
  const rondo_node a = add_empty(graph, NULL, 0), b = add_empty(graph, NULL, 0), c = add_empty(graph, NULL, 0);
  const rondo_node foreign = add_empty(other, NULL, 0);
  expect_error(try_insert(graph, NULL, 1), BAD, RONDO_REASON_NULL_ARGUMENT);
  expect_error(try_insert(graph, (rondo_node[]){a, b, a}, 3), BAD, RONDO_REASON_DUPLICATE_EDGE);
  assert_int_equal(rondo_last_error()->node, 0);
  expect_error(try_insert(graph, (rondo_node[]){a, foreign}, 2), BAD, RONDO_REASON_UNKNOWN_NODE);
  expect_message("another graph than graph 'test'");
  expect_error(try_insert(other, &a, 1), BAD, RONDO_REASON_UNKNOWN_NODE);
  expect_error(try_insert(graph, &(rondo_node){0}, 1), BAD, RONDO_REASON_UNKNOWN_NODE);
  expect_error(try_insert(graph, &(rondo_node){.id = a.id + 3}, 1), BAD, RONDO_REASON_UNKNOWN_NODE);
  expect_ok(rondo_graph_erase(graph, 1));
  expect_error(try_insert(graph, &b, 1), BAD, RONDO_REASON_UNKNOWN_NODE);
  expect_message("removed");
  const rondo_node d = add_empty(graph, (rondo_node[]){c, a}, 2);
  rondo_node found[3];
  size_t count = 3;
  expect_ok(rondo_graph_dependencies(graph, d, found, &count));
  expect_nodes(found, count, a, c);
  add_empty(graph, &a, 0);
}

static void test_bad_parameters_change_nothing(void **state) { /* B2 */
  graph_fixture *fixture = *state;
  const rondo_node a = add_empty(fixture->graph, NULL, 0);
  rondo_node_params params = kernel_params(fixture);
  params.as.kernel.arg_count = 1;
  rondo_node node;
  expect_error(rondo_graph_insert(fixture->graph, &a, 1, &params, &node), BAD, RONDO_REASON_ARGUMENT_COUNT);
  expect_message("test: kernel 'saxpy'");
  expect_error(rondo_graph_insert(fixture->graph, &a, 1, NULL, &node), BAD, RONDO_REASON_NULL_ARGUMENT);
  assert_int_equal(count_nodes(fixture->graph), 1);
  assert_int_equal(count_edges(fixture->graph), 0);
}

static void test_b7_queries(void **state) {
  graph_fixture *fixture = *state;
  rondo_graph *graph = fixture->graph;
  size_t count = 0;
  expect_ok(rondo_graph_nodes(graph, NULL, &count));
  assert_int_equal(count, 0);
  const rondo_node a = add_empty(graph, NULL, 0), b = add_empty(graph, NULL, 0);
  const rondo_node c = add_empty(graph, (rondo_node[]){a, b}, 2), d = add_empty(graph, &a, 1);
  rondo_node nodes[6], to[6];
  memset(nodes, 0xff, sizeof nodes);
  count = 6;
  expect_ok(rondo_graph_nodes(graph, nodes, &count));
  expect_nodes(nodes, count, a, b, c, d);
  assert_int_equal(nodes[4].id + nodes[5].id, 0); /* a larger array ends in no nodes */
  memset(nodes, 0xff, sizeof nodes);
  count = 1;
  expect_ok(rondo_graph_roots(graph, nodes, &count)); /* a smaller one gets a prefix */
  assert_int_equal(count, 2);
  assert_int_equal(nodes[0].id, a.id);
  assert_int_equal(nodes[1].id, UINT64_MAX);
  count = 6;
  expect_ok(rondo_graph_dependents(graph, a, nodes, &count));
  expect_nodes(nodes, count, c, d);
  count = 6;
  expect_ok(rondo_graph_edges(graph, nodes, to, &count));
  expect_nodes(nodes, count, a, a, b);
  expect_nodes(to, count, c, d, c);
  assert_int_equal(nodes[3].id + to[3].id, 0);
}

static void test_b7_bad_queries(void **state) {
  graph_fixture *fixture = *state;
  rondo_graph *graph = fixture->graph;
  size_t count = 1;
  rondo_node node;
  rondo_node_params params;
  expect_error(rondo_graph_nodes(NULL, NULL, &count), BAD, RONDO_REASON_NULL_ARGUMENT);
  expect_message("rondo_graph_nodes");
  expect_error(rondo_graph_nodes(graph, NULL, NULL), BAD, RONDO_REASON_NULL_ARGUMENT);
  expect_error(rondo_graph_roots(graph, NULL, NULL), BAD, RONDO_REASON_NULL_ARGUMENT);
  expect_error(rondo_graph_sort(NULL, NULL, &count), BAD, RONDO_REASON_NULL_ARGUMENT);
  expect_error(rondo_graph_edges(graph, &node, NULL, &count), BAD, RONDO_REASON_NULL_ARGUMENT);
  expect_error(rondo_graph_edges(graph, NULL, &node, &count), BAD, RONDO_REASON_NULL_ARGUMENT);
  expect_error(rondo_graph_edges(NULL, NULL, NULL, &count), BAD, RONDO_REASON_NULL_ARGUMENT);
  expect_error(rondo_graph_dependencies(graph, (rondo_node){0}, NULL, &count), BAD, RONDO_REASON_UNKNOWN_NODE);
  expect_error(rondo_graph_dependents(graph, (rondo_node){0}, NULL, &count), BAD, RONDO_REASON_UNKNOWN_NODE);
  expect_error(rondo_graph_get_params(graph, (rondo_node){0}, &params), BAD, RONDO_REASON_UNKNOWN_NODE);
  expect_error(rondo_graph_get_params(graph, (rondo_node){0}, NULL), BAD, RONDO_REASON_NULL_ARGUMENT);
  expect_error(rondo_graph_get_params(NULL, (rondo_node){0}, &params), BAD, RONDO_REASON_NULL_ARGUMENT);
}

static void test_numbers(void **state) {
  graph_fixture *fixture = *state;
  assert_int_equal(rondo_node_number((rondo_node){0}), RONDO_NO_NODE);
  const rondo_node a = add_empty(fixture->graph, NULL, 0);
  assert_int_equal(rondo_node_number(a), 0);
  expect_ok(rondo_graph_erase(fixture->graph, 0));
  assert_int_equal(rondo_node_number(add_empty(fixture->graph, NULL, 0)), 1); /* a number is never given twice */
}

static void test_replacing(void **state) {
  graph_fixture *fixture = *state;
  rondo_graph *graph = fixture->graph;
  rondo_node_params params = kernel_params(fixture);
  const rondo_node node = add_node(graph, &params, NULL, 0);
  params = params_of(graph, node);
  params.as.kernel.grid.x = 9; /* what was read back may be written back */
  params.name = "again";
  expect_ok(rondo_graph_replace(graph, 0, &params));
  params = params_of(graph, node);
  assert_int_equal(params.as.kernel.grid.x, 9);
  assert_string_equal(params.name, "again");
  assert_true(*(const float *)params.as.kernel.args[0] == 2);
  params.as.kernel.grid.x = 0;
  expect_error(rondo_graph_replace(graph, 0, &params), BAD, RONDO_REASON_BAD_SIZE);
  expect_message("kernel 'again' (node 0)");
  expect_error(rondo_graph_replace(graph, 0, NULL), BAD, RONDO_REASON_NULL_ARGUMENT);
  expect_error(rondo_graph_replace(graph, 1, &params), BAD, RONDO_REASON_UNKNOWN_NODE);
  params = copy_params(fixture);
  expect_error(rondo_graph_replace(graph, 0, &params), BAD, RONDO_REASON_NODE_KIND);
  params = params_of(graph, node);
  assert_int_equal(params.as.kernel.grid.x, 9);
}

static void test_what_cannot_be_replaced(void **state) {
  graph_fixture *fixture = *state;
  add_all_kinds(fixture, fixture->graph);
  for (uint32_t i = 0; i < KIND_COUNT; i++) {
    rondo_node_params params = params_of(fixture->graph, fixture->nodes[i]);
    const rondo_status status = rondo_graph_replace(fixture->graph, i, &params);
    if (params.kind == RONDO_NODE_CHILD || params.kind == RONDO_NODE_ALLOC || params.kind == RONDO_NODE_FREE)
      expect_error(status, RONDO_UNSUPPORTED, RONDO_REASON_NODE_KIND);
    else
      expect_ok(status);
  }
}

static void test_b8_removing(void **state) {
  graph_fixture *fixture = *state;
  rondo_graph *graph = fixture->graph;
  const rondo_node a = add_empty(graph, NULL, 0), b = add_empty(graph, &a, 1), c = add_empty(graph, &b, 1);
  expect_ok(rondo_graph_erase(graph, 1));
  assert_int_equal(count_nodes(graph), 2);
  assert_int_equal(count_edges(graph), 0);
  size_t count = 0;
  expect_error(rondo_graph_dependents(graph, b, NULL, &count), BAD, RONDO_REASON_UNKNOWN_NODE);
  expect_error(rondo_graph_erase(graph, 1), BAD, RONDO_REASON_UNKNOWN_NODE);
  expect_error(rondo_graph_erase(graph, 3), BAD, RONDO_REASON_UNKNOWN_NODE);
  expect_message("never made");
  add_edge(graph, a, c);
  assert_int_equal(count_edges(graph), 1);
}

static void test_no_removing_while_captured_into(void **state) {
  graph_fixture *fixture = *state;
  rondo_graph *graph = fixture->graph, *given = make_graph(fixture, "inner");
  const rondo_node child_node = add_child(graph, given);
  free_now(fixture, given);
  rondo_node_params params = params_of(graph, child_node);
  params.as.child->captures = 1;
  assert_true(rondo_graph_is_captured_into(graph));
  expect_error(rondo_graph_erase(graph, 0), RONDO_INVALID_STATE, RONDO_REASON_CAPTURING_INTO);
  params.as.child->captures = 0;
  graph->captures = 1;
  expect_error(rondo_graph_erase(graph, 0), RONDO_INVALID_STATE, RONDO_REASON_CAPTURING_INTO);
  graph->captures = 0;
  assert_false(rondo_graph_is_captured_into(graph));
  expect_ok(rondo_graph_erase(graph, 0));
}

static int attached;
static void retain_attachment(void *object) { (void)object, attached++; }
static void release_attachment(void *object) { (void)object, attached--; }

/* Whoever holds the device for graphs hears of every graph that this layer makes. */
static void test_attachments(void **state) {
  graph_fixture *fixture = *state;
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

int main(void) {
  const struct CMUnitTest tests[] = {
      graph_test(test_gx1_all_kinds),
      graph_test(test_names),
      graph_test(test_arguments_are_copied),
      graph_test(test_kernel_without_parameters),
      graph_test(test_b2_dependencies),
      graph_test(test_bad_parameters_change_nothing),
      graph_test(test_b7_queries),
      graph_test(test_b7_bad_queries),
      graph_test(test_numbers),
      graph_test(test_replacing),
      graph_test(test_what_cannot_be_replaced),
      graph_test(test_b8_removing),
      graph_test(test_no_removing_while_captured_into),
      graph_test(test_attachments),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
