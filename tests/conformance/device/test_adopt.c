/* SPDX-License-Identifier: MIT
 * Streams that were made elsewhere (AD-1). On CUDA, a library that does not know Rondo owns them. On a CPU device,
 * their owner is a stream of another handle of the device. In both cases the owner enqueues work between Rondo's calls.
 */
#include <stdio.h>
#include <string.h>

#include "support/foreign_library.h"
#include "support/rondo_test.h"
#include "support/test_scene.h"
#include "support/test_session.h"

enum { WORDS = 8, ROUNDS = 20 };
#define assert_foreign(call) assert_int_equal((call), 0)

typedef struct owner {
  test_fixture *t;
  foreign_library *foreign; /* on CUDA */
  rondo_device *device;     /* elsewhere */
  rondo_stream *stream;
  rondo_kernel *affine;
  void *native;
} owner;

/* One at a time. The teardown closes the library. */
static owner current;

static void close_foreign(void *library) { foreign_close(library); }

static owner *own(test_fixture *t, void *native) {
  current = (owner){.t = t, .native = native};
  if (!test_device_is("cuda")) return &current;
  current.foreign = foreign_open();
  assert_non_null(current.foreign);
  (void)test_leave(close_foreign, current.foreign);
  return &current;
}

static owner *own_stream(test_fixture *t) {
  owner *of = own(t, NULL);
  if (of->foreign != NULL) {
    assert_foreign(foreign_stream_create(of->foreign, FOREIGN_NON_BLOCKING, &of->native));
    return of;
  }
  of->device = test_device(test_device_name(), NULL);
  assert_ok(rondo_stream_create(of->device, NULL, &of->stream));
  assert_ok(rondo_kernel_create(of->device, test_kernel_options(TEST_KERNEL_AFFINE), &of->affine));
  of->native = rondo_stream_native(of->stream);
  return of;
}

static void end_owner(const owner *of) {
  if (of->foreign != NULL) {
    assert_foreign(foreign_stream_destroy(of->foreign, of->native));
    return;
  }
  rondo_kernel_destroy(of->affine);
  assert_ok(rondo_stream_destroy(of->stream));
  assert_ok(rondo_device_close(of->device));
}

/* The owner's work: word = word * factor + term. The word is host memory that both devices can access. */
static void owner_affine(const owner *of, uint32_t factor, uint32_t term, uint32_t *word) {
  if (of->foreign != NULL)
    assert_foreign(foreign_affine(of->foreign, of->native, factor, term, word));
  else
    assert_ok(rondo_launch(of->stream, of->affine, (rondo_grid){1, 0, 0}, RONDO_ARGS(&factor, &term, &word)));
}

static rondo_stream *adopt(const owner *of) {
  rondo_stream *stream;
  const rondo_stream_options options = {RONDO_STREAM_OPTIONS_INIT, .name = "adopted"};
  assert_ok(rondo_stream_adopt(of->t->device, of->native, &options, &stream));
  return stream;
}

/* Memory that work of the owner and of the fixture's device can access. */
static uint32_t *common_words(const owner *of) {
  if (of->foreign != NULL) return test_words(of->t, WORDS);
  static uint32_t words[WORDS];
  memset(words, 0, sizeof words);
  return words;
}

static void free_common(const owner *of, uint32_t *words) {
  if (of->foreign != NULL) test_words_free(of->t, words);
}

static uint32_t read_common(const owner *of, rondo_stream *stream, const uint32_t *word) {
  uint32_t value;
  assert_ok(rondo_stream_synchronize(stream));
  if (of->foreign == NULL) return *word;
  assert_ok(rondo_copy_async(stream, &value, word, sizeof value));
  assert_ok(rondo_stream_synchronize(stream));
  return value;
}

/* Order ------------------------------------------------------------------------------------------------------------ */

