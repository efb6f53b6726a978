/* SPDX-License-Identifier: MIT
 * Error messages of sessions for invalid calls (SE-1, SE-6, SE-8, SE-11): they name the model, stream, graph or
 * request, and say what to do. Afterwards the session serves as before.
 */
#include <string.h>

#include "support/rondo_test.h"
#include "support/test_session.h"

#define assert_refused(call, code, why, text) \
  do {                                        \
    assert_error((call), code, why);          \
    assert_message(text);                     \
  } while (0)

static const size_t sizes[] = {64, 16};

static rondo_session *open_session(const test_fixture *t) {
  rondo_session *session = test_session_open(t->device, (rondo_session_options){.streams = 2, .max_queue = 2});
  test_scorer_add(session, "scorer", (rondo_model_options){0});
  return session;
}

static rondo_session *open_captured(const test_fixture *t) {
  rondo_session *session = open_session(t);
  test_scorer_capture(session, "scorer", sizes, 2);
  return session;
}

/* It serves as if nothing had been. */
static void close_session(rondo_session *session) {
  static test_request r;
  (void)test_request_run(session, "scorer", &r, 5, RONDO_RUN_AUTO);
  assert_ok(rondo_session_destroy(session));
}

/* Models ---------------------------------------------------------------------------------------------------------- */

TEST(test_se6_sessions) {
  rondo_session *session = NULL;
  assert_refused(rondo_session_create(t->device, &(rondo_session_options){.streams = 17}, &session),
                 RONDO_INVALID_ARGUMENT, RONDO_REASON_OUT_OF_RANGE,
                 "streams of rondo_session_options is 17, and the maximum is 16");
  assert_null(session);
}

TEST(test_se6_models) {
  rondo_session *session = open_session(t);
  const rondo_model_options scorer = {RONDO_MODEL_OPTIONS_INIT, .build = test_build_scorer};
  rondo_model_options many = scorer;
  many.max_sizes = 65;
  assert_refused(rondo_session_add_model(session, "other", &many), RONDO_INVALID_ARGUMENT, RONDO_REASON_OUT_OF_RANGE,
                 "max_sizes of rondo_model_options is 65, and the maximum is 64");
  assert_refused(rondo_session_add_model(session, "", &scorer), RONDO_INVALID_ARGUMENT, RONDO_REASON_NULL_ARGUMENT,
                 "rondo_session_add_model: the name is empty");
  assert_refused(rondo_session_add_model(session, "scorer", &scorer), RONDO_INVALID_ARGUMENT,
                 RONDO_REASON_DUPLICATE_NAME,
                 "the session already has a model 'scorer': give another name, or remove that model");
  assert_refused(rondo_session_remove_model(session, "other"), RONDO_NOT_FOUND, RONDO_REASON_UNKNOWN_NAME,
                 "the session has no model 'other'");
  close_session(session);
}

/* A function of two numbers, except for the error that a row describes. */
TEST(test_se6_functions) {
  static const rondo_row_value number = {.name = "x", .type = RONDO_F32},
                               cube = {.name = "x", .type = RONDO_F32, .rank = RONDO_TREE_MAX_RANK};
  static const float constant = 1;
  static const rondo_host_range empty = {.address = &constant};
  static const rondo_placement_rule rule = {.operator_name = "embedding"};
  const rondo_model_options whole = {RONDO_MODEL_OPTIONS_INIT, .body = test_body_nothing, .inputs = &number,
                                     .input_count = 1,         .outputs = &number,        .output_count = 1};
  rondo_model_options both = whole, none = whole, deep = whole, vague = whole, divided = whole;
  both.build = test_build_scorer;
  none.output_count = 0;
  deep.inputs = &cube;
  vague.constants = &empty;
  vague.constant_count = 1;
  divided.rules = &rule;
  divided.rule_count = 1;
  const struct {
    const rondo_model_options *options;
    rondo_reason reason;
    const char *said;
  } rows[] = {
      {&both, RONDO_REASON_BAD_OPTIONS, "or a function, with `body`, not both"},
      {&none, RONDO_REASON_OUT_OF_RANGE, "a function of 0 outputs: give 1 to 64 (rondo_model_options.outputs)"},
      {&deep, RONDO_REASON_SHAPE, "'x' of the inputs has rows of rank 8 and type 1: give a rank of at most 7"},
      {&vague, RONDO_REASON_BAD_SIZE, "has 0 bytes: give its size, or leave it out"},
      {&divided, RONDO_REASON_BAD_OPTIONS, "a function is not divided"},
  };
  rondo_session *session = open_session(t);
  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
    assert_refused(rondo_session_add_model(session, "function", rows[i].options), RONDO_INVALID_ARGUMENT,
                   rows[i].reason, rows[i].said);
  assert_ok(rondo_session_add_model(session, "function", &whole));
  rondo_model_bytes bytes = {.struct_size = sizeof bytes};
  assert_refused(rondo_session_plan(session, "function", sizes, 2, &bytes), RONDO_UNSUPPORTED, RONDO_REASON_NONE,
                 "model 'function' is a function, whose memory is known only after it has run");
  assert_refused(rondo_session_write(session, "function", "w", &constant, sizeof constant), RONDO_NOT_FOUND,
                 RONDO_REASON_UNKNOWN_NAME, "model 'function' is a function, which owns its states: write them");
  close_session(session);
}

