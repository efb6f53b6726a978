/* SPDX-License-Identifier: MIT
 * The child graph of a child node of an exec is replaced by another graph of the same topology (AD-8, U1). What is
 * refused names the node and changes nothing.
 */
#include "support/rondo_test.h"

/* word = word * 10 + a, then * 10 + b. */
static rondo_graph *two_steps(test_fixture *t, uint32_t *word, uint32_t a, uint32_t b, rondo_node *nodes) {
  rondo_graph *graph = test_graph(t);
  nodes[0] = test_add_affine(t, graph, NULL, 0, word, 10, a);
  nodes[1] = test_add_affine(t, graph, &nodes[0], 1, word, 10, b);
  return graph;
}

/* Sets the word to 1, runs the child, and adds 5. */
typedef struct parent {
  rondo_graph *graph;
  rondo_node first, child, last;
  rondo_node inside[2]; /* in the child's own graph */
} parent;

static parent make_parent(test_fixture *t, uint32_t *word, uint32_t a, uint32_t b) {
  parent self = {.graph = test_graph(t)};
  rondo_node nodes[2];
  rondo_graph *child = two_steps(t, word, a, b, nodes);
  self.first = test_add_affine(t, self.graph, NULL, 0, word, 0, 1);
  assert_ok(rondo_graph_add_child(self.graph, &self.first, 1, child, &self.child));
  self.last = test_add_affine(t, self.graph, &self.child, 1, word, 1, 5);
  const rondo_graph *own = test_node_params(self.graph, self.child).as.child;
  for (int i = 0; i < 2; i++) assert_ok(rondo_graph_find_in_clone(own, nodes[i], &self.inside[i]));
  test_graph_destroy(child);
  return self;
}

static rondo_status replace(rondo_exec *exec, rondo_node node, rondo_graph *child) {
  return rondo_exec_set_params(exec, node, &(rondo_node_params){.kind = RONDO_NODE_CHILD, .as.child = child});
}

static void launch_and_expect(test_fixture *t, rondo_exec *exec, uint32_t *word, uint32_t expected) {
  assert_ok(rondo_exec_launch(exec, t->stream));
  assert_words(t, word, &expected, 1);
}

TEST(test_ad8_u1_a_child_is_replaced) {
  rondo_node nodes[2];
  uint32_t *word = test_words(t, 1);
  const parent of = make_parent(t, word, 2, 3);
  rondo_exec *exec = test_exec_of(of.graph);
  launch_and_expect(t, exec, word, 128);
  for (uint32_t i = 0; i < 3; i++) {
    rondo_graph *child = two_steps(t, word, i, i + 1, nodes);
    assert_ok(replace(exec, of.child, child));
    test_graph_destroy(child);
    launch_and_expect(t, exec, word, 100 + 10 * i + i + 1 + 5);
  }
  assert_int_equal(test_exec_info(exec).updates, 3);
}

/* Launches that are enqueued keep the old child. Results are copied on the device: a copy to the program's own memory
 * waits for the stream. */
TEST_WORKERS(test_ad8_u1_earlier_launches_keep_the_child) {
  test_skip_if_serial();
  rondo_node nodes[2];
  const uint32_t expected[] = {128, 183};
  uint32_t *word = test_words(t, 1), *seen = test_words(t, 2);
  test_gate *gate = test_gate_make();
  const parent of = make_parent(t, word, 2, 3);
  rondo_exec *exec = test_exec_of(of.graph);
  test_gate_hold(gate, t->stream);
  for (int i = 0; i < 2; i++) {
    assert_ok(rondo_exec_launch(exec, t->stream));
    assert_ok(rondo_copy_async(t->stream, &seen[i], word, sizeof *word));
    if (i == 0) assert_ok(replace(exec, of.child, two_steps(t, word, 7, 8, nodes)));
  }
  test_gate_open(gate);
  assert_words(t, seen, expected, 2);
}