/* The owner and Rondo take turns, launch by launch, and exec by exec. */
TEST(test_ad1_work_of_both_runs_in_order) {
  const owner *of = own_stream(t);
  rondo_stream *stream = adopt(of), *second = adopt(of);
  uint32_t *word = common_words(of), expected = 0;
  rondo_graph *graph = test_graph(t);
  (void)test_add_affine(t, graph, NULL, 0, word, 5, 2);
  rondo_exec *exec = test_instantiate(graph);
  for (uint32_t i = 0; i < ROUNDS; i++) {
    owner_affine(of, 3, i, word);
    test_affine(t, i % 3 == 0 ? second : stream, word, 1, 7, 1);
    if (i % 4 == 0) assert_ok(rondo_exec_launch(exec, i % 8 == 0 ? stream : second));
    expected = (expected * 3 + i) * 7 + 1;
    if (i % 4 == 0) expected = expected * 5 + 2;
  }
  owner_affine(of, 11, 1, word);
  assert_int_equal(read_common(of, stream, word), expected * 11 + 1);
  assert_ok(rondo_stream_query(stream));
  test_stream_destroy(second);
  owner_affine(of, 2, 1, word);
  assert_int_equal(read_common(of, stream, word), (expected * 11 + 1) * 2 + 1);
  test_stream_destroy(stream);
  free_common(of, word);
  end_owner(of);
}

/* Destroying the handle leaves the stream, which its owner goes on using and may adopt again. */
TEST(test_ad1_the_owner_keeps_the_stream) {
  const owner *of = own_stream(t);
  uint32_t *word = common_words(of);
  for (uint32_t i = 0; i < 3; i++) {
    rondo_stream *stream = adopt(of);
    owner_affine(of, 1, 1, word);
    test_affine(t, stream, word, 1, 1, 1);
    test_stream_destroy(stream);
    owner_affine(of, 1, 1, word);
  }
  rondo_stream *stream = adopt(of);
  assert_int_equal(read_common(of, stream, word), 9);
  test_stream_destroy(stream);
  free_common(of, word);
  end_owner(of);
}

/* On a CPU device, the owner's handle may go first, with its device, and the others go on. */
TEST_WORKERS(test_ad1_handles_on_cpu_go_in_any_order) {
  if (!test_device_is("cpu")) skip();
  for (uint32_t round = 0; round < 2 * ROUNDS; round++) {
    const owner *of = own_stream(t);
    rondo_stream *streams[2] = {adopt(of), adopt(of)};
    uint32_t *word = common_words(of), expected = 0;
    for (uint32_t i = 0; i < 5; i++) {
      owner_affine(of, 3, i, word);
      test_affine(t, streams[i % 2], word, 1, 5, 1);
      expected = (expected * 3 + i) * 5 + 1;
    }
    if (round % 2 == 0) owner_affine(of, 1, 0, word);
    end_owner(of);
    for (uint32_t i = 0; i < 2; i++) {
      test_affine(t, streams[i], word, 1, 7, i);
      expected = expected * 7 + i;
    }
    test_stream_destroy(streams[round / 2 % 2]);
    assert_int_equal(read_common(of, streams[1 - round / 2 % 2], word), expected);
    test_stream_destroy(streams[1 - round / 2 % 2]);
  }
}

/* Events order an adopted stream with others, in both directions. */
TEST_WORKERS(test_ad1_events_order_adopted_streams) {
  test_skip_if_serial();
  const owner *of = own_stream(t);
  rondo_stream *stream = adopt(of);
  uint32_t *word = common_words(of);
  test_gate *gate = test_gate_make();
  test_gate_hold(gate, t->stream);
  test_affine(t, t->stream, word, 1, 1, 5);
  test_order(t, t->stream, stream);
  owner_affine(of, 3, 0, word);
  test_affine(t, stream, word, 1, 1, 1);
  test_order(t, stream, t->stream);
  test_affine(t, t->stream, word, 1, 2, 0);
  assert_status(rondo_stream_query(stream), RONDO_NOT_READY);
  test_gate_open(gate);
  assert_int_equal(read_common(of, t->stream, word), 32);
  test_stream_destroy(stream);
  free_common(of, word);
  end_owner(of);
}

/* Features --------------------------------------------------------------------------------------------------------- */

