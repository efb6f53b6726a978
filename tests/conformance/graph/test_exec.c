/* SPDX-License-Identifier: MIT
 * GX-4: instantiate, upload and launch any number of times on any stream; the order of launches (L1); execs that are
 * destroyed in flight (L2); the memory that an exec reports (GX-12).
 */
#include "support/rondo_test.h"

/* word = word * factor + term as a graph of one node. */
static rondo_graph *step_graph(test_fixture *t, uint32_t *word, uint32_t factor, uint32_t term) {
  rondo_graph *graph = test_graph(t);
  test_add_affine(t, graph, NULL, 0, word, factor, term);
  return graph;
}

static rondo_exec *step_exec(test_fixture *t, uint32_t *word, uint32_t factor, uint32_t term) {
  rondo_graph *graph = step_graph(t, word, factor, term);
  return test_exec_of(graph);
}

TEST(test_gx4_launched_many_times) {
  uint32_t *word = test_words(t, 1), expected = 0;
  rondo_exec *exec = step_exec(t, word, 3, 1);
  for (int i = 0; i < 5000; i++) {
    assert_ok(rondo_exec_launch(exec, t->stream));
    expected = expected * 3 + 1;
  }
  assert_int_equal(test_word(t, word), expected);
}

/* Launches keep their place among the other work of the stream. */
TEST(test_gx4_launches_keep_the_order_of_the_stream) {
  uint32_t *word = test_words(t, 1), expected = 0;
  rondo_exec *exec = step_exec(t, word, 3, 1), *other = step_exec(t, word, 5, 2);
  for (uint32_t i = 0; i < 500; i++) {
    test_affine(t, t->stream, word, 1, 7, i);
    assert_ok(rondo_exec_launch(exec, t->stream));
    assert_ok(rondo_exec_launch(other, t->stream));
    expected = ((expected * 7 + i) * 3 + 1) * 5 + 2;
  }
  assert_int_equal(test_word(t, word), expected);
}

TEST(test_gx4_launched_on_any_stream) {
  enum { STREAMS = 5 };
  rondo_stream *streams[STREAMS];
  uint32_t *word = test_words(t, 1);
  rondo_exec *exec = step_exec(t, word, 1, 1);
  for (int i = 0; i < STREAMS; i++) streams[i] = test_stream(t, NULL);
  for (int i = 0; i < 200; i++) assert_ok(rondo_exec_launch(exec, streams[i % STREAMS]));
  assert_ok(rondo_device_synchronize(t->device));
  assert_int_equal(test_word(t, word), 200);
}

/* L1: a launch runs after earlier launches of the same exec on any stream, and the work after it too. */
TEST_WORKERS(test_gx4_l1_launches_of_an_exec_run_one_after_another) {
  test_skip_if_serial();
  rondo_stream *other = test_stream(t, "other");
  uint32_t *word = test_words(t, 1);
  rondo_exec *exec = step_exec(t, word, 10, 1);
  test_gate *gate = test_gate_make();
  test_gate_hold(gate, t->stream);
  test_affine(t, t->stream, word, 1, 0, 7);
  assert_ok(rondo_exec_launch(exec, t->stream)); /* 71, after the gate */
  assert_ok(rondo_exec_launch(exec, other));     /* 711, must wait for it */
  test_affine(t, other, word, 1, 10, 2);         /* 7112 */
  assert_status(rondo_stream_query(other), RONDO_NOT_READY);
  test_gate_open(gate);
  assert_ok(rondo_stream_synchronize(other));
  assert_int_equal(test_word(t, word), 7112);
}

