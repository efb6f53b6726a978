/* SPDX-License-Identifier: MIT
 * The recording object: its states and modes (RC-1), that captured work does not run before the replay (RC-2), and who
 * owns its memory (RC-3).
 */
#include "support/rondo_test.h"

#include <string.h>

enum { WORDS = 64, MIB = 1 << 20, LIMIT = 16 * MIB };

static rondo_recording *make_recording(const test_fixture *t) {
  const rondo_recording_options options = {RONDO_RECORDING_OPTIONS_INIT, .name = "step"};
  return test_recording(t, &options);
}

static void begin(const test_fixture *t, rondo_recording *recording) {
  assert_ok(rondo_recording_capture_begin(recording, t->stream, RONDO_CAPTURE_THREAD_LOCAL));
}

static void end(const test_fixture *t, rondo_recording *recording) {
  assert_ok(rondo_recording_capture_end(recording, t->stream));
}

/* word = word * 3 + 1, recorded. */
static void capture(test_fixture *t, rondo_recording *recording, uint32_t *words) {
  begin(t, recording);
  test_affine(t, t->stream, words, WORDS, 3, 1);
  end(t, recording);
}

static void replay(const test_fixture *t, rondo_recording *recording) {
  assert_ok(rondo_recording_replay(recording, t->stream));
}

static void assert_state(const rondo_recording *recording, rondo_recording_state state) {
  assert_int_equal(test_recording_info(recording).state, state);
  assert_true((rondo_recording_exec(recording) != NULL) == (state == RONDO_RECORDING_READY));
  assert_true((rondo_recording_graph(recording) != NULL) == (state == RONDO_RECORDING_READY));
}

/* States ---------------------------------------------------------------------------------------------------------- */

/* RC-1, RC-2: one object, in each mode, again and again. */
TEST(test_rc1_captures_replays_and_resets) {
  static const rondo_capture_mode modes[] = {RONDO_CAPTURE_GLOBAL, RONDO_CAPTURE_THREAD_LOCAL, RONDO_CAPTURE_RELAXED};
  uint32_t *words = test_words(t, WORDS), expected = 0;
  rondo_recording *recording = make_recording(t);
  for (size_t i = 0; i < 3; i++) {
    assert_state(recording, RONDO_RECORDING_EMPTY);
    assert_ok(rondo_recording_capture_begin(recording, t->stream, modes[i]));
    assert_state(recording, RONDO_RECORDING_CAPTURING);
    test_affine(t, t->stream, words, WORDS, 3, (uint32_t)i + 1);
    end(t, recording);
    assert_state(recording, RONDO_RECORDING_READY);
    assert_int_equal(test_word(t, words), expected);
    for (int k = 0; k < 4; k++) {
      replay(t, recording);
      expected = expected * 3 + (uint32_t)i + 1;
    }
    assert_int_equal(test_word(t, words + WORDS - 1), expected);
    assert_int_equal(test_recording_info(recording).node_count, 1);
    rondo_recording_reset(recording);
    assert_error(rondo_recording_replay(recording, t->stream), RONDO_INVALID_STATE, RONDO_REASON_WAS_RESET);
    assert_message("was reset and holds nothing to replay: capture again");
  }
  const rondo_recording_info info = test_recording_info(recording);
  assert_int_equal(info.captures, 3);
  assert_int_equal(info.replays, 12);
  assert_int_equal(info.resets, 3);
}

TEST(test_rc1_calls_in_the_wrong_state) {
  uint32_t *words = test_words(t, WORDS);
  rondo_recording *recording = make_recording(t);
  assert_error(rondo_recording_replay(recording, t->stream), RONDO_INVALID_STATE, RONDO_REASON_NOT_CAPTURED);
  assert_message("recording 'step'");
  assert_message("holds nothing to replay: capture first");
  assert_error(rondo_recording_capture_end(recording, t->stream), RONDO_INVALID_STATE, RONDO_REASON_NOT_CAPTURING);
  begin(t, recording);
  test_affine(t, t->stream, words, WORDS, 3, 1);
  assert_error(rondo_recording_capture_begin(recording, t->stream, RONDO_CAPTURE_GLOBAL), RONDO_INVALID_STATE,
               RONDO_REASON_ALREADY_CAPTURING);
  assert_message("is capturing the work of stream 1: end that capture first");
  assert_error(rondo_recording_replay(recording, t->stream), RONDO_INVALID_STATE, RONDO_REASON_ALREADY_CAPTURING);
  assert_message("is capturing the work of stream 1: end the capture first");
  assert_error(rondo_recording_destroy(recording), RONDO_INVALID_STATE, RONDO_REASON_ALREADY_CAPTURING);
  assert_message("end the capture, or reset the recording, first");
  assert_int_equal(test_capture_state(t->stream), RONDO_CAPTURE_ACTIVE);
  end(t, recording);
  assert_error(rondo_recording_capture_begin(recording, t->stream, RONDO_CAPTURE_GLOBAL), RONDO_INVALID_STATE,
               RONDO_REASON_ALREADY_CAPTURED);
  assert_message("already holds a capture: reset it first, or use another recording");
  assert_error(rondo_recording_capture_end(recording, t->stream), RONDO_INVALID_STATE, RONDO_REASON_NOT_CAPTURING);
  assert_int_equal(test_capture_state(t->stream), RONDO_CAPTURE_NONE);
  replay(t, recording);
  assert_int_equal(test_word(t, words), 1);
}