/* A capture on it, with a fork to another stream, memory, a fill, a copy and a host function. */
TEST(test_ad1_captures_on_adopted_streams) {
  const owner *of = own_stream(t);
  rondo_stream *stream = adopt(of), *other = test_stream(t, "other");
  uint32_t *words = test_words(t, WORDS), calls = 0;
  test_affine(t, t->stream, words, WORDS, 1, 4);
  assert_ok(rondo_stream_synchronize(t->stream));
  assert_ok(rondo_capture_begin(stream, RONDO_CAPTURE_THREAD_LOCAL));
  assert_reason(rondo_stream_synchronize(t->stream), RONDO_REASON_UNSUPPORTED_CALL);
  assert_error(rondo_capture_end(stream, &(rondo_graph *){NULL}), RONDO_CAPTURE_INVALID, RONDO_REASON_INVALIDATED);

  assert_ok(rondo_capture_begin(stream, RONDO_CAPTURE_THREAD_LOCAL));
  uint32_t *scratch = test_allocate_async(stream, WORDS * sizeof *words);
  assert_ok(rondo_copy_async(stream, scratch, words, WORDS * sizeof *words));
  test_affine(t, stream, scratch, WORDS, 3, 1);
  test_order(t, stream, other);
  test_affine(t, other, words, WORDS, 2, 0);
  test_order(t, other, stream);
  assert_ok(rondo_host_async(stream, test_host_count, &calls));
  assert_ok(rondo_launch(stream, test_kernel(t, TEST_KERNEL_COMBINE), (rondo_grid){WORDS, 0, 0},
                         RONDO_ARGS(&words, &scratch, &words)));
  assert_ok(rondo_free_async(stream, scratch));
  rondo_graph *graph = test_capture_end(stream);
  rondo_exec *exec = test_instantiate(graph);
  uint32_t expected = 4;
  for (uint32_t i = 0; i < 3; i++) {
    assert_ok(rondo_exec_launch(exec, i == 1 ? other : stream));
    expected = expected * 2 * 31 + expected * 3 + 1;
    assert_ok(rondo_stream_synchronize(i == 1 ? other : stream));
  }
  assert_int_equal(test_word(t, words + WORDS - 1), expected);
  assert_int_equal(calls, 3);
  test_stream_destroy(stream);
  end_owner(of);
}

/* Memory that is freed on it is allocated again on it, after the owner's work, and failures reach its handle. */
TEST(test_ad1_memory_and_failures_on_adopted_streams) {
  const owner *of = own_stream(t);
  rondo_stream *stream = adopt(of);
  uint32_t *word = common_words(of);
  for (uint32_t i = 0; i < ROUNDS; i++) {
    uint32_t *memory = test_allocate_async(stream, WORDS * sizeof *memory);
    assert_ok(rondo_fill_async(stream, &(rondo_fill){.dst = memory, .value = i, .element_bytes = 4, .width = WORDS}));
    owner_affine(of, 1, 1, word);
    test_affine(t, stream, memory, WORDS, 3, 1);
    uint32_t read = 0;
    assert_ok(rondo_copy_async(stream, &read, memory + 1, sizeof read));
    assert_ok(rondo_free_async(stream, memory));
    assert_ok(rondo_stream_synchronize(stream));
    assert_int_equal(read, i * 3 + 1);
  }
  assert_int_equal(read_common(of, stream, word), ROUNDS);
  assert_ok(rondo_host_async(stream, test_host_fails, NULL));
  assert_fails(rondo_stream_synchronize(stream), RONDO_EXECUTION_FAILED);
  assert_message("stream 'adopted'");
  assert_ok(rondo_stream_synchronize(stream));
  test_stream_destroy(stream);
  free_common(of, word);
  end_owner(of);
}

TEST(test_ad1_recordings_on_adopted_streams) {
  const owner *of = own_stream(t);
  rondo_stream *stream = adopt(of);
  uint32_t *words = test_words(t, WORDS);
  rondo_recording *recording = test_recording(t, NULL);
  assert_ok(rondo_recording_capture_begin(recording, stream, RONDO_CAPTURE_THREAD_LOCAL));
  test_affine(t, stream, words, WORDS, 3, 1);
  assert_ok(rondo_recording_capture_end(recording, stream));
  for (int i = 0; i < 4; i++) assert_ok(rondo_recording_replay(recording, stream));
  assert_ok(rondo_stream_synchronize(stream));
  assert_int_equal(test_word(t, words), 40);
  assert_ok(rondo_recording_destroy(recording));
  test_stream_destroy(stream);
  end_owner(of);
}

