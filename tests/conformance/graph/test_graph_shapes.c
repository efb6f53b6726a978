/* SPDX-License-Identifier: MIT
 * GX-6: the shapes whose launch is benchmarked run correctly, captured and built, as graph and on streams: chains of
 * 32, 320 and 3200 kernels, two branches of 16, fork and join over 32.
 */
#include "support/rondo_test.h"
#include "support/test_effort.h"

#include <stdlib.h>

/* The position of a node in a shape: its stream and its predecessors. Stream 0 is the origin. */
typedef struct shape_node {
  uint32_t stream;
  uint32_t count, before[30];
} shape_node;

typedef shape_node (*shape)(uint32_t i);

static shape_node line(uint32_t i) { return (shape_node){.stream = 0, .count = i > 0, .before = {i - 1}}; }

static shape_node two_branches(uint32_t i) {
  return (shape_node){.stream = i / 16, .count = i % 16 > 0, .before = {i - 1}};
}

static shape_node fork_and_join(uint32_t i) {
  if (i == 0) return (shape_node){.stream = 0};
  if (i < 31) return (shape_node){.stream = i % 2, .count = 1, .before = {0}};
  shape_node join = {.stream = 0, .count = 30};
  for (uint32_t k = 0; k < 30; k++) join.before[k] = k + 1;
  return join;
}

static uint32_t mix(uint32_t value, uint32_t i) { return value * 31 + i; }

/* The expected words: see node_args. */
static void expect(shape of, uint32_t count, uint32_t *words) {
  for (uint32_t i = 0; i < count; i++) {
    const shape_node node = of(i);
    uint32_t left = node.count > 0 ? words[node.before[0]] : words[i];
    uint32_t right = node.count > 0 ? words[node.before[node.count - 1]] : i;
    words[i] = mix(left, right);
  }
}

/* The arguments of node i: word i becomes (word of the first before it) * 31 + (word of the last before it). Roots take
 * their own word and a constant. */
typedef struct node_args {
  const uint32_t *left, *right;
  uint32_t *out;
} node_args;

static node_args args_of(const shape_node *node, uint32_t i, uint32_t *words, const uint32_t *constants) {
  node_args args = {.left = words + i, .right = constants + i, .out = words + i};
  if (node->count > 0) {
    args.left = words + node->before[0];
    args.right = words + node->before[node->count - 1];
  }
  return args;
}

static rondo_graph *build(test_fixture *t, shape of, uint32_t count, uint32_t *words, const uint32_t *constants) {
  rondo_graph *graph = test_graph(t);
  rondo_node *nodes = calloc(count, sizeof *nodes);
  assert_non_null(nodes);
  for (uint32_t i = 0; i < count; i++) {
    const shape_node node = of(i);
    const node_args args = args_of(&node, i, words, constants);
    rondo_node before[30];
    for (uint32_t k = 0; k < node.count; k++) before[k] = nodes[node.before[k]];
    assert_ok(rondo_graph_add_kernel(graph, before, node.count, test_kernel(t, TEST_KERNEL_COMBINE),
                                     (rondo_grid){1, 0, 0}, RONDO_ARGS(&args.left, &args.right, &args.out), &nodes[i]));
  }
  free(nodes);
  return graph;
}

/* Enqueues the shape on two streams, ordered by events where an edge crosses. */
static void queue(test_fixture *t, shape of, uint32_t count, uint32_t *words, const uint32_t *constants,
                  rondo_stream *const streams[2]) {
  rondo_event *event = test_event(t), *started = test_event(t);
  assert_ok(rondo_event_record(started, streams[0]));
  assert_ok(rondo_stream_wait_event(streams[1], started));
  for (uint32_t i = 0; i < count; i++) {
    const shape_node node = of(i);
    const node_args args = args_of(&node, i, words, constants);
    bool crosses = false;
    for (uint32_t k = 0; k < node.count; k++) crosses = crosses || of(node.before[k]).stream != node.stream;
    if (crosses) {
      assert_ok(rondo_event_record(event, streams[1 - node.stream]));
      assert_ok(rondo_stream_wait_event(streams[node.stream], event));
    }
    assert_ok(rondo_launch(streams[node.stream], test_kernel(t, TEST_KERNEL_COMBINE), (rondo_grid){1, 0, 0},
                           RONDO_ARGS(&args.left, &args.right, &args.out)));
  }
  assert_ok(rondo_event_record(event, streams[1]));
  assert_ok(rondo_stream_wait_event(streams[0], event));
  rondo_event_destroy(event);
  rondo_event_destroy(started);
}

static void check_shape(test_fixture *t, shape of, uint32_t count, int rounds) {
  rondo_stream *streams[2] = {t->stream, test_stream(t, "stream")};
  uint32_t *words = test_words(t, 2 * (size_t)count), *constants = words + count;
  uint32_t *expected = calloc(count, sizeof *expected), *numbers = calloc(count, sizeof *numbers);
  assert_true(expected != NULL && numbers != NULL);
  for (uint32_t i = 0; i < count; i++) numbers[i] = i;
  test_write(t, constants, numbers, count * sizeof *numbers);
  rondo_graph *built = build(t, of, count, words, constants);
  assert_ok(rondo_capture_begin(t->stream, RONDO_CAPTURE_THREAD_LOCAL));
  queue(t, of, count, words, constants, streams);
  rondo_graph *captured = test_capture_end(t->stream);
  rondo_exec *execs[2] = {test_instantiate(built), test_instantiate(captured)};
  for (int round = 0; round < rounds; round++) {
    if (round % 3 < 2) {
      assert_ok(rondo_exec_launch(execs[round % 3], t->stream));
    } else {
      queue(t, of, count, words, constants, streams);
    }
    expect(of, count, expected);
  }
  assert_words(t, words, expected, count);
  for (int i = 0; i < 2; i++) rondo_exec_destroy(execs[i]);
  test_graph_destroy(built);
  test_graph_destroy(captured);
  test_stream_destroy(streams[1]);
  free(expected);
  free(numbers);
  test_words_free(t, words);
}

TEST(test_gx6_a_line_of_32) { check_shape(t, line, 32, 60); }
TEST(test_gx6_a_line_of_320) { check_shape(t, line, 320, 60); }
TEST(test_gx6_a_line_of_3200) { check_shape(t, line, 3200, 3 * (int)test_effort(20)); }
TEST(test_gx6_two_branches) { check_shape(t, two_branches, 32, 60); }
TEST(test_gx6_fork_and_join) { check_shape(t, fork_and_join, 32, 60); }
TEST_WORKERS(test_gx6_two_branches_on_workers) { check_shape(t, two_branches, 32, 60); }
TEST_WORKERS(test_gx6_fork_and_join_on_workers) { check_shape(t, fork_and_join, 32, 60); }
