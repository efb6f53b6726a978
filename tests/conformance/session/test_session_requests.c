/* SPDX-License-Identifier: MIT
 * Serving (SE-8): what runs a request and what its answer reports, requests that run in one batch, the bound of the
 * queue, deadlines, cancellation, draining, and bad requests among good ones. Times are given, so that no test depends
 * on measured ones. A test holds requests back by acquiring a stream.
 */
#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#include "support/rondo_test.h"
#include "support/test_effort.h"
#include "support/test_session.h"

/* Graphs 0 and 1. */
static const size_t sizes[] = {64, 16};
static const double times[] = {40, 20};

static void record(rondo_session *session, const double *us) {
  test_scorer_capture(session, "scorer", sizes, 2);
  assert_ok(rondo_session_set_times(session, "scorer", us, NULL, 2, 1));
}

static rondo_session *open_with(test_fixture *t, rondo_session_options options) {
  rondo_session *session = test_session_open(t->device, options);
  test_scorer_add(session, "scorer", (rondo_model_options){0});
  record(session, times);
  return session;
}

static rondo_session *open_session(test_fixture *t, uint32_t streams) {
  return open_with(t, (rondo_session_options){.streams = streams});
}

static rondo_model_info info_of(rondo_session *session) { return test_model_info(session, "scorer"); }

static rondo_answer run(rondo_session *session, size_t rows, rondo_run_mode mode) {
  static test_request r;
  const rondo_answer answer = test_request_run(session, "scorer", &r, rows, mode);
  assert_true(answer.queue_us >= 0 && answer.run_us > 0);
  return answer;
}

/* What runs a request ---------------------------------------------------------------------------------------------- */

TEST(test_se8_the_next_size_is_padded) {
  rondo_session *session = open_session(t, 1);
  rondo_answer answer = run(session, 10, RONDO_RUN_AUTO);
  assert_int_equal(answer.mode, RONDO_RUN_RECORDED);
  assert_int_equal(answer.reason, RONDO_RUN_CHEAPEST);
  assert_int_equal(answer.graph, 1);
  assert_int_equal(answer.graphs, 1);
  assert_int_equal(answer.padding_rows, 6);
  assert_int_equal(answer.batch_requests, 1);
  assert_int_equal(answer.batch_rows, 10);
  answer = run(session, 64, RONDO_RUN_AUTO);
  assert_int_equal(answer.graph, 0);
  assert_int_equal(answer.padding_rows, 0);
  answer = run(session, 17, RONDO_RUN_AUTO); /* 64 for 40, or twice 16 for 40 */
  assert_int_equal(answer.graph, 0);
  assert_int_equal(answer.padding_rows, 47);
  const rondo_model_info info = info_of(session);
  assert_int_equal(info.requests, 3);
  assert_int_equal(info.recorded, 3);
  assert_int_equal(info.rows, 91);
  assert_int_equal(info.padding_rows, 53);
}

TEST(test_se8_several_graphs_where_that_costs_less) {
  for (uint32_t streams = 1; streams <= 3; streams += 2) {
    rondo_session *session = open_session(t, streams);
    const double cheap[] = {100, 20};
    assert_ok(rondo_session_set_times(session, "scorer", cheap, NULL, 2, 1));
    rondo_answer answer = run(session, 40, RONDO_RUN_AUTO);
    assert_int_equal(answer.mode, RONDO_RUN_SPLIT);
    assert_int_equal(answer.graphs, 3);
    assert_int_equal(answer.graph, 1);
    assert_int_equal(answer.padding_rows, 8);
    answer = run(session, 250, RONDO_RUN_AUTO); /* more than the table has */
    assert_int_equal(answer.mode, RONDO_RUN_SPLIT);
    assert_true(answer.graphs > 3);
    assert_int_equal(info_of(session).split, 2);
    assert_ok(rondo_session_destroy(session));
  }
}

/* Several graphs on several streams take less time; but where no stream is free, each takes from others. */
TEST(test_se8_by_what_all_streams_lose_where_none_is_free) {
  rondo_session *session = open_session(t, 2);
  const double steep[] = {100, 60};
  rondo_stream *stream = NULL;
  assert_ok(rondo_session_set_times(session, "scorer", steep, NULL, 2, 0.5));
  rondo_answer answer = run(session, 32, RONDO_RUN_AUTO);
  assert_int_equal(answer.mode, RONDO_RUN_SPLIT);
  assert_int_equal(answer.graphs, 2);
  assert_ok(rondo_session_acquire_stream(session, "scorer", 1, &stream));
  answer = run(session, 32, RONDO_RUN_AUTO);
  assert_int_equal(answer.mode, RONDO_RUN_RECORDED);
  assert_int_equal(answer.padding_rows, 32);
  assert_ok(rondo_session_release_stream(session, 1));
}

TEST(test_se8_un_recorded_where_that_costs_less) {
  rondo_session *session = open_with(t, (rondo_session_options){.max_eager_programs = 2});
  const double eager[] = {200, 5};
  assert_ok(rondo_session_set_times(session, "scorer", times, eager, 2, 1));
  for (size_t rows = 3; rows < 7; rows++) {
    const rondo_answer answer = run(session, rows, RONDO_RUN_AUTO);
    assert_int_equal(answer.mode, RONDO_RUN_EAGER);
    assert_int_equal(answer.reason, RONDO_RUN_CHEAPEST);
    assert_int_equal(answer.padding_rows, 0);
    assert_int_equal(answer.graphs, 0);
  }
  run(session, 6, RONDO_RUN_AUTO);
  const rondo_model_info info = info_of(session);
  assert_int_equal(info.eager, 5);
  assert_int_equal(info.eager_programs, 4);
  assert_int_equal(info.evicted, 2);
}

