/* SPDX-License-Identifier: MIT
 * GX-5: an exec takes the parameters of a graph of the same topology, or of one node. An error is typed, names the node
 * and leaves the exec unchanged. Queued launches are never affected (U1 to U4).
 */
#include <pthread.h>

#include "support/rondo_test.h"

/* A kernel, a copy and a fill in a line, over one word. */
typedef struct line {
  rondo_graph *graph;
  rondo_node kernel, copy, fill;
} line;

static line make_line(test_fixture *t, uint32_t *words, uint32_t term, const uint32_t *host, uint32_t value) {
  line self = {.graph = test_graph(t)};
  self.kernel = test_add_affine(t, self.graph, NULL, 0, words, 0, term);
  const rondo_copy copy = {.dst = words + 1, .src = host, .width = sizeof *host};
  assert_ok(rondo_graph_add_copy(self.graph, &self.kernel, 1, &copy, &self.copy));
  const rondo_fill fill = {.dst = words + 2, .value = value, .element_bytes = 4, .width = 1};
  assert_ok(rondo_graph_add_fill(self.graph, &self.copy, 1, &fill, &self.fill));
  return self;
}

static void launch_and_expect(test_fixture *t, rondo_exec *exec, uint32_t *words, uint32_t a, uint32_t b, uint32_t c) {
  const uint32_t expected[3] = {a, b, c};
  assert_ok(rondo_exec_launch(exec, t->stream));
  assert_words(t, words, expected, 3);
}

/* Parameters of the affine kernel: word = term. */
typedef struct affine_params {
  uint32_t factor, term;
  uint32_t *word;
  const void *args[3];
  rondo_node_params params;
} affine_params;

static void set_affine_params(affine_params *self, test_fixture *t, uint32_t *word, uint32_t factor, uint32_t term) {
  *self = (affine_params){.factor = factor, .term = term, .word = word};
  self->args[0] = &self->factor, self->args[1] = &self->term, self->args[2] = &self->word;
  self->params = (rondo_node_params){
      .kind = RONDO_NODE_KERNEL,
      .as.kernel = {
          .kernel = test_kernel(t, TEST_KERNEL_AFFINE), .grid = {1, 0, 0}, .args = self->args, .arg_count = 3}};
}

/* Whole updates --------------------------------------------------------------------------------------------------- */

TEST(test_gx5_u3_a_whole_update) {
  uint32_t *words = test_words(t, 3), hosts[2] = {5, 6};
  const line old = make_line(t, words, 1, &hosts[0], 9), fresh = make_line(t, words, 2, &hosts[1], 10);
  rondo_exec *exec = test_instantiate(old.graph);
  launch_and_expect(t, exec, words, 1, 5, 9);
  rondo_update_result result = {.struct_size = sizeof result, .reason = RONDO_REASON_CYCLE};
  assert_ok(rondo_exec_update(exec, fresh.graph, &result));
  assert_int_equal(result.reason, RONDO_REASON_NONE);
  test_graph_destroy(fresh.graph);
  launch_and_expect(t, exec, words, 2, 6, 10);
  assert_ok(rondo_exec_update(exec, old.graph, NULL));
  launch_and_expect(t, exec, words, 1, 5, 9);
}

/* The exec as before: refused, with this reason, and launched once more. */
typedef struct refusal {
  test_fixture *fixture;
  rondo_exec *exec;
  uint32_t *words;
} refusal;

static rondo_update_result refuse(const refusal *self, rondo_graph *graph, rondo_reason reason) {
  rondo_update_result result = {.struct_size = sizeof result};
  assert_error(rondo_exec_update(self->exec, graph, &result), RONDO_UPDATE_REFUSED, reason);
  assert_int_equal(result.reason, reason);
  test_graph_destroy(graph);
  launch_and_expect(self->fixture, self->exec, self->words, 1, 5, 9);
  return result;
}