TEST(test_rc1_bad_arguments) {
  rondo_stream *foreign = NULL;
  rondo_recording *recording = (rondo_recording *)t;
  rondo_recording_options options = {RONDO_RECORDING_OPTIONS_INIT, .relocate = true};
  assert_reason(rondo_recording_create(NULL, NULL, &recording), RONDO_REASON_NULL_ARGUMENT);
  assert_null(recording);
  assert_reason(rondo_recording_create(t->device, NULL, NULL), RONDO_REASON_NULL_ARGUMENT);
  options.struct_size = 2;
  assert_reason(rondo_recording_create(t->device, &options, &recording), RONDO_REASON_BAD_OPTIONS);
  recording = make_recording(t);
  rondo_device *other = test_device(test_device_name(), NULL);
  assert_ok(rondo_stream_create(other, NULL, &foreign));
  assert_reason(rondo_recording_capture_begin(recording, foreign, RONDO_CAPTURE_GLOBAL), RONDO_REASON_OTHER_DEVICE);
  assert_reason(rondo_recording_capture_begin(recording, NULL, RONDO_CAPTURE_GLOBAL), RONDO_REASON_NULL_ARGUMENT);
  assert_reason(rondo_recording_capture_begin(recording, t->stream, (rondo_capture_mode)7), RONDO_REASON_BAD_OPTIONS);
  assert_reason(rondo_recording_capture_begin(NULL, t->stream, RONDO_CAPTURE_GLOBAL), RONDO_REASON_NULL_ARGUMENT);
  assert_reason(rondo_recording_capture_end(recording, NULL), RONDO_REASON_NULL_ARGUMENT);
  assert_reason(rondo_recording_replay(NULL, t->stream), RONDO_REASON_NULL_ARGUMENT);
  assert_reason(rondo_recording_replay(recording, foreign), RONDO_REASON_OTHER_DEVICE);
  assert_reason(rondo_recording_get_info(recording, NULL), RONDO_REASON_NULL_ARGUMENT);
  assert_null(rondo_recording_graph(NULL));
  assert_null(rondo_recording_exec(NULL));
  rondo_recording_reset(NULL);
  assert_ok(rondo_recording_destroy(NULL));
  assert_state(recording, RONDO_RECORDING_EMPTY);
  assert_error(rondo_device_close(t->device), RONDO_INVALID_STATE, RONDO_REASON_STILL_IN_USE);
  assert_message("1 recording");
  assert_ok(rondo_recording_destroy(recording));
  assert_ok(rondo_stream_destroy(foreign));
}

/* RC-1: the capture continues, and ends where it began. */
TEST(test_rc1_the_end_on_another_stream) {
  uint32_t *words = test_words(t, WORDS);
  rondo_stream *joined = test_stream(t, "joined"), *apart = test_stream(t, "apart");
  rondo_recording *recording = make_recording(t);
  begin(t, recording);
  test_affine(t, t->stream, words, WORDS, 3, 1);
  test_order(t, t->stream, joined);
  assert_error(rondo_recording_capture_end(recording, joined), RONDO_CAPTURE_REFUSED, RONDO_REASON_UNMATCHED_STREAM);
  assert_error(rondo_recording_capture_end(recording, apart), RONDO_CAPTURE_REFUSED, RONDO_REASON_UNMATCHED_STREAM);
  assert_message("apart");
  assert_message("end the capture on that stream");
  test_affine(t, joined, words, WORDS, 5, 0);
  test_order(t, joined, t->stream);
  end(t, recording);
  replay(t, recording);
  assert_int_equal(test_word(t, words), 5);
}

/* A call on a separate thread. */
typedef struct elsewhere {
  const test_fixture *t;
  rondo_recording *recording;
  rondo_status status;
  rondo_reason reason;
} elsewhere;

static void end_elsewhere(void *user) {
  elsewhere *self = user;
  self->status = rondo_recording_capture_end(self->recording, self->t->stream);
  if (self->status != RONDO_OK) self->reason = rondo_last_error()->reason;
}

static void reset_elsewhere(void *user) { rondo_recording_reset(((elsewhere *)user)->recording); }

