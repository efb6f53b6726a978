/* SPDX-License-Identifier: MIT
 * Adopted streams on the fake driver (AD-1): streams that their owner destroyed, what the driver is asked for, and the
 * context that is current.
 */
#include <rondo/rondo.h>

#include "fake_cuda/fake_fixture.h"
#include "support/foreign_library.h"

/* Found when it is adopted, by asking the driver, which is no misuse. */
FAKE_TEST(a_destroyed_stream_is_not_adopted) {
  foreign_library *foreign = foreign_open();
  rondo_stream *stream;
  void *native;
  assert_int_equal(foreign_stream_create(foreign, FOREIGN_NON_BLOCKING, &native), 0);
  assert_int_equal(foreign_stream_destroy(foreign, native), 0);
  assert_invalid(rondo_stream_adopt(t->device, native, NULL, &stream), RONDO_REASON_STREAM_GONE);
  assert_null(stream);
  assert_int_equal(fake->violations(), 0);
  foreign_close(foreign);
}

/* Streams that are captured, of another context, or gone: nothing is left, and the stream stays as it was. */
FAKE_TEST(streams_that_are_not_adopted) {
  foreign_library *foreign = foreign_open();
  void *const thread = (void *)(uintptr_t)FOREIGN_PER_THREAD;
  rondo_stream *stream, *theirs;
  rondo_device *other;
  void *native;
  assert_int_equal(foreign_stream_create(foreign, FOREIGN_BLOCKING, &native), 0);
  void *const captured[] = {native, thread};
  for (size_t i = 0; i < 2; i++) {
    assert_int_equal(foreign_begin_capture(foreign, captured[i]), 0);
    assert_error(rondo_stream_adopt(t->device, captured[i], NULL, &stream), RONDO_INVALID_STATE,
                 RONDO_REASON_ALREADY_CAPTURING);
    assert_null(stream);
    assert_int_equal(foreign_end_capture(foreign, captured[i]), 0); /* the refusal has not ended it */
  }
  assert_ok(rondo_device_open("cuda:1", NULL, &other));
  assert_ok(rondo_stream_create(other, NULL, &theirs));
  assert_invalid(rondo_stream_adopt(t->device, rondo_stream_native(theirs), NULL, &stream), RONDO_REASON_OTHER_DEVICE);
  assert_null(stream);
  void *const gone = rondo_stream_native(theirs);
  assert_ok(rondo_stream_destroy(theirs));
  assert_ok(rondo_device_close(other));
  assert_invalid(rondo_stream_adopt(t->device, gone, NULL, &stream), RONDO_REASON_STREAM_GONE);
  assert_int_equal(foreign_stream_destroy(foreign, native), 0);
  foreign_close(foreign);
}

/* What the driver may say about a stream that is gone, which loses no device. */
FAKE_TEST(codes_of_streams_that_are_gone) {
  static const unsigned codes[] = {1, 201, 400}; /* and 709, with which the fake driver loses the context */
  static const char *const calls[] = {"cuStreamGetCtx", "cuStreamGetCaptureInfo", "cuStreamGetFlags"};
  void *const native = rondo_stream_native(t->stream);
  rondo_stream *stream;
  for (size_t i = 0; i < 3; i++)
    for (size_t k = 0; k < 3; k++) {
      fake->fail_call(calls[k], 1, codes[i], false);
      assert_invalid(rondo_stream_adopt(t->device, native, NULL, &stream), RONDO_REASON_STREAM_GONE);
      assert_int_equal(rondo_last_error()->driver_code, codes[i]);
    }
  assert_ok(rondo_stream_synchronize(t->stream));
}

/* The owner destroys its stream too early. The handle still goes, after the work that it had. */
FAKE_TEST(an_owner_that_destroys_its_stream_too_early) {
  foreign_library *foreign = foreign_open();
  rondo_stream *stream;
  void *native;
  uint32_t *words = test_words(t, 4);
  assert_int_equal(foreign_stream_create(foreign, FOREIGN_NON_BLOCKING, &native), 0);
  assert_ok(rondo_stream_adopt(t->device, native, NULL, &stream));
  test_affine(t, stream, words, 4, 1, 7);
  assert_int_equal(foreign_stream_destroy(foreign, native), 0);
  const uint64_t before = fake->calls("cuCtxSynchronize");
  assert_fails(rondo_stream_destroy(stream), RONDO_EXECUTION_FAILED);
  assert_int_equal(fake->calls("cuCtxSynchronize"), before + 1);
  assert_int_equal(test_word(t, words), 7);
  fake->forget(); /* the violations */
  foreign_close(foreign);
}