TEST(test_se8_what_is_asked_for) {
  rondo_session *session = open_session(t, 1);
  const double eager[] = {1, 1};
  static test_request r;
  assert_ok(rondo_session_set_times(session, "scorer", times, eager, 2, 1));
  rondo_answer answer = run(session, 10, RONDO_RUN_RECORDED);
  assert_int_equal(answer.mode, RONDO_RUN_RECORDED);
  assert_int_equal(answer.reason, RONDO_RUN_REQUESTED);
  assert_ok(rondo_session_set_times(session, "scorer", times, NULL, 2, 1));
  answer = run(session, 10, RONDO_RUN_EAGER);
  assert_int_equal(answer.mode, RONDO_RUN_EAGER);
  assert_int_equal(answer.reason, RONDO_RUN_REQUESTED);
  assert_ok(rondo_session_destroy_graphs(session, "scorer"));
  answer = run(session, 10, RONDO_RUN_AUTO);
  assert_int_equal(answer.reason, RONDO_RUN_NO_GRAPH);
  test_request_fill(&r, 10, 1);
  r.request.mode = RONDO_RUN_RECORDED;
  assert_error(rondo_session_run(session, "scorer", &r.request, NULL), RONDO_UNSUPPORTED, RONDO_REASON_NOT_RECORDED);
}

TEST(test_se8_a_strict_session_runs_graphs_alone) {
  rondo_session *session = open_with(t, (rondo_session_options){.strict = true});
  const double eager[] = {1, 1};
  static test_request r;
  assert_ok(rondo_session_set_times(session, "scorer", times, eager, 2, 1));
  assert_int_equal(run(session, 10, RONDO_RUN_AUTO).mode, RONDO_RUN_RECORDED);
  assert_ok(rondo_session_destroy_graphs(session, "scorer"));
  test_request_fill(&r, 10, 1);
  assert_error(rondo_session_run(session, "scorer", &r.request, NULL), RONDO_UNSUPPORTED, RONDO_REASON_NOT_RECORDED);
}

TEST(test_se8_decisions_can_be_asked) {
  rondo_session *session = open_session(t, 1);
  rondo_run_mode mode;
  uint32_t parts[RONDO_SESSION_MAX_PARTS], count;
  double us;
  assert_ok(rondo_session_get_dispatch(session, "scorer", 16, &mode, parts, &count, &us));
  assert_int_equal(mode, RONDO_RUN_RECORDED);
  assert_int_equal(count, 1);
  assert_int_equal(parts[0], 1);
  assert_true(fabs(us - 20) < 1e-3);
  assert_ok(rondo_session_get_dispatch(session, "scorer", 70, &mode, parts, &count, &us));
  assert_int_equal(mode, RONDO_RUN_SPLIT);
  assert_int_equal(count, 2);
  assert_true(fabs(us - 60) < 1e-3);
  assert_invalid(rondo_session_get_dispatch(session, "scorer", 0, &mode, parts, &count, &us), RONDO_REASON_SHAPE);
}

TEST(test_se6_shape_addresses_and_running_are_separate) {
  rondo_session *session = open_session(t, 1);
  static test_request r, other;
  rondo_model_run *a_run = NULL;
  rondo_answer answer = {.struct_size = sizeof answer};
  assert_error(rondo_model_run_create(session, "none", &a_run), RONDO_NOT_FOUND, RONDO_REASON_UNKNOWN_NAME);
  assert_ok(rondo_model_run_create(session, "scorer", &a_run));
  test_request_fill(&r, 20, 1);
  test_request_fill(&other, 16, 2);
  assert_error(rondo_model_run_invoke(a_run, NULL), RONDO_INVALID_STATE, RONDO_REASON_SHAPE);
  assert_ok(rondo_model_run_bind(a_run, r.inputs, r.outputs));
  assert_error(rondo_model_run_invoke(a_run, NULL), RONDO_INVALID_STATE, RONDO_REASON_SHAPE);
  assert_invalid(rondo_model_run_reshape(a_run, 0), RONDO_REASON_SHAPE);
  assert_ok(rondo_model_run_reshape(a_run, 20));
  assert_error(rondo_model_run_invoke(a_run, NULL), RONDO_INVALID_STATE, RONDO_REASON_NULL_ARGUMENT); /* more rows */
  assert_ok(rondo_model_run_bind(a_run, r.inputs, r.outputs));
  for (size_t i = 0; i < 2; i++) assert_ok(rondo_model_run_invoke(a_run, &answer));
  assert_int_equal(answer.graph, 0);
  assert_true(test_request_is_right(&r));
  assert_ok(rondo_model_run_reshape(a_run, 16));
  assert_ok(rondo_model_run_bind(a_run, other.inputs, other.outputs));
  assert_ok(rondo_model_run_invoke(a_run, &answer));
  assert_int_equal(answer.graph, 1);
  assert_true(test_request_is_right(&other));
  assert_error(rondo_session_remove_model(session, "scorer"), RONDO_INVALID_STATE, RONDO_REASON_STILL_IN_USE);
  rondo_model_run_destroy(a_run);
  rondo_model_run_destroy(NULL);
  assert_ok(rondo_session_remove_model(session, "scorer"));
}

/* Together --------------------------------------------------------------------------------------------------------- */

enum { TOGETHER = 4 };

static test_request requests[TOGETHER];
static rondo_ticket tickets[TOGETHER];

static void submit(rondo_session *session, size_t index, size_t rows) {
  test_request_fill(&requests[index], rows, 10 + index);
  assert_ok(rondo_session_submit(session, "scorer", &requests[index].request, &tickets[index]));
}

static rondo_stream *hold(rondo_session *session) {
  rondo_stream *stream = NULL;
  assert_ok(rondo_session_acquire_stream(session, "scorer", 0, &stream));
  return stream;
}