TEST(test_rc1_the_end_on_another_thread) {
  uint32_t *words = test_words(t, WORDS);
  elsewhere other = {.t = t, .recording = make_recording(t)};
  begin(t, other.recording);
  test_affine(t, t->stream, words, WORDS, 3, 1);
  test_on_thread(end_elsewhere, &other);
  assert_int_equal(other.status, RONDO_CAPTURE_REFUSED);
  assert_int_equal(other.reason, RONDO_REASON_WRONG_THREAD);
  assert_state(other.recording, RONDO_RECORDING_CAPTURING);
  end(t, other.recording);
  rondo_recording_reset(other.recording);
  assert_ok(rondo_recording_capture_begin(other.recording, t->stream, RONDO_CAPTURE_RELAXED));
  test_affine(t, t->stream, words, WORDS, 3, 1);
  test_on_thread(end_elsewhere, &other);
  assert_int_equal(other.status, RONDO_OK);
  replay(t, other.recording);
  assert_int_equal(test_word(t, words), 1);
  assert_ok(rondo_recording_destroy(other.recording));
}

/* RC-1: in every state, any number of times, and the last error stays. */
TEST(test_rc1_reset_never_fails) {
  uint32_t *words = test_words(t, WORDS);
  rondo_recording *recording = make_recording(t);
  assert_reason(rondo_recording_replay(recording, NULL), RONDO_REASON_NULL_ARGUMENT);
  for (int i = 0; i < 2; i++) rondo_recording_reset(recording);
  assert_int_equal(test_recording_info(recording).resets, 0);
  begin(t, recording);
  test_affine(t, t->stream, words, WORDS, 3, 1);
  for (int i = 0; i < 2; i++) rondo_recording_reset(recording);
  assert_int_equal(test_capture_state(t->stream), RONDO_CAPTURE_NONE);
  assert_state(recording, RONDO_RECORDING_EMPTY);
  begin(t, recording);
  assert_fails(rondo_stream_synchronize(t->stream), RONDO_CAPTURE_REFUSED);
  assert_reason(rondo_recording_replay(NULL, NULL), RONDO_REASON_NULL_ARGUMENT);
  for (int i = 0; i < 2; i++) rondo_recording_reset(recording); /* of an invalid one */
  assert_int_equal(rondo_last_error()->reason, RONDO_REASON_NULL_ARGUMENT);
  capture(t, recording, words);
  replay(t, recording);
  for (int i = 0; i < 2; i++) rondo_recording_reset(recording);
  assert_int_equal(test_recording_info(recording).resets, 3);
  assert_int_equal(test_word(t, words), 1);
}

/* RC-1: a capture that another thread began cannot be ended from here; it is invalid and the recording free. */
TEST(test_rc1_reset_on_another_thread) {
  uint32_t *words = test_words(t, WORDS);
  rondo_graph *graph = NULL;
  elsewhere other = {.t = t, .recording = make_recording(t)};
  begin(t, other.recording);
  test_affine(t, t->stream, words, WORDS, 3, 1);
  test_on_thread(reset_elsewhere, &other);
  assert_state(other.recording, RONDO_RECORDING_EMPTY);
  assert_error(rondo_capture_end(t->stream, &graph), RONDO_CAPTURE_INVALID, RONDO_REASON_INVALIDATED);
  assert_message("rondo_recording_reset");
  capture(t, other.recording, words);
  replay(t, other.recording);
  assert_int_equal(test_word(t, words), 1);
  assert_ok(rondo_recording_destroy(other.recording));
}

/* RC-1: a capture that another call ends leaves the recording empty and usable. */
TEST(test_rc1_captures_that_others_end) {
  uint32_t *words = test_words(t, WORDS);
  rondo_recording *recording = make_recording(t);
  begin(t, recording);
  test_graph_destroy(test_capture_end(t->stream));
  assert_state(recording, RONDO_RECORDING_EMPTY);
  assert_error(rondo_recording_capture_end(recording, t->stream), RONDO_INVALID_STATE, RONDO_REASON_NOT_CAPTURING);
  assert_message("another call has ended its capture");
  rondo_stream *stream = test_stream(t, "short-lived");
  assert_ok(rondo_recording_capture_begin(recording, stream, RONDO_CAPTURE_GLOBAL));
  test_stream_destroy(stream);
  assert_state(recording, RONDO_RECORDING_EMPTY);
  capture(t, recording, words);
  replay(t, recording);
  assert_int_equal(test_word(t, words), 1);
}