TEST(test_se9_divided_models) {
  rondo_device *other = test_device("cpu:1", NULL);
  rondo_device *const devices[] = {other, t->device};
  const rondo_placement_rule rule = {.operator_name = "embedding", .place = 1};
  const rondo_model_options wrong = {RONDO_MODEL_OPTIONS_INIT, .build = test_build_scorer,
                                     .devices = devices,       .device_count = 2,
                                     .rules = &rule,           .rule_count = 1},
                            nowhere = {RONDO_MODEL_OPTIONS_INIT, .build = test_build_scorer, .rules = &rule,
                                       .rule_count = 1};
  rondo_session *session = open_session(t);
  assert_refused(rondo_session_add_model(session, "divided", &wrong), RONDO_INVALID_ARGUMENT, RONDO_REASON_OTHER_DEVICE,
                 "the first device is 'cpu:1', and the session runs on");
  assert_refused(rondo_session_add_model(session, "divided", &nowhere), RONDO_INVALID_ARGUMENT,
                 RONDO_REASON_BAD_OPTIONS, "rondo_model_options has 1 rule and no devices: give the devices");
  close_session(session);
}

/* Capturing ------------------------------------------------------------------------------------------------------- */

TEST(test_se1_capturing) {
  rondo_session *session = open_session(t);
  static test_request r;
  rondo_stream *stream = NULL;
  test_request_fill(&r, 16, 1);
  r.request.mode = RONDO_RUN_RECORDED;
  assert_refused(rondo_session_run(session, "scorer", &r.request, NULL), RONDO_UNSUPPORTED, RONDO_REASON_NOT_RECORDED,
                 "model 'scorer' has no graph for 16 rows: capture it");
  assert_refused(rondo_session_acquire_stream(session, "scorer", 0, &stream), RONDO_INVALID_STATE,
                 RONDO_REASON_NOT_CAPTURED, "model 'scorer' has no graphs: capture it first");
  assert_refused(rondo_session_capture_end(session), RONDO_INVALID_STATE, RONDO_REASON_NOT_CAPTURING,
                 "the session is not in capture mode");
  assert_error(rondo_session_capture_begin(session, "none"), RONDO_NOT_FOUND, RONDO_REASON_UNKNOWN_NAME);
  assert_ok(rondo_session_capture_begin(session, "scorer"));
  assert_error(rondo_session_capture(session, "scorer"), RONDO_INVALID_STATE, RONDO_REASON_ALREADY_CAPTURING);
  assert_ok(rondo_session_run(session, "scorer", &r.request, NULL));
  assert_refused(rondo_session_run(session, "scorer", &r.request, NULL), RONDO_INVALID_STATE,
                 RONDO_REASON_ALREADY_CAPTURED, "model 'scorer' already has a graph of 16 rows (graph 0)");
  assert_refused(rondo_session_capture_begin(session, "scorer"), RONDO_INVALID_STATE, RONDO_REASON_ALREADY_CAPTURING,
                 "the session is in capture mode");
  assert_refused(rondo_session_acquire_stream(session, "scorer", 0, &stream), RONDO_INVALID_STATE,
                 RONDO_REASON_ALREADY_CAPTURING, "which records on every stream: end that first");
  assert_refused(rondo_session_remove_model(session, "scorer"), RONDO_INVALID_STATE, RONDO_REASON_ALREADY_CAPTURING,
                 "model 'scorer' is being captured or changed: end that first");
  assert_ok(rondo_session_capture_end(session));
  assert_int_equal(test_model_info(session, "scorer").graphs, 1);
  close_session(session);
}

