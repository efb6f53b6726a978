/* SPDX-License-Identifier: MIT
 * GX-2: capturing work and building its graph by hand give the same graph, for a chain, for fork and join, for two
 * streams from the beginning, and for every operation of a stream. The graph then runs correctly.
 */
#include "support/rondo_test.h"

static void begin(rondo_stream *stream) { assert_ok(rondo_capture_begin(stream, RONDO_CAPTURE_THREAD_LOCAL)); }

TEST(test_gx2_a_line) {
  uint32_t *word = test_words(t, 1);
  begin(t->stream);
  for (uint32_t i = 0; i < 5; i++) test_affine(t, t->stream, word, 1, i + 2, i);
  rondo_graph *captured = test_capture_end(t->stream), *built = test_graph(t);
  rondo_node last = {0};
  for (uint32_t i = 0; i < 5; i++) last = test_add_affine(t, built, &last, i > 0, word, i + 2, i);
  assert_same_graph(captured, built);
  test_graph_destroy(built);
  assert_int_equal(test_word(t, word), 0); /* nothing has run */
  test_run_once(t, captured);
  test_graph_destroy(captured);
  assert_int_equal(test_word(t, word), (((0 * 3 + 1) * 4 + 2) * 5 + 3) * 6 + 4);
}

TEST(test_gx2_fork_and_join) {
  rondo_stream *side = test_stream(t, "side");
  uint32_t *words = test_words(t, 3), *left = words, *right = words + 1, *out = words + 2;
  rondo_kernel *combine = test_kernel(t, TEST_KERNEL_COMBINE);
  begin(t->stream);
  test_affine(t, t->stream, words, 2, 1, 1);
  test_order(t, t->stream, side);
  test_affine(t, t->stream, left, 1, 2, 0);
  test_affine(t, side, right, 1, 3, 0);
  test_order(t, side, t->stream);
  assert_ok(rondo_launch(t->stream, combine, (rondo_grid){1, 0, 0}, RONDO_ARGS(&left, &right, &out)));
  rondo_graph *captured = test_capture_end(t->stream), *built = test_graph(t);
  const uint32_t one = 1;
  rondo_node root = {0}, branches[2], join = {0};
  assert_ok(rondo_graph_add_kernel(built, NULL, 0, test_kernel(t, TEST_KERNEL_AFFINE), (rondo_grid){2, 0, 0},
                                   RONDO_ARGS(&one, &one, &words), &root));
  branches[0] = test_add_affine(t, built, &root, 1, left, 2, 0);
  branches[1] = test_add_affine(t, built, &root, 1, right, 3, 0);
  assert_ok(rondo_graph_add_kernel(built, branches, 2, combine, (rondo_grid){1, 0, 0}, RONDO_ARGS(&left, &right, &out),
                                   &join));
  assert_same_graph(captured, built);
  test_graph_destroy(built);
  test_run_once(t, captured);
  test_graph_destroy(captured);
  const uint32_t expected[3] = {2, 3, 2 * 31 + 3};
  assert_words(t, words, expected, 3);
}

/* Two streams from the beginning: forked off before any work, so that the graph has two roots. */
TEST(test_gx2_two_streams) {
  rondo_stream *side = test_stream(t, "side");
  uint32_t *words = test_words(t, 2);
  begin(t->stream);
  test_order(t, t->stream, side);
  for (uint32_t i = 0; i < 3; i++) {
    test_affine(t, t->stream, words, 1, 2, i);
    test_affine(t, side, words + 1, 1, 3, i);
  }
  test_order(t, side, t->stream);
  rondo_graph *captured = test_capture_end(t->stream), *built = test_graph(t);
  rondo_node a = {0}, b = {0};
  for (uint32_t i = 0; i < 3; i++) {
    a = test_add_affine(t, built, &a, i > 0, words, 2, i);
    b = test_add_affine(t, built, &b, i > 0, words + 1, 3, i);
  }
  assert_same_graph(captured, built);
  test_graph_destroy(built);
  test_run_once(t, captured);
  test_graph_destroy(captured);
  const uint32_t expected[2] = {4, 5};
  assert_words(t, words, expected, 2);
}

/* Each operation of a stream becomes the node that is added by hand. */
TEST(test_gx2_every_operation) {
  uint32_t *words = test_words(t, 64), host[16] = {0};
  const rondo_copy box = {.dst = words, .src = words + 32, .width = 16, .height = 2, .src_pitch = 32};
  const rondo_fill fill = {.dst = words, .value = 3, .element_bytes = 2, .width = 5, .height = 2, .pitch = 16};
  begin(t->stream);
  assert_ok(rondo_copy_async(t->stream, words, host, sizeof host));
  assert_ok(rondo_copy_box_async(t->stream, &box));
  assert_ok(rondo_fill_async(t->stream, &fill));
  assert_ok(rondo_host_async(t->stream, test_host_nothing, host));
  rondo_graph *captured = test_capture_end(t->stream), *built = test_graph(t);
  const rondo_copy line = {.dst = words, .src = host, .width = sizeof host};
  rondo_node node = {0};
  assert_ok(rondo_graph_add_copy(built, NULL, 0, &line, &node));
  assert_ok(rondo_graph_add_copy(built, &node, 1, &box, &node));
  assert_ok(rondo_graph_add_fill(built, &node, 1, &fill, &node));
  assert_ok(rondo_graph_add_host(built, &node, 1, test_host_nothing, host, &node));
  assert_same_graph(captured, built);
}

/* The same work captured twice: equal but for addresses. */
TEST(test_gx2_captured_twice) {
  uint32_t *words[2] = {test_words(t, 8), test_words(t, 8)};
  rondo_graph *graphs[2];
  for (int i = 0; i < 2; i++) {
    begin(t->stream);
    void *scratch = test_allocate_async(t->stream, 4096);
    assert_ok(rondo_copy_async(t->stream, scratch, words[i], 32));
    test_affine(t, t->stream, words[i], 8, 2, 1);
    assert_ok(rondo_free_async(t->stream, scratch));
    graphs[i] = test_capture_end(t->stream);
  }
  size_t count = 0;
  uint64_t prints[2];
  assert_ok(rondo_graph_diff(graphs[0], graphs[1], true, NULL, &count));
  assert_int_equal(count, 0);
  for (int i = 0; i < 2; i++) {
    assert_ok(rondo_graph_fingerprint(graphs[i], &prints[i]));
    test_graph_destroy(graphs[i]);
    test_words_free(t, words[i]);
  }
  assert_true(prints[0] == prints[1]);
}
