/* SPDX-License-Identifier: MIT
 * GX-7: the time of each node of an exec, for reports: every node once, in order, with the work that really ran.
 */
#include "support/rondo_test.h"

enum { REPEATS = 5, SLEEP_MS = 3 };

static rondo_status sleep_a_little(void *user) {
  (void)user;
  test_sleep_ms(SLEEP_MS);
  return RONDO_OK;
}

static rondo_status break_off(void *user) {
  (void)user;
  return RONDO_EXECUTION_FAILED;
}

/* affine -> sleep -> child graph of one affine, all on one word. */
typedef struct measured_graph {
  uint32_t *word;
  rondo_graph *graph;
  rondo_node first, sleeper, child, inside; /* `inside` is the child graph's */
} measured_graph;

static measured_graph make_graph(test_fixture *t) {
  measured_graph m = {.word = test_words(t, 1), .graph = test_graph(t)};
  rondo_graph *inner = test_graph(t);
  rondo_node_params params;
  size_t count = 1;
  test_add_affine(t, inner, NULL, 0, m.word, 1, 1);
  m.first = test_add_affine(t, m.graph, NULL, 0, m.word, 1, 1);
  assert_ok(rondo_graph_add_host(m.graph, &m.first, 1, sleep_a_little, NULL, &m.sleeper));
  assert_ok(rondo_graph_add_child(m.graph, &m.sleeper, 1, inner, &m.child));
  assert_ok(rondo_graph_get_params(m.graph, m.child, &params));
  assert_ok(rondo_graph_nodes(params.as.child, &m.inside, &count));
  test_graph_destroy(inner);
  return m;
}

static void destroy_graph(test_fixture *t, measured_graph *m) {
  test_graph_destroy(m->graph);
  test_words_free(t, m->word);
}

TEST(test_gx7_each_node_has_a_time) {
  measured_graph m = make_graph(t);
  rondo_exec *exec = test_instantiate(m.graph);
  rondo_node_time times[4];
  size_t count = 4;
  assert_ok(rondo_exec_measure(exec, t->stream, REPEATS, times, &count));
  assert_int_equal(count, 3); /* the child node itself has no time */
  assert_true(times[0].node.id == m.first.id && times[1].node.id == m.sleeper.id && times[2].node.id == m.inside.id);
  assert_true(times[3].node.id == 0 && times[3].maximum == 0.0);
  for (size_t i = 0; i < count; i++) {
    assert_true(times[i].minimum >= 0 && times[i].minimum <= times[i].microseconds);
    assert_true(times[i].microseconds <= times[i].maximum);
  }
  assert_true(times[1].minimum >= 1000.0 * SLEEP_MS);
  assert_int_equal(test_word(t, m.word), 2 * (REPEATS + 1)); /* the work is done each time */
  rondo_exec_destroy(exec);
  destroy_graph(t, &m);
}

TEST(test_gx7_measuring_counts_as_queries_do) {
  measured_graph m = make_graph(t);
  rondo_exec *exec = test_instantiate(m.graph);
  rondo_node_time time;
  size_t count = 0;
  assert_ok(rondo_exec_measure(exec, NULL, 0, NULL, &count));
  assert_int_equal(count, 3);
  assert_int_equal(test_word(t, m.word), 0);
  count = 1;
  assert_ok(rondo_exec_measure(exec, t->stream, 2, &time, &count));
  assert_int_equal(count, 3);
  assert_true(time.node.id == m.first.id);
  rondo_exec_destroy(exec);
  destroy_graph(t, &m);
}

/* Measured by several workers at once, and launched normally afterwards, an exec gives the same results. */
TEST_WORKERS(test_gx7_measuring_changes_no_result) {
  enum { BRANCHES = 12 };
  uint32_t *words = test_words(t, BRANCHES);
  rondo_graph *graph = test_graph(t);
  for (size_t i = 0; i < BRANCHES; i++) {
    const rondo_node node = test_add_affine(t, graph, NULL, 0, &words[i], 3, 1);
    test_add_affine(t, graph, &node, 1, &words[i], 1, 2);
  }
  rondo_exec *exec = test_instantiate(graph);
  rondo_node_time times[2 * BRANCHES];
  size_t count = 2 * BRANCHES;
  assert_ok(rondo_exec_measure(exec, t->stream, 20, times, &count));
  assert_int_equal(count, 2 * BRANCHES);
  for (int i = 0; i < 20; i++) assert_ok(rondo_exec_launch(exec, t->stream));
  uint32_t expected[BRANCHES], value = 0;
  for (int i = 0; i < 41; i++) value = value * 3 + 3;
  for (size_t i = 0; i < BRANCHES; i++) expected[i] = value;
  assert_words(t, words, expected, BRANCHES);
}

TEST(test_gx7_bad_measurements_are_refused) {
  measured_graph m = make_graph(t);
  rondo_exec *exec = test_instantiate(m.graph);
  rondo_node_time times[3];
  size_t count = 3;
  assert_invalid(rondo_exec_measure(NULL, t->stream, 1, times, &count), RONDO_REASON_NULL_ARGUMENT);
  assert_invalid(rondo_exec_measure(exec, NULL, 1, times, &count), RONDO_REASON_NULL_ARGUMENT);
  assert_invalid(rondo_exec_measure(exec, t->stream, 1, times, NULL), RONDO_REASON_NULL_ARGUMENT);
  assert_invalid(rondo_exec_measure(exec, t->stream, 0, times, &count), RONDO_REASON_OUT_OF_RANGE);
  assert_invalid(rondo_exec_measure(exec, t->stream, 1001, times, &count), RONDO_REASON_OUT_OF_RANGE);
  assert_message("1001");
  assert_ok(rondo_capture_begin(t->stream, RONDO_CAPTURE_THREAD_LOCAL));
  assert_error(rondo_exec_measure(exec, t->stream, 1, times, &count), RONDO_CAPTURE_REFUSED,
               RONDO_REASON_UNSUPPORTED_CALL);
  rondo_graph *none = NULL;
  assert_fails(rondo_capture_end(t->stream, &none), RONDO_CAPTURE_INVALID);
  assert_int_equal(test_word(t, m.word), 0); /* nothing ran */
  rondo_exec_destroy(exec);
  destroy_graph(t, &m);
}

/* A measurement reports failed work and leaves memory like a launch does; the exec is unchanged. */
TEST(test_gx7_a_failing_measurement_leaves_the_exec_usable) {
  rondo_graph *failing = test_graph(t), *leaving = test_graph(t);
  rondo_node node = {0};
  rondo_node_time times[2];
  size_t count = 2;
  void *address = NULL;
  assert_ok(rondo_graph_add_host(failing, NULL, 0, break_off, NULL, &node));
  assert_ok(rondo_graph_add_alloc(leaving, NULL, 0, 64, "left", &address, &node));
  rondo_exec *exec = test_instantiate(failing);
  assert_fails(rondo_exec_measure(exec, t->stream, 3, times, &count), RONDO_EXECUTION_FAILED);
  assert_ok(rondo_exec_launch(exec, t->stream));
  assert_fails(rondo_stream_synchronize(t->stream), RONDO_EXECUTION_FAILED);
  rondo_exec_destroy(exec);
  exec = test_instantiate(leaving);
  assert_error(rondo_exec_measure(exec, t->stream, 3, times, &count), RONDO_INVALID_LIFETIME,
               RONDO_REASON_STILL_ALLOCATED);
  assert_ok(rondo_free_async(t->stream, address));
  assert_ok(rondo_exec_launch(exec, t->stream));
  assert_ok(rondo_free_async(t->stream, address));
}
