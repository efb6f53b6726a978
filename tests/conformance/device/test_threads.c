/* SPDX-License-Identifier: MIT
 * GX-10: launches from 1, 2, 4 and 8 threads at once are correct. GX-11: two captures at once, and a third thread that
 * allocates, do not affect each other.
 */
#include "support/rondo_test.h"

#include <stdatomic.h>

/* GX-10 ----------------------------------------------------------------------------------------------------------- */

enum { MOST_THREADS = 8, LAUNCHES = 1500 };

typedef struct launcher {
  test_fixture *fixture;
  rondo_stream *stream;
  rondo_exec *exec;
  uint32_t *word;
  rondo_status status;
} launcher;

/* Launches an exec and kernels in alternation, on a stream of its own. */
static void launch_often(void *user) {
  launcher *self = user;
  rondo_kernel *kernel = self->fixture->kernels[TEST_KERNEL_AFFINE];
  const uint32_t three = 3, one = 1;
  for (int i = 0; i < LAUNCHES && self->status == RONDO_OK; i++) {
    self->status = rondo_exec_launch(self->exec, self->stream);
    if (self->status != RONDO_OK) break;
    self->status = rondo_launch(self->stream, kernel, (rondo_grid){1, 0, 0}, RONDO_ARGS(&three, &one, &self->word));
    if (self->status == RONDO_OK && i % 100 == 99) self->status = rondo_stream_synchronize(self->stream);
  }
  const rondo_status waited = rondo_stream_synchronize(self->stream);
  if (self->status == RONDO_OK) self->status = waited;
}

static void launch_from_threads(test_fixture *t, size_t count) {
  launcher launchers[MOST_THREADS];
  test_thread threads[MOST_THREADS];
  uint32_t *words = test_words(t, count), expected[MOST_THREADS];
  test_kernel(t, TEST_KERNEL_AFFINE);
  for (size_t i = 0; i < count; i++) {
    rondo_graph *graph = test_graph(t);
    rondo_node node = test_add_affine(t, graph, NULL, 0, words + i, 5, (uint32_t)i);
    test_add_affine(t, graph, &node, 1, words + i, 7, 2);
    launchers[i] =
        (launcher){.fixture = t, .stream = test_stream(t, NULL), .exec = test_instantiate(graph), .word = words + i};
    threads[i] = (test_thread){.function = launch_often, .user = &launchers[i]};
    test_graph_destroy(graph);
    expected[i] = 0;
    for (int k = 0; k < LAUNCHES; k++) expected[i] = ((expected[i] * 5 + (uint32_t)i) * 7 + 2) * 3 + 1;
  }
  test_on_threads(threads, count);
  for (size_t i = 0; i < count; i++) {
    assert_int_equal(launchers[i].status, RONDO_OK);
    rondo_exec_destroy(launchers[i].exec);
    test_stream_destroy(launchers[i].stream);
  }
  assert_words(t, words, expected, count);
  test_words_free(t, words);
}

TEST(test_gx10_launches_from_one_thread) { launch_from_threads(t, 1); }
TEST(test_gx10_launches_from_two_threads) { launch_from_threads(t, 2); }
TEST(test_gx10_launches_from_four_threads) { launch_from_threads(t, 4); }
TEST(test_gx10_launches_from_eight_threads) { launch_from_threads(t, 8); }

/* Several threads create, launch and destroy graphs and execs of one device at once. */
typedef struct builder {
  test_fixture *fixture;
  uint32_t *word;
  rondo_status status;
} builder;

