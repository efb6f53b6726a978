/* SPDX-License-Identifier: MIT
 * Errors about nodes of child graphs: the message leads from the node outwards ("node 3 of child 'inner' (node 7)"),
 * and rondo_error.node is the number of the outermost child node in the graph that the caller passed.
 */
#include <rondo/report.h>
#include <string.h>

#include "support/test_cleanup.h"
#include "support/test_graph_memory.h"

enum { INNER = 3, MIDDLE = 1, OUTER = 7, WORDS = 64, BYTES = WORDS * sizeof(uint32_t) };

static const char in_child[] = "(node 3 of child 'inner' (node 7))";
static const char in_grandchild[] = "(node 3 of child 'inner' (node 1 of child 'middle' (node 7)))";
static const rondo_node none = {0};

/* A graph whose first `count` nodes are empty ones, so that the next has that number. */
static rondo_graph *make_graph(test_fixture *t, const char *name, uint32_t count) {
  rondo_graph *graph = NULL;
  rondo_node node = {0};
  assert_ok(rondo_graph_create(t->device, &(rondo_graph_options){RONDO_GRAPH_OPTIONS_INIT, .name = name}, &graph));
  test_leave_kind(TEST_LEFT_GRAPH, graph, NULL);
  for (uint32_t i = 0; i < count; i++) assert_ok(rondo_graph_add_empty(graph, NULL, 0, &node));
  return graph;
}

/* "outer", with the graph as its node 7 or, if `deep`, as node 1 of "middle", which is node 7. Destroys the graph. */
static rondo_graph *wrap(test_fixture *t, rondo_graph *inner, bool deep) {
  rondo_graph *outer = make_graph(t, "outer", OUTER), *child = inner;
  rondo_node node = {0};
  if (deep) {
    child = make_graph(t, "middle", MIDDLE);
    assert_ok(rondo_graph_add_child(child, NULL, 0, inner, &node));
    test_graph_destroy(inner);
  }
  assert_ok(rondo_graph_add_child(outer, NULL, 0, child, &node));
  assert_int_equal((uint32_t)node.id, OUTER);
  test_graph_destroy(child);
  return outer;
}

static void assert_place(const char *path) {
  assert_message(path);
  assert_int_equal(rondo_last_error()->node, OUTER);
}

static rondo_node add_fill(rondo_graph *graph, rondo_node after, uint32_t *words) {
  rondo_node node = {0};
  const rondo_fill fill = {.dst = words, .element_bytes = 4, .width = WORDS};
  assert_ok(rondo_graph_add_fill(graph, &after, after.id != 0, &fill, &node));
  return node;
}

TEST(test_a_host_function) {
  for (int deep = 0; deep < 2; deep++) {
    rondo_graph *inner = make_graph(t, "inner", INNER);
    rondo_node_params params = {.kind = RONDO_NODE_HOST, .name = "reader", .as.host = {.function = test_host_fails}};
    rondo_node node = {0};
    assert_ok(rondo_graph_add(inner, NULL, 0, &params, &node));
    rondo_graph *outer = wrap(t, inner, deep != 0);
    rondo_exec *exec = test_exec_of(outer);
    assert_ok(rondo_exec_launch(exec, t->stream));
    assert_error(rondo_stream_synchronize(t->stream), RONDO_EXECUTION_FAILED, RONDO_REASON_HOST_FUNCTION_FAILED);
    assert_message("host function 'reader'");
    assert_place(deep != 0 ? in_grandchild : in_child);
    rondo_exec_destroy(exec);
  }
}

/* Memory that was freed between instantiate and launch. */
TEST(test_a_launch) {
  uint32_t *words = test_words(t, WORDS);
  rondo_graph *inner = make_graph(t, "inner", INNER);
  (void)add_fill(inner, none, words);
  rondo_graph *outer = wrap(t, inner, true);
  rondo_exec *exec = test_instantiate(outer);
  test_words_free(t, words);
  assert_error(rondo_exec_launch(exec, t->stream), RONDO_INVALID_LIFETIME, RONDO_REASON_USE_AFTER_FREE);
  assert_place(in_grandchild);
}