SCENE_TEST(test_ad1_trees_on_adopted_streams) {
  const owner *of = own_stream(s->fixture);
  s->stream = adopt(of);
  rondo_function *function = scene_affine(s, "f", 3, 1);
  uint32_t *words = scene_words(s, 5);
  for (int i = 0; i < 4; i++) scene_check(s, function, scene_at(words), 16, 3);
  assert_seen(s, "erpp");
  assert_ok(rondo_tree_destroy(s->tree));
  s->tree = NULL;
  test_stream_destroy(s->stream);
  s->stream = s->fixture->stream;
  end_owner(of);
}

/* The stream of a session belongs to it and can be adopted for work between its graphs. */
TEST(test_ad1_streams_of_sessions_are_adopted) {
  static test_request request;
  const size_t sizes[] = {4};
  rondo_stream *taken, *stream;
  rondo_session *session =
      test_session_open(t->device, (rondo_session_options){RONDO_SESSION_OPTIONS_INIT, .streams = 1});
  test_scorer_add(session, "scorer", (rondo_model_options){RONDO_MODEL_OPTIONS_INIT});
  test_scorer_capture(session, "scorer", sizes, 1);
  assert_ok(rondo_session_acquire_stream(session, "scorer", 0, &taken));
  assert_ok(rondo_stream_adopt(t->device, rondo_stream_native(taken), NULL, &stream));
  uint32_t *words = test_words(t, WORDS);
  test_affine(t, stream, words, WORDS, 1, 3);
  test_run_by_hand(session, taken, 0, 0, 4, 2);
  test_affine(t, stream, words, WORDS, 2, 1);
  assert_ok(rondo_stream_synchronize(taken));
  assert_int_equal(test_word(t, words), 7);
  test_stream_destroy(stream);
  assert_ok(rondo_session_release_stream(session, 0));
  test_request_fill(&request, 4, 1);
  (void)test_request_run(session, "scorer", &request, 4, RONDO_RUN_AUTO);
  assert_ok(rondo_session_destroy(session));
}

/* Refusals --------------------------------------------------------------------------------------------------------- */

TEST(test_ad1_refusals) {
  const owner *of = own_stream(t);
  rondo_stream *stream = t->stream;
  assert_invalid(rondo_stream_adopt(NULL, of->native, NULL, &stream), RONDO_REASON_NULL_ARGUMENT);
  assert_invalid(rondo_stream_adopt(t->device, of->native, NULL, NULL), RONDO_REASON_NULL_ARGUMENT);
  rondo_stream_options options = {RONDO_STREAM_OPTIONS_INIT, .priority = -1};
  assert_invalid(rondo_stream_adopt(t->device, of->native, &options, &stream), RONDO_REASON_BAD_OPTIONS);
  assert_null(stream);
  options = (rondo_stream_options){RONDO_STREAM_OPTIONS_INIT, .blocking = true};
  assert_invalid(rondo_stream_adopt(t->device, of->native, &options, &stream), RONDO_REASON_BAD_OPTIONS);

  rondo_stream *captured = adopt(of);
  assert_ok(rondo_capture_begin(captured, RONDO_CAPTURE_THREAD_LOCAL));
  void *const native = rondo_stream_native(captured);
  assert_error(rondo_stream_adopt(t->device, native, NULL, &stream), RONDO_INVALID_STATE,
               RONDO_REASON_ALREADY_CAPTURING);
  rondo_graph *graph = test_capture_end(captured);
  assert_int_equal(test_node_count(graph), 0);
  assert_ok(rondo_stream_adopt(t->device, native, NULL, &stream));
  test_stream_destroy(stream);
  test_stream_destroy(captured);
  end_owner(of);
}

