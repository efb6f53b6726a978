/* SPDX-License-Identifier: MIT
 * Graphs as data: adding, removing, queries, order, clones, child graphs, fingerprints and differences. The rules are
 * those of <rondo/graph.h>, B1 to B12.
 */
#include "support/rondo_test.h"

#include <string.h>

static rondo_node add_empty(rondo_graph *graph, const rondo_node *dependencies, size_t count) {
  rondo_node node = {0};
  assert_ok(rondo_graph_add_empty(graph, dependencies, count, &node));
  assert_true(node.id != 0);
  return node;
}

static void link_nodes(rondo_graph *graph, rondo_node from, rondo_node to) {
  assert_ok(rondo_graph_add_edges(graph, &from, &to, 1));
}

static void unlink_nodes(rondo_graph *graph, rondo_node from, rondo_node to) {
  assert_ok(rondo_graph_remove_edges(graph, &from, &to, 1));
}

#define assert_node(actual, expected) assert_true((actual).id == (expected).id)

/* a -> b, a -> c, b -> d, c -> d. */
typedef struct diamond {
  rondo_graph *graph;
  rondo_node a, b, c, d;
} diamond;

static diamond make_diamond(test_fixture *t) {
  diamond self = {.graph = test_graph(t)};
  self.a = add_empty(self.graph, NULL, 0);
  self.b = add_empty(self.graph, &self.a, 1);
  self.c = add_empty(self.graph, &self.a, 1);
  self.d = add_empty(self.graph, (rondo_node[]){self.b, self.c}, 2);
  return self;
}

/* Nodes and edges ------------------------------------------------------------------------------------------------- */

TEST(test_numbers_count_up_from_zero) {
  const diamond g = make_diamond(t);
  assert_int_equal(rondo_node_number(g.a), 0);
  assert_int_equal(rondo_node_number(g.d), 3);
  assert_int_equal(rondo_node_number((rondo_node){0}), RONDO_NO_NODE);
}

/* B2: all is checked before anything changes. */
TEST(test_a_refused_node_leaves_the_graph_as_it_was) {
  const diamond g = make_diamond(t), other = make_diamond(t);
  rondo_node node = {77};
  assert_invalid(rondo_graph_add_empty(g.graph, (rondo_node[]){g.a, g.a}, 2, &node), RONDO_REASON_DUPLICATE_EDGE);
  assert_true(node.id == 0);
  assert_invalid(rondo_graph_add_empty(g.graph, (rondo_node[]){g.a, other.b}, 2, &node), RONDO_REASON_UNKNOWN_NODE);
  assert_invalid(rondo_graph_add_empty(g.graph, &(rondo_node){0}, 1, &node), RONDO_REASON_UNKNOWN_NODE);
  assert_invalid(rondo_graph_add_empty(g.graph, NULL, 2, &node), RONDO_REASON_NULL_ARGUMENT);
  assert_invalid(rondo_graph_add_empty(g.graph, NULL, 0, NULL), RONDO_REASON_NULL_ARGUMENT);
  assert_invalid(rondo_graph_add_empty(NULL, NULL, 0, &node), RONDO_REASON_NULL_ARGUMENT);
  assert_int_equal(test_node_count(g.graph), 4);
  assert_int_equal(test_edge_count(g.graph), 4);
  add_empty(g.graph, &g.d, 0); /* an array of which nothing counts is fine */
}

