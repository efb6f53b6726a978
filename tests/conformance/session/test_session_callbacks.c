/* SPDX-License-Identifier: MIT
 * Requests with a callback (rondo_request.done), and requests that are submitted together. A test holds requests back
 * by acquiring a stream.
 */
#include <stdatomic.h>
#include <string.h>

#include "support/rondo_test.h"
#include "support/test_effort.h"
#include "support/test_session.h"

enum { REQUESTS = 4 };

/* A request, and what its callback got. */
typedef struct called_request {
  test_request r;
  rondo_session *session;
  rondo_status status, in_callback;
  rondo_reason reason;
  rondo_answer answer;
  bool has_answer;
  atomic_uint calls;
} called_request;

static called_request requests[REQUESTS];
static rondo_ticket tickets[REQUESTS];

static void called(void *user, rondo_status status, const rondo_answer *answer) {
  called_request *c = user;
  c->status = status;
  c->reason = status == RONDO_OK ? RONDO_REASON_NONE : rondo_last_error()->reason;
  c->has_answer = answer != NULL;
  if (answer != NULL) c->answer = *answer;
  c->in_callback = rondo_session_drain(c->session);
  atomic_fetch_add(&c->calls, 1);
}

static void await(called_request *c) {
  while (atomic_load(&c->calls) == 0) test_sleep_ms(1);
  assert_int_equal(atomic_load(&c->calls), 1);
}

static void fill(rondo_session *session, size_t index, size_t rows) {
  called_request *c = &requests[index];
  test_request_fill(&c->r, rows, 10 + index);
  c->r.request.done = called;
  c->r.request.user = c;
  c->session = session;
  c->status = c->in_callback = RONDO_OK;
  atomic_store(&c->calls, 0);
}

static void submit(rondo_session *session, size_t index, size_t rows) {
  fill(session, index, rows);
  assert_ok(rondo_session_submit(session, "scorer", &requests[index].r.request, &tickets[index]));
}

static rondo_session *open_with(test_fixture *t, rondo_session_options options) {
  static const size_t sizes[] = {64, 16};
  static const double times[] = {40, 20};
  rondo_session *session = test_session_open(t->device, options);
  test_scorer_add(session, "scorer", (rondo_model_options){0});
  test_scorer_capture(session, "scorer", sizes, 2);
  assert_ok(rondo_session_set_times(session, "scorer", times, NULL, 2, 1));
  return session;
}

static void hold(rondo_session *session) {
  rondo_stream *stream = NULL;
  assert_ok(rondo_session_acquire_stream(session, "scorer", 0, &stream));
}

static void let_go(rondo_session *session) { assert_ok(rondo_session_release_stream(session, 0)); }

TEST(test_se8_a_callback_gets_the_answer) {
  rondo_session *session = open_with(t, (rondo_session_options){0});
  hold(session);
  for (size_t i = 0; i < REQUESTS; i++) submit(session, i, 5 + i);
  let_go(session);
  for (size_t i = 0; i < REQUESTS; i++) {
    called_request *c = &requests[i];
    await(c);
    assert_int_equal(c->status, RONDO_OK);
    assert_true(c->has_answer);
    assert_int_equal(c->answer.batch_requests, REQUESTS);
    assert_true(test_request_is_right(&c->r));
    assert_int_equal(c->in_callback, RONDO_INVALID_STATE); /* the session cannot be called there */
  }
  assert_int_equal(test_model_info(session, "scorer").requests, REQUESTS);
}

TEST(test_se8_a_ticket_with_a_callback_is_not_waited_for) {
  rondo_session *session = open_with(t, (rondo_session_options){0});
  hold(session);
  submit(session, 0, 5);
  assert_status(rondo_ticket_query(tickets[0]), RONDO_NOT_READY);
  assert_error(rondo_ticket_wait(tickets[0], NULL), RONDO_INVALID_STATE, RONDO_REASON_STALE_TICKET);
  assert_message("or its request has a callback");
  let_go(session);
  await(&requests[0]);
  assert_ok(rondo_session_drain(session)); /* so the callback has returned */
  assert_error(rondo_ticket_query(tickets[0]), RONDO_INVALID_STATE, RONDO_REASON_STALE_TICKET);
  rondo_ticket_cancel(tickets[0]);
  assert_error(rondo_session_run(session, "scorer", &requests[0].r.request, NULL), RONDO_INVALID_ARGUMENT,
               RONDO_REASON_BAD_OPTIONS);
}