/* Nodes in the child keep their handles, and stay disabled. */
TEST(test_ad8_u1_nodes_inside_keep_their_handles) {
  rondo_node nodes[2];
  uint32_t *word = test_words(t, 1), term = 4;
  const parent of = make_parent(t, word, 2, 3);
  rondo_exec *exec = test_exec_of(of.graph);
  assert_ok(rondo_exec_set_enabled(exec, of.inside[0], false));
  assert_ok(replace(exec, of.child, two_steps(t, word, 7, 8, nodes)));
  launch_and_expect(t, exec, word, 23);
  assert_ok(rondo_exec_set_argument(exec, of.inside[1], 1, &term));
  assert_ok(rondo_exec_set_enabled(exec, of.inside[0], true));
  launch_and_expect(t, exec, word, 179);
}

/* A child in a child, and one of several. */
TEST(test_ad8_u1_children_in_children) {
  rondo_node nodes[2], inner, outer, other, last;
  uint32_t *word = test_words(t, 1);
  rondo_graph *graph = test_graph(t), *middle = test_graph(t);
  assert_ok(rondo_graph_add_child(middle, NULL, 0, two_steps(t, word, 1, 2, nodes), &inner));
  assert_ok(rondo_graph_add_child(graph, NULL, 0, middle, &outer));
  assert_ok(rondo_graph_add_child(graph, &outer, 1, two_steps(t, word, 3, 4, nodes), &other));
  last = test_add_affine(t, graph, &other, 1, word, 10, 5);
  assert_ok(rondo_graph_find_in_clone(test_node_params(graph, outer).as.child, inner, &inner));
  rondo_exec *exec = test_instantiate(graph);
  launch_and_expect(t, exec, word, 12345);
  test_write(t, word, &(uint32_t){0}, sizeof *word);
  assert_ok(replace(exec, inner, two_steps(t, word, 6, 7, nodes)));
  launch_and_expect(t, exec, word, 67345);
  test_write(t, word, &(uint32_t){0}, sizeof *word);
  assert_ok(replace(exec, other, two_steps(t, word, 8, 9, nodes)));
  launch_and_expect(t, exec, word, 67895);
  test_write(t, word, &(uint32_t){0}, sizeof *word);
  rondo_graph *whole = test_graph(t);
  assert_ok(rondo_graph_add_child(whole, NULL, 0, two_steps(t, word, 1, 1, nodes), &inner));
  assert_ok(replace(exec, outer, whole));
  launch_and_expect(t, exec, word, 11895);
  assert_invalid(rondo_exec_set_params(exec, last, &(rondo_node_params){.kind = RONDO_NODE_CHILD, .as.child = whole}),
                 RONDO_REASON_NODE_KIND);
}

/* The whole of it is verified: what the child writes must not race with the rest. */
static rondo_node add_fill(rondo_graph *graph, uint32_t *word, uint32_t value) {
  rondo_node node;
  const rondo_fill fill = {.dst = word, .value = value, .element_bytes = 4, .width = 1};
  assert_ok(rondo_graph_add_fill(graph, NULL, 0, &fill, &node));
  return node;
}

TEST(test_ad8_u1_a_child_that_races_is_refused) {
  rondo_node child;
  uint32_t *words = test_words(t, 2);
  rondo_graph *graph = test_graph(t), *inner = test_graph(t), *racing = test_graph(t);
  (void)add_fill(inner, words, 7);
  (void)add_fill(racing, words + 1, 8);
  (void)add_fill(graph, words + 1, 9);
  assert_ok(rondo_graph_add_child(graph, NULL, 0, inner, &child));
  rondo_exec *exec = test_instantiate(graph);
  assert_error(replace(exec, child, racing), RONDO_UPDATE_REFUSED, RONDO_REASON_NOT_UPDATABLE);
  assert_message("rondo_exec_set_params: verification of the new graph failed");
  assert_ok(rondo_exec_launch(exec, t->stream));
  assert_words(t, words, ((const uint32_t[]){7, 9}), 2);
}