/* B3, B4: bad parameters of each kind. */
TEST(test_bad_parameters_are_refused) {
  rondo_graph *graph = test_graph(t);
  uint32_t *words = test_words(t, 16), value = 1;
  rondo_node node = {0};
  rondo_kernel *kernel = test_kernel(t, TEST_KERNEL_SET);
  assert_invalid(rondo_graph_add_kernel(graph, NULL, 0, kernel, (rondo_grid){1, 0, 0}, RONDO_ARGS(&value), &node),
                 RONDO_REASON_ARGUMENT_COUNT);
  assert_fails(rondo_graph_add_kernel(graph, NULL, 0, kernel, (rondo_grid){0, 1, 1}, RONDO_ARGS(&value, &words), &node),
               RONDO_INVALID_ARGUMENT);
  assert_fails(rondo_graph_add_kernel(graph, NULL, 0, NULL, (rondo_grid){1, 0, 0}, RONDO_NO_ARGS, &node),
               RONDO_INVALID_ARGUMENT);
  assert_fails(rondo_graph_add_host(graph, NULL, 0, NULL, NULL, &node), RONDO_INVALID_ARGUMENT);
  assert_fails(rondo_graph_add_child(graph, NULL, 0, NULL, &node), RONDO_INVALID_ARGUMENT);
  assert_fails(rondo_graph_add_event_record(graph, NULL, 0, NULL, &node), RONDO_INVALID_ARGUMENT);
  assert_fails(rondo_graph_add_event_wait(graph, NULL, 0, NULL, &node), RONDO_INVALID_ARGUMENT);
  assert_int_equal(test_node_count(graph), 0);
  assert_true(node.id == 0);
}

/* Those of another device of the same driver are not (test_several_devices.c). */
TEST(test_kernels_of_another_driver_are_refused) {
  rondo_kernel *kernel = NULL;
  rondo_node node = {0};
  rondo_device *other = NULL;
  const char *name = test_device_is("cuda") || test_is_guarded(t) ? "cpu" : "cpu:check";
  if (rondo_device_open(name, NULL, &other) == RONDO_UNAVAILABLE) skip();
  assert_ok(rondo_kernel_create(other, test_kernel_options(TEST_KERNEL_EMPTY), &kernel));
  rondo_graph *graph = test_graph(t);
  assert_invalid(rondo_graph_add_kernel(graph, NULL, 0, kernel, (rondo_grid){1, 0, 0}, RONDO_NO_ARGS, &node),
                 RONDO_REASON_OTHER_DEVICE);
  test_graph_destroy(graph);
  rondo_kernel_destroy(kernel);
  assert_ok(rondo_device_close(other));
}

/* B5. */
TEST(test_b5_edges_are_added_all_or_none) {
  const diamond g = make_diamond(t), other = make_diamond(t);
  assert_ok(rondo_graph_add_edges(g.graph, NULL, NULL, 0));
  assert_ok(rondo_graph_add_edges(g.graph, &g.a, &g.a, 0));
  const rondo_node from[] = {g.b, g.a, g.a}, to[] = {g.c, g.d, g.d};
  assert_invalid(rondo_graph_add_edges(g.graph, from, to, 3), RONDO_REASON_DUPLICATE_EDGE);
  const rondo_node from_self[] = {g.b, g.d}, to_self[] = {g.c, g.d};
  assert_invalid(rondo_graph_add_edges(g.graph, from_self, to_self, 2), RONDO_REASON_SELF_EDGE);
  assert_invalid(rondo_graph_add_edges(g.graph, &g.a, &g.b, 1), RONDO_REASON_DUPLICATE_EDGE);
  assert_invalid(rondo_graph_add_edges(g.graph, &g.a, &g.a, 1), RONDO_REASON_SELF_EDGE);
  assert_invalid(rondo_graph_add_edges(g.graph, &g.a, &other.b, 1), RONDO_REASON_UNKNOWN_NODE);
  assert_invalid(rondo_graph_add_edges(g.graph, &other.a, &g.b, 1), RONDO_REASON_UNKNOWN_NODE);
  assert_invalid(rondo_graph_add_edges(g.graph, NULL, &g.b, 1), RONDO_REASON_NULL_ARGUMENT);
  assert_invalid(rondo_graph_add_edges(g.graph, &g.a, NULL, 1), RONDO_REASON_NULL_ARGUMENT);
  assert_invalid(rondo_graph_add_edges(NULL, NULL, NULL, 0), RONDO_REASON_NULL_ARGUMENT);
  assert_int_equal(test_edge_count(g.graph), 4);
  assert_ok(rondo_graph_add_edges(g.graph, from, to, 2));
  assert_int_equal(test_edge_count(g.graph), 6);
}

