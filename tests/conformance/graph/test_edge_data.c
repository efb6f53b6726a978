/* SPDX-License-Identifier: MIT
 * Edges with ports and a type that are made by hand: programmatic dependent launch (AD-8, B10).
 *
 * The test kernels do not wait for each other on a GPU, so there the two ends of a programmatic edge work on different
 * words where they run.
 */
#include <string.h>

#include "support/rondo_test.h"

static const rondo_edge_data early = {.from_port = RONDO_PORT_PROGRAMMATIC, .type = RONDO_EDGE_PROGRAMMATIC};
static const rondo_edge_data in_order = {.from_port = RONDO_PORT_LAUNCH_ORDER, .type = RONDO_EDGE_PROGRAMMATIC};

/* word = word * 10 + term, with a known extent. */
static rondo_node add_kernel(test_fixture *t, rondo_graph *graph, uint32_t *word, uint32_t term) {
  const uint32_t factor = 10;
  const size_t bytes[] = {0, 0, sizeof *word};
  rondo_node node;
  rondo_node_params params = {.kind = RONDO_NODE_KERNEL,
                              .as.kernel = {.kernel = test_kernel(t, TEST_KERNEL_AFFINE),
                                            .grid = {1, 0, 0},
                                            .args = (const void *[]){&factor, &term, &word},
                                            .arg_count = 3,
                                            .arg_bytes = bytes}};
  assert_ok(rondo_graph_add(graph, NULL, 0, &params, &node));
  return node;
}

static size_t programmatic_count(const rondo_graph *graph) {
  size_t count = 0;
  assert_ok(rondo_graph_programmatic_edges(graph, NULL, NULL, NULL, &count));
  return count;
}

/* Two kernels after one another on one word. */
typedef struct pair {
  rondo_graph *graph;
  rondo_node first, second;
} pair;

static pair make_pair(test_fixture *t, uint32_t *word, uint32_t *other) {
  pair self = {.graph = test_graph(t)};
  self.first = add_kernel(t, self.graph, word, 1);
  self.second = add_kernel(t, self.graph, other, 2);
  return self;
}

static rondo_status link(const pair *of, const rondo_edge_data *data) {
  return rondo_graph_add_edges_with(of->graph, &of->first, &of->second, data, 1);
}

/* Adding and removing ---------------------------------------------------------------------------------------------- */

TEST(test_ad8_b10_edges_with_data) {
  uint32_t *words = test_words(t, 2);
  const pair of = make_pair(t, words, words + 1);
  const rondo_node third = add_kernel(t, of.graph, words, 3);
  const rondo_node from[] = {of.first, of.second, of.first}, to[] = {of.second, third, third};
  const rondo_edge_data data[] = {early, in_order, {0}};
  rondo_node seen_from[3], seen_to[3];
  rondo_edge_data seen[3];
  size_t count = 3;
  assert_ok(rondo_graph_add_edges_with(of.graph, from, to, data, 3));
  assert_int_equal(test_edge_count(of.graph), 1);
  assert_ok(rondo_graph_programmatic_edges(of.graph, seen_from, seen_to, seen, &count));
  assert_int_equal(count, 2);
  for (int i = 0; i < 2; i++) {
    assert_int_equal(seen_from[i].id, from[i].id);
    assert_int_equal(seen_to[i].id, to[i].id);
    assert_memory_equal(&seen[i], &data[i], sizeof data[i]);
  }
  count = 1;
  assert_ok(rondo_graph_programmatic_edges(of.graph, seen_from, seen_to, seen, &count));
  assert_int_equal(count, 2);
  assert_ok(rondo_graph_remove_edges_with(of.graph, from, to, data, 3));
  assert_int_equal(test_edge_count(of.graph) + programmatic_count(of.graph), 0);
  assert_ok(rondo_graph_add_edges_with(of.graph, from, to, NULL, 3));
  assert_int_equal(test_edge_count(of.graph), 3);
  assert_ok(rondo_graph_remove_edges_with(of.graph, from, to, NULL, 3));
  assert_int_equal(test_edge_count(of.graph), 0);
  assert_ok(rondo_graph_add_edges_with(of.graph, NULL, NULL, NULL, 0));
  assert_ok(rondo_graph_remove_edges_with(of.graph, NULL, NULL, NULL, 0));
}