TEST(test_se1_the_most_graphs) {
  static test_request r;
  size_t most[RONDO_SESSION_MAX_SIZES];
  rondo_session *session = open_session(t);
  for (size_t i = 0; i < RONDO_SESSION_MAX_SIZES; i++) most[i] = i + 1;
  test_scorer_capture(session, "scorer", most, RONDO_SESSION_MAX_SIZES);
  test_request_fill(&r, RONDO_SESSION_MAX_SIZES + 1, 1);
  assert_ok(rondo_session_capture_begin(session, "scorer"));
  assert_refused(rondo_session_run(session, "scorer", &r.request, NULL), RONDO_LIMIT_EXCEEDED,
                 RONDO_REASON_OUT_OF_RANGE, "the maximum: destroy its graphs first (rondo_session_destroy_graphs)");
  assert_ok(rondo_session_capture_end(session));
  close_session(session);
}

TEST(test_se7_sizes_and_plans) {
  static const size_t twice[] = {16, 16}, empty[] = {16, 0};
  rondo_session *session = open_session(t);
  rondo_model_bytes bytes = {.struct_size = sizeof bytes};
  const double times[] = {2, 1}, none[] = {1, 0};
  assert_refused(rondo_session_plan(session, "scorer", twice, 2, &bytes), RONDO_INVALID_ARGUMENT, RONDO_REASON_BAD_SIZE,
                 "rondo_session_plan: rows[1] is 16: give each size once");
  assert_refused(rondo_session_plan(session, "scorer", empty, 2, &bytes), RONDO_INVALID_ARGUMENT, RONDO_REASON_BAD_SIZE,
                 "rondo_session_plan: rows[1] is 0: give sizes above 0");
  assert_refused(rondo_session_plan(session, "scorer", empty, 0, &bytes), RONDO_INVALID_ARGUMENT, RONDO_REASON_BAD_SIZE,
                 "rondo_session_plan: 0 sizes: give 1 to 64");
  assert_refused(rondo_session_capture(session, "scorer"), RONDO_INVALID_ARGUMENT, RONDO_REASON_NONE,
                 "model 'scorer' has no history to choose sizes for");
  test_scorer_capture(session, "scorer", sizes, 2);
  assert_refused(rondo_session_plan(session, "scorer", sizes, 2, &bytes), RONDO_INVALID_STATE,
                 RONDO_REASON_ALREADY_CAPTURED,
                 "model 'scorer' has 2 graphs: query their memory (rondo_session_get_model_info)");
  assert_refused(rondo_session_capture(session, "scorer"), RONDO_INVALID_STATE, RONDO_REASON_ALREADY_CAPTURED,
                 "model 'scorer' has 2 graphs: destroy them first");
  assert_refused(rondo_session_set_times(session, "scorer", times, NULL, 1, 1), RONDO_INVALID_ARGUMENT,
                 RONDO_REASON_OUT_OF_RANGE, "model 'scorer' has 2 graphs, and 1 times were given: give one for each");
  assert_refused(rondo_session_set_times(session, "scorer", times, none, 2, 1), RONDO_INVALID_ARGUMENT,
                 RONDO_REASON_OUT_OF_RANGE, "the eager time of graph 1 of model 'scorer' is 0 us: give a time above 0");
  assert_refused(rondo_session_set_times(session, "scorer", none, NULL, 2, 1), RONDO_INVALID_ARGUMENT,
                 RONDO_REASON_OUT_OF_RANGE,
                 "the recorded time of graph 1 of model 'scorer' is 0 us: give a time above 0");
  assert_refused(rondo_session_set_times(session, "scorer", times, NULL, 2, 3), RONDO_INVALID_ARGUMENT,
                 RONDO_REASON_OUT_OF_RANGE, "the overlap of model 'scorer' is 3: give 0.5 to 1");
  close_session(session);
}