/* Different execs, also of the same graph, on different streams do not wait for each other. */
TEST_WORKERS(test_gx4_execs_are_independent) {
  test_skip_if_serial();
  rondo_stream *other = test_stream(t, "other");
  uint32_t *word = test_words(t, 1);
  test_gate *gate = test_gate_make();
  rondo_graph *graph = step_graph(t, word, 1, 1);
  rondo_exec *first = test_instantiate(graph), *second = test_instantiate(graph);
  test_graph_destroy(graph);
  test_gate_hold(gate, t->stream);
  assert_ok(rondo_exec_launch(first, t->stream));
  assert_ok(rondo_exec_launch(second, other));
  assert_ok(rondo_stream_synchronize(other));
  assert_status(rondo_stream_query(t->stream), RONDO_NOT_READY);
  rondo_exec_destroy(first); /* in flight */
  test_gate_open(gate);
  assert_int_equal(test_word(t, word), 2);
  assert_ok(rondo_exec_launch(second, t->stream));
  assert_int_equal(test_word(t, word), 3);
}

/* An exec is a snapshot: graph, kernel and child graphs may be destroyed. */
TEST(test_gx4_an_exec_outlives_its_graph) {
  uint32_t *word = test_words(t, 1);
  rondo_graph *inner = step_graph(t, word, 3, 2), *outer = step_graph(t, word, 0, 5);
  rondo_node first = {0}, child = {0};
  size_t count = 1;
  assert_ok(rondo_graph_nodes(outer, &first, &count));
  assert_ok(rondo_graph_add_child(outer, &first, 1, inner, &child));
  test_graph_destroy(inner);
  rondo_exec *exec = test_instantiate(outer);
  assert_ok(rondo_graph_remove(outer, child));
  test_graph_destroy(outer);
  for (int i = 0; i < 3; i++) assert_ok(rondo_exec_launch(exec, t->stream));
  assert_int_equal(test_word(t, word), 17);
}

TEST(test_gx4_an_empty_graph_runs) {
  rondo_graph *graph = test_graph(t);
  rondo_exec *exec = test_exec_of(graph);
  for (int i = 0; i < 100; i++) assert_ok(rondo_exec_launch(exec, t->stream));
  assert_ok(rondo_exec_upload(exec, t->stream));
  assert_ok(rondo_stream_synchronize(t->stream));
  assert_int_equal(test_exec_info(exec).launches, 100);
  assert_int_equal(test_exec_info(exec).node_count, 0);
}

/* L2: destroying does not wait; the launches that are queued run to their end. */
TEST(test_gx4_l2_destroyed_in_flight) {
  test_skip_if_serial();
  uint32_t *word = test_words(t, 1);
  test_gate *gate = test_gate_make();
  test_gate_hold(gate, t->stream);
  for (int i = 0; i < 20; i++) {
    rondo_exec *exec = step_exec(t, word, 1, 1);
    for (int k = 0; k < 5; k++) assert_ok(rondo_exec_launch(exec, t->stream));
    rondo_exec_destroy(exec);
  }
  test_gate_open(gate);
  assert_int_equal(test_word(t, word), 100);
}

/* L3: an upload is ordered as a launch and runs nothing. */
TEST(test_gx4_l3_upload_runs_nothing) {
  uint32_t *word = test_words(t, 1);
  rondo_exec *exec = step_exec(t, word, 1, 1), *uploaded = NULL;
  for (int i = 0; i < 3; i++) assert_ok(rondo_exec_upload(exec, t->stream));
  assert_int_equal(test_word(t, word), 0);
  assert_ok(rondo_exec_launch(exec, t->stream));
  rondo_graph *graph = step_graph(t, word, 1, 10);
  const rondo_instantiate_options options = {RONDO_INSTANTIATE_OPTIONS_INIT, .upload_stream = t->stream};
  assert_ok(rondo_instantiate(graph, &options, &uploaded));
  assert_int_equal(test_word(t, word), 1);
  assert_ok(rondo_exec_launch(uploaded, t->stream));
  assert_int_equal(test_word(t, word), 11);
  rondo_exec_destroy(uploaded);
}