TEST(test_ad8_b10_what_the_driver_would_refuse_is_refused) {
  uint32_t *words = test_words(t, 2);
  const pair of = make_pair(t, words, words + 1);
  rondo_node empty;
  const rondo_edge_data bad[] = {{.type = RONDO_EDGE_PROGRAMMATIC},
                                 {.type = 2, .from_port = 1},
                                 {.from_port = RONDO_PORT_PROGRAMMATIC},
                                 {.type = RONDO_EDGE_PROGRAMMATIC, .from_port = 3},
                                 {.type = RONDO_EDGE_PROGRAMMATIC, .from_port = 1, .to_port = 1},
                                 {.type = RONDO_EDGE_PROGRAMMATIC, .from_port = 1, .reserved = {[4] = 1}},
                                 {.reserved = {1}}};
  for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) assert_invalid(link(&of, &bad[i]), RONDO_REASON_BAD_OPTIONS);
  assert_ok(rondo_graph_add_empty(of.graph, NULL, 0, &empty));
  assert_invalid(rondo_graph_add_edges_with(of.graph, &of.first, &empty, &early, 1), RONDO_REASON_NODE_KIND);
  assert_invalid(rondo_graph_add_edges_with(of.graph, &empty, &of.first, &early, 1), RONDO_REASON_NODE_KIND);
  assert_message("only edges between kernels");
  assert_invalid(rondo_graph_add_edges_with(of.graph, &of.first, &of.first, &early, 1), RONDO_REASON_SELF_EDGE);
  assert_invalid(rondo_graph_add_edges_with(of.graph, &of.first, NULL, &early, 1), RONDO_REASON_NULL_ARGUMENT);
  assert_invalid(rondo_graph_add_edges_with(NULL, &of.first, &of.second, &early, 1), RONDO_REASON_NULL_ARGUMENT);
  assert_invalid(rondo_graph_remove_edges_with(NULL, &of.first, &of.second, &early, 1), RONDO_REASON_NULL_ARGUMENT);
  assert_invalid(rondo_graph_add_edges_with(of.graph, &of.first, &(rondo_node){0}, &early, 1),
                 RONDO_REASON_UNKNOWN_NODE);
  assert_int_equal(test_edge_count(of.graph) + programmatic_count(of.graph), 0);
}

/* A pair of nodes has one edge, and a list is added or removed completely or not at all. */
TEST(test_ad8_b10_one_edge_a_pair_all_or_none) {
  uint32_t *words = test_words(t, 2);
  const pair of = make_pair(t, words, words + 1);
  const rondo_node third = add_kernel(t, of.graph, words, 3);
  const rondo_node from[] = {of.first, of.second, of.first}, to[] = {of.second, third, of.second};
  const rondo_edge_data data[] = {early, {0}, in_order};
  assert_invalid(rondo_graph_add_edges_with(of.graph, from, to, data, 3), RONDO_REASON_DUPLICATE_EDGE);
  assert_int_equal(test_edge_count(of.graph) + programmatic_count(of.graph), 0);
  assert_ok(link(&of, &early));
  assert_invalid(link(&of, &in_order), RONDO_REASON_DUPLICATE_EDGE);
  assert_invalid(link(&of, NULL), RONDO_REASON_DUPLICATE_EDGE);
  assert_invalid(rondo_graph_remove_edges(of.graph, &of.first, &of.second, 1), RONDO_REASON_MISSING_EDGE);
  assert_invalid(rondo_graph_remove_edges_with(of.graph, &of.first, &of.second, &in_order, 1),
                 RONDO_REASON_MISSING_EDGE);
  rondo_edge_data later = early;
  later.reserved[2] = 1;
  assert_invalid(rondo_graph_remove_edges_with(of.graph, &of.first, &of.second, &later, 1), RONDO_REASON_BAD_OPTIONS);
  const rondo_edge_data wrong[] = {early, {0}};
  assert_invalid(rondo_graph_remove_edges_with(of.graph, from, to, wrong, 2), RONDO_REASON_MISSING_EDGE);
  assert_int_equal(programmatic_count(of.graph), 1);
  assert_ok(rondo_graph_remove_edges_with(of.graph, from, to, &early, 1));
  assert_ok(link(&of, NULL));
  assert_invalid(link(&of, &early), RONDO_REASON_DUPLICATE_EDGE);
}