/* By hand --------------------------------------------------------------------------------------------------------- */

TEST(test_se6_streams_by_hand) {
  rondo_session *session = open_captured(t);
  rondo_stream *stream = NULL;
  const void *data = NULL;
  rondo_input_copy copy;
  assert_refused(rondo_session_launch(session, "scorer", 0, 1), RONDO_INVALID_STATE, RONDO_REASON_SCOPE,
                 "stream 1 was not taken: take it first (rondo_session_acquire_stream)");
  assert_refused(rondo_session_release_stream(session, 1), RONDO_INVALID_STATE, RONDO_REASON_SCOPE,
                 "stream 1 was not taken, or was given back already: take it first");
  assert_ok(rondo_session_acquire_stream(session, "scorer", 1, &stream));
  assert_refused(rondo_session_acquire_stream(session, "scorer", 1, &stream), RONDO_INVALID_STATE,
                 RONDO_REASON_STILL_IN_USE, "stream 1 is taken already: give it back first");
  assert_error(rondo_session_acquire_stream(session, "scorer", 2, &stream), RONDO_NOT_FOUND, RONDO_REASON_OUT_OF_RANGE);
  assert_error(rondo_session_launch(session, "scorer", 2, 1), RONDO_NOT_FOUND, RONDO_REASON_OUT_OF_RANGE);
  assert_error(rondo_session_get_input_copy(session, "scorer", 0, 1, 2, &copy), RONDO_NOT_FOUND,
               RONDO_REASON_OUT_OF_RANGE);
  assert_refused(rondo_session_destroy_graphs(session, "scorer"), RONDO_INVALID_STATE, RONDO_REASON_STILL_IN_USE,
                 "requests that wait or run: 0; states being written: 0; a stream of the session is taken");
  assert_refused(rondo_session_get_result(session, "scorer", 1, 0, &data), RONDO_INVALID_STATE, RONDO_REASON_NO_OUTPUT,
                 "nothing of model 'scorer' was launched on stream 1: launch it there first");
  assert_refused(rondo_session_destroy(session), RONDO_INVALID_STATE, RONDO_REASON_STILL_IN_USE,
                 "a stream is taken: give it back first (rondo_session_release_stream)");
  assert_ok(rondo_session_release_stream(session, 1));
}

TEST(test_se6_writes) {
  rondo_session *session = open_captured(t);
  const float x = 0;
  assert_refused(rondo_session_write(session, "scorer", "x", &x, sizeof x), RONDO_NOT_FOUND, RONDO_REASON_UNKNOWN_NAME,
                 "'x' is an input of model 'scorer', not a state");
  close_session(session);
}

/* Requests -------------------------------------------------------------------------------------------------------- */

TEST(test_se8_requests) {
  rondo_session *session = open_captured(t);
  static test_request r;
  uint32_t parts[RONDO_SESSION_MAX_PARTS], count;
  rondo_run_mode mode;
  double us;
  test_request_fill(&r, 8, 1);
  rondo_request empty = r.request, few = r.request, many = r.request, vast = r.request, strange = r.request;
  empty.rows = 0;
  few.input_count = 1;
  many.output_count = 2;
  vast.rows = SIZE_MAX;
  strange.mode = RONDO_RUN_SPLIT;
  const struct {
    const rondo_request *request;
    rondo_reason reason;
    const char *said;
  } rows[] = {
      {&empty, RONDO_REASON_SHAPE, "rondo_session_run: a request of 0 rows: give at least 1"},
      {&few, RONDO_REASON_ARGUMENT_COUNT, "model 'scorer' has 2 inputs, and the request gives 1"},
      {&many, RONDO_REASON_ARGUMENT_COUNT, "model 'scorer' has 1 output, and the request gives 2"},
      {&vast, RONDO_REASON_SHAPE, "do not fit the address space: give fewer rows"},
      {&strange, RONDO_REASON_OUT_OF_RANGE, "mode 2 cannot be requested; use AUTO"},
  };
  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
    assert_refused(rondo_session_run(session, "scorer", rows[i].request, NULL), RONDO_INVALID_ARGUMENT, rows[i].reason,
                   rows[i].said);
  assert_refused(rondo_session_get_dispatch(session, "scorer", 0, &mode, parts, &count, &us), RONDO_INVALID_ARGUMENT,
                 RONDO_REASON_SHAPE, "rondo_session_get_dispatch: a request of 0 rows");
  close_session(session);
}