TEST(test_edges_are_removed_all_or_none) {
  const diamond g = make_diamond(t);
  const rondo_node from[] = {g.a, g.b, g.b}, to[] = {g.b, g.d, g.c};
  assert_invalid(rondo_graph_remove_edges(g.graph, from, to, 3), RONDO_REASON_MISSING_EDGE);
  assert_int_equal(test_edge_count(g.graph), 4);
  assert_invalid(rondo_graph_remove_edges(g.graph, &g.b, &g.a, 1), RONDO_REASON_MISSING_EDGE);
  assert_ok(rondo_graph_remove_edges(g.graph, NULL, NULL, 0));
  assert_ok(rondo_graph_remove_edges(g.graph, from, to, 2));
  assert_int_equal(test_edge_count(g.graph), 2);
  size_t count = 0;
  assert_ok(rondo_graph_roots(g.graph, NULL, &count));
  assert_int_equal(count, 2);
}

/* B8: removing a node drops its edges; its tag is then unknown. */
TEST(test_a_removed_node_is_gone) {
  const diamond g = make_diamond(t);
  assert_ok(rondo_graph_remove(g.graph, g.b));
  assert_int_equal(test_node_count(g.graph), 3);
  assert_int_equal(test_edge_count(g.graph), 2);
  assert_reason(rondo_graph_remove(g.graph, g.b), RONDO_REASON_UNKNOWN_NODE);
  rondo_node_params params;
  assert_reason(rondo_graph_get_params(g.graph, g.b, &params), RONDO_REASON_UNKNOWN_NODE);
  assert_reason(rondo_graph_add_edges(g.graph, &g.b, &g.d, 1), RONDO_REASON_UNKNOWN_NODE);
  const rondo_node fresh = add_empty(g.graph, &g.d, 1);
  assert_int_equal(rondo_node_number(fresh), 4); /* numbers are not used again */
}

/* B7: prefix, count and tail of every query. */
TEST(test_queries_fill_what_fits) {
  const diamond g = make_diamond(t);
  rondo_node nodes[6], from[6], to[6];
  size_t count = 2;
  memset(nodes, 0xff, sizeof nodes);
  assert_ok(rondo_graph_nodes(g.graph, nodes, &count));
  assert_int_equal(count, 4);
  assert_node(nodes[0], g.a);
  assert_node(nodes[1], g.b);
  assert_true(nodes[2].id == UINT64_MAX); /* an entry that does not fit is not written */
  count = 6;
  memset(nodes, 0xff, sizeof nodes);
  assert_ok(rondo_graph_nodes(g.graph, nodes, &count));
  assert_int_equal(count, 4);
  assert_node(nodes[3], g.d);
  assert_true(nodes[4].id == 0 && nodes[5].id == 0);
  count = 6;
  assert_ok(rondo_graph_edges(g.graph, from, to, &count));
  assert_int_equal(count, 4);
  const rondo_node expected_from[] = {g.a, g.a, g.b, g.c}, expected_to[] = {g.b, g.c, g.d, g.d};
  assert_memory_equal(from, expected_from, sizeof expected_from);
  assert_memory_equal(to, expected_to, sizeof expected_to);
  assert_true(from[4].id == 0 && to[5].id == 0);
  assert_fails(rondo_graph_nodes(g.graph, nodes, NULL), RONDO_INVALID_ARGUMENT);
}

TEST(test_queries_of_neighbours) {
  const diamond g = make_diamond(t);
  rondo_node nodes[4];
  size_t count = 4;
  assert_ok(rondo_graph_roots(g.graph, nodes, &count));
  assert_int_equal(count, 1);
  assert_node(nodes[0], g.a);
  count = 4;
  assert_ok(rondo_graph_dependencies(g.graph, g.d, nodes, &count));
  assert_int_equal(count, 2);
  assert_node(nodes[0], g.b);
  assert_node(nodes[1], g.c);
  count = 4;
  assert_ok(rondo_graph_dependents(g.graph, g.a, nodes, &count));
  assert_int_equal(count, 2);
  assert_node(nodes[1], g.c);
  count = 4;
  assert_ok(rondo_graph_dependents(g.graph, g.d, nodes, &count));
  assert_int_equal(count, 0);
  assert_true(nodes[0].id == 0);
  assert_reason(rondo_graph_dependents(g.graph, (rondo_node){12345}, nodes, &count), RONDO_REASON_UNKNOWN_NODE);
}

