/* SPDX-License-Identifier: MIT
 * Sessions on streams of the caller's, which another handle of the device owns (AD-1): models of both kinds, order with
 * the owner's work, models that come and go while others are served, streams that are taken, and refusals. The tests of
 * sessions also run on such streams (RONDO_TEST_ADOPTED).
 */
#define _POSIX_C_SOURCE 200809L
#include <sched.h>
#include <string.h>

#include "support/rondo_test.h"
#include "support/test_session.h"

#define DEFAULT_STREAM(number) ((void *)(uintptr_t)(number))
enum { STREAMS = 2, LEGACY = 1, PER_THREAD = 2, ROWS = 16, ROW_WORDS = 2, WORDS = ROWS * ROW_WORDS };
static const size_t sizes[] = {64, 16};

static rondo_session_options on(rondo_stream *const *streams, uint32_t count) {
  return (rondo_session_options){RONDO_SESSION_OPTIONS_INIT, .streams = count, .stream_list = streams};
}

static void adopt_all(const test_fixture *t, rondo_stream **theirs, rondo_stream **streams) {
  for (int i = 0; i < STREAMS; i++) streams[i] = test_adopted_stream(t->device, &theirs[i]);
}

static rondo_session *open_scorer(const test_fixture *t, rondo_stream *const *streams, uint32_t count) {
  rondo_session *session = test_session_open(t->device, on(streams, count));
  test_scorer_add(session, "scorer", (rondo_model_options){0});
  test_scorer_capture(session, "scorer", sizes, 2);
  return session;
}

static void assert_serves(rondo_session *session, const char *name) {
  static test_request r;
  (void)test_request_run(session, name, &r, 10, RONDO_RUN_RECORDED);
  (void)test_request_run(session, name, &r, 7, RONDO_RUN_EAGER);
}

static void assert_usable(rondo_stream *stream) {
  uint32_t calls = 0;
  assert_ok(rondo_host_async(stream, test_host_count, &calls));
  assert_ok(rondo_stream_synchronize(stream));
  assert_int_equal(calls, 1);
}

static void assert_create_refused(const test_fixture *t, rondo_stream *const *streams, uint32_t count,
                                  rondo_status status, rondo_reason reason, const char *text) {
  const rondo_session_options options = on(streams, count);
  rondo_session *session;
  assert_error(rondo_session_create(t->device, &options, &session), status, reason);
  assert_null(session);
  assert_message(text);
}

/* Serving ---------------------------------------------------------------------------------------------------------- */

/* y = x * 3 + 1. */
static rondo_status body(rondo_call *call, void *user) {
  test_fixture *t = user;
  rondo_input x;
  rondo_stream *stream = rondo_call_stream(call);
  const uint32_t three = 3, one = 1;
  void *y = NULL;
  TRY(rondo_call_get_input(call, 0, &x));
  TRY(rondo_call_output(call, 0, x.bytes, NULL, &y));
  TRY(rondo_copy_async(stream, y, x.address, x.bytes));
  return rondo_launch(stream, test_kernel(t, TEST_KERNEL_AFFINE), (rondo_grid){(uint32_t)(x.bytes / 4), 1, 1},
                      RONDO_ARGS(&three, &one, &y));
}

static void add_function(test_fixture *t, rondo_session *session) {
  const rondo_row_value x = {"x", RONDO_I32, 1, {ROW_WORDS}}, y = {"y", RONDO_I32, 1, {ROW_WORDS}};
  const size_t history[] = {ROWS};
  (void)test_kernel(t, TEST_KERNEL_AFFINE);
  const rondo_model_options options = {RONDO_MODEL_OPTIONS_INIT, .body = body,  .user = t,         .inputs = &x,
                                       .input_count = 1,         .outputs = &y, .output_count = 1, .history = history,
                                       .history_count = 1};
  assert_ok(rondo_session_add_model(session, "function", &options));
  assert_ok(rondo_session_capture(session, "function"));
}

static void assert_function_serves(rondo_session *session) {
  uint32_t x[WORDS], y[WORDS] = {0};
  for (uint32_t i = 0; i < WORDS; i++) x[i] = i;
  const void *const inputs[] = {x};
  void *const outputs[] = {y};
  const rondo_request request = {RONDO_REQUEST_INIT, .rows = ROWS, .inputs = inputs, .outputs = outputs};
  assert_ok(rondo_session_run(session, "function", &request, NULL));
  for (uint32_t i = 0; i < WORDS; i++) assert_int_equal(y[i], i * 3 + 1);
}