/* While both streams are busy, two requests wait, and the queue is full. */
TEST(test_se8_tickets) {
  rondo_session *session = open_captured(t);
  static test_request r[3];
  rondo_stream *stream = NULL;
  rondo_ticket tickets[3];
  for (size_t i = 0; i < 2; i++) assert_ok(rondo_session_acquire_stream(session, "scorer", i, &stream));
  for (size_t i = 0; i < 3; i++) test_request_fill(&r[i], 8, i);
  r[1].request.deadline_us = 1;
  for (size_t i = 0; i < 2; i++) assert_ok(rondo_session_submit(session, "scorer", &r[i].request, &tickets[i]));
  rondo_answer cut = {.struct_size = sizeof cut - 4};
  assert_refused(rondo_ticket_wait(tickets[0], &cut), RONDO_INVALID_ARGUMENT, RONDO_REASON_BAD_OPTIONS,
                 "rondo_answer: struct_size is");
  assert_refused(rondo_session_submit(session, "scorer", &r[2].request, &tickets[2]), RONDO_LIMIT_EXCEEDED,
                 RONDO_REASON_NONE,
                 "2 requests already wait or run (rondo_session_options.max_queue): try again later");
  rondo_ticket_cancel(tickets[0]);
  assert_refused(rondo_ticket_wait(tickets[0], NULL), RONDO_INVALID_STATE, RONDO_REASON_ABORTED,
                 "the request of 8 rows for model 'scorer' was cancelled");
  assert_refused(rondo_ticket_wait(tickets[1], NULL), RONDO_LIMIT_EXCEEDED, RONDO_REASON_TIMED_OUT,
                 "a request of 8 rows for model 'scorer' did not start before its deadline");
  assert_refused(rondo_ticket_wait(tickets[1], NULL), RONDO_INVALID_STATE, RONDO_REASON_STALE_TICKET,
                 "the ticket was waited for already: a ticket is waited for once");
  assert_refused(rondo_ticket_query(tickets[1]), RONDO_INVALID_STATE, RONDO_REASON_STALE_TICKET,
                 "the ticket was waited for already");
  for (size_t i = 0; i < 2; i++) assert_ok(rondo_session_release_stream(session, i));
  close_session(session);
}

TEST(test_se6_runs) {
  rondo_session *session = open_captured(t);
  rondo_model_run *run = NULL;
  static test_request r;
  test_request_fill(&r, 8, 1);
  assert_ok(rondo_model_run_create(session, "scorer", &run));
  assert_refused(rondo_model_run_invoke(run, NULL), RONDO_INVALID_STATE, RONDO_REASON_SHAPE,
                 "a run of model 'scorer' has no rows: rondo_model_run_reshape first");
  assert_refused(rondo_model_run_reshape(run, 0), RONDO_INVALID_ARGUMENT, RONDO_REASON_SHAPE,
                 "a run of model 'scorer' of 0 rows");
  assert_ok(rondo_model_run_reshape(run, 8));
  assert_refused(rondo_model_run_invoke(run, NULL), RONDO_INVALID_STATE, RONDO_REASON_NULL_ARGUMENT,
                 "has no inputs and outputs: rondo_model_run_bind first");
  assert_ok(rondo_model_run_bind(run, r.inputs, r.outputs));
  assert_ok(rondo_model_run_invoke(run, NULL));
  assert_refused(rondo_session_remove_model(session, "scorer"), RONDO_INVALID_STATE, RONDO_REASON_STILL_IN_USE,
                 "model 'scorer' has 1 run: destroy them first (rondo_model_run_destroy)");
  assert_refused(rondo_session_destroy(session), RONDO_INVALID_STATE, RONDO_REASON_STILL_IN_USE,
                 "the session has 0 tickets that were not waited for, and 1 runs");
  assert_refused(rondo_model_run_invoke(run, NULL), RONDO_INVALID_STATE, RONDO_REASON_NONE,
                 "the session takes no more requests: rondo_session_drain or");
  rondo_model_run_destroy(run);
}