/* RC-1, C10: without the stream that it began on, a capture is ended on another of its streams, or by the reset. */
TEST(test_rc1_the_stream_of_a_capture_is_destroyed) {
  uint32_t *words = test_words(t, WORDS);
  rondo_recording *recording = make_recording(t);
  for (int i = 0; i < 2; i++) {
    rondo_graph *graph = NULL;
    rondo_stream *origin = test_stream(t, "origin"), *side = test_stream(t, "side");
    assert_ok(rondo_recording_capture_begin(recording, origin, RONDO_CAPTURE_THREAD_LOCAL));
    test_order(t, origin, side);
    test_stream_destroy(origin);
    assert_state(recording, RONDO_RECORDING_CAPTURING);
    assert_error(rondo_recording_capture_end(recording, t->stream), RONDO_CAPTURE_REFUSED,
                 RONDO_REASON_UNMATCHED_STREAM);
    assert_state(recording, RONDO_RECORDING_CAPTURING);
    if (i == 0) {
      assert_error(rondo_recording_capture_end(recording, side), RONDO_CAPTURE_INVALID, RONDO_REASON_INVALIDATED);
    } else {
      rondo_recording_reset(recording);
      assert_error(rondo_capture_end(side, &graph), RONDO_CAPTURE_INVALID, RONDO_REASON_INVALIDATED);
    }
    assert_message("destruction of stream 'origin'");
    assert_state(recording, RONDO_RECORDING_EMPTY);
    assert_ok(rondo_stream_synchronize(side));
    test_stream_destroy(side);
  }
  capture(t, recording, words);
  replay(t, recording);
  assert_int_equal(test_word(t, words), 1);
}

/* RC-1: captures that fail at the end leave nothing, and the next one is fine. */
TEST(test_rc1_captures_that_fail) {
  uint32_t *words = test_words(t, WORDS);
  const rondo_fill fill = {.dst = words, .value = 5, .element_bytes = 4, .width = WORDS};
  rondo_stream *fork = test_stream(t, "fork");
  rondo_recording *recording = make_recording(t);
  begin(t, recording);
  test_order(t, t->stream, fork);
  test_affine(t, fork, words, WORDS, 3, 1);
  assert_error(rondo_recording_capture_end(recording, t->stream), RONDO_CAPTURE_REFUSED, RONDO_REASON_UNJOINED);
  assert_message("fork");
  assert_state(recording, RONDO_RECORDING_EMPTY);
  begin(t, recording); /* a race, found when it is instantiated */
  test_order(t, t->stream, fork);
  assert_ok(rondo_fill_async(t->stream, &fill));
  assert_ok(rondo_fill_async(fork, &fill));
  test_order(t, fork, t->stream);
  assert_error(rondo_recording_capture_end(recording, t->stream), RONDO_INVALID_GRAPH, RONDO_REASON_RACE);
  assert_message("recording 'step'");
  assert_state(recording, RONDO_RECORDING_EMPTY);
  assert_error(rondo_recording_replay(recording, t->stream), RONDO_INVALID_STATE, RONDO_REASON_NOT_CAPTURED);
  capture(t, recording, words);
  replay(t, recording);
  assert_int_equal(test_word(t, words), 1);
  assert_int_equal(test_recording_info(recording).captures, 1);
}

/* RC-1: destroy and reset change neither an active capture nor what it forbids. */
TEST(test_rc1_other_captures_are_not_disturbed) {
  uint32_t *words = test_words(t, WORDS);
  void *address = NULL;
  rondo_graph *graph = NULL;
  rondo_stream *other = test_stream(t, "other");
  rondo_recording *ready = make_recording(t), *open = make_recording(t);
  capture(t, ready, words);
  replay(t, ready);
  assert_ok(rondo_stream_synchronize(t->stream));
  assert_ok(rondo_capture_begin(other, RONDO_CAPTURE_GLOBAL));
  test_affine(t, other, words, WORDS, 2, 0);
  begin(t, open);
  rondo_recording_reset(open);
  assert_ok(rondo_recording_destroy(ready));
  assert_ok(rondo_recording_destroy(open));
  assert_int_equal(test_capture_state(other), RONDO_CAPTURE_ACTIVE);
  assert_error(rondo_malloc(t->device, 64, NULL, &address), RONDO_CAPTURE_REFUSED, RONDO_REASON_UNSUPPORTED_CALL);
  assert_fails(rondo_capture_end(other, &graph), RONDO_CAPTURE_INVALID);
  test_stream_destroy(other);
  assert_int_equal(test_word(t, words), 1);
}

TEST(test_rc1_a_replay_cannot_be_captured) {
  uint32_t *words = test_words(t, WORDS);
  rondo_graph *graph = NULL;
  rondo_recording *recording = make_recording(t);
  capture(t, recording, words);
  assert_ok(rondo_capture_begin(t->stream, RONDO_CAPTURE_THREAD_LOCAL));
  assert_error(rondo_recording_replay(recording, t->stream), RONDO_CAPTURE_REFUSED, RONDO_REASON_UNSUPPORTED_CALL);
  assert_error(rondo_capture_end(t->stream, &graph), RONDO_CAPTURE_INVALID, RONDO_REASON_INVALIDATED);
  assert_message("rondo_recording_replay");
  replay(t, recording);
  assert_int_equal(test_word(t, words), 1);
}