/* Edges go with their nodes, and into clones; a cycle through them is found. */
TEST(test_ad8_b10_nodes_clones_and_cycles) {
  uint32_t *words = test_words(t, 2);
  rondo_graph *clone;
  const pair of = make_pair(t, words, words + 1);
  assert_ok(link(&of, &early));
  assert_ok(rondo_graph_clone(of.graph, &clone));
  assert_same_graph(of.graph, clone);
  assert_int_equal(programmatic_count(clone), 1);
  test_graph_destroy(clone);
  assert_ok(rondo_graph_add_edges(of.graph, &of.second, &of.first, 1));
  rondo_exec *exec;
  assert_error(rondo_instantiate(of.graph, NULL, &exec), RONDO_INVALID_GRAPH, RONDO_REASON_CYCLE);
  assert_ok(rondo_graph_remove(of.graph, of.second));
  assert_int_equal(programmatic_count(of.graph), 0);
}

/* As text, and compared ------------------------------------------------------------------------------------------- */

TEST(test_ad8_b10_json_and_differences) {
  uint32_t *words = test_words(t, 2);
  char *text, *again;
  rondo_graph *read;
  size_t differences = 0;
  const pair of = make_pair(t, words, words + 1), full = make_pair(t, words, words + 1);
  uint64_t prints[2];
  assert_ok(link(&of, &in_order));
  assert_ok(link(&full, NULL));
  assert_ok(rondo_graph_to_json(of.graph, false, &text));
  assert_non_null(strstr(text, "\"programmatic\":[[0,2,0,1,1]]"));
  assert_ok(rondo_graph_from_json(text, strlen(text), &read));
  assert_ok(rondo_graph_to_json(read, false, &again));
  assert_string_equal(text, again);
  assert_ok(rondo_graph_diff(of.graph, read, true, NULL, &differences));
  assert_int_equal(differences, 0);
  differences = 0;
  assert_ok(rondo_graph_diff(of.graph, full.graph, false, NULL, &differences));
  assert_int_equal(differences, 1); /* the dependencies of the second kernel */
  assert_ok(rondo_graph_fingerprint(of.graph, &prints[0]));
  assert_ok(rondo_graph_fingerprint(full.graph, &prints[1]));
  assert_true(prints[0] != prints[1]);
  assert_ok(rondo_graph_destroy(read));
  rondo_text_free(text);
  rondo_text_free(again);
}

/* Execs ----------------------------------------------------------------------------------------------------------- */

/* By the edge, the caller promises an order. */
TEST(test_ad8_b10_the_edge_orders_for_verification) {
  uint32_t *words = test_words(t, 1), word = 12;
  rondo_exec *exec;
  const pair of = make_pair(t, words, words);
  assert_error(rondo_instantiate(of.graph, NULL, &exec), RONDO_INVALID_GRAPH, RONDO_REASON_RACE);
  assert_ok(link(&of, &early));
  exec = test_instantiate(of.graph);
  if (!test_device_is("cpu")) return; /* a GPU's kernels would have to keep the promise */
  for (int i = 0; i < 20; i++) {
    test_write(t, words, &(uint32_t){0}, sizeof *words);
    test_launch(t, exec);
    assert_words(t, words, &word, 1);
  }
}