/* A stream of another device, and one that does not exist any more. */
TEST(test_ad1_streams_of_others_are_refused) {
  char name[32];
  rondo_device *other;
  rondo_stream *theirs, *stream;
  const char *const base = test_device_is("cuda") ? "cuda" : test_device_name();
  (void)snprintf(name, sizeof name, "%s:1", strncmp(base, "cpu:0", 5) == 0 ? "cpu" : base);
  if (rondo_device_open(name, NULL, &other) != RONDO_OK) skip();
  assert_ok(rondo_stream_create(other, NULL, &theirs));
  void *const native = rondo_stream_native(theirs);
  assert_invalid(rondo_stream_adopt(t->device, native, NULL, &stream), RONDO_REASON_OTHER_DEVICE);
  assert_null(stream);
  assert_ok(rondo_stream_destroy(theirs));
  assert_ok(rondo_device_close(other));
  if (test_device_is("cpu"))
    assert_invalid(rondo_stream_adopt(t->device, native, NULL, &stream), RONDO_REASON_STREAM_GONE);
}

/* Priorities and flags --------------------------------------------------------------------------------------------- */

TEST(test_ad1_priorities_and_blocking_streams) {
  rondo_stream *stream;
  rondo_stream_options options = {RONDO_STREAM_OPTIONS_INIT, .priority = 1000};
  assert_invalid(rondo_stream_create(t->device, &options, &stream), RONDO_REASON_OUT_OF_RANGE);
  assert_message("1000");
  assert_null(stream);
  options =
      (rondo_stream_options){RONDO_STREAM_OPTIONS_INIT, .priority = test_device_is("cuda") ? -1 : 0, .blocking = true};
  assert_ok(rondo_stream_create(t->device, &options, &stream));
  uint32_t *words = test_words(t, WORDS);
  test_affine(t, stream, words, WORDS, 1, 2);
  assert_ok(rondo_capture_begin(stream, RONDO_CAPTURE_THREAD_LOCAL));
  test_affine(t, stream, words, WORDS, 5, 1);
  rondo_graph *graph = test_capture_end(stream);
  rondo_exec *exec = test_instantiate(graph);
  assert_ok(rondo_exec_launch(exec, stream));
  assert_ok(rondo_stream_synchronize(stream));
  assert_int_equal(test_word(t, words), 11);
  test_stream_destroy(stream);
}

/* Default streams of CUDA ------------------------------------------------------------------------------------------ */

/* Work on it runs in order, and captures are refused with the remedy. Functions of trees run eagerly. */
SCENE_TEST(test_ad1_the_legacy_default_stream) {
  if (!test_device_is("cuda")) skip();
  owner *of = own(s->fixture, NULL);
  for (int i = 0; i < 2; i++) {
    of->native = (void *)(uintptr_t)(i * FOREIGN_LEGACY);
    rondo_stream *stream = adopt(of);
    uint32_t *words = test_words(s->fixture, WORDS);
    owner_affine(of, 1, 5, words);
    test_affine(s->fixture, stream, words, 1, 3, 1);
    rondo_graph *graph = test_graph(s->fixture);
    (void)test_add_affine(s->fixture, graph, NULL, 0, words, 2, 1);
    assert_ok(rondo_exec_launch(test_exec_of(graph), stream));
    test_order(s->fixture, stream, s->fixture->stream);
    assert_ok(rondo_stream_synchronize(stream));
    assert_ok(rondo_stream_query(stream));
    assert_int_equal(test_word(s->fixture, words), 33);
    assert_error(rondo_capture_begin(stream, RONDO_CAPTURE_THREAD_LOCAL), RONDO_CAPTURE_REFUSED,
                 RONDO_REASON_UNSUPPORTED_CALL);
    assert_message("--default-stream per-thread");
    assert_int_equal(test_capture_state(stream), RONDO_CAPTURE_NONE);
    s->stream = stream;
    rondo_function *function = scene_affine(s, i == 0 ? "f" : "g", 3, 1);
    uint32_t *input = scene_words(s, 5);
    for (int k = 0; k < 3; k++) scene_check(s, function, scene_at(input), 16, 3);
    assert_seen(s, "eee");
    s->stream = s->fixture->stream;
    test_stream_destroy(stream);
  }
}

typedef struct thread_use {
  rondo_stream *stream;
  uint32_t *words;
  rondo_status submitted, waited;
  rondo_reason reason;
} thread_use;