TEST(test_se8_waiting_requests_run_together) {
  rondo_session *session = open_session(t, 1);
  hold(session);
  for (size_t i = 0; i < TOGETHER; i++) submit(session, i, 5 + i);
  assert_status(rondo_ticket_query(tickets[0]), RONDO_NOT_READY);
  assert_ok(rondo_session_release_stream(session, 0));
  for (size_t i = 0; i < TOGETHER; i++) {
    rondo_answer answer = {.struct_size = sizeof answer};
    assert_ok(rondo_ticket_wait(tickets[i], &answer));
    assert_true(test_request_is_right(&requests[i]));
    assert_int_equal(answer.batch_requests, TOGETHER);
    assert_int_equal(answer.batch_rows, 26);
    assert_int_equal(answer.graphs, 1);
    assert_int_equal(answer.padding_rows, 64 - 26);
  }
  assert_int_equal(info_of(session).batches, 1);
  assert_int_equal(info_of(session).batched, TOGETHER);
}

TEST(test_se8_inputs_in_host_memory_of_the_device) {
  rondo_session *session = open_session(t, 1);
  for (int eager = 0; eager < 2; eager++) {
    hold(session);
    for (size_t i = 0; i < TOGETHER; i++) { /* both inputs, one, the other, neither */
      test_request_fill(&requests[i], 5 + i, 10 + i);
      requests[i].request.mode = eager ? RONDO_RUN_EAGER : RONDO_RUN_RECORDED;
      if (i % 2 == 0) test_request_move_input(t->device, &requests[i], 0, (5 + i) * TEST_FEATURES * sizeof(float));
      if (i < 2) test_request_move_input(t->device, &requests[i], 1, (5 + i) * sizeof(int32_t));
      assert_ok(rondo_session_submit(session, "scorer", &requests[i].request, &tickets[i]));
    }
    assert_ok(rondo_session_release_stream(session, 0));
    for (size_t i = 0; i < TOGETHER; i++) {
      assert_ok(rondo_ticket_wait(tickets[i], NULL));
      assert_true(test_request_is_right(&requests[i]));
      if (i % 2 == 0) assert_ok(rondo_host_free(t->device, (void *)(uintptr_t)requests[i].inputs[0]));
      if (i < 2) assert_ok(rondo_host_free(t->device, (void *)(uintptr_t)requests[i].inputs[1]));
    }
  }
  assert_int_equal(info_of(session).batched, TOGETHER);
  assert_int_equal(info_of(session).eager, TOGETHER);
}

/* Two of 16 rows that wait at the same time. */
static void run_two(rondo_session *session, rondo_answer *answers) {
  hold(session);
  for (size_t i = 0; i < 2; i++) submit(session, i, 16);
  assert_ok(rondo_session_release_stream(session, 0));
  for (size_t i = 0; i < 2; i++) {
    answers[i] = (rondo_answer){.struct_size = sizeof *answers};
    assert_ok(rondo_ticket_wait(tickets[i], &answers[i]));
    assert_true(test_request_is_right(&requests[i]));
  }
}

/* Requests that together need more than one by one run one by one. */
/* Moves a value of a request to memory of the device. */
static void *move_to_device(test_fixture *t, const void *from, size_t bytes) {
  void *address;
  assert_ok(rondo_malloc(t->device, bytes, NULL, &address));
  assert_ok(rondo_copy_async(t->stream, address, from, bytes));
  assert_ok(rondo_stream_synchronize(t->stream));
  return address;
}

/* Runs requests 0 and 1 together, of which 1 is in host memory. */
static void run_with_another(rondo_session *session) {
  const rondo_request *list[] = {&requests[0].request, &requests[1].request};
  size_t accepted;
  test_request_fill(&requests[1], 5, 3);
  requests[1].request.mode = requests[0].request.mode;
  hold(session);
  assert_ok(rondo_session_submit_batch(session, "scorer", list, 2, tickets, &accepted));
  assert_ok(rondo_session_release_stream(session, 0));
  for (size_t i = 0; i < 2; i++) assert_ok(rondo_ticket_wait(tickets[i], NULL));
  assert_true(test_request_is_right(&requests[1]));
}

static void run_on_device(test_fixture *t, rondo_session *session, size_t rows, rondo_run_mode mode, bool is_alone) {
  test_request *r = &requests[0];
  test_request_fill(r, rows, rows);
  void *x = move_to_device(t, r->x, rows * TEST_FEATURES * sizeof *r->x);
  void *y = move_to_device(t, r->y, rows * TEST_SCORES * sizeof *r->y);
  r->inputs[0] = x;
  r->outputs[0] = y;
  r->request.mode = mode;
  r->request.device_inputs = r->request.device_outputs = 1;
  if (is_alone)
    assert_ok(rondo_session_run(session, "scorer", &r->request, NULL));
  else
    run_with_another(session);
  assert_ok(rondo_copy_async(t->stream, r->y, y, rows * TEST_SCORES * sizeof *r->y));
  assert_ok(rondo_stream_synchronize(t->stream));
  assert_true(test_request_is_right(r));
  assert_ok(rondo_free(t->device, x));
  assert_ok(rondo_free(t->device, y));
}

/* By one graph, by several, eagerly, and in a batch with a request in host memory. */
TEST(test_se8_values_in_memory_of_the_device) {
  rondo_session *session = open_session(t, 1);
  for (int is_alone = 0; is_alone < 2; is_alone++) {
    run_on_device(t, session, 5, RONDO_RUN_RECORDED, is_alone);
    run_on_device(t, session, 70, RONDO_RUN_RECORDED, is_alone);
    run_on_device(t, session, 7, RONDO_RUN_EAGER, is_alone);
    run_on_device(t, session, 20, RONDO_RUN_AUTO, is_alone);
  }
}

TEST(test_se8_not_together_where_that_costs_more) {
  rondo_session *session = open_session(t, 1);
  const double steep[] = {1000, 20};
  rondo_answer answers[2];
  assert_ok(rondo_session_set_times(session, "scorer", steep, NULL, 2, 1));
  run_two(session, answers);
  for (size_t i = 0; i < 2; i++) assert_int_equal(answers[i].padding_rows, 0);
}