/* All models run on the caller's streams, which are as before when the session is gone. */
TEST(test_ad1_sessions_on_adopted_streams) {
  rondo_stream *theirs[STREAMS], *streams[STREAMS], *taken;
  adopt_all(t, theirs, streams);
  rondo_session *session = open_scorer(t, streams, STREAMS);
  add_function(t, session);
  test_scorer_add(session, "eager", (rondo_model_options){0});
  for (int i = 0; i < 3; i++) {
    assert_serves(session, "scorer");
    assert_function_serves(session);
    static test_request r;
    (void)test_request_run(session, "eager", &r, 5, RONDO_RUN_AUTO);
  }
  for (size_t i = 0; i < STREAMS; i++) {
    assert_ok(rondo_session_acquire_stream(session, "function", i, &taken));
    assert_ptr_equal(taken, streams[i]);
    assert_usable(theirs[i]);
    assert_ok(rondo_session_release_stream(session, i));
  }
  assert_serves(session, "scorer");
  assert_ok(rondo_session_destroy(session));
  for (int i = 0; i < STREAMS; i++) {
    assert_usable(streams[i]);
    assert_usable(theirs[i]);
  }
}

/* One stream of the program's own and one that it adopted; a single entry means one stream. */
TEST(test_ad1_sessions_on_streams_of_rondos) {
  rondo_stream *mixed[] = {test_stream(t, "mine"), test_adopted_stream(t->device, NULL)};
  rondo_session *session = open_scorer(t, mixed, STREAMS);
  assert_serves(session, "scorer");
  assert_ok(rondo_session_destroy(session));
  session = open_scorer(t, mixed, 0);
  rondo_stream *taken;
  assert_error(rondo_session_acquire_stream(session, "scorer", 1, &taken), RONDO_NOT_FOUND, RONDO_REASON_OUT_OF_RANGE);
  assert_serves(session, "scorer");
  assert_ok(rondo_session_destroy(session));
}

/* A request comes after what the owner enqueued before. */
TEST_WORKERS(test_ad1_requests_wait_for_the_owners_work) {
  test_skip_if_serial();
  static test_request r;
  rondo_stream *theirs, *stream = test_adopted_stream(t->device, &theirs);
  rondo_session *session = open_scorer(t, &stream, 1);
  test_gate *gate = test_gate_make();
  rondo_ticket ticket;
  test_gate_hold(gate, theirs);
  test_request_fill(&r, 12, 3);
  r.request.mode = RONDO_RUN_RECORDED;
  assert_ok(rondo_session_submit(session, "scorer", &r.request, &ticket));
  for (int i = 0; i < 20; i++) {
    assert_int_equal(rondo_ticket_query(ticket), RONDO_NOT_READY);
    (void)sched_yield();
  }
  test_gate_open(gate);
  assert_ok(rondo_ticket_wait(ticket, NULL));
  assert_true(test_request_is_right(&r));
  assert_serves(session, "scorer");
}

/* Models are added, captured and removed while clients are served on the same streams. */
typedef struct changes {
  rondo_session *session;
  uint32_t rounds;
} changes;

static void change_models(void *user) {
  const changes *c = user;
  for (uint32_t i = 0; i < c->rounds; i++) {
    test_scorer_add(c->session, "other", (rondo_model_options){0});
    if (i % 2 == 0) test_scorer_capture(c->session, "other", &sizes[1], 1);
    assert_ok(rondo_session_remove_model(c->session, "other"));
  }
}

TEST(test_ad1_models_change_while_others_are_served) {
  static test_client clients[2];
  rondo_stream *theirs[STREAMS], *streams[STREAMS];
  adopt_all(t, theirs, streams);
  rondo_session *session = open_scorer(t, streams, STREAMS);
  for (size_t i = 0; i < 2; i++)
    clients[i] = (test_client){.session = session, .seed = i + 1, .rounds = 40, .submits = i == 1};
  const test_thread threads[] = {
      {test_client_serve, &clients[0]}, {test_client_serve, &clients[1]}, {change_models, &(changes){session, 6}}};
  test_on_threads(threads, 3);
  for (size_t i = 0; i < 2; i++) assert_true(clients[i].wrong == 0 && clients[i].failed == 0);
}