/* Other parameters for a node of a child, by its own tag. */
TEST(test_set_params) {
  rondo_graph *inner = make_graph(t, "inner", INNER);
  uint32_t *words = test_words(t, WORDS);
  (void)add_fill(inner, none, words);
  rondo_graph *outer = wrap(t, inner, false);
  rondo_exec *exec = test_instantiate(outer);
  rondo_node nodes[OUTER + 1], node = {0};
  size_t count = OUTER + 1;
  rondo_node_params child, params = {.kind = RONDO_NODE_HOST, .as.host = {.function = test_host_fails}};
  assert_ok(rondo_graph_nodes(outer, nodes, &count));
  assert_ok(rondo_graph_get_params(outer, nodes[OUTER], &child));
  count = INNER + 1;
  rondo_node inside[INNER + 1];
  assert_ok(rondo_graph_nodes(child.as.child, inside, &count));
  node = inside[INNER];
  assert_invalid(rondo_exec_set_params(exec, node, &params), RONDO_REASON_NODE_KIND);
  assert_place(in_child);
  assert_error(rondo_exec_set_enabled(exec, inside[0], false), RONDO_UNSUPPORTED, RONDO_REASON_NODE_KIND);
  assert_place("empty (node 0 of child 'inner' (node 7))");
  params = (rondo_node_params){.kind = RONDO_NODE_FILL,
                               .as.fill = {.dst = words, .element_bytes = 4, .width = 2, .height = 2, .pitch = 16}};
  assert_error(rondo_exec_set_params(exec, node, &params), RONDO_UPDATE_REFUSED, RONDO_REASON_PARAMETERS_CHANGED);
  assert_place(in_child);
}

TEST(test_an_update) {
  uint32_t *words = test_words(t, WORDS);
  rondo_graph *graphs[2];
  for (int i = 0; i < 2; i++) {
    rondo_graph *inner = make_graph(t, "inner", INNER);
    rondo_node node = {0};
    const rondo_fill fill = {.dst = words, .element_bytes = 4, .width = 2, .height = 2 + (size_t)i, .pitch = 16};
    assert_ok(rondo_graph_add_fill(inner, NULL, 0, &fill, &node));
    graphs[i] = wrap(t, inner, true);
  }
  rondo_exec *exec = test_instantiate(graphs[0]);
  assert_error(rondo_exec_update(exec, graphs[1], NULL), RONDO_UPDATE_REFUSED, RONDO_REASON_PARAMETERS_CHANGED);
  assert_place(in_grandchild);
}

/* Verification names nodes so in its findings too. */
TEST(test_verification) {
  rondo_graph *inner = make_graph(t, "inner", INNER);
  rondo_exec *exec = NULL;
  const test_allocation memory = test_add_alloc(inner, NULL, 0, BYTES, "scratch");
  (void)add_fill(inner, none, memory.words);
  rondo_graph *outer = wrap(t, inner, true);
  assert_error(rondo_instantiate(outer, NULL, &exec), RONDO_INVALID_LIFETIME, RONDO_REASON_NOT_ALLOCATED);
  assert_place("fill (node 4 of child 'inner' (node 1 of child 'middle' (node 7)))");
  assert_message("'scratch' (256 B, node 3 of child 'inner' (node 1 of child 'middle' (node 7)))");
  assert_message("Add an edge 3 -> 4 in child 'inner' (node 1 of child 'middle' (node 7))");
}

/* One memory graph in two branches: which of the two is which shows. */
TEST(test_alloc_conflicts) {
  if (test_is_guarded(t)) skip(); /* where addresses are shared all the same, but pages are not */
  const rondo_instantiate_options unverified = {RONDO_INSTANTIATE_OPTIONS_INIT, .skip_verify = true};
  rondo_graph *inner = make_graph(t, "inner", INNER), *outer = make_graph(t, "outer", OUTER - 1);
  rondo_exec *exec = NULL;
  rondo_node node = {0};
  const test_allocation memory = test_add_alloc(inner, NULL, 0, BYTES, "scratch");
  (void)test_add_free(inner, memory.node, memory.words);
  assert_ok(rondo_graph_add_child(outer, NULL, 0, inner, &node));
  assert_ok(rondo_graph_add_child(outer, NULL, 0, inner, &node));
  assert_error(rondo_instantiate(outer, NULL, &exec), RONDO_INVALID_LIFETIME, RONDO_REASON_STILL_ALLOCATED);
  assert_message("node 3 of child 'inner' (node 6)");
  assert_message("node 4 of child 'inner' (node 6)");
  assert_place("node 3 of child 'inner' (node 7)");
  test_graph_destroy(outer);
  outer = make_graph(t, "outer", OUTER - 1);
  rondo_graph *unfreed = make_graph(t, "unfreed", INNER);
  (void)test_add_alloc(unfreed, NULL, 0, BYTES, "scratch");
  assert_ok(rondo_graph_add_child(outer, NULL, 0, unfreed, &node));
  assert_ok(rondo_graph_add_child(outer, NULL, 0, unfreed, &node));
  assert_error(rondo_instantiate(outer, &unverified, &exec), RONDO_INVALID_LIFETIME, RONDO_REASON_STILL_ALLOCATED);
  assert_message("(node 3 of child 'unfreed' (node 6))");
  assert_place("(node 3 of child 'unfreed' (node 7))");
}