TEST(test_gx5_u3_other_topologies_are_refused) {
  uint32_t *words = test_words(t, 3), host = 5;
  const line old = make_line(t, words, 1, &host, 9);
  const refusal self = {.fixture = t, .exec = test_instantiate(old.graph), .words = words};
  line other = make_line(t, words, 2, &host, 8); /* a node more */
  test_add_affine(t, other.graph, NULL, 0, words, 1, 1);
  rondo_update_result result = refuse(&self, other.graph, RONDO_REASON_TOPOLOGY_CHANGED);
  assert_message("the new graph has 4 nodes with its children, the exec has 3: instantiate it");
  assert_true(result.exec_node.id == 0 && result.graph_node.id == 0);
  other = make_line(t, words, 2, &host, 8); /* a node less */
  assert_ok(rondo_graph_remove(other.graph, other.fill));
  result = refuse(&self, other.graph, RONDO_REASON_TOPOLOGY_CHANGED);
  assert_message("the new graph has 2 nodes with its children, the exec has 3");
  assert_true(result.exec_node.id == 0 && result.graph_node.id == 0);
  other = make_line(t, words, 2, &host, 8); /* an edge less */
  assert_ok(rondo_graph_remove_edges(other.graph, &other.copy, &other.fill, 1));
  result = refuse(&self, other.graph, RONDO_REASON_TOPOLOGY_CHANGED);
  assert_message("in the new graph: the dependencies differ: instantiate the new graph");
  assert_true(result.exec_node.id == old.copy.id || result.exec_node.id == old.fill.id); /* an end of the edge */
  other = make_line(t, words, 2, &host, 8);                                              /* an edge more */
  assert_ok(rondo_graph_add_edges(other.graph, &other.kernel, &other.fill, 1));
  refuse(&self, other.graph, RONDO_REASON_TOPOLOGY_CHANGED);
  rondo_exec_destroy(self.exec);
}

TEST(test_gx5_u3_another_kind_is_refused_by_node) {
  uint32_t *words = test_words(t, 3), host = 5;
  const line old = make_line(t, words, 1, &host, 9);
  const refusal self = {.fixture = t, .exec = test_instantiate(old.graph), .words = words};
  rondo_graph *graph = test_graph(t);
  rondo_node node = test_add_affine(t, graph, NULL, 0, words, 0, 3), second = {0};
  const rondo_fill fill = {.dst = words + 1, .value = 3, .element_bytes = 4, .width = 1};
  assert_ok(rondo_graph_add_fill(graph, &node, 1, &fill, &second));
  assert_ok(rondo_graph_add_fill(graph, &second, 1, &fill, &node));
  const rondo_update_result result = refuse(&self, graph, RONDO_REASON_NODE_KIND_CHANGED);
  assert_message("the kind of node differs: instantiate the new graph");
  assert_true(result.exec_node.id == old.copy.id);
  assert_true(result.graph_node.id == second.id);
  assert_message("copy");
  assert_message("fill");
  rondo_exec_destroy(self.exec);
}

/* A copy of two dimensions may stay unchanged, and may not change. */
TEST(test_gx5_u1_copies_of_two_dimensions_stay) {
  uint32_t *words = test_words(t, 16), host[16] = {[0] = 1, [1] = 2, [4] = 3, [8] = 4};
  rondo_graph *graphs[2];
  rondo_node nodes[2];
  const rondo_copy flat = {.dst = words, .src = host, .width = 4, .height = 2, .src_pitch = 16};
  const rondo_copy taller = {.dst = words, .src = host, .width = 4, .height = 3, .src_pitch = 16};
  for (int i = 0; i < 2; i++) {
    graphs[i] = test_graph(t);
    assert_ok(rondo_graph_add_copy(graphs[i], NULL, 0, i == 0 ? &flat : &taller, &nodes[i]));
  }
  rondo_exec *exec = test_instantiate(graphs[0]);
  assert_ok(rondo_exec_update(exec, graphs[0], NULL));
  rondo_update_result result = {.struct_size = sizeof result};
  assert_error(rondo_exec_update(exec, graphs[1], &result), RONDO_UPDATE_REFUSED, RONDO_REASON_PARAMETERS_CHANGED);
  assert_message("an exec can only change one-dimensional copies and fills");
  assert_true(result.exec_node.id == nodes[0].id && result.graph_node.id == nodes[1].id);
  const rondo_node_params params = {.kind = RONDO_NODE_COPY, .as.copy = taller};
  assert_fails(rondo_exec_set_params(exec, nodes[0], &params), RONDO_UPDATE_REFUSED);
  assert_message("has, or would have, more than one dimension");
  assert_ok(rondo_exec_launch(exec, t->stream));
  const uint32_t expected[3] = {1, 3, 0};
  assert_words(t, words, expected, 3);
}

/* Another kernel in the same place is taken: its function, grid and arguments. */
TEST(test_gx5_u1_kernels_may_change) {
  uint32_t *words = test_words(t, 4);
  rondo_graph *old = test_graph(t), *fresh = test_graph(t);
  rondo_node node = {0};
  test_add_affine(t, old, NULL, 0, words, 1, 1);
  const uint32_t value = 8;
  assert_ok(rondo_graph_add_kernel(fresh, NULL, 0, test_kernel(t, TEST_KERNEL_SET), (rondo_grid){4, 0, 0},
                                   RONDO_ARGS(&value, &words), &node));
  rondo_exec *exec = test_instantiate(old);
  assert_ok(rondo_exec_launch(exec, t->stream));
  assert_int_equal(test_word(t, words), 1);
  assert_ok(rondo_exec_update(exec, fresh, NULL));
  assert_ok(rondo_exec_launch(exec, t->stream));
  const uint32_t expected[4] = {8, 8, 8, 8};
  assert_words(t, words, expected, 4);
}