/* Nor do they where it saves next to nothing, nor more than the session's bound. */
TEST(test_se8_not_together_for_next_to_nothing) {
  const double dear[] = {39.5, 20};
  rondo_answer answers[2];
  for (uint32_t i = 0; i < 2; i++) {
    rondo_session *session = open_with(t, (rondo_session_options){.streams = 1, .max_batch = i});
    if (i == 0) assert_ok(rondo_session_set_times(session, "scorer", dear, NULL, 2, 1));
    run_two(session, answers);
    for (size_t k = 0; k < 2; k++) assert_int_equal(answers[k].batch_requests, 1);
    assert_ok(rondo_session_destroy(session));
  }
}

/* A request fills padding, and passes one that does not fit. */
TEST(test_se8_together_where_there_is_room_anyway) {
  rondo_session *session = open_session(t, 1);
  const double steep[] = {1000, 20};
  const size_t rows[] = {15, 20, 1}, batches[] = {16, 20, 16};
  assert_ok(rondo_session_set_times(session, "scorer", steep, NULL, 2, 1));
  hold(session);
  for (size_t i = 0; i < 3; i++) submit(session, i, rows[i]);
  assert_ok(rondo_session_release_stream(session, 0));
  for (size_t i = 0; i < 3; i++) {
    rondo_answer answer = {.struct_size = sizeof answer};
    assert_ok(rondo_ticket_wait(tickets[i], &answer));
    assert_true(test_request_is_right(&requests[i]));
    assert_int_equal(answer.batch_rows, batches[i]);
    assert_int_equal(answer.batch_requests, i == 1 ? 1 : 2);
    assert_int_equal(answer.padding_rows, i == 1 ? 12 : 0);
  }
}

/* Nobody waits longer for others than the delay, and a full graph waits for no one. */
TEST(test_se8_the_delay_ends) {
  rondo_session *session = open_with(t, (rondo_session_options){.max_delay_us = 20000});
  rondo_answer answer = run(session, 8, RONDO_RUN_AUTO);
  assert_true(answer.queue_us >= 20000);
  assert_int_equal(run(session, 64, RONDO_RUN_AUTO).batch_requests, 1);
}

/* A request waits for at most half of the time to its deadline. If the machine stalls for the other half, the request
 * is late in any case, and the test repeats with a longer deadline. A request that waits for the whole time would be
 * late each time. */
static rondo_status run_half_way_to_a_deadline(rondo_session *session) {
  static test_request r;
  rondo_status status = RONDO_NOT_READY;
  uint64_t late = 0;
  for (uint64_t seconds = 1; status != RONDO_OK && seconds <= 64; seconds *= 4) {
    test_request_fill(&r, 5, 1);
    r.request.deadline_us = seconds * 1000000;
    status = rondo_session_run(session, "scorer", &r.request, NULL);
    if (status == RONDO_OK) assert_true(test_request_is_right(&r));
    late += status != RONDO_OK;
  }
  assert_int_equal(info_of(session).timed_out, late);
  return status;
}

/* Nor where no request can join, nor past the deadline. */
TEST(test_se8_the_delay_is_never_in_vain) {
  rondo_session *session = open_with(t, (rondo_session_options){.max_delay_us = 1000000000, .max_batch = 1});
  (void)run(session, 8, RONDO_RUN_AUTO);
  assert_ok(rondo_session_destroy(session));
  session = open_with(t, (rondo_session_options){.max_delay_us = 1000000000});
  assert_ok(run_half_way_to_a_deadline(session));
}

enum { HELD_ROWS = 97 };
static atomic_bool is_held;

/* The scorer, which is not there for so many rows while it is held. */
static rondo_status build_held(void *user, size_t rows, rondo_program *program) {
  while (rows == HELD_ROWS && atomic_load(&is_held)) test_sleep_ms(1);
  return test_build_scorer(user, rows, program);
}

static rondo_session *open_held(test_fixture *t, uint32_t max_batch) {
  const double long_times[] = {4e7, 2e7};
  rondo_session *session = test_session_open(t->device, (rondo_session_options){.streams = 4, .max_batch = max_batch});
  test_scorer_add(session, "scorer", (rondo_model_options){.build = build_held});
  record(session, long_times);
  return session;
}

/* While three streams run, a few rows wait for others: not where there are none to share with, nor past the deadline.
 */
TEST(test_se8_a_free_stream_is_not_left_in_vain) {
  for (uint32_t by_itself = 0; by_itself < 2; by_itself++) {
    atomic_store(&is_held, true);
    rondo_session *session = open_held(t, by_itself);
    static test_request r;
    for (size_t i = 0; i < 3; i++) {
      test_request_fill(&requests[i], HELD_ROWS, i);
      requests[i].request.mode = RONDO_RUN_EAGER;
      assert_ok(rondo_session_submit(session, "scorer", &requests[i].request, &tickets[i]));
    }
    test_sleep_ms(20); /* until they run; otherwise there is nothing to wait for */
    rondo_answer answer = {.struct_size = sizeof answer};
    rondo_ticket ticket;
    test_request_fill(&r, 5, 1);
    r.request.deadline_us = by_itself ? 0 : 4000000;
    assert_ok(rondo_session_submit(session, "scorer", &r.request, &ticket));
    while (rondo_ticket_query(ticket) == RONDO_NOT_READY) test_sleep_ms(1); /* the waiting thread may run it itself */
    assert_ok(rondo_ticket_wait(ticket, &answer));
    assert_true(test_request_is_right(&r));
    if (by_itself) assert_true(answer.queue_us < 2e7);
    atomic_store(&is_held, false);
    for (size_t i = 0; i < 3; i++) assert_ok(rondo_ticket_wait(tickets[i], NULL));
    assert_ok(rondo_session_destroy(session));
  }
}

/* Utilisation ------------------------------------------------------------------------------------------------------ */