TEST(test_gx4_bad_launches_are_refused) {
  rondo_stream *foreign = NULL;
  uint32_t *word = test_words(t, 1);
  rondo_exec *exec = step_exec(t, word, 1, 1);
  rondo_device *other = test_device(test_device_name(), NULL);
  assert_ok(rondo_stream_create(other, NULL, &foreign));
  assert_invalid(rondo_exec_launch(NULL, t->stream), RONDO_REASON_NULL_ARGUMENT);
  assert_invalid(rondo_exec_launch(exec, NULL), RONDO_REASON_NULL_ARGUMENT);
  assert_invalid(rondo_exec_launch(exec, foreign), RONDO_REASON_OTHER_DEVICE);
  assert_invalid(rondo_exec_upload(exec, foreign), RONDO_REASON_OTHER_DEVICE);
  assert_invalid(rondo_exec_upload(exec, NULL), RONDO_REASON_NULL_ARGUMENT);
  assert_int_equal(test_word(t, word), 0);
  assert_ok(rondo_exec_launch(exec, t->stream));
  assert_int_equal(test_word(t, word), 1);
  test_stream_destroy(foreign);
}

/* GX-12: the memory of an exec is counted and can be queried. */
TEST(test_gx12_an_exec_says_what_it_holds) {
  uint32_t *word = test_words(t, 2); /* the child graphs use the second */
  rondo_graph *inner = step_graph(t, word + 1, 1, 1), *outer = step_graph(t, word, 1, 1);
  rondo_node node = {0};
  void *scratch = NULL;
  assert_ok(rondo_graph_add_child(outer, NULL, 0, inner, &node));
  assert_ok(rondo_graph_add_child(outer, &node, 1, inner, &node));
  assert_ok(rondo_graph_add_alloc(outer, &node, 1, 100000, "scratch", &scratch, &node));
  assert_ok(rondo_graph_add_free(outer, &node, 1, scratch, &node));
  rondo_exec *exec = test_instantiate(outer);
  rondo_exec_info info = test_exec_info(exec);
  assert_int_equal(info.node_count, 1 + 1 + 1 + 2); /* child nodes do not count themselves */
  assert_true(info.launches == 0 && info.updates == 0);
  assert_true(info.graph_bytes >= 100000 && info.graph_bytes < 100000 + (4 << 20));
  assert_true(info.host_bytes > 0);
  for (int i = 0; i < 7; i++) assert_ok(rondo_exec_launch(exec, t->stream));
  assert_ok(rondo_exec_update(exec, outer, NULL));
  assert_ok(rondo_exec_get_info(exec, &info));
  assert_int_equal(info.launches, 7);
  assert_int_equal(info.updates, 1);
  rondo_exec *small = step_exec(t, word, 1, 1);
  rondo_exec_info small_info = test_exec_info(small);
  assert_int_equal(small_info.graph_bytes, 0);
  assert_true(small_info.host_bytes < info.host_bytes);
  rondo_exec_destroy(small);
  rondo_exec_destroy(exec);
  test_graph_destroy(inner);
  test_graph_destroy(outer);
  assert_ok(rondo_stream_synchronize(t->stream));
}

/* After a warm-up, a launch allocates nothing on the host: the device's count does not change. */
TEST(test_gx4_warm_launches_allocate_nothing) {
  uint32_t *word = test_words(t, 1);
  rondo_exec *exec = step_exec(t, word, 1, 1);
  for (int i = 0; i < 100; i++) assert_ok(rondo_exec_launch(exec, t->stream));
  for (int i = 0; i < 100; i++) test_affine(t, t->stream, word, 1, 1, 1);
  assert_ok(rondo_stream_synchronize(t->stream));
  const uint64_t before = test_statistics(t).host_allocations;
  for (int i = 0; i < 2000; i++) {
    assert_ok(rondo_exec_launch(exec, t->stream));
    test_affine(t, t->stream, word, 1, 1, 1);
  }
  assert_ok(rondo_stream_synchronize(t->stream));
  assert_int_equal(test_statistics(t).host_allocations - before, 0);
}