static void use_elsewhere(void *user) {
  thread_use *use = user;
  use->submitted =
      rondo_fill_async(use->stream, &(rondo_fill){.dst = use->words, .value = 1, .element_bytes = 4, .width = WORDS});
  use->reason = rondo_last_error()->reason;
  use->waited = rondo_stream_synchronize(use->stream);
}

static void destroy_elsewhere(void *user) {
  thread_use *use = user;
  use->submitted = rondo_stream_destroy(use->stream);
}

/* The default stream of a thread can be captured, and belongs to its thread. */
TEST(test_ad1_the_default_stream_of_a_thread) {
  if (!test_device_is("cuda")) skip();
  owner *of = own(t, NULL);
  of->native = (void *)(uintptr_t)FOREIGN_PER_THREAD;
  rondo_stream *stream = adopt(of);
  uint32_t *words = test_words(t, WORDS);
  owner_affine(of, 1, 5, words);
  assert_ok(rondo_capture_begin(stream, RONDO_CAPTURE_THREAD_LOCAL));
  test_affine(t, stream, words, 1, 3, 1);
  owner_affine(of, 2, 0, words);
  rondo_graph *graph = test_capture_end(stream);
  assert_int_equal(test_node_count(graph), 2);
  rondo_exec *exec = test_instantiate(graph);
  assert_ok(rondo_exec_launch(exec, stream));
  assert_ok(rondo_stream_synchronize(stream));
  assert_int_equal(test_word(t, words), 32);
  thread_use use = {.stream = stream, .words = words};
  test_on_thread(use_elsewhere, &use);
  assert_int_equal(use.submitted, RONDO_INVALID_STATE);
  assert_int_equal(use.reason, RONDO_REASON_WRONG_THREAD);
  assert_int_equal(use.waited, RONDO_INVALID_STATE);
  assert_int_equal(test_word(t, words), 32);
  test_on_thread(destroy_elsewhere, &use);
  assert_int_equal(use.submitted, RONDO_OK);
}

static void end_elsewhere(void *user) {
  thread_use *use = user;
  rondo_graph *graph;
  use->submitted = rondo_capture_end(use->stream, &graph);
  use->reason = rondo_last_error()->reason;
  use->waited = rondo_stream_destroy(use->stream);
}

/* On another thread, its handle is another stream: neither the end nor the destruction would reach the capture. */
TEST(test_ad1_a_relaxed_capture_ends_on_the_thread_of_its_stream) {
  if (!test_device_is("cuda")) skip();
  owner *of = own(t, NULL);
  of->native = (void *)(uintptr_t)FOREIGN_PER_THREAD;
  rondo_stream *stream = adopt(of);
  uint32_t *words = test_words(t, WORDS);
  assert_ok(rondo_capture_begin(stream, RONDO_CAPTURE_RELAXED));
  test_affine(t, stream, words, 1, 3, 1);
  thread_use use = {.stream = stream};
  test_on_thread(end_elsewhere, &use);
  assert_int_equal(use.submitted, RONDO_CAPTURE_REFUSED);
  assert_int_equal(use.reason, RONDO_REASON_WRONG_THREAD);
  assert_int_equal(use.waited, RONDO_INVALID_STATE);
  assert_int_equal(test_node_count(test_capture_end(stream)), 1);
  assert_ok(rondo_stream_destroy(stream));
}