/* A recorder on a separate thread. */
typedef struct recorder {
  rondo_recording *recording;
  rondo_stream *stream;
  rondo_kernel *kernel;
  uint32_t *words;
  rondo_status status;
} recorder;

enum { ROUNDS = 30, REPLAYS = 3 };

static rondo_status record_once(const recorder *self) {
  const uint32_t factor = 3, term = 1;
  void *scratch = NULL;
  rondo_status status = rondo_recording_capture_begin(self->recording, self->stream, RONDO_CAPTURE_THREAD_LOCAL);
  if (status == RONDO_OK) status = rondo_malloc_async(self->stream, MIB, NULL, &scratch);
  if (status == RONDO_OK) status = rondo_copy_async(self->stream, scratch, self->words, 4);
  if (status == RONDO_OK)
    status = rondo_launch(self->stream, self->kernel, (rondo_grid){1, 0, 0}, RONDO_ARGS(&factor, &term, &scratch));
  if (status == RONDO_OK) status = rondo_copy_async(self->stream, self->words, scratch, 4);
  if (status == RONDO_OK) status = rondo_free_async(self->stream, scratch);
  return status == RONDO_OK ? rondo_recording_capture_end(self->recording, self->stream) : status;
}

static void record_often(void *user) {
  recorder *self = user;
  for (int i = 0; i < ROUNDS && self->status == RONDO_OK; i++) {
    self->status = record_once(self);
    for (int k = 0; k < REPLAYS && self->status == RONDO_OK; k++)
      self->status = rondo_recording_replay(self->recording, self->stream);
    rondo_recording_reset(self->recording);
  }
}

/* RC-1, GX-11: recordings of one device that capture, replay and reset on threads of their own. */
TEST(test_rc1_recordings_of_several_threads) {
  recorder recorders[3];
  test_thread threads[3];
  uint32_t expected = 0;
  const uint64_t before = test_memory_statistics(t).graph_reserved;
  for (int i = 0; i < 3; i++) {
    recorders[i] = (recorder){.recording = make_recording(t),
                              .stream = test_stream(t, "own"),
                              .kernel = test_kernel(t, TEST_KERNEL_AFFINE),
                              .words = test_words(t, 1)};
    threads[i] = (test_thread){record_often, &recorders[i]};
  }
  for (int i = 0; i < ROUNDS * REPLAYS; i++) expected = expected * 3 + 1;
  test_on_threads(threads, 3);
  for (int i = 0; i < 3; i++) {
    assert_int_equal(recorders[i].status, RONDO_OK);
    assert_int_equal(test_word(t, recorders[i].words), expected);
    assert_ok(rondo_recording_destroy(recorders[i].recording));
    test_stream_destroy(recorders[i].stream);
    test_words_free(t, recorders[i].words);
  }
  assert_int_equal(test_memory_statistics(t).graph_reserved, before);
}

typedef struct call_inside {
  rondo_recording *recording;
  rondo_stream *stream;
  rondo_status replayed, destroyed;
} call_inside;

static rondo_status use_recording(void *user) {
  call_inside *self = user;
  self->replayed = rondo_recording_replay(self->recording, self->stream);
  rondo_recording_reset(self->recording);
  self->destroyed = rondo_recording_destroy(self->recording);
  return RONDO_OK;
}

TEST(test_rc1_host_functions_leave_recordings_alone) {
  uint32_t *words = test_words(t, WORDS);
  call_inside inside = {.recording = make_recording(t), .stream = t->stream};
  capture(t, inside.recording, words);
  assert_ok(rondo_host_async(t->stream, use_recording, &inside));
  assert_ok(rondo_stream_synchronize(t->stream));
  assert_int_equal(inside.replayed, RONDO_INVALID_STATE);
  assert_int_equal(inside.destroyed, RONDO_INVALID_STATE);
  assert_state(inside.recording, RONDO_RECORDING_READY);
  assert_ok(rondo_recording_destroy(inside.recording));
}

/* RC-2 ------------------------------------------------------------------------------------------------------------ */

/* Memory from before the capture has its bytes until the replay, however often the stream is waited for. */
TEST(test_rc2_captured_work_does_not_run) {
  uint32_t *words = test_words(t, WORDS), values[WORDS], after[WORDS];
  for (uint32_t i = 0; i < WORDS; i++) values[i] = 1000 + i, after[i] = (1000 + i) * 3 + 1;
  test_write(t, words, values, sizeof values);
  rondo_recording *recording = make_recording(t);
  capture(t, recording, words);
  assert_ok(rondo_device_synchronize(t->device));
  assert_words(t, words, values, WORDS);
  replay(t, recording);
  assert_words(t, words, after, WORDS);
  rondo_recording_reset(recording);
  assert_words(t, words, after, WORDS);
}