/* B6: a cycle can be built; sorting and instantiating name a node on it; removing an edge heals the graph. */
TEST(test_a_cycle_is_found_and_healed) {
  const diamond g = make_diamond(t);
  const rondo_node lone = add_empty(g.graph, NULL, 0);
  link_nodes(g.graph, g.d, g.b);
  size_t count = 0;
  assert_error(rondo_graph_sort(g.graph, NULL, &count), RONDO_INVALID_GRAPH, RONDO_REASON_CYCLE);
  rondo_exec *exec = (rondo_exec *)t;
  assert_error(rondo_instantiate(g.graph, NULL, &exec), RONDO_INVALID_GRAPH, RONDO_REASON_CYCLE);
  assert_null(exec);
  const uint32_t named = rondo_last_error()->node;
  assert_true(named == rondo_node_number(g.b) || named == rondo_node_number(g.d));
  unlink_nodes(g.graph, g.d, g.b);
  exec = test_instantiate(g.graph);
  rondo_exec_destroy(exec);
  assert_true(lone.id != 0);
}

/* Parameters ------------------------------------------------------------------------------------------------------ */

TEST(test_parameters_read_back) {
  rondo_graph *graph = test_graph(t);
  uint32_t *words = test_words(t, 64), value = 5;
  rondo_node kernel = {0}, copy = {0}, fill = {0};
  rondo_node_params params;
  assert_ok(rondo_graph_add_kernel(graph, NULL, 0, test_kernel(t, TEST_KERNEL_SET), (rondo_grid){3, 0, 0},
                                   RONDO_ARGS(&value, &words), &kernel));
  value = 6;
  assert_ok(rondo_graph_get_params(graph, kernel, &params));
  assert_int_equal(params.kind, RONDO_NODE_KERNEL);
  assert_string_equal(params.name, "test_set");
  assert_int_equal(params.as.kernel.grid.x, 3);
  assert_int_equal(params.as.kernel.arg_count, 2);
  assert_int_equal(*(const uint32_t *)params.as.kernel.args[0], 5);
  assert_ptr_equal(*(void *const *)params.as.kernel.args[1], words);
  const rondo_copy box = {.dst = words, .src = words + 32, .width = 8, .height = 2, .dst_pitch = 16};
  assert_ok(rondo_graph_add_copy(graph, NULL, 0, &box, &copy));
  assert_ok(rondo_graph_get_params(graph, copy, &params));
  assert_int_equal(params.kind, RONDO_NODE_COPY);
  assert_ptr_equal(params.as.copy.src, words + 32);
  assert_int_equal(params.as.copy.dst_pitch, 16);
  const rondo_fill bytes = {.dst = words, .value = 3, .element_bytes = 1, .width = 10};
  assert_ok(rondo_graph_add_fill(graph, NULL, 0, &bytes, &fill));
  assert_ok(rondo_graph_get_params(graph, fill, &params));
  assert_int_equal(params.as.fill.element_bytes, 1);
  assert_int_equal(params.as.fill.width, 10);
}

/* Numbers without an effect on the work: the pitch of one row, the bytes of a value beyond its element. */
static void assert_given(const rondo_graph *graph, rondo_node copy, rondo_node fill) {
  rondo_node_params params = test_node_params(graph, copy);
  assert_int_equal(params.as.copy.height, 1);
  assert_int_equal(params.as.copy.dst_pitch, 40);
  assert_int_equal(params.as.copy.src_pitch, 10);
  assert_int_equal(params.as.copy.src_slice_pitch, 77);
  assert_ok(rondo_graph_get_params(graph, fill, &params));
  assert_int_equal(params.as.fill.pitch, 24);
  assert_int_equal(params.as.fill.value, 0x12345678);
}