TEST(test_ad8_u1_other_children_are_refused) {
  rondo_node nodes[2], more;
  uint32_t *word = test_words(t, 1);
  const parent of = make_parent(t, word, 2, 3);
  rondo_exec *exec = test_exec_of(of.graph);
  rondo_graph *longer = two_steps(t, word, 1, 1, nodes);
  assert_ok(rondo_graph_add_empty(longer, &nodes[1], 1, &more));
  assert_error(replace(exec, of.child, longer), RONDO_UPDATE_REFUSED, RONDO_REASON_TOPOLOGY_CHANGED);
  rondo_graph *unordered = test_graph(t);
  for (int i = 0; i < 2; i++) assert_ok(rondo_graph_add_empty(unordered, NULL, 0, &nodes[i]));
  assert_error(replace(exec, of.child, unordered), RONDO_UPDATE_REFUSED, RONDO_REASON_TOPOLOGY_CHANGED);
  rondo_graph *kinds = test_graph(t);
  for (int i = 0; i < 2; i++) assert_ok(rondo_graph_add_empty(kinds, nodes, (size_t)i, &nodes[i]));
  assert_error(replace(exec, of.child, kinds), RONDO_UPDATE_REFUSED, RONDO_REASON_NODE_KIND_CHANGED);
  assert_int_equal(rondo_last_error()->node, rondo_node_number(of.child));
  assert_error(replace(exec, of.child, test_graph(t)), RONDO_UPDATE_REFUSED, RONDO_REASON_TOPOLOGY_CHANGED);
  assert_invalid(replace(exec, of.child, NULL), RONDO_REASON_NULL_ARGUMENT);
  rondo_graph *cycle = two_steps(t, word, 1, 1, nodes);
  assert_ok(rondo_graph_add_edges(cycle, &nodes[1], &nodes[0], 1));
  assert_error(replace(exec, of.child, cycle), RONDO_INVALID_GRAPH, RONDO_REASON_CYCLE);
  const rondo_node_params nothing = {.kind = RONDO_NODE_EMPTY};
  assert_invalid(rondo_exec_set_params(exec, of.child, &nothing), RONDO_REASON_NODE_KIND);
  assert_message("is a child graph");
  assert_reason(rondo_exec_set_argument(exec, of.child, 0, word), RONDO_REASON_NODE_KIND);
  launch_and_expect(t, exec, word, 128);
  assert_int_equal(test_exec_info(exec).updates, 0);
}

TEST(test_ad8_u1_children_in_use_or_of_others_are_refused) {
  rondo_node nodes[2];
  uint32_t *word = test_words(t, 1);
  const parent of = make_parent(t, word, 2, 3);
  rondo_exec *exec = test_exec_of(of.graph);
  rondo_graph *target = two_steps(t, word, 1, 1, nodes), *data;
  assert_ok(rondo_capture_begin_to_graph(t->stream, target, NULL, 0, RONDO_CAPTURE_THREAD_LOCAL));
  assert_error(replace(exec, of.child, target), RONDO_INVALID_STATE, RONDO_REASON_CAPTURING_INTO);
  assert_ok(rondo_capture_end(t->stream, NULL));
  assert_ok(replace(exec, of.child, target));
  assert_ok(rondo_graph_create(NULL, NULL, &data));
  assert_invalid(replace(exec, of.child, data), RONDO_REASON_OTHER_DEVICE);
  assert_ok(rondo_graph_destroy(data));
  launch_and_expect(t, exec, word, 116);
}

/* After an update with a graph that has the same nodes without a child graph, there is none to replace. */
TEST(test_ad8_u1_updates_and_children) {
  rondo_node nodes[2], node;
  uint32_t *word = test_words(t, 1);
  const parent of = make_parent(t, word, 2, 3), same = make_parent(t, word, 4, 5);
  rondo_exec *exec = test_exec_of(of.graph);
  assert_ok(rondo_exec_update(exec, same.graph, NULL));
  assert_ok(replace(exec, of.child, two_steps(t, word, 6, 7, nodes)));
  launch_and_expect(t, exec, word, 172);
  rondo_graph *flat = test_graph(t);
  node = test_add_affine(t, flat, NULL, 0, word, 0, 1);
  for (uint32_t i = 1; i < 3; i++) node = test_add_affine(t, flat, &node, 1, word, 10, i);
  (void)test_add_affine(t, flat, &node, 1, word, 1, 5);
  assert_ok(rondo_exec_update(exec, flat, NULL));
  assert_error(replace(exec, of.child, two_steps(t, word, 8, 9, nodes)), RONDO_UPDATE_REFUSED,
               RONDO_REASON_NOT_UPDATABLE);
  assert_message("no child graph");
  launch_and_expect(t, exec, word, 117);
  assert_ok(rondo_exec_update(exec, same.graph, NULL));
  launch_and_expect(t, exec, word, 150);
}