/* out = in + 10, where `out` is allocated in the capture and stays. */
static uint32_t *capture_plus_ten(test_fixture *t, rondo_recording *recording, uint32_t *in, size_t bytes) {
  void *out = NULL, *scratch = NULL;
  begin(t, recording);
  assert_ok(rondo_malloc_async(t->stream, bytes, &(rondo_malloc_options){.name = "out"}, &out));
  assert_ok(rondo_malloc_async(t->stream, bytes, &(rondo_malloc_options){.name = "scratch"}, &scratch));
  assert_ok(rondo_copy_async(t->stream, scratch, in, WORDS * sizeof(uint32_t)));
  test_affine(t, t->stream, scratch, WORDS, 1, 10);
  assert_ok(rondo_copy_async(t->stream, out, scratch, WORDS * sizeof(uint32_t)));
  assert_ok(rondo_free_async(t->stream, scratch));
  end(t, recording);
  return out;
}

/* Output of the capture's own is refused before the first replay, and then follows the input at one address. */
TEST(test_rc2_output_is_there_after_the_first_replay) {
  uint32_t *in = test_words(t, WORDS), seen = 0;
  rondo_recording *recording = make_recording(t);
  const uint32_t *out = capture_plus_ten(t, recording, in, WORDS * sizeof(uint32_t));
  assert_error(rondo_copy_async(t->stream, &seen, out, sizeof seen), RONDO_INVALID_LIFETIME,
               RONDO_REASON_NOT_ALLOCATED);
  for (uint32_t batch = 1; batch < 6; batch++) {
    test_write(t, in, &batch, sizeof batch);
    replay(t, recording);
    assert_int_equal(test_word(t, out), batch + 10);
    assert_int_equal(test_word(t, out + 1), 10);
  }
}

/* RC-3 ------------------------------------------------------------------------------------------------------------ */

static uint64_t graph_reserved(const test_fixture *t) { return test_memory_statistics(t).graph_reserved; }

/* Two recordings and a graph, launched one after another on one stream: none has memory of another's. */
TEST(test_rc3_the_pool_is_private) {
  uint32_t *in = test_words(t, WORDS);
  const uint64_t before = graph_reserved(t);
  const uint32_t one = 1, two = 2;
  rondo_recording *first = make_recording(t), *second = make_recording(t);
  const uint32_t *kept = capture_plus_ten(t, first, in, 3 * MIB);
  const uint64_t own = test_recording_info(first).pool_bytes;
  assert_true(own >= 6 * MIB);
  assert_int_equal(graph_reserved(t), before + own);
  const uint32_t *other = capture_plus_ten(t, second, in, 3 * MIB);
  assert_int_equal(graph_reserved(t), before + 2 * own);
  test_write(t, in, &one, sizeof one);
  replay(t, first);
  test_write(t, in, &two, sizeof two);
  replay(t, second);
  assert_ok(rondo_stream_synchronize(t->stream));
  assert_ok(rondo_graph_memory_trim(t->device));
  assert_int_equal(graph_reserved(t), before + 2 * own);
  assert_int_equal(test_word(t, kept), 11);
  assert_int_equal(test_word(t, other), 12);
  replay(t, second);
  assert_int_equal(test_word(t, kept), 11);
  rondo_recording_reset(second);
  assert_int_equal(graph_reserved(t), before + own);
  assert_int_equal(test_recording_info(second).pool_bytes, 0);
  replay(t, first);
  assert_int_equal(test_word(t, kept), 12);
  assert_ok(rondo_recording_destroy(first));
  assert_int_equal(graph_reserved(t), before);
}

/* Replays ask for no memory and map nothing, whatever the stream. */
TEST(test_rc3_replays_map_nothing) {
  uint32_t *in = test_words(t, WORDS);
  rondo_stream *other = test_stream(t, "other");
  rondo_recording *recording = make_recording(t);
  const uint32_t *out = capture_plus_ten(t, recording, in, 3 * MIB);
  const uint64_t maps = test_statistics(t).maps, remaps = test_memory_statistics(t).remaps;
  for (uint32_t i = 0; i < 8; i++) assert_ok(rondo_recording_replay(recording, i % 2 == 0 ? t->stream : other));
  assert_ok(rondo_device_synchronize(t->device));
  assert_int_equal(test_statistics(t).maps, maps);
  assert_int_equal(test_memory_statistics(t).remaps, remaps);
  assert_int_equal(test_word(t, out), 10);
}