/* B3: parameters are read back as given, also from clones, and can be set again. */
TEST(test_numbers_that_do_not_count_read_back) {
  rondo_graph *graph = test_graph(t), *clone = NULL;
  uint32_t *words = test_words(t, 64);
  rondo_node copy = {0}, fill = {0}, found[2];
  rondo_node_params params;
  const rondo_copy row = {.dst = words, .src = words + 32, .width = 10, .dst_pitch = 40, .src_slice_pitch = 77};
  const rondo_fill bytes = {.dst = words + 16, .value = 0x12345678, .element_bytes = 1, .width = 10, .pitch = 24};
  assert_ok(rondo_graph_add_copy(graph, NULL, 0, &row, &copy));
  assert_ok(rondo_graph_add_fill(graph, &copy, 1, &bytes, &fill));
  assert_given(graph, copy, fill);
  assert_ok(rondo_graph_get_params(graph, copy, &params));
  assert_ok(rondo_graph_set_params(graph, copy, &params));
  assert_given(graph, copy, fill);
  assert_ok(rondo_graph_clone(graph, &clone));
  assert_ok(rondo_graph_find_in_clone(clone, copy, &found[0]));
  assert_ok(rondo_graph_find_in_clone(clone, fill, &found[1]));
  assert_given(clone, found[0], found[1]);
  rondo_exec *exec = test_instantiate(graph);
  assert_ok(rondo_exec_launch(exec, t->stream));
  assert_int_equal(test_word(t, words + 16), 0x78787878);
  test_graph_destroy(clone);
}

TEST(test_parameters_are_replaced_within_their_kind) {
  uint32_t *word = test_words(t, 1);
  rondo_graph *graph = test_graph(t);
  const rondo_node node = test_add_affine(t, graph, NULL, 0, word, 1, 1);
  const uint32_t factor = 0, term = 9;
  const void *args[] = {&factor, &term, &word};
  rondo_node_params params = {
      .kind = RONDO_NODE_KERNEL,
      .as.kernel = {.kernel = test_kernel(t, TEST_KERNEL_AFFINE), .grid = {1, 0, 0}, .args = args, .arg_count = 3}};
  assert_ok(rondo_graph_set_params(graph, node, &params));
  const rondo_node_params other = {.kind = RONDO_NODE_HOST, .as.host = {.function = test_host_nothing}};
  assert_reason(rondo_graph_set_params(graph, node, &other), RONDO_REASON_NODE_KIND);
  params.as.kernel.arg_count = 2;
  assert_invalid(rondo_graph_set_params(graph, node, &params), RONDO_REASON_ARGUMENT_COUNT);
  rondo_exec *exec = test_instantiate(graph);
  assert_ok(rondo_exec_launch(exec, t->stream));
  assert_int_equal(test_word(t, word), 9);
}

/* An exec is a snapshot: later changes of the graph do not affect it. */
TEST(test_setting_parameters_leaves_execs) {
  uint32_t *word = test_words(t, 1);
  rondo_graph *graph = test_graph(t);
  const rondo_node node = test_add_affine(t, graph, NULL, 0, word, 0, 1);
  rondo_exec *exec = test_instantiate(graph);
  const uint32_t factor = 0, term = 2;
  const void *args[] = {&factor, &term, &word};
  const rondo_node_params params = {
      .kind = RONDO_NODE_KERNEL,
      .as.kernel = {.kernel = test_kernel(t, TEST_KERNEL_AFFINE), .grid = {1, 0, 0}, .args = args, .arg_count = 3}};
  assert_ok(rondo_graph_set_params(graph, node, &params));
  assert_ok(rondo_exec_launch(exec, t->stream));
  assert_int_equal(test_word(t, word), 1);
  rondo_exec_destroy(exec);
  exec = test_instantiate(graph);
  assert_ok(rondo_exec_launch(exec, t->stream));
  assert_int_equal(test_word(t, word), 2);
}

/* Clones and children --------------------------------------------------------------------------------------------- */