TEST(test_se11_how_long_work_was_under_way) {
  rondo_session *session = open_with(t, (rondo_session_options){.streams = 2, .timed = true});
  rondo_session_usage before = {.struct_size = sizeof before}, after = before;
  rondo_event *begin = NULL, *end = NULL;
  const rondo_event_options timing = {RONDO_EVENT_OPTIONS_INIT, .timing = true};
  double wall_us;
  rondo_stream *stream = test_stream(t, NULL);
  assert_ok(rondo_event_create(t->device, &timing, &begin));
  assert_ok(rondo_event_create(t->device, &timing, &end));
  assert_ok(rondo_session_get_usage(session, &before));
  assert_ok(rondo_event_record(begin, stream));
  assert_ok(rondo_stream_synchronize(stream));
  (void)run(session, 64, RONDO_RUN_RECORDED);
  (void)run(session, 200, RONDO_RUN_RECORDED); /* four graphs */
  (void)run(session, 7, RONDO_RUN_EAGER);
  assert_ok(rondo_event_record(end, stream));
  assert_ok(rondo_stream_synchronize(stream));
  assert_ok(rondo_event_elapsed(begin, end, &wall_us));
  assert_ok(rondo_session_get_usage(session, &after));
  assert_true(after.parts - before.parts >= 4);
  assert_true(after.busy_us > before.busy_us && after.sum_us >= after.busy_us - 1e-6);
  assert_true(after.busy_us - before.busy_us <= wall_us * 1.001 + 1);
  assert_int_equal(after.batches - before.batches, 3);
  assert_int_equal(after.requests - before.requests, 3);
  assert_int_equal(after.graphs - before.graphs, 1 + 4);
  assert_true(after.batching_us > before.batching_us && after.enqueue_us > before.enqueue_us);
  rondo_event_destroy(begin);
  rondo_event_destroy(end);
}

TEST(test_se11_only_in_a_session_that_is_timed) {
  rondo_session *session = open_session(t, 1);
  rondo_session_usage usage = {.struct_size = sizeof usage};
  assert_error(rondo_session_get_usage(session, &usage), RONDO_INVALID_STATE, RONDO_REASON_NO_TIMING);
  assert_invalid(rondo_session_get_usage(session, NULL), RONDO_REASON_NULL_ARGUMENT);
}

/* Who runs them ---------------------------------------------------------------------------------------------------- */

enum { STREAMS = 4 };

static void take_and_give(rondo_session *session, uint32_t mask, bool is_taking) {
  rondo_stream *stream = NULL;
  for (size_t i = 0; i < STREAMS; i++)
    if (mask >> i & 1)
      assert_ok(is_taking ? rondo_session_acquire_stream(session, "scorer", i, &stream)
                          : rondo_session_release_stream(session, i));
}

/* Whichever streams are free, their threads are called, and as many as there are requests for. */
TEST(test_se8_streams_that_are_free_run_what_comes) {
  rondo_session *session = open_with(t, (rondo_session_options){.streams = STREAMS, .max_batch = 1});
  for (uint32_t mask = 0; mask + 1 < 1u << STREAMS; mask++) {
    take_and_give(session, mask, true);
    for (size_t i = 0; i < TOGETHER; i++) submit(session, i, 5 + 60 * (i % 2));
    for (size_t i = 0; i < TOGETHER; i++) {
      rondo_answer answer = {.struct_size = sizeof answer};
      assert_ok(rondo_ticket_wait(tickets[i], &answer));
      assert_true(test_request_is_right(&requests[i]));
      assert_int_equal(mask >> answer.stream & 1, 0);
    }
    take_and_give(session, mask, false);
  }
}

enum { ROWS_AT_GATE = 7 };

/* A rondo_model_build that passes a gate. */
static rondo_status build_at_gate(void *gate, size_t rows, rondo_program *program) {
  if (rows == ROWS_AT_GATE) (void)test_gate_pass(gate);
  return test_build_scorer(NULL, rows, program);
}

static uint64_t launches_of(rondo_session *session, size_t graph) {
  return test_model_graph(session, "scorer", graph).launches;
}

/* When the thread of a stream runs parts of another's batch while requests wait, the other stream finally waits idle.
 * Here a thread is held at the first of three parts when the other one takes a request whose program it builds. */
TEST(test_se8_what_waits_comes_before_parts_of_others) {
  test_skip_if_serial();
  test_gate first, building;
  test_gate_init(&first);
  test_gate_init(&building);
  rondo_session *session = test_session_open(t->device, (rondo_session_options){.streams = 2, .max_eager_programs = 2});
  test_scorer_add(session, "scorer", (rondo_model_options){.build = build_at_gate, .user = &building});
  record(session, (const double[]){50, 15});
  rondo_stream *stream = hold(session);
  assert_ok(rondo_session_release_stream(session, 0)); /* and nothing runs there before the gate */
  take_and_give(session, 2, true);
  test_gate_hold(&first, stream);
  submit(session, 0, 48);
  while (launches_of(session, 1) == 0) test_sleep_ms(1);
  test_request_fill(&requests[1], ROWS_AT_GATE, 11);
  requests[1].request.mode = RONDO_RUN_EAGER;
  assert_ok(rondo_session_submit(session, "scorer", &requests[1].request, &tickets[1]));
  take_and_give(session, 2, false);
  test_gate_await(&building);
  assert_int_equal(launches_of(session, 1), 1);
  test_gate_open(&building);
  test_gate_open(&first);
  for (size_t i = 0; i < 2; i++) {
    rondo_answer answer = {.struct_size = sizeof answer};
    assert_ok(rondo_ticket_wait(tickets[i], &answer));
    assert_true(test_request_is_right(&requests[i]));
    assert_int_equal(answer.graphs, i == 0 ? 3 : 0);
  }
  assert_ok(rondo_session_destroy(session));
  test_gate_destroy(&first);
  test_gate_destroy(&building);
}

/* The thread that was to run it once its delay is over may have its stream taken until then. */
TEST(test_se8_a_delay_ends_on_another_stream) {
  rondo_session *session = open_with(t, (rondo_session_options){.streams = 2, .max_delay_us = 20000});
  for (uint32_t mask = 1; mask <= 2; mask++) {
    submit(session, 0, 5);
    test_sleep_ms(2); /* until a thread has checked it */
    take_and_give(session, mask, true);
    assert_ok(rondo_ticket_wait(tickets[0], NULL));
    assert_true(test_request_is_right(&requests[0]));
    take_and_give(session, mask, false);
  }
}