/* Reset waits for replays in flight, and the memory is free when it returns. What the user freed is not freed twice. */
TEST(test_rc3_reset_gives_the_memory_back) {
  uint32_t *in = test_words(t, WORDS);
  const uint64_t before = graph_reserved(t);
  rondo_recording *recording = make_recording(t);
  for (int i = 0; i < 3; i++) {
    uint32_t *out = capture_plus_ten(t, recording, in, 2 * MIB);
    for (int k = 0; k < 20; k++) replay(t, recording);
    if (i == 1) assert_ok(rondo_free_async(t->stream, out));
    rondo_recording_reset(recording);
    if (i == 1) assert_ok(rondo_stream_synchronize(t->stream));
    assert_int_equal(graph_reserved(t), before);
  }
}

/* A plan of the work's lifetimes, chosen when the capture ends or from an earlier run (RC-3, GM-2). */
TEST(test_rc3_planned_memory) {
  uint32_t *in = test_words(t, WORDS);
  rondo_profile *profile = NULL;
  rondo_recording *recording = NULL;
  rondo_profile_info used = {.struct_size = sizeof used};
  const rondo_plan_options plan = {RONDO_PLAN_OPTIONS_INIT, .budget_steps = 1000};
  assert_ok(rondo_profile_begin(t->stream));
  void *scratch = test_allocate_async(t->stream, MIB);
  assert_ok(rondo_free_async(t->stream, scratch));
  assert_ok(rondo_profile_end(t->stream, &plan, &profile));
  rondo_recording_options options = {RONDO_RECORDING_OPTIONS_INIT, .profile = profile, .relocate = true, .plan = &plan};
  assert_reason(rondo_recording_create(t->device, &options, &recording), RONDO_REASON_BAD_OPTIONS);
  assert_message("has both relocate and a profile: use only one of them");
  for (int i = 0; i < 2; i++) {
    options.profile = i == 0 ? profile : NULL;
    options.relocate = i == 1;
    assert_ok(rondo_recording_create(t->device, &options, &recording));
    if (i == 0) rondo_profile_destroy(profile);
    begin(t, recording);
    assert_ok(rondo_malloc_async(t->stream, MIB, NULL, &scratch));
    assert_ok(rondo_copy_async(t->stream, scratch, in, WORDS * sizeof(uint32_t)));
    test_affine(t, t->stream, scratch, WORDS, 2, 7);
    assert_ok(rondo_copy_async(t->stream, in, scratch, WORDS * sizeof(uint32_t)));
    assert_ok(rondo_free_async(t->stream, scratch));
    end(t, recording);
    replay(t, recording);
    assert_int_equal(test_word(t, in), i == 0 ? 7 : 21);
    if (i == 1) assert_int_equal(test_exec_info(rondo_recording_exec(recording)).planned_bytes, MIB);
    assert_ok(rondo_recording_destroy(recording));
  }
}

/* A separate CPU device with a memory limit. */
static int set_up_limited(void **state) {
  return test_setup_with(state, (rondo_device_options){RONDO_DEVICE_OPTIONS_INIT, .memory_limit_bytes = LIMIT});
}

/* Captures work on `bytes` of scratch memory. Returns the status of the end of the capture. */
static rondo_status capture_scratch(test_fixture *t, rondo_recording *recording, size_t bytes) {
  void *scratch = NULL;
  begin(t, recording);
  assert_ok(rondo_malloc_async(t->stream, bytes, &(rondo_malloc_options){.name = "scratch"}, &scratch));
  assert_ok(rondo_fill_async(t->stream, &(rondo_fill){.dst = scratch, .value = 7, .element_bytes = 4, .width = 64}));
  assert_ok(rondo_free_async(t->stream, scratch));
  return rondo_recording_capture_end(recording, t->stream);
}

#define LIMITED_TEST(name) TEST_DEFINE(name, test_fixture *t, set_up_limited, test_teardown)

/* RC-3: cached memory is released when memory runs out: first that of a pool that keeps everything, then that of
 * another stream's graphs. */
LIMITED_TEST(test_rc3_caches_make_room) {
  if (!test_device_is("cpu")) skip();
  const rondo_pool_options keeps = {.name = "keeps all", .release_threshold = UINT64_MAX};
  rondo_pool *pool = NULL;
  void *address = NULL;
  rondo_recording *recording = make_recording(t);
  assert_ok(rondo_pool_create(t->device, &keeps, &pool));
  assert_ok(rondo_malloc_async(t->stream, 12 * MIB, &(rondo_malloc_options){.pool = pool}, &address));
  assert_ok(rondo_free_async(t->stream, address));
  assert_ok(rondo_stream_synchronize(t->stream));
  assert_ok(capture_scratch(t, recording, 6 * MIB));
  replay(t, recording);
  rondo_recording_reset(recording);
  rondo_stream *other = test_stream(t, "other");
  rondo_graph *graph = test_graph(t);
  rondo_node node;
  assert_ok(rondo_graph_add_alloc(graph, NULL, 0, 14 * MIB, "large", &address, &node));
  assert_ok(rondo_graph_add_free(graph, &node, 1, address, &node));
  rondo_exec *exec = test_instantiate(graph);
  assert_ok(rondo_exec_launch(exec, other));
  assert_ok(rondo_stream_synchronize(other));
  assert_ok(capture_scratch(t, recording, 5 * MIB));
  replay(t, recording);
  assert_int_equal(graph_reserved(t), test_recording_info(recording).pool_bytes);
  assert_fails(rondo_exec_launch(exec, other), RONDO_OUT_OF_MEMORY); /* a recording's memory is not held for later */
  replay(t, recording);
  assert_ok(rondo_stream_synchronize(t->stream));
  rondo_recording_reset(recording);
  assert_ok(rondo_exec_launch(exec, other));
  rondo_exec_destroy(exec);
  test_graph_destroy(graph);
  test_stream_destroy(other);
  assert_ok(rondo_recording_destroy(recording));
  assert_ok(rondo_pool_destroy(pool));
}