/* Frees of what another graph allocates: twice in one graph, and before there is anything to free. */
TEST(test_frees) {
  const rondo_instantiate_options unverified = {RONDO_INSTANTIATE_OPTIONS_INIT, .skip_verify = true};
  rondo_graph *maker = make_graph(t, "maker", 0), *inner = make_graph(t, "inner", INNER);
  const test_allocation memory = test_add_alloc(maker, NULL, 0, BYTES, "left");
  (void)test_add_free(inner, none, memory.words);
  rondo_graph *outer = wrap(t, inner, true);
  rondo_exec *exec = test_instantiate(outer);
  assert_error(rondo_exec_launch(exec, t->stream), RONDO_INVALID_LIFETIME, RONDO_REASON_NOT_ALLOCATED);
  assert_place("free (node 3 of child 'inner' (node 1 of child 'middle' (node 7)))");
  rondo_exec_destroy(exec);
  (void)test_add_free(outer, none, memory.words);
  assert_error(rondo_instantiate(outer, &unverified, &exec), RONDO_INVALID_LIFETIME, RONDO_REASON_DOUBLE_FREE);
  assert_message("node 3 of child 'inner' (node 1 of child 'middle' (node 7))");
  assert_message("node 8");
}

/* An address that relocating finds and cannot rewrite. */
TEST(test_relocation) {
  const rondo_instantiate_options options = {RONDO_INSTANTIATE_OPTIONS_INIT, .relocate = true};
  rondo_graph *inner = make_graph(t, "inner", INNER - 1);
  rondo_node node = {0};
  rondo_exec *exec = NULL;
  const test_allocation memory = test_add_alloc(inner, NULL, 0, BYTES, "scratch");
  assert_ok(rondo_graph_add_host(inner, &memory.node, 1, test_host_fails, memory.words, &node));
  (void)test_add_free(inner, node, memory.words);
  rondo_graph *outer = wrap(t, inner, false);
  assert_error(rondo_instantiate(outer, &options, &exec), RONDO_INVALID_GRAPH, RONDO_REASON_NOT_RELOCATABLE);
  assert_place("host function (node 3 of child 'inner' (node 7))");
  assert_message("alloc (node 2 of child 'inner' (node 7))");
}

/* "outer" with "inner" inside of "middle", whose nodes 3 and 4 are on a cycle if `has_cycle`. */
static rondo_graph *make_cycle(test_fixture *t, bool has_cycle) {
  rondo_graph *inner = make_graph(t, "inner", INNER);
  rondo_node nodes[2] = {{0}};
  assert_ok(rondo_graph_add_empty(inner, NULL, 0, &nodes[0]));
  assert_ok(rondo_graph_add_empty(inner, &nodes[0], 1, &nodes[1]));
  if (has_cycle) assert_ok(rondo_graph_add_edges(inner, &nodes[1], &nodes[0], 1));
  return wrap(t, inner, true);
}

/* The graph of a child node, which is the node's own. */
static rondo_graph *child_of(const rondo_graph *graph, uint32_t number) {
  rondo_node nodes[OUTER + 1];
  rondo_node_params params;
  size_t count = OUTER + 1;
  assert_ok(rondo_graph_nodes(graph, nodes, &count));
  assert_ok(rondo_graph_get_params(graph, nodes[number], &params));
  return params.as.child;
}

#define assert_cycle(call) assert_error(call, RONDO_INVALID_GRAPH, RONDO_REASON_CYCLE)