/* Work that reaches the legacy stream while a blocking stream captures ends the capture. The next call says so. */
TEST(test_ad1_work_on_the_legacy_stream_during_a_capture) {
  rondo_graph *graph;
  if (!test_device_is("cuda")) skip();
  owner *of = own(t, NULL);
  assert_foreign(foreign_stream_create(of->foreign, FOREIGN_BLOCKING, &of->native));
  rondo_stream *stream = adopt(of), *legacy;
  uint32_t *words = test_words(t, WORDS);
  assert_ok(rondo_stream_adopt(t->device, NULL, NULL, &legacy));
  assert_ok(rondo_capture_begin(stream, RONDO_CAPTURE_THREAD_LOCAL));
  test_affine(t, stream, words, 1, 3, 1);
  assert_int_equal(foreign_affine(of->foreign, (void *)(uintptr_t)FOREIGN_LEGACY, 1, 1, words), 906);
  assert_error(rondo_capture_end(stream, &graph), RONDO_CAPTURE_INVALID, RONDO_REASON_INVALIDATED);
  assert_message("legacy default stream");

  assert_ok(rondo_capture_begin(stream, RONDO_CAPTURE_THREAD_LOCAL));
  const uint32_t one = 1;
  assert_error(
      rondo_launch(legacy, test_kernel(t, TEST_KERNEL_AFFINE), (rondo_grid){1, 0, 0}, RONDO_ARGS(&one, &one, &words)),
      RONDO_CAPTURE_REFUSED, RONDO_REASON_UNSUPPORTED_CALL);
  assert_message("--default-stream per-thread");
  assert_fails(rondo_capture_end(stream, &graph), RONDO_CAPTURE_INVALID);
  test_stream_destroy(legacy);
  test_stream_destroy(stream);
  assert_foreign(foreign_stream_destroy(of->foreign, of->native));
}

/* The owner captures by itself: kernels become part of that, and a host function is refused. */
TEST(test_ad1_a_capture_of_the_owner) {
  if (!test_device_is("cuda")) skip();
  owner *of = own(t, NULL);
  assert_foreign(foreign_stream_create(of->foreign, FOREIGN_NON_BLOCKING, &of->native));
  rondo_stream *stream = adopt(of), *refused;
  uint32_t *words = test_words(t, WORDS), calls = 0;
  assert_foreign(foreign_begin_capture(of->foreign, of->native));
  assert_error(rondo_stream_adopt(t->device, of->native, NULL, &refused), RONDO_INVALID_STATE,
               RONDO_REASON_ALREADY_CAPTURING);
  assert_error(rondo_capture_begin(stream, RONDO_CAPTURE_THREAD_LOCAL), RONDO_CAPTURE_REFUSED,
               RONDO_REASON_ALREADY_CAPTURING);
  test_affine(t, stream, words, 1, 1, 1);
  assert_error(rondo_host_async(stream, test_host_count, &calls), RONDO_CAPTURE_REFUSED, RONDO_REASON_FOREIGN_WORK);
  assert_foreign(foreign_end_capture(of->foreign, of->native));
  assert_int_equal(test_word(t, words), 0);
  assert_ok(rondo_host_async(stream, test_host_count, &calls));
  assert_ok(rondo_stream_synchronize(stream));
  assert_int_equal(calls, 1);
  test_stream_destroy(stream);
  assert_foreign(foreign_stream_destroy(of->foreign, of->native));
}

/* Launches of execs, and waiting, end the owner's capture, as the driver does. The error says why. */
TEST(test_ad1_a_capture_of_the_owner_forbids_execs_and_waiting) {
  if (!test_device_is("cuda")) skip();
  owner *of = own_stream(t);
  rondo_stream *stream = adopt(of);
  uint32_t *words = test_words(t, WORDS);
  rondo_graph *graph = test_graph(t);
  (void)test_add_affine(t, graph, NULL, 0, words, 2, 1);
  rondo_exec *exec = test_instantiate(graph);
  for (int waits = 0; waits < 2; waits++) {
    assert_foreign(foreign_begin_capture(of->foreign, of->native));
    assert_error(waits ? rondo_stream_synchronize(stream) : rondo_exec_launch(exec, stream), RONDO_CAPTURE_REFUSED,
                 RONDO_REASON_UNSUPPORTED_CALL);
    assert_message("a capture that other code began");
    assert_error(rondo_exec_launch(exec, stream), RONDO_CAPTURE_REFUSED, RONDO_REASON_UNSUPPORTED_CALL);
    assert_int_equal(foreign_end_capture(of->foreign, of->native), FOREIGN_INVALIDATED);
  }
  assert_ok(rondo_exec_launch(exec, stream));
  assert_ok(rondo_stream_synchronize(stream));
  assert_int_equal(test_word(t, words), 1);
  test_stream_destroy(stream);
  end_owner(of);
}
