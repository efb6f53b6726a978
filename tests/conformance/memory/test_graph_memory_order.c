/* SPDX-License-Identifier: MIT
 * GM-8: memory that outlives its graph, used and freed outside, ordered in the CUDA guide's three ways: by one
 * stream, by events between streams, and by event nodes inside the graphs. GM-3: the begin and end of such a lifetime.
 *
 * A first round maps the memory. Then each program is enqueued several times after a gate, so that its results are
 * right only if the order that it states is kept.
 */
#include "support/test_graph_memory.h"

enum { WORDS = 2048, ROUNDS = 5 };

/* A graph that allocates and writes: dptr[i] = value. */
typedef struct producer {
  rondo_exec *exec;
  uint32_t *dptr;
} producer;

static producer make_producer(test_fixture *t, uint32_t value, rondo_event *written) {
  producer self = {.exec = NULL};
  rondo_graph *graph = test_graph(t);
  rondo_node node = {0};
  void *address = NULL;
  assert_ok(rondo_graph_add_alloc(graph, NULL, 0, WORDS * 4, "dptr", &address, &node));
  self.dptr = address;
  assert_ok(rondo_graph_add_kernel(graph, &node, 1, test_kernel(t, TEST_KERNEL_SET), (rondo_grid){WORDS, 0, 0},
                                   RONDO_ARGS(&value, &self.dptr), &node));
  if (written != NULL) assert_ok(rondo_graph_add_event_record(graph, &node, 1, written, &node));
  self.exec = test_exec_of(graph);
  return self;
}

/* Queues dptr = dptr * factor + term. */
static void change(test_fixture *t, rondo_stream *stream, uint32_t *dptr, uint32_t factor, uint32_t term) {
  test_affine(t, stream, dptr, WORDS, factor, term);
}

/* The consumer: waits for the events, if any, reads dptr into out, and frees it. */
static rondo_exec *make_consumer(test_fixture *t, uint32_t *dptr, uint32_t *out, rondo_event *const events[2]) {
  rondo_graph *graph = test_graph(t);
  rondo_node waits[2] = {{0}}, node = {0};
  size_t count = 0;
  for (; events != NULL && count < 2; count++) {
    assert_ok(rondo_graph_add_event_wait(graph, NULL, 0, events[count], &waits[count]));
  }
  assert_ok(rondo_graph_add_kernel(graph, waits, count, test_kernel(t, TEST_KERNEL_COMBINE), (rondo_grid){WORDS, 0, 0},
                                   RONDO_ARGS(&dptr, &dptr, &out), &node));
  assert_ok(rondo_graph_add_free(graph, &node, 1, dptr, &node));
  return test_exec_of(graph);
}

TEST(test_gm8_ordered_by_one_stream) {
  test_skip_if_serial();
  uint32_t *out = test_words(t, WORDS), *dptr = NULL;
  const producer made = make_producer(t, 2, NULL);
  test_gate *gate = test_gate_make();
  for (int i = 0; i < ROUNDS; i++) {
    if (i == 1) test_gate_hold(gate, t->stream);
    assert_ok(rondo_exec_launch(made.exec, t->stream));
    dptr = made.dptr;
    change(t, t->stream, dptr, 10, 1);
    assert_ok(rondo_launch(t->stream, test_kernel(t, TEST_KERNEL_COMBINE), (rondo_grid){WORDS, 0, 0},
                           RONDO_ARGS(&dptr, &dptr, &out)));
    assert_ok(rondo_free_async(t->stream, dptr));
  }
  test_gate_open(gate);
  test_assert_all(t, out, WORDS, 21 * 32);
}

TEST_WORKERS(test_gm8_ordered_by_events_between_streams) {
  test_skip_if_serial();
  rondo_stream *user = test_stream(t, "user"), *freeing = test_stream(t, "freeing");
  rondo_event *allocated = test_event(t), *used = test_event(t), *freed = test_event(t);
  uint32_t *out = test_words(t, WORDS);
  const producer made = make_producer(t, 3, NULL);
  rondo_exec *consumer = make_consumer(t, made.dptr, out, NULL);
  test_gate *gate = test_gate_make();
  for (int i = 0; i < ROUNDS; i++) {
    if (i == 1) test_gate_hold(gate, t->stream);
    assert_ok(rondo_exec_launch(made.exec, t->stream));
    assert_ok(rondo_event_record(allocated, t->stream));
    assert_ok(rondo_stream_wait_event(user, allocated));
    change(t, user, made.dptr, 10, 2);
    assert_ok(rondo_event_record(used, user));
    assert_ok(rondo_stream_wait_event(freeing, used));
    assert_ok(rondo_exec_launch(consumer, freeing));
    assert_ok(rondo_event_record(freed, freeing));
    assert_ok(rondo_stream_wait_event(t->stream, freed));
  }
  test_gate_open(gate);
  test_assert_all(t, out, WORDS, 32 * 32);
}