/* Load ------------------------------------------------------------------------------------------------------------- */

TEST(test_se8_the_queue_has_a_bound) {
  rondo_session *session = open_with(t, (rondo_session_options){.max_queue = 2});
  hold(session);
  submit(session, 0, 5);
  submit(session, 1, 5);
  rondo_ticket none = {0};
  assert_error(rondo_session_submit(session, "scorer", &requests[0].request, &none), RONDO_LIMIT_EXCEEDED,
               RONDO_REASON_NONE);
  assert_null(none.session);
  assert_int_equal(info_of(session).refused, 1);
  assert_ok(rondo_session_release_stream(session, 0));
  assert_ok(rondo_ticket_wait(tickets[0], NULL));
  submit(session, 0, 5);
  assert_ok(rondo_ticket_wait(tickets[0], NULL));
  assert_ok(rondo_ticket_wait(tickets[1], NULL));
}

TEST(test_se8_deadlines) {
  rondo_session *session = open_session(t, 1);
  static test_request r;
  hold(session);
  test_request_fill(&r, 5, 1);
  r.request.deadline_us = 1000;
  assert_error(rondo_session_run(session, "scorer", &r.request, NULL), RONDO_LIMIT_EXCEEDED, RONDO_REASON_TIMED_OUT);
  assert_int_equal(info_of(session).timed_out, 1);
  assert_ok(rondo_session_release_stream(session, 0));
  r.request.deadline_us = 60000000;
  assert_ok(rondo_session_run(session, "scorer", &r.request, NULL));
}

TEST(test_se8_cancelling) {
  rondo_session *session = open_session(t, 1);
  hold(session);
  for (size_t i = 0; i < 3; i++) submit(session, i, 5);
  rondo_ticket_cancel(tickets[1]);
  rondo_ticket_cancel(tickets[1]);
  rondo_ticket_cancel((rondo_ticket){0});
  assert_ok(rondo_ticket_query(tickets[1]));
  assert_error(rondo_ticket_wait(tickets[1], NULL), RONDO_INVALID_STATE, RONDO_REASON_ABORTED);
  assert_ok(rondo_session_release_stream(session, 0));
  assert_ok(rondo_ticket_wait(tickets[0], NULL));
  assert_ok(rondo_ticket_wait(tickets[2], NULL));
  assert_true(test_request_is_right(&requests[2]));
  assert_int_equal(info_of(session).cancelled, 1);
}

/* Its place is another request's by then, of which it says and changes nothing. */
TEST(test_se8_a_ticket_is_over_once_it_was_waited_for) {
  rondo_session *session = open_with(t, (rondo_session_options){.max_queue = 1});
  submit(session, 0, 5);
  assert_ok(rondo_ticket_wait(tickets[0], NULL));
  for (uint32_t is_reused = 0; is_reused < 2; is_reused++) {
    if (is_reused) {
      hold(session);
      submit(session, 1, 6);
    }
    rondo_ticket_cancel(tickets[0]);
    assert_error(rondo_ticket_wait(tickets[0], NULL), RONDO_INVALID_STATE, RONDO_REASON_STALE_TICKET);
    assert_message("waited for already");
    assert_error(rondo_ticket_query(tickets[0]), RONDO_INVALID_STATE, RONDO_REASON_STALE_TICKET);
  }
  assert_status(rondo_ticket_query(tickets[1]), RONDO_NOT_READY);
  assert_ok(rondo_session_release_stream(session, 0));
  assert_ok(rondo_ticket_wait(tickets[1], NULL));
  assert_true(test_request_is_right(&requests[1]));
  assert_int_equal(info_of(session).cancelled, 0);
}

/* Numbers that no request ever had. */
TEST(test_se8_a_ticket_that_is_none) {
  rondo_session *session = open_session(t, 1);
  const rondo_ticket made_up[] = {{session, 0}, {session, 1}, {session, UINT64_MAX}, {session, UINT64_MAX - 1}};
  for (size_t i = 0; i < 4; i++) {
    assert_error(rondo_ticket_wait(made_up[i], NULL), RONDO_INVALID_STATE, RONDO_REASON_STALE_TICKET);
    assert_error(rondo_ticket_query(made_up[i]), RONDO_INVALID_STATE, RONDO_REASON_STALE_TICKET);
    rondo_ticket_cancel(made_up[i]);
  }
  assert_invalid(rondo_ticket_query((rondo_ticket){0}), RONDO_REASON_NULL_ARGUMENT);
}

typedef struct waiter {
  rondo_ticket ticket;
  rondo_status status;
  rondo_reason reason;
  atomic_uint *ended;
} waiter;

static void wait_for_ticket(void *user) {
  waiter *w = user;
  w->status = rondo_ticket_wait(w->ticket, NULL);
  w->reason = w->status == RONDO_OK ? RONDO_REASON_NONE : rondo_last_error()->reason;
  atomic_fetch_add(w->ended, 1);
}

/* Until one of the two is refused. */
static void give_stream(void *user) {
  const waiter *w = user;
  while (atomic_load(w->ended) == 0) test_sleep_ms(1);
  if (rondo_session_release_stream(w->ticket.session, 0) != RONDO_OK) atomic_fetch_add(w->ended, 100);
}

TEST(test_se8_one_thread_waits_for_a_ticket) {
  rondo_session *session = open_session(t, 1);
  atomic_uint ended = 0;
  hold(session);
  submit(session, 0, 5);
  waiter waiters[] = {{.ticket = tickets[0], .ended = &ended}, {.ticket = tickets[0], .ended = &ended}};
  const test_thread threads[] = {
      {wait_for_ticket, &waiters[0]}, {wait_for_ticket, &waiters[1]}, {give_stream, &waiters[0]}};
  test_on_threads(threads, 3);
  const waiter *refused = &waiters[waiters[0].status == RONDO_OK];
  assert_int_equal(atomic_load(&ended), 2);
  assert_int_equal(waiters[0].status == RONDO_OK, waiters[1].status != RONDO_OK);
  assert_int_equal(refused->status, RONDO_INVALID_STATE);
  assert_int_equal(refused->reason, RONDO_REASON_STALE_TICKET);
  assert_true(test_request_is_right(&requests[0]));
}