/* An exec cannot be updated to a graph that cannot be instantiated. */
TEST(test_gx5_graphs_that_cannot_run_are_refused) {
  uint32_t *words = test_words(t, 3), host = 5;
  const line old = make_line(t, words, 1, &host, 9);
  rondo_exec *exec = test_instantiate(old.graph);
  line cyclic = make_line(t, words, 2, &host, 8);
  assert_ok(rondo_graph_add_edges(cyclic.graph, &cyclic.fill, &cyclic.kernel, 1));
  assert_true(rondo_exec_update(exec, cyclic.graph, NULL) != RONDO_OK);
  test_graph_destroy(cyclic.graph);
  rondo_graph *bare = test_graph(t);
  rondo_node node = {0};
  assert_ok(rondo_graph_add_kernel(bare, NULL, 0, test_kernel(t, TEST_KERNEL_BARE), (rondo_grid){1, 0, 0},
                                   RONDO_ARGS(&words), &node));
  rondo_graph *single = test_graph(t);
  test_add_affine(t, single, NULL, 0, words, 1, 0);
  rondo_exec *single_exec = test_instantiate(single);
  assert_true(rondo_exec_update(single_exec, bare, NULL) != RONDO_OK);
  assert_message("test_bare");
  assert_fails(rondo_exec_update(exec, NULL, NULL), RONDO_INVALID_ARGUMENT);
  assert_fails(rondo_exec_update(NULL, old.graph, NULL), RONDO_INVALID_ARGUMENT);
  launch_and_expect(t, exec, words, 1, 5, 9);
}

/* A child's parameters are updated with the whole; the child's topology must also be the same. */
TEST(test_gx5_u3_children_are_updated_and_compared) {
  uint32_t *word = test_words(t, 1);
  rondo_graph *outer[3];
  for (uint32_t i = 0; i < 3; i++) {
    rondo_graph *inner = test_graph(t);
    rondo_node node = test_add_affine(t, inner, NULL, 0, word, 1, i + 1);
    if (i == 2) test_add_affine(t, inner, &node, 1, word, 1, 100);
    outer[i] = test_graph(t);
    assert_ok(rondo_graph_add_child(outer[i], NULL, 0, inner, &node));
    test_graph_destroy(inner);
  }
  rondo_exec *exec = test_instantiate(outer[0]);
  assert_ok(rondo_exec_launch(exec, t->stream));
  assert_ok(rondo_exec_update(exec, outer[1], NULL));
  assert_error(rondo_exec_update(exec, outer[2], NULL), RONDO_UPDATE_REFUSED, RONDO_REASON_TOPOLOGY_CHANGED);
  assert_ok(rondo_exec_launch(exec, t->stream));
  assert_int_equal(test_word(t, word), 3);
}

/* A child without nodes runs nothing, and is in no graph's place: with the second update the graph is known. */
TEST(test_gx5_u3_empty_children_are_no_hindrance) {
  uint32_t *words = test_words(t, 1);
  rondo_graph *child = test_graph(t), *graphs[2];
  for (uint32_t g = 0; g < 2; g++) {
    rondo_node node = {0};
    graphs[g] = test_graph(t);
    assert_ok(rondo_graph_add_child(graphs[g], NULL, 0, child, &node));
    test_add_affine(t, graphs[g], &node, 1, words, 0, 10 + g);
  }
  rondo_exec *exec = test_instantiate(graphs[0]);
  for (uint32_t i = 0; i < 4; i++) {
    assert_ok(rondo_exec_update(exec, graphs[i % 2], NULL));
    assert_ok(rondo_exec_launch(exec, t->stream));
    assert_int_equal(test_word(t, words), 10 + i % 2);
  }
}

/* Updates and queued launches ------------------------------------------------------------------------------------- */

/* U1: each launch keeps the parameters it was queued with. Every launch but the last waits at a gate while the
 * exec is updated under it. */
TEST_WORKERS(test_gx5_u1_a_whole_update_leaves_queued_launches) {
  test_skip_if_serial();
  enum { UPDATES = 40 };
  uint32_t *word = test_words(t, 1), expected = 0;
  rondo_graph *graph = test_graph(t);
  test_add_affine(t, graph, NULL, 0, word, 3, 0);
  rondo_exec *exec = test_instantiate(graph);
  test_gate *gate = test_gate_make();
  test_gate_hold(gate, t->stream);
  for (uint32_t i = 0; i < UPDATES; i++) {
    rondo_graph *next = test_graph(t);
    test_add_affine(t, next, NULL, 0, word, 3, i + 1);
    assert_ok(rondo_exec_update(exec, next, NULL));
    test_graph_destroy(next);
    assert_ok(rondo_exec_launch(exec, t->stream));
    expected = expected * 3 + i + 1;
  }
  assert_ok(rondo_exec_update(exec, graph, NULL)); /* after the last launch */
  test_gate_open(gate);
  assert_int_equal(test_word(t, word), expected);
  assert_ok(rondo_exec_launch(exec, t->stream));
  assert_int_equal(test_word(t, word), expected * 3);
}

