/* SPDX-License-Identifier: MIT
 * Streams: the work of one runs in order, that of several independently; full queues; and failures that are reported
 * later.
 */
#include "support/rondo_test.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

TEST(test_work_of_a_stream_runs_in_order) {
  uint32_t *word = test_words(t, 1);
  uint32_t expected = 0;
  uint64_t random = 1;
  for (int i = 0; i < 5000; i++) {
    const uint32_t factor = (uint32_t)test_random(&random) | 1, term = (uint32_t)test_random(&random);
    test_affine(t, t->stream, word, 1, factor, term);
    expected = expected * factor + term;
  }
  assert_int_equal(test_word(t, word), expected);
}

/* Kernels, fills and copies follow one another. */
TEST(test_operations_of_all_kinds_keep_the_order) {
  enum { COUNT = 64 };
  uint32_t *a = test_words(t, COUNT), *b = test_words(t, COUNT), *c = test_words(t, COUNT);
  const uint32_t host[COUNT] = {[0] = 5, [COUNT - 1] = 6};
  assert_ok(rondo_fill_async(t->stream, &(rondo_fill){.dst = b, .value = 7, .element_bytes = 4, .width = COUNT}));
  assert_ok(rondo_copy_async(t->stream, a, host, sizeof host));
  test_affine(t, t->stream, a, COUNT, 10, 1);
  assert_ok(
      rondo_launch(t->stream, test_kernel(t, TEST_KERNEL_COMBINE), (rondo_grid){COUNT, 0, 0}, RONDO_ARGS(&a, &b, &c)));
  assert_ok(rondo_copy_async(t->stream, a, c, sizeof host));
  test_affine(t, t->stream, a, COUNT, 2, 0);
  uint32_t expected[COUNT];
  for (int i = 0; i < COUNT; i++) expected[i] = 2 * ((host[i] * 10 + 1) * 31 + 7);
  assert_words(t, a, expected, COUNT);
}

/* A blocked stream delays no other stream and no thread that waits for another. */
static void streams_are_independent(test_fixture *t) {
  rondo_stream *other = test_stream(t, "other");
  uint32_t *words = test_words(t, 2);
  test_gate gate;
  test_gate_init(&gate);
  test_gate_hold(&gate, t->stream);
  test_affine(t, t->stream, words, 1, 1, 1);
  test_affine(t, other, words + 1, 1, 1, 2);
  assert_ok(rondo_stream_synchronize(other));
  assert_ok(rondo_stream_query(other));
  assert_status(rondo_stream_query(t->stream), RONDO_NOT_READY);
  uint32_t read = 0;
  assert_ok(rondo_copy_async(other, &read, words + 1, sizeof read));
  assert_ok(rondo_stream_synchronize(other));
  assert_int_equal(read, 2);
  test_gate_open(&gate);
  assert_int_equal(test_word(t, words), 1);
  assert_ok(rondo_stream_query(t->stream));
  test_stream_destroy(other);
  test_gate_destroy(&gate);
  test_words_free(t, words);
}

TEST_WORKERS(test_streams_are_independent) {
  test_skip_if_serial();
  streams_are_independent(t);
}

TEST(test_streams_are_independent_with_few_workers) {
  test_skip_if_serial();
  streams_are_independent(t);
}

TEST(test_many_streams_at_once) {
  enum { STREAMS = 64, ROUNDS = 50 };
  rondo_stream *streams[STREAMS];
  uint32_t *words = test_words(t, STREAMS), expected[STREAMS];
  for (int i = 0; i < STREAMS; i++) streams[i] = test_stream(t, NULL);
  for (uint32_t k = 0; k < ROUNDS; k++) {
    for (int i = 0; i < STREAMS; i++) test_affine(t, streams[i], words + i, 1, 3, (uint32_t)i + k);
  }
  for (uint32_t i = 0; i < STREAMS; i++) {
    expected[i] = 0;
    for (uint32_t k = 0; k < ROUNDS; k++) expected[i] = expected[i] * 3 + i + k;
  }
  for (int i = 0; i < STREAMS; i++) assert_ok(rondo_stream_synchronize(streams[i]));
  assert_words(t, words, expected, STREAMS);
}