/* The last ticket that may be cancelled, from one thread to another. */
typedef struct shared_ticket {
  pthread_mutex_t lock;
  rondo_ticket ticket;
  bool is_over;
} shared_ticket;

typedef struct cancel_client {
  rondo_session *session;
  shared_ticket *shared;
  uint32_t rounds, wrong;
  test_request request;
} cancel_client;

static void set_shared(shared_ticket *shared, rondo_ticket ticket, bool is_over) {
  pthread_mutex_lock(&shared->lock);
  shared->ticket = ticket;
  shared->is_over = is_over;
  pthread_mutex_unlock(&shared->lock);
}

/* Of its requests every other one may be cancelled. */
static void serve_cancelled(void *user) {
  cancel_client *c = user;
  for (uint32_t i = 0; i < c->rounds; i++) {
    rondo_ticket ticket = {0};
    test_request_fill(&c->request, 5, i);
    rondo_status status = rondo_session_submit(c->session, "scorer", &c->request.request, &ticket);
    if (i % 2 == 0) set_shared(c->shared, ticket, false);
    if (status == RONDO_OK) status = rondo_ticket_wait(ticket, NULL);
    const bool is_aborted = status != RONDO_OK && rondo_last_error()->reason == RONDO_REASON_ABORTED;
    const bool is_right = status == RONDO_OK && test_request_is_right(&c->request);
    c->wrong += !is_right && !(i % 2 == 0 && is_aborted);
  }
  set_shared(c->shared, (rondo_ticket){0}, true);
}

static void cancel_on(void *user) {
  shared_ticket *shared = user;
  for (bool is_over = false; !is_over;) {
    pthread_mutex_lock(&shared->lock);
    const rondo_ticket ticket = shared->ticket;
    is_over = shared->is_over;
    pthread_mutex_unlock(&shared->lock);
    rondo_ticket_cancel(ticket); /* that may be over by now */
  }
}

TEST(test_se8_a_late_cancel_meets_nobody_else) {
  rondo_session *session = open_with(t, (rondo_session_options){.max_queue = 1});
  static cancel_client client;
  static shared_ticket shared = {.lock = PTHREAD_MUTEX_INITIALIZER};
  client = (cancel_client){.session = session, .shared = &shared, .rounds = test_effort(600)};
  set_shared(&shared, (rondo_ticket){0}, false);
  const test_thread threads[] = {{serve_cancelled, &client}, {cancel_on, &shared}};
  test_on_threads(threads, 2);
  assert_int_equal(client.wrong, 0);
  assert_int_equal(info_of(session).requests + info_of(session).cancelled, client.rounds);
}

TEST(test_se8_draining) {
  rondo_session *session = open_with(t, (rondo_session_options){.max_delay_us = 100000000});
  static test_request r;
  submit(session, 0, 5);
  submit(session, 1, 6);
  assert_ok(rondo_session_drain(session)); /* long before the delay */
  assert_ok(rondo_ticket_query(tickets[0]));
  test_request_fill(&r, 5, 1);
  assert_error(rondo_session_run(session, "scorer", &r.request, NULL), RONDO_INVALID_STATE, RONDO_REASON_NONE);
  assert_error(rondo_session_destroy(session), RONDO_INVALID_STATE, RONDO_REASON_STILL_IN_USE);
  assert_ok(rondo_ticket_wait(tickets[0], NULL));
  assert_ok(rondo_ticket_wait(tickets[1], NULL));
  assert_true(test_request_is_right(&requests[1]));
}

/* Bad requests ----------------------------------------------------------------------------------------------------- */

TEST(test_se8_a_wrong_index_hurts_no_other) {
  rondo_session *session = open_session(t, 1);
  hold(session);
  for (size_t i = 0; i < TOGETHER; i++) submit(session, i, 4); /* all of them in the smaller graph */
  requests[2].ids[3] = TEST_IDS;                               /* inputs are read when the request runs */
  assert_ok(rondo_session_release_stream(session, 0));
  for (size_t i = 0; i < TOGETHER; i++) {
    rondo_answer answer = {.struct_size = sizeof answer};
    if (i == 2) {
      assert_error(rondo_ticket_wait(tickets[i], &answer), RONDO_EXECUTION_FAILED, RONDO_REASON_OUT_OF_RANGE);
      continue;
    }
    assert_ok(rondo_ticket_wait(tickets[i], &answer));
    assert_int_equal(answer.reason, RONDO_RUN_RETRY);
    assert_int_equal(answer.batch_requests, i < 2 ? 2 : 1);
    assert_true(test_request_is_right(&requests[i]));
  }
  assert_int_equal(info_of(session).isolated, 1);
  assert_int_equal(info_of(session).failed, 1);
  run(session, 30, RONDO_RUN_AUTO); /* nothing is left of it */
}

/* A batch of `rows`, of which some have wrong indices: these fail, and the others are right. */
static void run_with_bad(rondo_session *session, const size_t *rows, size_t count, uint64_t bad) {
  static test_request many[RONDO_SESSION_MAX_BATCH];
  rondo_ticket waiting[RONDO_SESSION_MAX_BATCH];
  hold(session);
  for (size_t i = 0; i < count; i++) {
    test_request_fill(&many[i], rows[i], i);
    if (bad >> i & 1) many[i].ids[rows[i] - 1] = TEST_IDS;
    assert_ok(rondo_session_submit(session, "scorer", &many[i].request, &waiting[i]));
  }
  assert_ok(rondo_session_release_stream(session, 0));
  for (size_t i = 0; i < count; i++) {
    rondo_answer answer = {.struct_size = sizeof answer};
    if (bad >> i & 1) {
      assert_error(rondo_ticket_wait(waiting[i], &answer), RONDO_EXECUTION_FAILED, RONDO_REASON_OUT_OF_RANGE);
      continue;
    }
    assert_ok(rondo_ticket_wait(waiting[i], &answer));
    assert_int_equal(answer.reason, RONDO_RUN_RETRY);
    assert_true(test_request_is_right(&many[i]));
  }
}