TEST_WORKERS(test_gx5_u1_setting_a_node_leaves_queued_launches) {
  test_skip_if_serial();
  enum { UPDATES = 60 };
  uint32_t *words = test_words(t, 2), expected[2] = {0, 0};
  rondo_graph *graph = test_graph(t);
  const rondo_node first = test_add_affine(t, graph, NULL, 0, words, 3, 0);
  const rondo_node second = test_add_affine(t, graph, &first, 1, words + 1, 5, 1);
  rondo_exec *exec = test_instantiate(graph);
  test_gate *gate = test_gate_make();
  test_gate_hold(gate, t->stream);
  for (uint32_t i = 0; i < UPDATES; i++) {
    affine_params params;
    set_affine_params(&params, t, words + i % 2, 3 + 2 * (i % 2), i);
    assert_ok(rondo_exec_set_params(exec, i % 2 == 0 ? first : second, &params.params));
    assert_ok(rondo_exec_launch(exec, t->stream));
    const uint32_t terms[2] = {i % 2 == 0 ? i : i - 1, i % 2 == 0 ? (i == 0 ? 1 : i - 1) : i};
    expected[0] = expected[0] * 3 + terms[0];
    expected[1] = expected[1] * 5 + terms[1];
  }
  test_gate_open(gate);
  assert_words(t, words, expected, 2);
}

static rondo_status fail_at_gate(void *gate) {
  const rondo_status status = test_gate_pass(gate);
  return status == RONDO_OK ? RONDO_IO_ERROR : status;
}

/* The message is about the function that ran, not about the one that has its place since. */
TEST_WORKERS(test_gx5_u1_a_replaced_host_function_keeps_its_name) {
  test_skip_if_serial();
  rondo_graph *graph = test_graph(t);
  rondo_node node = {0};
  test_gate *gate = test_gate_make();
  rondo_node_params params = {
      .kind = RONDO_NODE_HOST, .name = "earlier", .as.host = {.function = fail_at_gate, .user = gate}};
  assert_ok(rondo_graph_add(graph, NULL, 0, &params, &node));
  rondo_exec *exec = test_instantiate(graph);
  assert_ok(rondo_exec_launch(exec, t->stream));
  test_gate_await(gate);
  for (int i = 0; i < 8; i++) {
    params.name = i % 2 == 0 ? "another" : "laterly";
    assert_ok(rondo_exec_set_params(exec, node, &params));
  }
  test_gate_open(gate);
  assert_error(rondo_stream_synchronize(t->stream), RONDO_EXECUTION_FAILED, RONDO_REASON_HOST_FUNCTION_FAILED);
  assert_message("host function 'earlier' (node 0)");
}

TEST_WORKERS(test_gx5_u2_enabling_leaves_queued_launches) {
  test_skip_if_serial();
  uint32_t *word = test_words(t, 1);
  rondo_graph *graph = test_graph(t);
  const rondo_node node = test_add_affine(t, graph, NULL, 0, word, 1, 1);
  rondo_exec *exec = test_instantiate(graph);
  test_gate *gate = test_gate_make();
  test_gate_hold(gate, t->stream);
  for (int i = 0; i < 30; i++) {
    assert_ok(rondo_exec_set_enabled(exec, node, i % 3 == 0));
    assert_ok(rondo_exec_launch(exec, t->stream));
  }
  assert_ok(rondo_exec_set_enabled(exec, node, false));
  test_gate_open(gate);
  assert_int_equal(test_word(t, word), 10);
}

/* Single nodes ---------------------------------------------------------------------------------------------------- */

TEST(test_gx5_u1_each_kind_is_set) {
  uint32_t *words = test_words(t, 3), hosts[2] = {5, 6}, calls[2] = {0, 0};
  const line of = make_line(t, words, 1, &hosts[0], 9);
  rondo_node host = {0};
  assert_ok(rondo_graph_add_host(of.graph, &of.fill, 1, test_host_count, &calls[0], &host));
  rondo_exec *exec = test_instantiate(of.graph);
  launch_and_expect(t, exec, words, 1, 5, 9);
  affine_params params;
  set_affine_params(&params, t, words, 0, 2);
  assert_ok(rondo_exec_set_params(exec, of.kernel, &params.params));
  const rondo_node_params copy = {.kind = RONDO_NODE_COPY,
                                  .as.copy = {.dst = words + 1, .src = &hosts[1], .width = sizeof hosts[1]}};
  assert_ok(rondo_exec_set_params(exec, of.copy, &copy));
  const rondo_node_params fill = {.kind = RONDO_NODE_FILL,
                                  .as.fill = {.dst = words + 2, .value = 10, .element_bytes = 4, .width = 1}};
  assert_ok(rondo_exec_set_params(exec, of.fill, &fill));
  const rondo_node_params call = {.kind = RONDO_NODE_HOST, .as.host = {.function = test_host_count, .user = &calls[1]}};
  assert_ok(rondo_exec_set_params(exec, host, &call));
  launch_and_expect(t, exec, words, 2, 6, 10);
  assert_true(calls[0] == 1 && calls[1] == 1);
  rondo_exec *other = test_instantiate(of.graph); /* the graph is as it was */
  launch_and_expect(t, other, words, 1, 5, 9);
}