TEST(test_destroying_a_stream_waits_for_its_work) {
  uint32_t *word = test_words(t, 1);
  for (int i = 0; i < 20; i++) {
    rondo_stream *stream = test_stream(t, "short");
    for (int k = 0; k < 50; k++) test_affine(t, stream, word, 1, 1, 1);
    test_stream_destroy(stream);
  }
  assert_int_equal(test_word(t, word), 1000);
}

typedef struct gate_opener {
  test_gate *gate;
  atomic_uint *enqueued;
  uint32_t seen;
} gate_opener;

/* Opens the gate when the host has stopped handing work over, because the queue is full. */
static void open_when_full(void *user) {
  gate_opener *opener = user;
  uint32_t before = 0;
  do {
    before = atomic_load(opener->enqueued);
    test_sleep_ms(20);
  } while (before == 0 || atomic_load(opener->enqueued) != before);
  opener->seen = before;
  test_gate_open(opener->gate);
}

typedef struct enqueuer {
  test_fixture *fixture;
  uint32_t *word;
  atomic_uint *enqueued;
  rondo_status status;
} enqueuer;

enum { ENQUEUED = 20000 };

static void enqueue_many(void *user) {
  enqueuer *work = user;
  const uint32_t one = 1;
  rondo_kernel *kernel = work->fixture->kernels[TEST_KERNEL_AFFINE];
  for (int i = 0; i < ENQUEUED && work->status == RONDO_OK; i++) {
    work->status =
        rondo_launch(work->fixture->stream, kernel, (rondo_grid){1, 0, 0}, RONDO_ARGS(&one, &one, &work->word));
    atomic_fetch_add(work->enqueued, 1);
  }
}

/* A blocked stream accepts work until its queue is full; then the caller waits, and nothing is lost. */
TEST_WORKERS(test_a_full_queue_makes_the_caller_wait) {
  test_skip_if_serial();
  uint32_t *word = test_words(t, 1);
  test_kernel(t, TEST_KERNEL_AFFINE);
  atomic_uint enqueued = 0;
  test_gate *gate = test_gate_make();
  test_gate_hold(gate, t->stream);
  gate_opener opener = {.gate = gate, .enqueued = &enqueued};
  enqueuer work = {.fixture = t, .word = word, .enqueued = &enqueued};
  const test_thread threads[2] = {{open_when_full, &opener}, {enqueue_many, &work}};
  test_on_threads(threads, 2);
  assert_int_equal(work.status, RONDO_OK);
  assert_true(opener.seen > 0);
  assert_int_equal(test_word(t, word), ENQUEUED);
}

/* Failures -------------------------------------------------------------------------------------------------------- */

static rondo_status count(void *user) {
  atomic_fetch_add((atomic_uint *)user, 1);
  return RONDO_OK;
}

TEST(test_a_failure_comes_out_once_and_later_work_runs) {
  atomic_uint ran = 0;
  assert_ok(rondo_host_async(t->stream, test_host_fails, NULL));
  for (int i = 0; i < 10; i++) assert_ok(rondo_host_async(t->stream, count, &ran));
  assert_error(rondo_stream_synchronize(t->stream), RONDO_EXECUTION_FAILED, RONDO_REASON_HOST_FUNCTION_FAILED);
  assert_message("IO_ERROR");
  assert_int_equal(atomic_load(&ran), 10);
  assert_ok(rondo_stream_synchronize(t->stream));
}

TEST(test_a_failure_says_which_stream) {
  rondo_stream *stream = test_stream(t, "loader");
  assert_ok(rondo_host_async(stream, test_host_fails, NULL));
  assert_error(rondo_stream_synchronize(stream), RONDO_EXECUTION_FAILED, RONDO_REASON_HOST_FUNCTION_FAILED);
  assert_message("loader");
}

TEST(test_a_failure_stays_with_its_stream) {
  rondo_stream *other = test_stream(t, "clean");
  assert_ok(rondo_host_async(t->stream, test_host_fails, NULL));
  atomic_uint ran = 0;
  assert_ok(rondo_host_async(other, count, &ran));
  assert_ok(rondo_stream_synchronize(other));
  assert_error(rondo_stream_synchronize(t->stream), RONDO_EXECUTION_FAILED, RONDO_REASON_HOST_FUNCTION_FAILED);
}