/* Wherever it is, one of 32 costs 2 * 5 graphs more; of several, each no more than that; all of them two each. */
TEST(test_se8_a_bad_request_is_found_by_halves) {
  enum { COUNT = 32 };
  rondo_session *session = open_session(t, 1);
  const uint64_t all_bad[] = {1, 1 << 19, UINT64_C(1) << 31, 1 << 5 | 1 << 6, UINT32_MAX};
  const uint64_t graphs[] = {11, 11, 11, 13, 63};
  size_t rows[COUNT];
  for (size_t i = 0; i < COUNT; i++) rows[i] = i == COUNT - 1 ? 33 : 1; /* only all of them make rows cheap */
  for (size_t i = 0; i < 5; i++) {
    const rondo_model_info before = info_of(session);
    run_with_bad(session, rows, COUNT, all_bad[i]);
    const rondo_model_info info = info_of(session);
    const uint64_t failed = info.failed - before.failed;
    assert_int_equal(failed, (uint64_t)__builtin_popcountll(all_bad[i]));
    assert_int_equal(info.launches - before.launches, graphs[i]);
    assert_int_equal(info.isolated - before.isolated, 1);
    assert_int_equal(info.requests - before.requests, COUNT - failed);
    assert_int_equal(info.recorded - before.recorded, COUNT - failed);
    if (i < 3) assert_int_equal(info.batches - before.batches, 4); /* halves of 16, 8, 4 and 2 */
    if (i < 3) assert_int_equal(info.batched - before.batched, 30);
  }
}

/* A request whose rows would run eagerly does so alone; half of a batch has no program. */
TEST(test_se8_halves_of_a_batch_run_by_graphs) {
  rondo_session *session = open_session(t, 1);
  const double eager[] = {1000, 5};
  const size_t rows[] = {30, 4, 4, 4};
  assert_ok(rondo_session_set_times(session, "scorer", times, eager, 2, 1));
  run_with_bad(session, rows, 4, 1 << 2);
  const rondo_model_info info = info_of(session);
  assert_int_equal(info.launches, 3); /* all, the first half, the second one, of 8 rows */
  assert_int_equal(info.eager, 1);
  assert_int_equal(info.recorded, 2);
  assert_int_equal(info.eager_programs, 1);
}

TEST(test_se8_not_a_number_hurts_no_other) {
  rondo_session *session = open_session(t, 1);
  hold(session);
  for (size_t i = 0; i < TOGETHER; i++) submit(session, i, 5);
  for (size_t i = 0; i < 5 * TEST_FEATURES; i++) requests[1].x[i] = NAN;
  assert_ok(rondo_session_release_stream(session, 0));
  for (size_t i = 0; i < TOGETHER; i++) {
    assert_ok(rondo_ticket_wait(tickets[i], NULL));
    assert_int_equal(test_request_is_right(&requests[i]), i != 1);
  }
}

TEST(test_se8_wrong_arguments) {
  rondo_session *session = open_session(t, 1);
  static test_request r;
  rondo_ticket none = {0};
  test_request_fill(&r, 5, 1);
  assert_error(rondo_session_run(session, "none", &r.request, NULL), RONDO_NOT_FOUND, RONDO_REASON_UNKNOWN_NAME);
  assert_invalid(rondo_session_run(session, "scorer", NULL, NULL), RONDO_REASON_NULL_ARGUMENT);
  assert_invalid(rondo_session_submit(session, "scorer", &r.request, NULL), RONDO_REASON_NULL_ARGUMENT);
  r.request.rows = 0;
  assert_invalid(rondo_session_submit(session, "scorer", &r.request, &none), RONDO_REASON_SHAPE);
  r.request.rows = SIZE_MAX / 2;
  assert_invalid(rondo_session_submit(session, "scorer", &r.request, &none), RONDO_REASON_SHAPE);
  r.request.rows = 5;
  r.request.input_count = 1;
  assert_invalid(rondo_session_submit(session, "scorer", &r.request, &none), RONDO_REASON_ARGUMENT_COUNT);
  assert_message("model 'scorer' has 2 inputs, and the request gives 1");
  r.request.input_count = 2;
  r.request.output_count = 3;
  assert_invalid(rondo_session_submit(session, "scorer", &r.request, &none), RONDO_REASON_ARGUMENT_COUNT);
  assert_message("model 'scorer' has 1 output, and the request gives 3");
  r.request.output_count = 0;
  r.request.mode = RONDO_RUN_SPLIT;
  assert_invalid(rondo_session_submit(session, "scorer", &r.request, &none), RONDO_REASON_OUT_OF_RANGE);
  assert_message("use AUTO (0), RECORDED (1) or EAGER (3)");
  r.request.mode = RONDO_RUN_AUTO;
  r.inputs[1] = NULL;
  assert_invalid(rondo_session_submit(session, "scorer", &r.request, &none), RONDO_REASON_NULL_ARGUMENT);
  r.inputs[1] = r.ids;
  r.outputs[0] = NULL; /* not wanted */
  assert_ok(rondo_session_run(session, "scorer", &r.request, NULL));
  assert_invalid(rondo_ticket_wait((rondo_ticket){0}, NULL), RONDO_REASON_NULL_ARGUMENT);
}

/* Threads ---------------------------------------------------------------------------------------------------------- */

TEST(test_se8_requests_of_many_threads) {
  enum { CLIENTS = 6 };
  rondo_session *session = open_with(t, (rondo_session_options){.streams = 2, .max_delay_us = 50});
  static test_client clients[CLIENTS];
  test_clients_run(session, clients, CLIENTS, test_effort(60));
  assert_int_equal(info_of(session).requests, CLIENTS * test_effort(60));
}