TEST_WORKERS(test_gm8_ordered_by_event_nodes_in_the_graphs) {
  test_skip_if_serial();
  rondo_stream *user = test_stream(t, "user"), *freeing = test_stream(t, "freeing");
  rondo_event *written = test_event(t), *used = test_event(t), *freed = test_event(t);
  rondo_event *const awaited[2] = {written, used};
  uint32_t *out = test_words(t, WORDS);
  const producer made = make_producer(t, 4, written);
  rondo_exec *consumer = make_consumer(t, made.dptr, out, awaited);
  test_gate *gate = test_gate_make();
  for (int i = 0; i < ROUNDS; i++) {
    if (i == 1) test_gate_hold(gate, t->stream);
    assert_ok(rondo_exec_launch(made.exec, t->stream));
    assert_ok(rondo_stream_wait_event(user, written));
    change(t, user, made.dptr, 10, 3);
    assert_ok(rondo_event_record(used, user));
    assert_ok(rondo_exec_launch(consumer, freeing));
    assert_ok(rondo_event_record(freed, freeing));
    assert_ok(rondo_stream_wait_event(t->stream, freed));
  }
  test_gate_open(gate);
  test_assert_all(t, out, WORDS, 43 * 32);
}

/* The same programs captured: the consumer frees memory of another graph while capturing. */
TEST(test_gm8_a_captured_consumer) {
  uint32_t *out = test_words(t, WORDS);
  const producer made = make_producer(t, 5, NULL);
  assert_ok(rondo_capture_begin(t->stream, RONDO_CAPTURE_THREAD_LOCAL));
  assert_ok(rondo_launch(t->stream, test_kernel(t, TEST_KERNEL_COMBINE), (rondo_grid){WORDS, 0, 0},
                         RONDO_ARGS(&made.dptr, &made.dptr, &out)));
  assert_ok(rondo_free_async(t->stream, made.dptr));
  rondo_graph *graph = test_capture_end(t->stream);
  rondo_exec *consumer = test_exec_of(graph);
  for (int i = 0; i < ROUNDS; i++) {
    assert_ok(rondo_exec_launch(made.exec, t->stream));
    assert_ok(rondo_exec_launch(consumer, t->stream));
  }
  test_assert_all(t, out, WORDS, 5 * 32);
}

/* GM-3: a lifetime ends at a free node, at a stream-ordered free, or at an immediate one; each lets the producer run
 * again, and nothing else does. */
TEST(test_gm3_a_life_ends_in_three_ways) {
  uint32_t *out = test_words(t, WORDS);
  const producer made = make_producer(t, 6, NULL);
  rondo_exec *consumer = make_consumer(t, made.dptr, out, NULL);
  for (int i = 0; i < 3 * ROUNDS; i++) {
    assert_ok(rondo_exec_launch(made.exec, t->stream));
    assert_error(rondo_exec_launch(made.exec, t->stream), RONDO_INVALID_LIFETIME, RONDO_REASON_STILL_ALLOCATED);
    if (i % 3 == 0) assert_ok(rondo_exec_launch(consumer, t->stream));
    if (i % 3 == 1) assert_ok(rondo_free_async(t->stream, made.dptr));
    if (i % 3 != 2) continue;
    assert_ok(rondo_stream_synchronize(t->stream));
    assert_ok(rondo_free(t->device, made.dptr));
  }
  test_assert_all(t, out, WORDS, 6 * 32);
}

/* GM-18: a free-graph launched while its memory does not live. */
TEST(test_gm18_a_free_graph_without_its_memory_is_refused) {
  uint32_t *out = test_words(t, WORDS);
  const producer made = make_producer(t, 7, NULL);
  rondo_exec *consumer = make_consumer(t, made.dptr, out, NULL);
  assert_fails(rondo_exec_launch(consumer, t->stream), RONDO_INVALID_LIFETIME);
  assert_message("dptr");
  assert_ok(rondo_exec_launch(made.exec, t->stream));
  assert_ok(rondo_exec_launch(consumer, t->stream));
  assert_fails(rondo_exec_launch(consumer, t->stream), RONDO_INVALID_LIFETIME);
  test_assert_all(t, out, WORDS, 7 * 32);
}