static rondo_status build_and_run(builder *self, rondo_stream *stream) {
  rondo_kernel *kernel = self->fixture->kernels[TEST_KERNEL_AFFINE];
  const uint32_t one = 1;
  rondo_graph *graph = NULL;
  rondo_exec *exec = NULL;
  rondo_node node = {0};
  rondo_status status = rondo_graph_create(self->fixture->device, NULL, &graph);
  for (uint32_t i = 0; i < 10 && status == RONDO_OK; i++) {
    status = rondo_graph_add_kernel(graph, &node, i > 0, kernel, (rondo_grid){1, 0, 0},
                                    RONDO_ARGS(&one, &one, &self->word), &node);
  }
  if (status == RONDO_OK) status = rondo_instantiate(graph, NULL, &exec);
  if (status == RONDO_OK) status = rondo_exec_launch(exec, stream);
  rondo_exec_destroy(exec);
  const rondo_status destroyed = rondo_graph_destroy(graph);
  return status == RONDO_OK ? destroyed : status;
}

static void build_often(void *user) {
  builder *self = user;
  rondo_stream *stream = NULL;
  self->status = rondo_stream_create(self->fixture->device, NULL, &stream);
  for (int i = 0; i < 100 && self->status == RONDO_OK; i++) self->status = build_and_run(self, stream);
  const rondo_status destroyed = rondo_stream_destroy(stream);
  if (self->status == RONDO_OK) self->status = destroyed;
}

TEST(test_gx10_threads_build_and_destroy_at_once) {
  enum { THREADS = 4 };
  builder builders[THREADS];
  test_thread threads[THREADS];
  uint32_t *words = test_words(t, THREADS);
  test_kernel(t, TEST_KERNEL_AFFINE);
  for (int i = 0; i < THREADS; i++) {
    builders[i] = (builder){.fixture = t, .word = words + i};
    threads[i] = (test_thread){.function = build_often, .user = &builders[i]};
  }
  test_on_threads(threads, THREADS);
  for (int i = 0; i < THREADS; i++) assert_int_equal(builders[i].status, RONDO_OK);
  const uint32_t expected[THREADS] = {1000, 1000, 1000, 1000};
  assert_words(t, words, expected, THREADS);
}

/* GX-11 ----------------------------------------------------------------------------------------------------------- */

enum { CAPTURES = 60, CAPTURED_KERNELS = 25 };

typedef struct capturer {
  test_fixture *fixture;
  rondo_stream *stream, *side;
  uint32_t *word;
  rondo_capture_mode mode;
  rondo_status status;
  uint32_t wrong; /* captures whose graph had another number of nodes */
  atomic_uint *running;
} capturer;

/* One capture with scratch memory and a second stream; its graph is then run. */
static rondo_status record(capturer *self, rondo_graph **out) {
  rondo_kernel *kernel = self->fixture->kernels[TEST_KERNEL_AFFINE];
  const uint32_t one = 1;
  void *scratch = NULL;
  rondo_event *event = NULL;
  rondo_status status = rondo_capture_begin(self->stream, self->mode);
  if (status != RONDO_OK) return status;
  status = rondo_malloc_async(self->stream, 1000, NULL, &scratch);
  if (status == RONDO_OK) status = rondo_event_create(self->fixture->device, NULL, &event);
  if (status == RONDO_OK) status = rondo_event_record(event, self->stream);
  if (status == RONDO_OK) status = rondo_stream_wait_event(self->side, event);
  for (int i = 0; i < CAPTURED_KERNELS && status == RONDO_OK; i++) {
    status = rondo_launch(self->side, kernel, (rondo_grid){1, 0, 0}, RONDO_ARGS(&one, &one, &self->word));
  }
  if (status == RONDO_OK) status = rondo_event_record(event, self->side);
  if (status == RONDO_OK) status = rondo_stream_wait_event(self->stream, event);
  if (status == RONDO_OK) status = rondo_free_async(self->stream, scratch);
  rondo_event_destroy(event);
  const rondo_status ended = rondo_capture_end(self->stream, out);
  return status == RONDO_OK ? ended : status;
}