/* Also in a child graph. */
TEST(test_ad8_one_argument_is_changed) {
  uint32_t *words = test_words(t, 3), *second = words + 1, host = 5, terms[] = {2, 3, 4};
  const line of = make_line(t, words, 1, &host, 9);
  rondo_graph *outer = test_graph(t);
  rondo_node child = {0};
  assert_ok(rondo_graph_set_argument(of.graph, of.kernel, 1, &terms[0]));
  assert_ok(rondo_graph_add_child(outer, NULL, 0, of.graph, &child));
  rondo_exec *exec = test_instantiate(of.graph), *nested = test_instantiate(outer);
  launch_and_expect(t, exec, words, 2, 5, 9);
  assert_ok(rondo_exec_set_argument(exec, of.kernel, 1, &terms[1]));
  launch_and_expect(t, exec, words, 3, 5, 9);
  assert_ok(rondo_exec_set_argument(exec, of.kernel, 2, &second));
  assert_ok(rondo_exec_set_argument(exec, of.kernel, 1, &terms[2]));
  assert_ok(rondo_exec_launch(exec, t->stream)); /* the copy overwrites what the kernel wrote */
  launch_and_expect(t, exec, words, 3, 5, 9);
  launch_and_expect(t, nested, words, 2, 5, 9);
  rondo_node_params params;
  rondo_node found = {0};
  assert_ok(rondo_graph_get_params(outer, child, &params));
  assert_ok(rondo_graph_find_in_clone(params.as.child, of.kernel, &found));
  assert_ok(rondo_exec_set_argument(nested, found, 1, &terms[2]));
  launch_and_expect(t, nested, words, 4, 5, 9);
}

TEST(test_ad8_one_argument_of_relocated_memory) {
  void *scratch = NULL;
  uint32_t *words = test_words(t, 1), terms[] = {7, 8};
  rondo_graph *graph = NULL;
  rondo_node alloc = {0}, copy = {0};
  assert_ok(rondo_graph_create(t->device, &(rondo_graph_options){RONDO_GRAPH_OPTIONS_INIT, .relocate = true}, &graph));
  assert_ok(rondo_graph_add_alloc(graph, NULL, 0, 64, "scratch", &scratch, &alloc));
  const rondo_node kernel = test_add_affine(t, graph, &alloc, 1, scratch, 0, terms[0]);
  assert_ok(rondo_graph_add_copy(graph, &kernel, 1, &(rondo_copy){.dst = words, .src = scratch, .width = 4}, &copy));
  assert_ok(rondo_graph_add_free(graph, &copy, 1, scratch, &alloc));
  rondo_exec *exec = NULL;
  assert_ok(
      rondo_instantiate(graph, &(rondo_instantiate_options){RONDO_INSTANTIATE_OPTIONS_INIT, .relocate = true}, &exec));
  assert_ok(rondo_exec_set_argument(exec, kernel, 1, &terms[1]));
  assert_ok(rondo_exec_set_argument(exec, kernel, 2, &scratch));
  assert_ok(rondo_exec_launch(exec, t->stream));
  assert_int_equal(test_word(t, words), 8);
  rondo_exec_destroy(exec);
  test_graph_destroy(graph);
}