TEST(test_a_clone_is_deep) {
  const diamond g = make_diamond(t);
  rondo_graph *clone = NULL;
  rondo_node mate = {0};
  assert_ok(rondo_graph_clone(g.graph, &clone));
  assert_ok(rondo_graph_find_in_clone(clone, g.c, &mate));
  assert_true(mate.id != g.c.id);
  assert_ok(rondo_graph_remove(clone, mate));
  assert_int_equal(test_node_count(clone), 3);
  assert_int_equal(test_node_count(g.graph), 4);
  assert_invalid(rondo_graph_find_in_clone(clone, g.c, &mate), RONDO_REASON_UNKNOWN_NODE);
  assert_true(mate.id == 0);
  const rondo_node later = add_empty(g.graph, NULL, 0);
  assert_reason(rondo_graph_find_in_clone(clone, later, &mate), RONDO_REASON_UNKNOWN_NODE);
  test_graph_destroy(g.graph);
  assert_int_equal(test_edge_count(clone), 2);
  test_graph_destroy(clone);
}

TEST(test_unrelated_graphs_have_no_mates) {
  const diamond g = make_diamond(t), other = make_diamond(t);
  rondo_node mate = {0};
  assert_reason(rondo_graph_find_in_clone(other.graph, g.a, &mate), RONDO_REASON_UNKNOWN_NODE);
}

TEST(test_a_clone_runs_as_its_original) {
  uint32_t *word = test_words(t, 1);
  rondo_graph *graph = test_graph(t), *clone = NULL;
  const rondo_node first = test_add_affine(t, graph, NULL, 0, word, 3, 4);
  test_add_affine(t, graph, &first, 1, word, 5, 6);
  assert_ok(rondo_graph_clone(graph, &clone));
  test_graph_destroy(graph);
  rondo_exec *exec = test_exec_of(clone);
  assert_ok(rondo_exec_launch(exec, t->stream));
  assert_int_equal(test_word(t, word), 26);
}

/* B9: a child node clones the graph when it is added; edits of the node's own graph count until instantiation. */
TEST(test_a_child_is_a_snapshot_that_can_be_edited) {
  uint32_t *word = test_words(t, 1);
  rondo_graph *inner = test_graph(t), *outer = test_graph(t);
  rondo_node child = {0};
  test_add_affine(t, inner, NULL, 0, word, 1, 1);
  assert_ok(rondo_graph_add_child(outer, NULL, 0, inner, &child));
  test_add_affine(t, inner, NULL, 0, word, 1, 100); /* later: does not show */
  rondo_node_params params = test_node_params(outer, child);
  assert_ptr_not_equal(params.as.child, inner);
  assert_int_equal(test_node_count(params.as.child), 1);
  test_add_affine(t, params.as.child, NULL, 0, word, 1, 10);
  size_t count = 2;
  rondo_node own[2];
  assert_ok(rondo_graph_nodes(params.as.child, own, &count));
  link_nodes(params.as.child, own[0], own[1]);
  assert_fails(rondo_graph_destroy(params.as.child), RONDO_INVALID_STATE);
  rondo_exec *exec = test_instantiate(outer);
  test_add_affine(t, params.as.child, NULL, 0, word, 1, 1000); /* after instantiation */
  assert_ok(rondo_exec_launch(exec, t->stream));
  assert_int_equal(test_word(t, word), 11);
}

TEST(test_a_graph_may_be_its_own_child) {
  uint32_t *word = test_words(t, 1);
  rondo_graph *graph = test_graph(t);
  const rondo_node first = test_add_affine(t, graph, NULL, 0, word, 1, 1);
  rondo_node child = {0};
  assert_ok(rondo_graph_add_child(graph, &first, 1, graph, &child));
  assert_ok(rondo_graph_add_child(graph, &child, 1, graph, &child)); /* with the first child in it */
  rondo_exec *exec = test_instantiate(graph);
  assert_ok(rondo_exec_launch(exec, t->stream));
  assert_int_equal(test_word(t, word), 4);
}

/* Comparing ------------------------------------------------------------------------------------------------------- */

static uint64_t fingerprint(const rondo_graph *graph) {
  uint64_t value = 0;
  assert_ok(rondo_graph_fingerprint(graph, &value));
  return value;
}

static size_t differences(const rondo_graph *a, const rondo_graph *b, bool ignore_addresses, rondo_difference *first) {
  rondo_difference found[8];
  size_t count = 8;
  assert_ok(rondo_graph_diff(a, b, ignore_addresses, found, &count));
  if (count > 0 && first != NULL) *first = found[0];
  return count;
}