/* A child with graph memory. The exec may be relocated. */
static void add_scratch(rondo_graph *graph, uint32_t *word, uint32_t value) {
  rondo_node node;
  void *scratch;
  assert_ok(rondo_graph_add_alloc(graph, NULL, 0, 4096, "scratch", &scratch, &node));
  const rondo_fill fill = {.dst = scratch, .value = value, .element_bytes = 4, .width = 1};
  assert_ok(rondo_graph_add_fill(graph, &node, 1, &fill, &node));
  assert_ok(rondo_graph_add_copy(graph, &node, 1, &(rondo_copy){.dst = word, .src = scratch, .width = 4}, &node));
  assert_ok(rondo_graph_add_free(graph, &node, 1, scratch, &node));
}

static void test_memory(test_fixture *t, bool relocate) {
  rondo_node child;
  uint32_t *word = test_words(t, 1);
  rondo_graph *graph = test_graph(t), *inner = test_graph(t);
  add_scratch(inner, word, 11);
  assert_ok(rondo_graph_add_child(graph, NULL, 0, inner, &child));
  const rondo_instantiate_options options = {RONDO_INSTANTIATE_OPTIONS_INIT, .relocate = relocate};
  rondo_exec *exec = test_instantiate_with(graph, &options);
  launch_and_expect(t, exec, word, 11);
  rondo_graph *fresh = test_graph(t);
  add_scratch(fresh, word, 22);
  assert_ok(replace(exec, child, fresh));
  launch_and_expect(t, exec, word, 22);
  launch_and_expect(t, exec, word, 22);
  assert_ok(replace(exec, child, inner));
  launch_and_expect(t, exec, word, 11);
}

TEST(test_ad8_u1_a_child_with_memory) { test_memory(t, false); }
TEST(test_ad8_u1_a_child_with_memory_that_moves) { test_memory(t, true); }

/* User objects go with the child. */
static void release_one(void *count) { --*(int *)count; }

static rondo_graph *child_with_object(test_fixture *t, uint32_t *word, int *count) {
  rondo_node nodes[2];
  rondo_user_object *object;
  rondo_graph *graph = two_steps(t, word, 1, 2, nodes);
  ++*count;
  assert_ok(rondo_user_object_create(count, release_one, 1, NULL, &object));
  assert_ok(rondo_graph_retain_object(graph, object, 1, true));
  return graph;
}

TEST(test_ad8_a_replaced_child_releases_its_objects) {
  int counts[3] = {0};
  rondo_node child;
  uint32_t *word = test_words(t, 1);
  rondo_graph *graph = test_graph(t);
  for (int i = 0; i < 2; i++) {
    rondo_graph *inner = child_with_object(t, word, &counts[i]);
    assert_ok(rondo_graph_add_child(graph, &child, (size_t)i, inner, &child));
    test_graph_destroy(inner);
  }
  rondo_exec *exec = test_exec_of(graph);
  assert_ok(rondo_exec_launch(exec, t->stream));
  rondo_graph *fresh = child_with_object(t, word, &counts[2]);
  assert_ok(replace(exec, child, fresh));
  test_graph_destroy(fresh);
  assert_ok(rondo_exec_launch(exec, t->stream));
  assert_ok(rondo_stream_synchronize(t->stream));
  assert_int_equal(counts[0], 1);
  assert_int_equal(counts[1], 0);
  assert_int_equal(counts[2], 1);
  rondo_exec_destroy(exec);
  assert_ok(rondo_stream_synchronize(t->stream));
  assert_int_equal(counts[0] + counts[2], 0);
}