/* Adopting neither makes nor destroys a stream of the driver. */
FAKE_TEST(the_drivers_streams_are_left_alone) {
  const size_t streams = fake->live(FAKE_CUDA_STREAM);
  const uint64_t made = fake->calls("cuStreamCreate"), destroyed = fake->calls("cuStreamDestroy");
  void *const natives[] = {rondo_stream_native(t->stream), NULL, (void *)(uintptr_t)FOREIGN_PER_THREAD};
  for (size_t i = 0; i < 3; i++) {
    rondo_stream *stream;
    assert_ok(rondo_stream_adopt(t->device, natives[i], NULL, &stream));
    assert_ptr_equal(rondo_stream_native(stream), natives[i]);
    test_stream_destroy(stream);
  }
  assert_int_equal(fake->live(FAKE_CUDA_STREAM), streams);
  assert_int_equal(fake->calls("cuStreamCreate"), made);
  assert_int_equal(fake->calls("cuStreamDestroy"), destroyed);
}

/* A launch on a created stream makes the same calls of the driver, adopted or not. */
static uint64_t calls_of_launches(test_fixture *t, rondo_stream *stream, rondo_exec *exec) {
  const uint64_t before = fake->calls(NULL);
  for (int i = 0; i < 10; i++) assert_ok(rondo_exec_launch(exec, stream));
  for (int i = 0; i < 10; i++)
    assert_ok(rondo_launch(stream, test_kernel(t, TEST_KERNEL_EMPTY), one_block, RONDO_NO_ARGS));
  const uint64_t calls = fake->calls(NULL) - before;
  assert_ok(rondo_stream_synchronize(stream));
  return calls;
}

FAKE_TEST(launches_cost_the_same_calls) {
  rondo_stream *stream;
  rondo_graph *graph = test_graph(t);
  rondo_node node;
  assert_ok(rondo_graph_add_kernel(graph, NULL, 0, test_kernel(t, TEST_KERNEL_EMPTY), one_block, RONDO_NO_ARGS, &node));
  rondo_exec *exec = test_instantiate(graph);
  assert_ok(rondo_stream_adopt(t->device, rondo_stream_native(t->stream), NULL, &stream));
  assert_int_equal(calls_of_launches(t, stream, exec), calls_of_launches(t, t->stream, exec));
  test_stream_destroy(stream);
}

/* The handles of default streams mean those of the device's context, whichever is current. */
FAKE_TEST(default_streams_are_those_of_the_device) {
  rondo_stream *stream;
  uint32_t *words = test_words(t, 4);
  rondo_graph *graph = test_graph(t);
  (void)test_add_affine(t, graph, NULL, 0, words, 2, 1);
  rondo_exec *exec = test_instantiate(graph);
  rondo_event *event = test_event(t);
  for (uintptr_t handle = 0; handle <= FOREIGN_PER_THREAD; handle++) {
    assert_ok(rondo_stream_adopt(t->device, (void *)handle, NULL, &stream));
    test_affine(t, stream, words, 1, 1, 1);
    assert_ok(rondo_exec_launch(exec, stream));
    assert_ok(rondo_event_record(event, stream));
    assert_ok(rondo_stream_wait_event(stream, event));
    assert_ok(rondo_stream_synchronize(stream));
    test_stream_destroy(stream);
  }
  assert_int_equal(test_word(t, words), 21);
}

typedef struct capturing {
  rondo_device *device;
  rondo_stream *of_another; /* the default stream of another thread */
  uint32_t *words;
  rondo_status begun, asked, used, ended;
  rondo_reason reason;
  rondo_capture_state state;
} capturing;

static void capture_own(void *user) {
  capturing *c = user;
  rondo_capture_info info = {.struct_size = sizeof info};
  rondo_stream *stream = NULL;
  rondo_graph *graph = NULL;
  c->begun = rondo_stream_adopt(c->device, (void *)(uintptr_t)FOREIGN_PER_THREAD, NULL, &stream);
  if (c->begun == RONDO_OK) c->begun = rondo_capture_begin(stream, RONDO_CAPTURE_THREAD_LOCAL);
  c->asked = rondo_capture_get_info(c->of_another, &info);
  c->state = info.state;
  c->used = rondo_fill_async(c->of_another, &(rondo_fill){.dst = c->words, .element_bytes = 4, .width = 1});
  c->reason = rondo_last_error()->reason;
  c->ended = rondo_capture_end(stream, &graph);
  if (c->ended == RONDO_OK) c->ended = rondo_graph_destroy(graph);
  if (c->ended == RONDO_OK) c->ended = rondo_stream_destroy(stream);
}

/* Two threads have the same handle. A capture of one is not taken for that of the other. */
FAKE_TEST(captures_of_default_streams_keep_to_their_threads) {
  capturing c = {.device = t->device, .words = test_words(t, 4)};
  assert_ok(rondo_stream_adopt(t->device, (void *)(uintptr_t)FOREIGN_PER_THREAD, NULL, &c.of_another));
  test_on_thread(capture_own, &c);
  assert_int_equal(c.begun, RONDO_OK);
  assert_int_equal(c.asked, RONDO_OK);
  assert_int_equal(c.state, RONDO_CAPTURE_NONE);
  assert_int_equal(c.used, RONDO_INVALID_STATE);
  assert_int_equal(c.reason, RONDO_REASON_WRONG_THREAD);
  assert_int_equal(c.ended, RONDO_OK);
  test_stream_destroy(c.of_another);
}