static rondo_graph *two_step_graph(test_fixture *t, uint32_t *words, uint32_t term, uint32_t blocks, bool linked) {
  rondo_graph *graph = test_graph(t);
  const uint32_t factor = 2;
  rondo_node first = {0}, second = {0};
  assert_ok(rondo_graph_add_kernel(graph, NULL, 0, test_kernel(t, TEST_KERNEL_AFFINE), (rondo_grid){blocks, 0, 0},
                                   RONDO_ARGS(&factor, &term, &words), &first));
  const rondo_fill fill = {.dst = words, .element_bytes = 4, .width = 4};
  assert_ok(rondo_graph_add_fill(graph, &first, linked ? 1 : 0, &fill, &second));
  return graph;
}

TEST(test_equal_graphs_have_no_difference) {
  uint32_t *words = test_words(t, 32);
  rondo_graph *a = two_step_graph(t, words, 1, 8, true), *same = two_step_graph(t, words, 1, 8, true);
  rondo_graph *moved = two_step_graph(t, words + 16, 1, 8, true), *clone = NULL;
  assert_ok(rondo_graph_clone(a, &clone));
  assert_int_equal(differences(a, same, false, NULL), 0);
  assert_int_equal(differences(a, clone, false, NULL), 0);
  assert_int_equal(differences(a, moved, true, NULL), 0);
  assert_true(differences(a, moved, false, NULL) == 2);
  assert_true(fingerprint(a) == fingerprint(same) && fingerprint(a) == fingerprint(clone));
  assert_true(fingerprint(a) == fingerprint(moved));
  test_graph_destroy(clone);
}

TEST(test_differences_are_typed) {
  uint32_t *words = test_words(t, 32);
  rondo_graph *a = two_step_graph(t, words, 1, 8, true);
  rondo_graph *grid = two_step_graph(t, words, 1, 9, true), *term = two_step_graph(t, words, 2, 8, true);
  rondo_graph *edges = two_step_graph(t, words, 1, 8, false);
  rondo_difference found = {0};
  assert_int_equal(differences(a, grid, false, &found), 1);
  assert_int_equal(found.kind, RONDO_DIFFERENCE_KERNEL);
  assert_int_equal(rondo_node_number(found.a), 0);
  assert_int_equal(differences(a, term, false, &found), 1);
  assert_int_equal(found.kind, RONDO_DIFFERENCE_PARAMS);
  assert_int_equal(differences(a, edges, false, &found), 1);
  assert_int_equal(found.kind, RONDO_DIFFERENCE_EDGES);
  assert_true(fingerprint(a) != fingerprint(grid) && fingerprint(a) != fingerprint(edges));
  assert_true(fingerprint(a) == fingerprint(term)); /* argument values are not part of it */
  test_add_affine(t, term, NULL, 0, words, 1, 1);
  assert_true(differences(a, term, false, NULL) >= 1);
  bool extra = false;
  rondo_difference all[8];
  size_t count = 8;
  assert_ok(rondo_graph_diff(a, term, false, all, &count));
  for (size_t i = 0; i < count; i++) extra = extra || all[i].kind == RONDO_DIFFERENCE_NODE_EXTRA;
  assert_true(extra);
}

/* A graph without a device is data only. */
TEST(test_a_graph_without_a_device) {
  rondo_graph *graph = NULL;
  rondo_node node = {0};
  void *address = t;
  rondo_exec *exec = (rondo_exec *)t;
  assert_ok(rondo_graph_create(NULL, NULL, &graph));
  assert_ok(rondo_graph_add_empty(graph, NULL, 0, &node));
  assert_true(rondo_graph_add_alloc(graph, NULL, 0, 64, NULL, &address, &node) != RONDO_OK);
  assert_null(address);
  assert_fails(rondo_instantiate(graph, NULL, &exec), RONDO_INVALID_ARGUMENT);
  assert_null(exec);
  assert_int_equal(test_node_count(graph), 1);
  test_graph_destroy(graph);
}