/* Its session can then be destroyed: no ticket is left. */
TEST(test_se8_draining_waits_for_callbacks) {
  rondo_session *session = open_with(t, (rondo_session_options){.streams = 2});
  for (size_t i = 0; i < REQUESTS; i++) submit(session, i, 5 + i);
  assert_ok(rondo_session_destroy(session));
  for (size_t i = 0; i < REQUESTS; i++) {
    assert_int_equal(atomic_load(&requests[i].calls), 1);
    assert_true(test_request_is_right(&requests[i].r));
  }
}

TEST(test_se8_a_callback_of_a_cancelled_request) {
  rondo_session *session = open_with(t, (rondo_session_options){0});
  hold(session);
  for (size_t i = 0; i < 2; i++) submit(session, i, 5);
  assert_invalid(rondo_ticket_query((rondo_ticket){0}), RONDO_REASON_NULL_ARGUMENT);
  rondo_ticket_cancel(tickets[1]);
  assert_int_equal(rondo_last_error()->reason, RONDO_REASON_NULL_ARGUMENT); /* the caller's own stays */
  assert_int_equal(atomic_load(&requests[1].calls), 1);
  assert_int_equal(requests[1].status, RONDO_INVALID_STATE);
  assert_int_equal(requests[1].reason, RONDO_REASON_ABORTED);
  assert_false(requests[1].has_answer);
  assert_int_equal(atomic_load(&requests[0].calls), 0);
  let_go(session);
  await(&requests[0]);
}

static atomic_uint running, most_running;

/* Cancels the request after it, which then has an answer too. */
static void cancel_next(void *user, rondo_status status, const rondo_answer *answer) {
  called_request *c = user;
  const size_t index = (size_t)(c - requests);
  const unsigned depth = atomic_fetch_add(&running, 1) + 1;
  if (depth > atomic_load(&most_running)) atomic_store(&most_running, depth);
  if (index + 1 < REQUESTS) rondo_ticket_cancel(tickets[index + 1]);
  c->status = status;
  c->has_answer = answer != NULL;
  atomic_fetch_sub(&running, 1);
  atomic_fetch_add(&c->calls, 1);
}

TEST(test_se8_callbacks_that_cancel_do_not_nest) {
  rondo_session *session = open_with(t, (rondo_session_options){0});
  atomic_store(&most_running, 0);
  hold(session);
  for (size_t i = 0; i < REQUESTS; i++) {
    fill(session, i, 5);
    requests[i].r.request.done = cancel_next;
    assert_ok(rondo_session_submit(session, "scorer", &requests[i].r.request, &tickets[i]));
  }
  rondo_ticket_cancel(tickets[0]);
  for (size_t i = 0; i < REQUESTS; i++) {
    assert_int_equal(atomic_load(&requests[i].calls), 1);
    assert_int_equal(requests[i].status, RONDO_INVALID_STATE);
    assert_false(requests[i].has_answer);
  }
  assert_int_equal(atomic_load(&most_running), 1);
  let_go(session);
}

TEST(test_se8_a_callback_of_a_late_request) {
  rondo_session *session = open_with(t, (rondo_session_options){0});
  hold(session);
  fill(session, 0, 5);
  requests[0].r.request.deadline_us = 1;
  assert_ok(rondo_session_submit(session, "scorer", &requests[0].r.request, &tickets[0]));
  requests[0].r.request.deadline_us = 0;
  test_sleep_ms(2);
  let_go(session);
  await(&requests[0]);
  assert_int_equal(requests[0].status, RONDO_LIMIT_EXCEEDED);
  assert_int_equal(requests[0].reason, RONDO_REASON_TIMED_OUT);
}

/* A request that is not accepted has no answer. */
TEST(test_se8_no_callback_of_a_refused_request) {
  rondo_session *session = open_with(t, (rondo_session_options){.max_queue = 1});
  hold(session);
  submit(session, 0, 5);
  fill(session, 1, 5);
  assert_error(rondo_session_submit(session, "scorer", &requests[1].r.request, &tickets[1]), RONDO_LIMIT_EXCEEDED,
               RONDO_REASON_NONE);
  assert_null(tickets[1].session);
  let_go(session);
  await(&requests[0]);
  assert_int_equal(atomic_load(&requests[1].calls), 0);
}