/* Refusals --------------------------------------------------------------------------------------------------------- */

TEST(test_ad1_streams_outlive_sessions) {
  rondo_stream *theirs, *stream = test_adopted_stream(t->device, &theirs);
  rondo_session *session = test_session_open(t->device, on(&stream, 1));
  assert_error(rondo_stream_destroy(stream), RONDO_INVALID_STATE, RONDO_REASON_STILL_IN_USE);
  assert_message("rondo_session_destroy");
  test_scorer_add(session, "scorer", (rondo_model_options){0});
  assert_ok(rondo_session_remove_model(session, "scorer"));
  assert_error(rondo_stream_destroy(stream), RONDO_INVALID_STATE, RONDO_REASON_STILL_IN_USE);
  assert_ok(rondo_session_destroy(session));
  test_stream_destroy(stream);
  assert_usable(theirs);
}

/* Two sessions, or two threads of one, must not use a stream, whichever rondo_stream it is. */
TEST(test_ad1_a_stream_belongs_to_one_session) {
  rondo_stream *theirs, *again, *stream = test_adopted_stream(t->device, &theirs);
  assert_ok(rondo_stream_adopt(t->device, rondo_stream_native(theirs), NULL, &again));
  rondo_stream *both[] = {stream, again};
  assert_create_refused(t, both, 2, RONDO_INVALID_STATE, RONDO_REASON_STILL_IN_USE, "stream_list[1]");
  rondo_session *session = open_scorer(t, &stream, 1);
  assert_create_refused(t, &again, 1, RONDO_INVALID_STATE, RONDO_REASON_STILL_IN_USE, "a session already");
  assert_create_refused(t, &stream, 1, RONDO_INVALID_STATE, RONDO_REASON_STILL_IN_USE, "stream 'adopted'");
  assert_serves(session, "scorer");
  assert_ok(rondo_session_destroy(session));
  session = open_scorer(t, &again, 1);
  assert_serves(session, "scorer");
  assert_ok(rondo_session_destroy(session));
  test_stream_destroy(again);
}

TEST(test_ad1_streams_that_sessions_cannot_use) {
  rondo_stream *theirs, *stream = test_adopted_stream(t->device, &theirs);
  rondo_stream *const missing[] = {stream, NULL};
  assert_create_refused(t, missing, 2, RONDO_INVALID_ARGUMENT, RONDO_REASON_NULL_ARGUMENT, "stream_list[1]");
  assert_create_refused(t, &theirs, 1, RONDO_INVALID_ARGUMENT, RONDO_REASON_OTHER_DEVICE, "rondo_stream_adopt");
  assert_ok(rondo_capture_begin(stream, RONDO_CAPTURE_THREAD_LOCAL));
  assert_create_refused(t, &stream, 1, RONDO_INVALID_STATE, RONDO_REASON_ALREADY_CAPTURING, "captures");
  assert_ok(rondo_host_async(stream, test_host_nothing, NULL));
  assert_int_equal(test_node_count(test_capture_end(stream)), 1);
  assert_ok(rondo_host_async(stream, test_host_fails, NULL));
  const rondo_status settled = rondo_device_synchronize(t->device);
  (void)settled; /* the failure is of the stream */
  rondo_session *session = open_scorer(t, &stream, 1);
  assert_serves(session, "scorer");
}

TEST(test_ad1_sessions_refuse_default_streams) {
  if (!test_device_is("cuda")) skip();
  rondo_stream *stream;
  assert_ok(rondo_stream_adopt(t->device, DEFAULT_STREAM(LEGACY), NULL, &stream));
  assert_create_refused(t, &stream, 1, RONDO_UNSUPPORTED, RONDO_REASON_UNSUPPORTED_CALL, "give a stream");
  test_stream_destroy(stream);
  assert_ok(rondo_stream_adopt(t->device, DEFAULT_STREAM(PER_THREAD), NULL, &stream));
  assert_create_refused(t, &stream, 1, RONDO_UNSUPPORTED, RONDO_REASON_UNSUPPORTED_CALL, "each thread");
  test_stream_destroy(stream);
}