TEST(test_a_query_returns_the_failure_too) {
  assert_ok(rondo_host_async(t->stream, test_host_fails, NULL));
  rondo_status status = RONDO_NOT_READY;
  while (status == RONDO_NOT_READY) status = rondo_stream_query(t->stream);
  assert_error(status, RONDO_EXECUTION_FAILED, RONDO_REASON_HOST_FUNCTION_FAILED);
  assert_ok(rondo_stream_query(t->stream));
}

TEST(test_a_device_synchronisation_returns_the_failure) {
  assert_ok(rondo_host_async(t->stream, test_host_fails, NULL));
  assert_error(rondo_device_synchronize(t->device), RONDO_EXECUTION_FAILED, RONDO_REASON_HOST_FUNCTION_FAILED);
  assert_ok(rondo_stream_synchronize(t->stream));
}

/* A synchronisation of the device returns one stream's failure. The others keep theirs. */
TEST(test_each_stream_returns_its_own_failure) {
  enum { STREAMS = 4 };
  static const char *const names[STREAMS] = {"ash", "birch", "cedar", "elm"};
  rondo_stream *streams[STREAMS];
  bool told[STREAMS] = {false};
  for (int i = 0; i < STREAMS; i++) {
    streams[i] = test_stream(t, names[i]);
    assert_ok(rondo_host_async(streams[i], test_host_fails, NULL));
  }
  for (int i = 0; i < 2; i++) {
    assert_error(rondo_device_synchronize(t->device), RONDO_EXECUTION_FAILED, RONDO_REASON_HOST_FUNCTION_FAILED);
    for (int k = 0; k < STREAMS; k++) {
      if (strstr(rondo_last_error()->message, names[k]) == NULL) continue;
      assert_false(told[k]);
      told[k] = true;
    }
  }
  for (int i = 0; i < STREAMS; i++) {
    const rondo_status status = i % 2 == 0 ? rondo_stream_synchronize(streams[i]) : rondo_stream_query(streams[i]);
    if (told[i]) {
      assert_ok(status);
    } else {
      assert_error(status, RONDO_EXECUTION_FAILED, RONDO_REASON_HOST_FUNCTION_FAILED);
      assert_message(names[i]);
    }
    told[i] = true;
  }
  assert_ok(rondo_device_synchronize(t->device));
}

/* However they meet: as many failures are returned as there are, where each is waited for. */
static void *wait_for_device(void *user) {
  test_fixture *t = user;
  uintptr_t failures = 0;
  for (int i = 0; i < 300; i++) failures += rondo_device_synchronize(t->device) == RONDO_EXECUTION_FAILED;
  return (void *)failures;
}

TEST(test_failures_are_returned_once_each) {
  enum { ROUNDS = 300 };
  uintptr_t failures = 0;
  void *elsewhere;
  pthread_t thread;
  assert_int_equal(pthread_create(&thread, NULL, wait_for_device, t), 0);
  for (int i = 0; i < ROUNDS; i++) {
    rondo_event *event = test_event(t);
    assert_ok(rondo_host_async(t->stream, test_host_fails, NULL));
    assert_ok(rondo_event_record(event, t->stream));
    assert_ok(rondo_event_synchronize(event));
    failures += rondo_stream_synchronize(t->stream) == RONDO_EXECUTION_FAILED;
    rondo_event_destroy(event);
  }
  assert_int_equal(pthread_join(thread, &elsewhere), 0);
  assert_int_equal(failures + (uintptr_t)elsewhere, ROUNDS);
}