/* All calls that need an order report the cycle with its path. */
TEST(test_a_cycle) {
  rondo_graph *outer = make_cycle(t, true), *sound = make_cycle(t, false);
  rondo_exec *exec = NULL;
  uint64_t fingerprint;
  size_t count = 0;
  char *text = NULL;
  assert_cycle(rondo_instantiate(outer, NULL, &exec));
  assert_place("graph 'outer': empty (node 3 of child 'inner' (node 1 of child 'middle' (node 7))) is on a cycle");
  assert_message("(3 -> 4 -> 3)");
  assert_cycle(rondo_graph_fingerprint(outer, &fingerprint));
  assert_place(in_grandchild);
  assert_cycle(rondo_graph_diff(outer, sound, false, NULL, &count));
  assert_place(in_grandchild);
  assert_message("the first graph: ");
  assert_cycle(rondo_graph_diff(sound, outer, false, NULL, &count));
  assert_place(in_grandchild);
  assert_message("the second graph: ");
  assert_cycle(rondo_graph_report(outer, NULL, &text));
  assert_place(in_grandchild);
}

/* The path and the number count from the graph that the call was given, here a child graph. */
TEST(test_a_cycle_below_a_child) {
  rondo_graph *outer = make_cycle(t, true), *middle = child_of(outer, OUTER);
  uint64_t fingerprint;
  size_t count = 0;
  assert_cycle(rondo_graph_fingerprint(middle, &fingerprint));
  assert_message("graph 'middle': empty (node 3 of child 'inner' (node 1)) is on a cycle");
  assert_int_equal(rondo_last_error()->node, MIDDLE);
  assert_cycle(rondo_graph_sort(child_of(middle, MIDDLE), NULL, &count));
  assert_message("graph 'inner': empty (node 3) is on a cycle");
  assert_int_equal(rondo_last_error()->node, INNER);
}

/* Execs refuse child nodes, in the graph itself and in a child graph. */
TEST(test_child_nodes_of_execs) {
  rondo_graph *outer = wrap(t, make_graph(t, "inner", INNER), true);
  rondo_exec *exec = test_instantiate(outer);
  rondo_node nodes[OUTER + 1];
  size_t count = OUTER + 1;
  assert_ok(rondo_graph_nodes(outer, nodes, &count));
  assert_error(rondo_exec_set_enabled(exec, nodes[OUTER], false), RONDO_UNSUPPORTED, RONDO_REASON_NODE_KIND);
  assert_place("rondo_exec_set_enabled: node 7 is a child graph");
  count = MIDDLE + 1;
  assert_ok(rondo_graph_nodes(child_of(outer, OUTER), nodes, &count));
  assert_error(rondo_exec_set_enabled(exec, nodes[MIDDLE], false), RONDO_UNSUPPORTED, RONDO_REASON_NODE_KIND);
  assert_place("rondo_exec_set_enabled: node 1 of the child graph in node 7 is a child graph");
}

/* A kernel that writes past the end of what it is given. */
TEST(test_a_checking_device) {
  if (!test_device_is("cpu:check")) return;
  uint32_t *words = test_words(t, WORDS);
  rondo_graph *inner = make_graph(t, "inner", INNER);
  (void)test_add_set(t, inner, none, words, WORDS + 1, 1);
  rondo_graph *outer = wrap(t, inner, true);
  rondo_exec *exec = test_instantiate(outer);
  assert_ok(rondo_exec_launch(exec, t->stream));
  assert_error(rondo_stream_synchronize(t->stream), RONDO_EXECUTION_FAILED, RONDO_REASON_OUT_OF_RANGE);
  assert_place(in_grandchild);
}

/* A path too long for a message keeps its two ends. */
TEST(test_deep_nesting) {
  rondo_node node = {0};
  rondo_graph *graph = make_graph(t, "a child graph with quite a long name", INNER);
  assert_ok(rondo_graph_add_host(graph, NULL, 0, test_host_fails, NULL, &node));
  for (int i = 0; i < 10; i++) {
    rondo_graph *around = make_graph(t, "another child graph with a long name", 5);
    assert_ok(rondo_graph_add_child(around, NULL, 0, graph, &node));
    test_graph_destroy(graph);
    graph = around;
  }
  rondo_graph *outer = wrap(t, graph, false);
  rondo_exec *exec = test_instantiate(outer);
  assert_ok(rondo_exec_launch(exec, t->stream));
  assert_error(rondo_stream_synchronize(t->stream), RONDO_EXECUTION_FAILED, RONDO_REASON_HOST_FUNCTION_FAILED);
  assert_place("(node 3 of child 'a child graph with quite a long name' (node 5 of ");
  assert_message(" inside node 7)");
}
