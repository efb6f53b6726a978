/* SPDX-License-Identifier: MIT
 * GX-9: RONDO_SYNC=1 makes every device synchronize after each operation, for programs that cannot be changed. Work is
 * complete when its call returns, and the call that causes a failure returns it. The environment is read once, so this
 * is a separate program.
 */
#define _POSIX_C_SOURCE 200809L
#include <stdlib.h>

#include "support/rondo_test.h"

TEST(test_gx9_work_is_done_when_the_call_returns) {
  uint32_t *word = test_words(t, 1);
  rondo_graph *graph = test_graph(t);
  test_add_affine(t, graph, NULL, 0, word, 10, 2);
  rondo_exec *exec = test_instantiate(graph);
  test_affine(t, t->stream, word, 1, 1, 4);
  assert_ok(rondo_stream_query(t->stream));
  assert_ok(rondo_exec_launch(exec, t->stream));
  assert_ok(rondo_stream_query(t->stream));
  assert_int_equal(test_word(t, word), 42);
}

TEST(test_gx9_a_failure_comes_out_where_it_arises) {
  rondo_graph *graph = test_graph(t);
  rondo_node node = {0};
  rondo_node_params params = {.kind = RONDO_NODE_HOST, .name = "culprit", .as.host = {.function = test_host_fails}};
  assert_ok(rondo_graph_add(graph, NULL, 0, &params, &node));
  rondo_exec *exec = test_instantiate(graph);
  assert_error(rondo_host_async(t->stream, test_host_fails, NULL), RONDO_EXECUTION_FAILED,
               RONDO_REASON_HOST_FUNCTION_FAILED);
  assert_error(rondo_exec_launch(exec, t->stream), RONDO_EXECUTION_FAILED, RONDO_REASON_HOST_FUNCTION_FAILED);
  assert_message("culprit");
  assert_ok(rondo_stream_synchronize(t->stream));
}

/* Captures record as usual. */
TEST(test_gx9_captures_are_not_disturbed) {
  uint32_t *word = test_words(t, 1);
  assert_ok(rondo_capture_begin(t->stream, RONDO_CAPTURE_THREAD_LOCAL));
  test_affine(t, t->stream, word, 1, 1, 1);
  test_affine(t, t->stream, word, 1, 2, 0);
  rondo_graph *graph = test_capture_end(t->stream);
  assert_int_equal(test_word(t, word), 0);
  rondo_exec *exec = test_instantiate(graph);
  assert_ok(rondo_exec_launch(exec, t->stream));
  assert_int_equal(test_word(t, word), 2);
}

int main(void) { return setenv("RONDO_SYNC", "1", 1) == 0 ? test_run_registered() : EXIT_FAILURE; }