static void capture_often(void *user) {
  capturer *self = user;
  for (int i = 0; i < CAPTURES && self->status == RONDO_OK; i++) {
    rondo_graph *graph = NULL;
    rondo_exec *exec = NULL;
    size_t count = 0;
    self->status = record(self, &graph);
    if (self->status == RONDO_OK) self->status = rondo_graph_nodes(graph, NULL, &count);
    if (count != CAPTURED_KERNELS + 2) self->wrong++;
    if (self->status == RONDO_OK) self->status = rondo_instantiate(graph, NULL, &exec);
    if (self->status == RONDO_OK) self->status = rondo_exec_launch(exec, self->stream);
    rondo_exec_destroy(exec);
    const rondo_status destroyed = rondo_graph_destroy(graph);
    if (self->status == RONDO_OK) self->status = destroyed;
  }
  atomic_fetch_sub(self->running, 1);
}

typedef struct allocating_thread {
  test_fixture *fixture;
  atomic_uint *running;
  rondo_status status;
  uint32_t rounds;
} allocating_thread;

static void allocate_often(void *user) {
  allocating_thread *self = user;
  while (atomic_load(self->running) > 0 && self->status == RONDO_OK) {
    void *memory = NULL;
    self->status = rondo_malloc(self->fixture->device, 1000 + 100 * (self->rounds % 50), NULL, &memory);
    if (self->status == RONDO_OK) self->status = rondo_free(self->fixture->device, memory);
    self->rounds++;
  }
}

static void capture_on_two_threads(test_fixture *t, rondo_capture_mode mode) {
  uint32_t *words = test_words(t, 2);
  atomic_uint running = 2;
  capturer capturers[2];
  allocating_thread allocating = {.fixture = t, .running = &running};
  test_kernel(t, TEST_KERNEL_AFFINE);
  for (int i = 0; i < 2; i++) {
    capturers[i] = (capturer){.fixture = t,
                              .stream = test_stream(t, NULL),
                              .side = test_stream(t, NULL),
                              .word = words + i,
                              .mode = mode,
                              .running = &running};
  }
  const test_thread threads[3] = {
      {capture_often, &capturers[0]}, {capture_often, &capturers[1]}, {allocate_often, &allocating}};
  test_on_threads(threads, 3);
  assert_int_equal(allocating.status, RONDO_OK);
  for (int i = 0; i < 2; i++) {
    assert_int_equal(capturers[i].status, RONDO_OK);
    assert_int_equal(capturers[i].wrong, 0);
    test_stream_destroy(capturers[i].stream);
    test_stream_destroy(capturers[i].side);
  }
  const uint32_t expected[2] = {CAPTURES * CAPTURED_KERNELS, CAPTURES * CAPTURED_KERNELS};
  assert_words(t, words, expected, 2);
  test_words_free(t, words);
}

TEST(test_gx11_two_captures_and_an_allocating_thread) { capture_on_two_threads(t, RONDO_CAPTURE_THREAD_LOCAL); }

TEST(test_gx11_two_relaxed_captures_and_an_allocating_thread) { capture_on_two_threads(t, RONDO_CAPTURE_RELAXED); }

/* GX-11: two captures at once on one thread, with interleaved calls. */
TEST(test_gx11_two_captures_on_one_thread) {
  rondo_stream *streams[2] = {t->stream, test_stream(t, "second")};
  uint32_t *words = test_words(t, 2), expected[2] = {0, 0};
  for (int i = 0; i < 2; i++) assert_ok(rondo_capture_begin(streams[i], RONDO_CAPTURE_THREAD_LOCAL));
  for (uint32_t k = 0; k < 20; k++) {
    for (uint32_t i = 0; i < 2; i++) {
      test_affine(t, streams[i], words + i, 1, 3 + i, k);
      expected[i] = expected[i] * (3 + i) + k;
    }
  }
  rondo_graph *graphs[2];
  for (int i = 0; i < 2; i++) graphs[i] = test_capture_end(streams[i]);
  for (int i = 0; i < 2; i++) {
    rondo_exec *exec = test_instantiate(graphs[i]);
    assert_ok(rondo_exec_launch(exec, t->stream));
    rondo_exec_destroy(exec);
    test_graph_destroy(graphs[i]);
  }
  assert_words(t, words, expected, 2);
  test_stream_destroy(streams[1]);
}