TEST(test_a_failing_node_is_named) {
  rondo_graph *graph = test_graph(t);
  rondo_node first = {0}, node = {0};
  rondo_node_params params = {.kind = RONDO_NODE_HOST, .name = "tokenise", .as.host = {.function = test_host_fails}};
  assert_ok(rondo_graph_add_empty(graph, NULL, 0, &first));
  assert_ok(rondo_graph_add(graph, &first, 1, &params, &node));
  rondo_exec *exec = test_instantiate(graph);
  for (int i = 0; i < 3; i++) {
    assert_ok(rondo_exec_launch(exec, t->stream));
    assert_error(rondo_stream_synchronize(t->stream), RONDO_EXECUTION_FAILED, RONDO_REASON_HOST_FUNCTION_FAILED);
    assert_message("tokenise");
    assert_int_equal(rondo_last_error()->node, rondo_node_number(node));
  }
}

/* Nodes after a failed node of the graph still run. */
TEST(test_successors_of_a_failed_node_run) {
  uint32_t *word = test_words(t, 1);
  rondo_graph *graph = test_graph(t);
  rondo_node failing = {0};
  assert_ok(rondo_graph_add_host(graph, NULL, 0, test_host_fails, NULL, &failing));
  test_add_affine(t, graph, &failing, 1, word, 1, 1);
  rondo_exec *exec = test_instantiate(graph);
  assert_ok(rondo_exec_launch(exec, t->stream));
  assert_error(rondo_stream_synchronize(t->stream), RONDO_EXECUTION_FAILED, RONDO_REASON_HOST_FUNCTION_FAILED);
  assert_int_equal(test_word(t, word), 1);
}

/* Bad operations -------------------------------------------------------------------------------------------------- */

TEST(test_bad_copies_are_refused) {
  uint32_t *words = test_words(t, 16);
  uint32_t host[16] = {0};
  assert_fails(rondo_copy_async(t->stream, words, host, 0), RONDO_INVALID_ARGUMENT);
  assert_fails(rondo_copy_async(t->stream, NULL, host, 4), RONDO_INVALID_ARGUMENT);
  assert_fails(rondo_copy_async(t->stream, words, NULL, 4), RONDO_INVALID_ARGUMENT);
  const rondo_copy bad[] = {
      {.dst = words, .src = host, .width = 0, .height = 4},
      {.dst = words, .src = host, .width = 8, .height = 2, .dst_pitch = 7},
      {.dst = words, .src = host, .width = 8, .height = 2, .src_pitch = 4},
      {.dst = words, .src = host, .width = 8, .height = 2, .depth = 2, .dst_slice_pitch = 15},
      {.dst = words, .src = host, .width = 8, .height = 2, .depth = 2, .src_slice_pitch = 8},
      {.dst = words, .src = host, .width = SIZE_MAX / 2, .height = 3, .depth = 3},
  };
  for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
    assert_invalid(rondo_copy_box_async(t->stream, &bad[i]), RONDO_REASON_BAD_SIZE);
  }
  assert_fails(rondo_copy_box_async(t->stream, NULL), RONDO_INVALID_ARGUMENT);
  const uint32_t zeros[16] = {0};
  assert_words(t, words, zeros, 16);
}

TEST(test_bad_fills_are_refused) {
  uint32_t *words = test_words(t, 16);
  const rondo_fill bad[] = {
      {.dst = words, .value = 1, .element_bytes = 3, .width = 4},
      {.dst = words, .value = 1, .element_bytes = 0, .width = 4},
      {.dst = words, .value = 1, .element_bytes = 8, .width = 4},
      {.dst = words, .value = 1, .element_bytes = 4, .width = 0},
      {.dst = words, .value = 1, .element_bytes = 4, .width = 4, .height = 2, .pitch = 15},
      {.dst = words, .value = 1, .element_bytes = 4, .width = SIZE_MAX / 2},
  };
  for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
    assert_invalid(rondo_fill_async(t->stream, &bad[i]), RONDO_REASON_BAD_SIZE);
  }
  assert_fails(rondo_fill_async(t->stream, &(rondo_fill){.element_bytes = 1, .width = 1}), RONDO_INVALID_ARGUMENT);
  assert_fails(rondo_fill_async(t->stream, NULL), RONDO_INVALID_ARGUMENT);
  assert_invalid(rondo_host_async(t->stream, NULL, NULL), RONDO_REASON_NULL_ARGUMENT);
  const uint32_t zeros[16] = {0};
  assert_words(t, words, zeros, 16);
}