/* Work after the later kernel is after both. */
TEST(test_ad8_b10_execs_run_and_update) {
  uint32_t *words = test_words(t, 2), host[2] = {0};
  const pair of = make_pair(t, words, words + 1), other = make_pair(t, words, words + 1);
  rondo_node copy;
  const rondo_copy to_host = {.dst = host, .src = words, .width = sizeof host};
  assert_ok(link(&of, &early));
  assert_ok(link(&other, &in_order));
  assert_ok(rondo_graph_add_copy(of.graph, &of.second, 1, &to_host, &copy));
  assert_ok(rondo_graph_add_copy(other.graph, &other.second, 1, &to_host, &copy));
  rondo_exec *exec = test_instantiate(of.graph);
  if (test_device_is("cpu")) {
    test_launch(t, exec);
    assert_int_equal(host[0], 1);
    assert_int_equal(host[1], 2);
  }
  assert_error(rondo_exec_update(exec, other.graph, NULL), RONDO_UPDATE_REFUSED, RONDO_REASON_TOPOLOGY_CHANGED);
  assert_message("programmatic edges");
  assert_ok(rondo_graph_remove_edges_with(other.graph, &other.first, &other.second, &in_order, 1));
  assert_error(rondo_exec_update(exec, other.graph, NULL), RONDO_UPDATE_REFUSED, RONDO_REASON_TOPOLOGY_CHANGED);
  assert_ok(link(&other, &early));
  assert_ok(rondo_exec_update(exec, other.graph, NULL));
  test_launch(t, exec);
}

/* In child graphs, with nodes without dependencies, and while nodes are timed. */
TEST(test_ad8_b10_children_and_times) {
  enum { COUNT = 6 };
  uint32_t *words = test_words(t, COUNT), expected[COUNT];
  rondo_graph *inner = test_graph(t), *outer = test_graph(t);
  rondo_node nodes[COUNT], child;
  rondo_node_time times[2 * COUNT];
  size_t count = 2 * COUNT;
  for (uint32_t i = 0; i < COUNT; i++) {
    nodes[i] = add_kernel(t, inner, words + i, i);
    if (i > 0) assert_ok(rondo_graph_add_edges_with(inner, &nodes[i - 1], &nodes[i], i % 3 == 0 ? NULL : &early, 1));
    if (i > 1) assert_ok(rondo_graph_add_edges_with(inner, &nodes[i - 2], &nodes[i], &in_order, 1));
  }
  assert_ok(rondo_graph_add_child(outer, NULL, 0, inner, &child));
  assert_ok(rondo_graph_add_child(outer, &child, 1, inner, &child));
  rondo_exec *exec = test_instantiate(outer);
  test_launch(t, exec);
  for (uint32_t i = 0; i < COUNT; i++) expected[i] = 11 * i;
  assert_words(t, words, expected, COUNT);
  assert_ok(rondo_exec_measure(exec, t->stream, 1, times, &count));
  assert_int_equal(count, 2 * COUNT);
}

/* The plan of memory that moves relies on the edge. */
TEST(test_ad8_b10_memory_that_moves) {
  uint32_t *words = test_words(t, 1);
  rondo_node alloc, node;
  void *scratch;
  rondo_graph *graph = test_graph(t);
  assert_ok(rondo_graph_add_alloc(graph, NULL, 0, 4096, "scratch", &scratch, &alloc));
  const rondo_node first = add_kernel(t, graph, scratch, 1), second = add_kernel(t, graph, scratch, 2);
  assert_ok(rondo_graph_add_edges(graph, &alloc, &first, 1));
  assert_ok(rondo_graph_add_edges_with(graph, &first, &second, &early, 1));
  const rondo_copy copy = {.dst = words, .src = scratch, .width = sizeof *words};
  assert_ok(rondo_graph_add_copy(graph, &second, 1, &copy, &node));
  assert_ok(rondo_graph_add_free(graph, &node, 1, scratch, &node));
  rondo_exec *exec = test_instantiate_with(graph, &(rondo_instantiate_options){.relocate = true});
  if (test_device_is("cpu")) test_launch(t, exec);
}