TEST(test_se8_requests_submitted_together_run_together) {
  const rondo_request *list[REQUESTS];
  for (uint32_t streams = 1; streams <= 3; streams++) {
    rondo_session *session = open_with(t, (rondo_session_options){.streams = streams});
    size_t accepted = 0;
    for (size_t i = 0; i < REQUESTS; i++) {
      fill(session, i, 5 + i);
      list[i] = &requests[i].r.request;
    }
    assert_ok(rondo_session_submit_batch(session, "scorer", list, REQUESTS, tickets, &accepted));
    assert_int_equal(accepted, REQUESTS);
    for (size_t i = 0; i < REQUESTS; i++) {
      await(&requests[i]);
      assert_int_equal(requests[i].answer.batch_requests, REQUESTS);
      assert_true(test_request_is_right(&requests[i].r));
    }
    assert_ok(rondo_session_destroy(session));
  }
}

/* The first refused one ends the list; those before it run. */
TEST(test_se8_the_first_refused_request_of_a_batch) {
  rondo_session *session = open_with(t, (rondo_session_options){0});
  const rondo_request *list[REQUESTS];
  size_t accepted = 9;
  for (size_t i = 0; i < REQUESTS; i++) {
    fill(session, i, 5 + i);
    list[i] = &requests[i].r.request;
  }
  requests[2].r.request.rows = 0;
  assert_invalid(rondo_session_submit_batch(session, "scorer", list, REQUESTS, tickets, &accepted), RONDO_REASON_SHAPE);
  assert_int_equal(accepted, 2);
  for (size_t i = 0; i < 2; i++) await(&requests[i]);
  assert_null(tickets[2].session);
  assert_null(tickets[3].session);
  assert_invalid(rondo_session_submit_batch(session, "scorer", list, 0, tickets, &accepted), RONDO_REASON_BAD_SIZE);
  assert_invalid(rondo_session_submit_batch(session, "scorer", NULL, 1, tickets, &accepted),
                 RONDO_REASON_NULL_ARGUMENT);
  assert_error(rondo_session_submit_batch(session, "none", list, 1, tickets, &accepted), RONDO_NOT_FOUND,
               RONDO_REASON_UNKNOWN_NAME);
  assert_int_equal(accepted, 0);
  assert_ok(rondo_session_capture_begin(session, "scorer"));
  assert_error(rondo_session_submit_batch(session, "scorer", list, 2, tickets, &accepted), RONDO_INVALID_STATE,
               RONDO_REASON_ALREADY_CAPTURING);
  fill(session, 3, 32); /* alone it is recorded */
  list[0] = &requests[3].r.request;
  assert_ok(rondo_session_submit_batch(session, "scorer", list, 1, tickets, &accepted));
  await(&requests[3]);
  assert_int_equal(requests[3].answer.mode, RONDO_RUN_CAPTURED);
  assert_ok(rondo_session_capture_end(session));
}

/* A thread that submits requests and cancels some. */
enum { MANY = 64 };
typedef struct canceller {
  rondo_session *session;
  uint32_t wrong;
  called_request requests[MANY];
} canceller;

static void submit_and_cancel(void *user) {
  canceller *all = user;
  for (size_t i = 0; i < MANY; i++) {
    called_request *c = &all->requests[i];
    rondo_ticket ticket;
    test_request_fill(&c->r, 1 + i % 20, i);
    c->r.request.done = called;
    c->r.request.user = c;
    c->session = all->session;
    all->wrong += rondo_session_submit(all->session, "scorer", &c->r.request, &ticket) != RONDO_OK;
    if (i % 7 == 0) rondo_ticket_cancel(ticket);
  }
  for (size_t i = 0; i < MANY; i++) {
    const called_request *c = &all->requests[i];
    while (atomic_load(&c->calls) == 0) test_sleep_ms(1);
    const bool is_cancelled = i % 7 == 0 && c->status != RONDO_OK && c->reason == RONDO_REASON_ABORTED;
    all->wrong += !is_cancelled && (c->status != RONDO_OK || !test_request_is_right(&c->r));
    all->wrong += atomic_load(&c->calls) != 1;
  }
}

/* Callbacks come from workers and from threads that run other requests, and each comes once. */
TEST(test_se8_callbacks_beside_requests_that_wait) {
  rondo_session *session = open_with(t, (rondo_session_options){.streams = 2});
  static test_client clients[2];
  static canceller all;
  all = (canceller){.session = session};
  for (size_t i = 0; i < 2; i++)
    clients[i] = (test_client){.session = session, .seed = i, .rounds = test_effort(100), .submits = i == 1};
  const test_thread threads[] = {
      {submit_and_cancel, &all}, {test_client_serve, &clients[0]}, {test_client_serve, &clients[1]}};
  test_on_threads(threads, 3);
  assert_int_equal(all.wrong, 0);
  for (size_t i = 0; i < 2; i++) assert_int_equal(clients[i].wrong + clients[i].failed, 0);
}