TEST(test_ad8_bad_arguments_are_refused) {
  uint32_t *words = test_words(t, 3), host = 5, term = 2;
  const line of = make_line(t, words, 1, &host, 9);
  rondo_exec *exec = test_instantiate(of.graph);
  const rondo_node none = {0};
  for (int is_exec = 0; is_exec < 2; is_exec++) {
#define SET(node, number, value)                                \
  (is_exec ? rondo_exec_set_argument(exec, node, number, value) \
           : rondo_graph_set_argument(of.graph, node, number, value))
    assert_error(SET(of.kernel, 3, &term), RONDO_INVALID_ARGUMENT, RONDO_REASON_ARGUMENT_COUNT);
    assert_message("has no argument 3: pass 0 for its first argument, up to 2 for its last one");
    assert_error(SET(of.kernel, 1, NULL), RONDO_INVALID_ARGUMENT, RONDO_REASON_NULL_ARGUMENT);
    assert_error(SET(of.copy, 0, &term), RONDO_INVALID_ARGUMENT, RONDO_REASON_NODE_KIND);
    assert_message("only kernels have arguments");
    assert_error(SET(none, 0, &term), RONDO_INVALID_ARGUMENT, RONDO_REASON_UNKNOWN_NODE);
#undef SET
  }
  assert_error(rondo_graph_set_argument(NULL, of.kernel, 0, &term), RONDO_INVALID_ARGUMENT, RONDO_REASON_NULL_ARGUMENT);
  assert_error(rondo_exec_set_argument(NULL, of.kernel, 0, &term), RONDO_INVALID_ARGUMENT, RONDO_REASON_NULL_ARGUMENT);
  rondo_node empty;
  assert_ok(rondo_graph_add_kernel(of.graph, NULL, 0, test_kernel(t, TEST_KERNEL_EMPTY), (rondo_grid){1, 0, 0},
                                   RONDO_NO_ARGS, &empty));
  assert_error(rondo_graph_set_argument(of.graph, empty, 0, &term), RONDO_INVALID_ARGUMENT,
               RONDO_REASON_ARGUMENT_COUNT);
  assert_message("it has no arguments at all");
  launch_and_expect(t, exec, words, 1, 5, 9);
}

TEST_WORKERS(test_gx5_u1_events_of_nodes_are_set) {
  test_skip_if_serial();
  rondo_event *events[2] = {test_event(t), test_event(t)};
  rondo_stream *leader = test_stream(t, "leader");
  rondo_graph *graph = test_graph(t);
  rondo_node wait = {0}, record = {0};
  test_gate *gate = test_gate_make();
  assert_ok(rondo_graph_add_event_wait(graph, NULL, 0, events[0], &wait));
  assert_ok(rondo_graph_add_event_record(graph, &wait, 1, events[0], &record));
  rondo_exec *exec = test_instantiate(graph);
  test_gate_hold(gate, leader);
  assert_ok(rondo_event_record(events[0], leader));
  const rondo_node_params other_wait = {.kind = RONDO_NODE_EVENT_WAIT, .as.event = events[1]};
  const rondo_node_params other_record = {.kind = RONDO_NODE_EVENT_RECORD, .as.event = events[1]};
  assert_ok(rondo_exec_set_params(exec, wait, &other_wait));
  assert_ok(rondo_exec_set_params(exec, record, &other_record));
  assert_ok(rondo_exec_launch(exec, t->stream)); /* does not wait for the leader */
  assert_ok(rondo_stream_synchronize(t->stream));
  assert_status(rondo_event_query(events[0]), RONDO_NOT_READY);
  assert_ok(rondo_event_query(events[1]));
  test_gate_open(gate);
}

TEST(test_gx5_u1_what_cannot_be_set_is_refused) {
  uint32_t *words = test_words(t, 3), host = 5;
  const line of = make_line(t, words, 1, &host, 9);
  rondo_graph *other = test_graph(t), *inner = test_graph(t);
  const rondo_node stranger = test_add_affine(t, other, NULL, 0, words, 1, 1);
  rondo_node empty = {0}, child = {0};
  assert_ok(rondo_graph_add_empty(of.graph, NULL, 0, &empty));
  assert_ok(rondo_graph_add_child(of.graph, NULL, 0, inner, &child));
  rondo_exec *exec = test_instantiate(of.graph);
  affine_params affine;
  set_affine_params(&affine, t, words, 0, 2);
  const rondo_node_params nothing = {.kind = RONDO_NODE_EMPTY};
  assert_reason(rondo_exec_set_params(exec, of.copy, &affine.params), RONDO_REASON_NODE_KIND);
  assert_message("cannot become a node of kind 'kernel'");
  assert_reason(rondo_exec_set_params(exec, stranger, &affine.params), RONDO_REASON_UNKNOWN_NODE);
  assert_reason(rondo_exec_set_params(exec, (rondo_node){0}, &affine.params), RONDO_REASON_UNKNOWN_NODE);
  assert_fails(rondo_exec_set_params(exec, empty, &nothing), RONDO_UNSUPPORTED);
  assert_message("has no parameters that an exec can change");
  assert_reason(rondo_exec_set_params(exec, child, &nothing), RONDO_REASON_NODE_KIND);
  assert_message("is a child graph: change the nodes in it, or give it another graph");
  affine.params.as.kernel.arg_count = 2;
  assert_invalid(rondo_exec_set_params(exec, of.kernel, &affine.params), RONDO_REASON_ARGUMENT_COUNT);
  affine.params.as.kernel = (rondo_kernel_node){
      .kernel = test_kernel(t, TEST_KERNEL_BARE), .grid = {1, 0, 0}, .args = &affine.args[2], .arg_count = 1};
  assert_reason(rondo_exec_set_params(exec, of.kernel, &affine.params), RONDO_REASON_NO_FUNCTION);
  const rondo_node_params bad = {.kind = RONDO_NODE_FILL, .as.fill = {.dst = words, .element_bytes = 3, .width = 1}};
  assert_invalid(rondo_exec_set_params(exec, of.fill, &bad), RONDO_REASON_BAD_SIZE);
  assert_fails(rondo_exec_set_params(exec, of.fill, NULL), RONDO_INVALID_ARGUMENT);
  launch_and_expect(t, exec, words, 1, 5, 9);
}