/* RC-3: trimming releases it earlier, for any later allocation. A recording keeps its own memory. */
TEST(test_rc3_caches_are_emptied) {
  const rondo_pool_options keeps = {.name = "keeps all", .release_threshold = UINT64_MAX};
  rondo_pool *pool = NULL;
  void *address = NULL;
  rondo_recording *recording = make_recording(t);
  assert_ok(capture_scratch(t, recording, 2 * MIB));
  replay(t, recording);
  assert_ok(rondo_pool_create(t->device, &keeps, &pool));
  assert_ok(rondo_malloc_async(t->stream, 3 * MIB, &(rondo_malloc_options){.pool = pool}, &address));
  assert_ok(rondo_free_async(t->stream, address));
  rondo_graph *graph = test_graph(t);
  rondo_node node;
  assert_ok(rondo_graph_add_alloc(graph, NULL, 0, 3 * MIB, "large", &address, &node));
  assert_ok(rondo_graph_add_free(graph, &node, 1, address, &node));
  rondo_exec *exec = test_instantiate(graph);
  test_launch(t, exec);
  rondo_pool_statistics now = test_pool_statistics(pool);
  assert_true(now.reserved > 0 || test_is_guarded(t));
  assert_ok(rondo_memory_trim(t->device));
  now = test_pool_statistics(pool);
  assert_int_equal(now.reserved, 0);
  assert_int_equal(graph_reserved(t), test_recording_info(recording).pool_bytes);
  replay(t, recording);
  assert_ok(rondo_exec_launch(exec, t->stream));
  rondo_recording_reset(recording);
  begin(t, recording);
  assert_error(rondo_memory_trim(t->device), RONDO_CAPTURE_REFUSED, RONDO_REASON_UNSUPPORTED_CALL);
  rondo_recording_reset(recording);
  rondo_exec_destroy(exec);
  test_graph_destroy(graph);
  assert_ok(rondo_recording_destroy(recording));
  assert_ok(rondo_pool_destroy(pool));
}

/* RC-3: with no memory at all, the end of the capture fails and names the holders of the memory. Nothing is held, and
 * later attempts succeed. */
LIMITED_TEST(test_rc3_no_room) {
  if (!test_device_is("cpu")) skip();
  rondo_recording *recording = make_recording(t);
  void *weights = test_allocate(t, 12 * MIB, "weights");
  assert_fails(capture_scratch(t, recording, 6 * MIB), RONDO_OUT_OF_MEMORY);
  assert_message("recording 'step'");
  assert_message("'weights' 12.0 MiB");
  assert_state(recording, RONDO_RECORDING_EMPTY);
  assert_int_equal(graph_reserved(t), 0);
  assert_ok(rondo_free(t->device, weights));
  assert_ok(capture_scratch(t, recording, 6 * MIB));
  replay(t, recording);
  assert_ok(rondo_recording_destroy(recording));
  assert_int_equal(graph_reserved(t), 0);
}

/* RC-1: a device without graph memory records work that needs none. */
static int set_up_lacking(void **state) {
  return test_setup_with(state, (rondo_device_options){RONDO_DEVICE_OPTIONS_INIT, .no_memory_nodes = true});
}

#define LACKING_TEST(name) TEST_DEFINE(name, test_fixture *t, set_up_lacking, test_teardown)

LACKING_TEST(test_rc1_devices_without_graph_memory) {
  if (!test_device_is("cpu")) skip();
  uint32_t *words = test_words(t, WORDS);
  void *address = NULL;
  rondo_recording *recording = make_recording(t);
  begin(t, recording);
  assert_fails(rondo_malloc_async(t->stream, 64, NULL, &address), RONDO_UNSUPPORTED);
  test_affine(t, t->stream, words, WORDS, 3, 1);
  end(t, recording);
  replay(t, recording);
  assert_int_equal(test_word(t, words), 1);
  assert_int_equal(test_recording_info(recording).pool_bytes, 0);
  assert_ok(rondo_memory_trim(t->device));
}