/* A node of a child graph is set through the tag it has in the child's own graph. */
TEST(test_gx5_u1_nodes_of_children_are_set) {
  uint32_t *words = test_words(t, 2);
  rondo_graph *inner = test_graph(t), *outer = test_graph(t);
  rondo_node children[2], inside = {0};
  test_add_affine(t, inner, NULL, 0, words, 1, 1);
  assert_ok(rondo_graph_add_child(outer, NULL, 0, inner, &children[0]));
  assert_ok(rondo_graph_add_child(outer, children, 1, inner, &children[1]));
  rondo_exec *exec = test_instantiate(outer);
  rondo_node_params child;
  size_t count = 1;
  assert_ok(rondo_graph_get_params(outer, children[1], &child));
  assert_ok(rondo_graph_nodes(child.as.child, &inside, &count));
  affine_params params;
  set_affine_params(&params, t, words + 1, 1, 10);
  assert_ok(rondo_exec_set_params(exec, inside, &params.params));
  assert_ok(rondo_exec_launch(exec, t->stream));
  const uint32_t expected[2] = {1, 10};
  assert_words(t, words, expected, 2);
}

/* U2: a disabled node behaves as an empty one; the state survives updates; parameters that are set meanwhile apply
 * later. */
TEST(test_gx5_u2_disabled_nodes_do_nothing) {
  uint32_t *words = test_words(t, 3), hosts[2] = {5, 6};
  const line of = make_line(t, words, 1, &hosts[0], 9), fresh = make_line(t, words, 2, &hosts[1], 10);
  const rondo_node nodes[3] = {of.kernel, of.copy, of.fill};
  rondo_exec *exec = test_instantiate(of.graph);
  bool enabled = false;
  for (int i = 0; i < 3; i++) {
    assert_ok(rondo_exec_get_enabled(exec, nodes[i], &enabled));
    assert_true(enabled);
    assert_ok(rondo_exec_set_enabled(exec, nodes[i], false));
    assert_ok(rondo_exec_get_enabled(exec, nodes[i], &enabled));
    assert_false(enabled);
  }
  launch_and_expect(t, exec, words, 0, 0, 0);
  assert_ok(rondo_exec_set_enabled(exec, of.copy, true));
  launch_and_expect(t, exec, words, 0, 5, 0);
  assert_ok(rondo_exec_update(exec, fresh.graph, NULL));
  launch_and_expect(t, exec, words, 0, 6, 0);
  affine_params params;
  set_affine_params(&params, t, words, 0, 33);
  assert_ok(rondo_exec_set_params(exec, of.kernel, &params.params));
  launch_and_expect(t, exec, words, 0, 6, 0);
  assert_ok(rondo_exec_set_enabled(exec, of.kernel, true));
  assert_ok(rondo_exec_set_enabled(exec, of.fill, true));
  launch_and_expect(t, exec, words, 33, 6, 10);
}

/* A disabled node still orders its successors after its predecessors. */
static uint64_t kernels_run(test_fixture *t) {
  rondo_device_statistics statistics = test_statistics(t);
  return statistics.kernels;
}

TEST(test_gx5_u2_disabled_nodes_carry_order) {
  uint32_t *words = test_words(t, 2);
  rondo_graph *graph = test_graph(t);
  const rondo_node first = test_add_affine(t, graph, NULL, 0, words, 0, 4);
  const rondo_node middle = test_add_affine(t, graph, &first, 1, words + 1, 1, 1);
  test_add_affine(t, graph, &middle, 1, words, 10, 2);
  rondo_exec *exec = test_instantiate(graph);
  assert_ok(rondo_exec_set_enabled(exec, middle, false));
  const uint64_t before = kernels_run(t);
  for (int i = 0; i < 500; i++) assert_ok(rondo_exec_launch(exec, t->stream));
  const uint32_t expected[2] = {42, 0};
  assert_words(t, words, expected, 2);
  assert_int_equal(kernels_run(t) - before, 500 * 2);
  assert_ok(rondo_exec_set_enabled(exec, middle, true));
  test_launch(t, exec);
  assert_int_equal(kernels_run(t) - before, 500 * 2 + 3);
}

TEST(test_gx5_u2_other_kinds_are_not_disabled) {
  uint32_t calls = 0;
  rondo_graph *graph = test_graph(t), *other = test_graph(t);
  rondo_node host = {0}, empty = {0}, stranger = {0};
  assert_ok(rondo_graph_add_host(graph, NULL, 0, test_host_count, &calls, &host));
  assert_ok(rondo_graph_add_empty(graph, NULL, 0, &empty));
  assert_ok(rondo_graph_add_empty(other, NULL, 0, &stranger));
  rondo_exec *exec = test_instantiate(graph);
  assert_true(rondo_exec_set_enabled(exec, host, false) != RONDO_OK);
  assert_true(rondo_exec_set_enabled(exec, empty, false) != RONDO_OK);
  assert_reason(rondo_exec_set_enabled(exec, stranger, false), RONDO_REASON_UNKNOWN_NODE);
  test_launch(t, exec);
  assert_int_equal(calls, 1);
}

/* Execs, clones and their graph share memory --------------------------------------------------------------------- */

/* An exec with a word and a stream of its own, changed and launched by a thread. */
typedef struct exec_user {
  rondo_graph *clone; /* changed too */
  rondo_exec *exec;
  rondo_stream *stream;
  rondo_node node; /* in the graph */
  affine_params mine;
  rondo_status status;
  pthread_t thread;
  pthread_mutex_t *turn; /* of all users: their execs write the same words */
} exec_user;

enum { SHARING_ROUNDS = 200, SHARING_NODES = 20 };

static rondo_status launch_alone(const exec_user *self) {
  pthread_mutex_lock(self->turn);
  rondo_status status = rondo_exec_launch(self->exec, self->stream);
  if (status == RONDO_OK) status = rondo_stream_synchronize(self->stream);
  pthread_mutex_unlock(self->turn);
  return status;
}

static rondo_status change_and_launch(exec_user *self, uint32_t term) {
  rondo_node node;
  self->mine.term = term;
  rondo_status status = rondo_exec_set_params(self->exec, self->node, &self->mine.params);
  if (status == RONDO_OK) status = launch_alone(self);
  if (status == RONDO_OK) status = rondo_graph_find_in_clone(self->clone, self->node, &node);
  return status == RONDO_OK ? rondo_graph_set_params(self->clone, node, &self->mine.params) : status;
}

static void *use_exec(void *argument) {
  exec_user *self = argument;
  for (uint32_t i = 1; i <= SHARING_ROUNDS && self->status == RONDO_OK; i++) self->status = change_and_launch(self, i);
  return NULL;
}

/* Execs and clones of one graph are changed in threads of their own, while the graph's owner changes and destroys it.
 * None of them sees a change of another one. */
TEST(test_gx5_execs_and_clones_are_independent_in_threads) {
  enum { USERS = 2 };
  exec_user users[USERS];
  pthread_mutex_t turn = PTHREAD_MUTEX_INITIALIZER;
  uint32_t *words = test_words(t, SHARING_NODES), *own = test_words(t, USERS);
  rondo_graph *graph = test_graph(t);
  rondo_node nodes[SHARING_NODES];
  for (uint32_t i = 0; i < SHARING_NODES; i++)
    nodes[i] = test_add_affine(t, graph, i == 0 ? NULL : &nodes[i - 1], i > 0, &words[i], 0, i);
  for (uint32_t i = 0; i < USERS; i++) {
    users[i] =
        (exec_user){.exec = test_instantiate(graph), .stream = test_stream(t, NULL), .node = nodes[i], .turn = &turn};
    assert_ok(rondo_graph_clone(graph, &users[i].clone));
    set_affine_params(&users[i].mine, t, &own[i], 0, 0);
  }
  for (uint32_t i = 0; i < USERS; i++) assert_int_equal(pthread_create(&users[i].thread, NULL, use_exec, &users[i]), 0);
  affine_params params;
  set_affine_params(&params, t, &words[SHARING_NODES - 1], 0, 77);
  assert_ok(rondo_graph_set_params(graph, nodes[SHARING_NODES - 1], &params.params));
  assert_ok(rondo_graph_remove(graph, nodes[SHARING_NODES - 2]));
  test_graph_destroy(graph);
  for (uint32_t i = 0; i < USERS; i++) assert_int_equal(pthread_join(users[i].thread, NULL), 0);
  for (uint32_t i = 0; i < USERS; i++) {
    assert_ok(users[i].status);
    assert_int_equal(test_word(t, &own[i]), SHARING_ROUNDS);
    assert_ok(rondo_graph_destroy(users[i].clone));
  }
  for (uint32_t i = USERS; i < SHARING_NODES; i++) assert_int_equal(test_word(t, &words[i]), i);
}
