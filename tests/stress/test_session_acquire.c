/* SPDX-License-Identifier: MIT
 * Several threads acquire, release, write and remove the same streams and models of a session (SE-6). If two threads
 * release one stream, one succeeds, and another thread's acquisition stays valid. A model is removed for all threads or
 * for none. Threads that acquire several streams, and threads that need all, never deadlock. Capture mode and an
 * acquired stream exclude each other.
 */
#include <stdatomic.h>

#include "support/rondo_test.h"
#include "support/test_effort.h"
#include "support/test_session.h"

static rondo_session *open_session(test_fixture *t, uint32_t streams) {
  return test_session_open(t->device, (rondo_session_options){.streams = streams});
}

static void add_recorded(rondo_session *session) {
  const size_t sizes[] = {16};
  test_scorer_add(session, "scorer", (rondo_model_options){0});
  test_scorer_capture(session, "scorer", sizes, 1);
}

static bool failed_with(rondo_status status, rondo_status code, rondo_reason reason) {
  return status == code && rondo_last_error()->reason == reason;
}

/* One stream, several who acquire and release it ------------------------------------------------------------------- */

typedef struct manual_user {
  rondo_session *session;
  uint32_t rounds, acquired, released, wrong;
} manual_user;

/* Releases any acquired stream, whoever acquired it. */
static void run_manually(void *user) {
  manual_user *self = user;
  for (uint32_t i = 0; i < self->rounds; i++) {
    rondo_stream *stream = NULL;
    const rondo_status acquired = rondo_session_acquire_stream(self->session, "scorer", 0, &stream);
    self->acquired += acquired == RONDO_OK;
    if (acquired != RONDO_OK) self->wrong += !failed_with(acquired, RONDO_INVALID_STATE, RONDO_REASON_STILL_IN_USE);
    const rondo_status released = rondo_session_release_stream(self->session, 0);
    self->released += released == RONDO_OK;
    if (released != RONDO_OK) self->wrong += !failed_with(released, RONDO_INVALID_STATE, RONDO_REASON_SCOPE);
  }
}

enum { MANUAL = 3, SERVED = 2 };

TEST(test_se6_a_stream_is_released_once_for_each_acquisition) {
  rondo_session *session = open_session(((test_fixture *)t), 1);
  static test_client clients[SERVED];
  manual_user users[MANUAL];
  test_thread threads[MANUAL + SERVED];
  uint32_t acquired = 0, released = 0;
  add_recorded(session);
  for (size_t i = 0; i < MANUAL; i++) {
    users[i] = (manual_user){.session = session, .rounds = test_effort(2000)};
    threads[i] = (test_thread){run_manually, &users[i]};
  }
  for (size_t i = 0; i < SERVED; i++) {
    clients[i] = (test_client){.session = session, .seed = i + 1, .rounds = test_effort(400)};
    threads[MANUAL + i] = (test_thread){test_client_serve, &clients[i]};
  }
  test_on_threads(threads, MANUAL + SERVED);
  for (size_t i = 0; i < MANUAL; i++) {
    assert_int_equal(users[i].wrong, 0);
    acquired += users[i].acquired;
    released += users[i].released;
  }
  assert_true(acquired > 0);
  assert_int_equal(released, acquired); /* each releases after its own turn: no stream stays acquired */
  for (size_t i = 0; i < SERVED; i++) assert_int_equal(clients[i].failed + clients[i].wrong, 0);
}

/* A model that is removed while others use it ---------------------------------------------------------------------- */

typedef struct user_of_model {
  rondo_session *session;
  rondo_weights *weights;
  atomic_bool *is_over;
  uint32_t done, wrong;
} user_of_model;

static void be_writer(void *user) {
  user_of_model *u = user;
  rondo_weight w;
  u->wrong += rondo_weights_find(u->weights, "w", &w) != RONDO_OK;
  do {
    const rondo_status status = rondo_session_write(u->session, "scorer", "w", w.data, w.bytes);
    u->done += status == RONDO_OK;
    if (status != RONDO_OK) u->wrong += !failed_with(status, RONDO_NOT_FOUND, RONDO_REASON_UNKNOWN_NAME);
    test_sleep_ms(0); /* so that at some moments no thread uses the model */
  } while (!atomic_load(u->is_over));
}

static bool is_refusal_to_take(rondo_status status) {
  return failed_with(status, RONDO_NOT_FOUND, RONDO_REASON_UNKNOWN_NAME) ||
         failed_with(status, RONDO_INVALID_STATE, RONDO_REASON_NOT_CAPTURED);
}

static void be_taker(void *user) {
  user_of_model *u = user;
  while (!atomic_load(u->is_over)) {
    rondo_stream *stream = NULL;
    const rondo_status status = rondo_session_acquire_stream(u->session, "scorer", 0, &stream);
    if (status != RONDO_OK) {
      u->wrong += !is_refusal_to_take(status);
      continue;
    }
    u->done++;
    u->wrong += rondo_session_launch(u->session, "scorer", 0, 0) != RONDO_OK;
    u->wrong += rondo_session_release_stream(u->session, 0) != RONDO_OK;
    test_sleep_ms(0);
  }
}

/* Until no thread uses it. */
static rondo_status retry(rondo_status (*call)(rondo_session *, const char *), rondo_session *session) {
  rondo_status status;
  do status = call(session, "scorer");
  while (failed_with(status, RONDO_INVALID_STATE, RONDO_REASON_STILL_IN_USE));
  return status;
}

typedef struct remover {
  user_of_model base;
  uint32_t rounds;
} remover;

/* Leaves the model in the session, and ends the others' work. */
static void be_remover(void *user) {
  remover *r = user;
  const size_t history[] = {16};
  const rondo_model_options options = {RONDO_MODEL_OPTIONS_INIT, .build = test_build_scorer, .weights = r->base.weights,
                                       .history = history,       .history_count = 1,         .max_batch_rows = 1};
  for (uint32_t i = 0; i < r->rounds; i++) {
    r->base.wrong += retry(rondo_session_remove_model, r->base.session) != RONDO_OK;
    r->base.wrong += rondo_session_add_model(r->base.session, "scorer", &options) != RONDO_OK;
    r->base.wrong += retry(rondo_session_capture, r->base.session) != RONDO_OK;
  }
  atomic_store(r->base.is_over, true);
}

TEST(test_se6_a_model_is_removed_while_others_use_it) {
  rondo_session *session = open_session(((test_fixture *)t), 2);
  rondo_weights *weights = test_scorer_weights();
  atomic_bool is_over = false;
  user_of_model writer = {.session = session, .weights = weights, .is_over = &is_over}, taker = writer;
  remover r = {.base = writer, .rounds = test_effort(40)};
  const test_thread threads[] = {{be_writer, &writer}, {be_taker, &taker}, {be_remover, &r}};
  add_recorded(session);
  test_on_threads(threads, 3);
  assert_int_equal(writer.wrong, 0);
  assert_int_equal(taker.wrong, 0);
  assert_int_equal(r.base.wrong, 0);
  assert_int_equal(test_model_info(session, "scorer").graphs, 1);
  rondo_weights_destroy(weights);
}

/* Several streams, and one request that needs all ----------------------------------------------------------------- */

typedef struct collector {
  test_client client;
  atomic_bool *is_over;
  uint32_t rounds, wrong;
} collector;

/* The last stream first; before it acquires the other one it waits for requests, which that stream runs. */
static void be_collector(void *user) {
  collector *c = user;
  for (uint32_t i = 0; i < c->rounds; i++) {
    rondo_stream *stream = NULL;
    c->wrong += rondo_session_acquire_stream(c->client.session, "scorer", 1, &stream) != RONDO_OK;
    test_client_serve(&c->client);
    c->wrong += rondo_session_acquire_stream(c->client.session, "scorer", 0, &stream) != RONDO_OK;
    for (uint32_t k = 0; k < 2; k++) c->wrong += rondo_session_release_stream(c->client.session, k) != RONDO_OK;
    test_sleep_ms(0); /* so that at some moments no stream is acquired */
  }
  atomic_store(c->is_over, true);
}

TEST(test_se6_streams_are_acquired_in_any_order_during_calls_that_need_all) {
  rondo_session *session = open_session(((test_fixture *)t), 2);
  rondo_weights *weights = test_scorer_weights();
  atomic_bool is_over = false;
  user_of_model writers[2];
  static collector c;
  c = (collector){.client = {.session = session, .seed = 5, .rounds = 1}, .is_over = &is_over};
  c.rounds = test_effort(200);
  for (size_t i = 0; i < 2; i++)
    writers[i] = (user_of_model){.session = session, .weights = weights, .is_over = &is_over};
  const test_thread threads[] = {{be_writer, &writers[0]}, {be_writer, &writers[1]}, {be_collector, &c}};
  add_recorded(session);
  test_on_threads(threads, 3);
  assert_int_equal(c.wrong + c.client.failed + c.client.wrong, 0);
  for (size_t i = 0; i < 2; i++) {
    assert_int_equal(writers[i].wrong, 0);
    assert_true(writers[i].done > 0);
  }
  rondo_weights_destroy(weights);
}

/* Capture mode, of another model ----------------------------------------------------------------------------------- */

static void be_in_mode(void *user) {
  user_of_model *u = user;
  while (!atomic_load(u->is_over)) {
    const rondo_status begun = rondo_session_capture_begin(u->session, "other");
    u->done += begun == RONDO_OK;
    if (begun == RONDO_OK)
      u->wrong += rondo_session_capture_end(u->session) != RONDO_OK;
    else
      u->wrong += !failed_with(begun, RONDO_INVALID_STATE, RONDO_REASON_STILL_IN_USE);
  }
}

static void be_outside(void *user) {
  remover *r = user;
  for (uint32_t i = 0; i < r->rounds; i++) {
    rondo_stream *stream = NULL;
    const rondo_status acquired = rondo_session_acquire_stream(r->base.session, "scorer", 0, &stream);
    if (acquired != RONDO_OK) {
      r->base.wrong += !failed_with(acquired, RONDO_INVALID_STATE, RONDO_REASON_ALREADY_CAPTURING);
      continue;
    }
    r->base.done++;
    r->base.wrong +=
        !failed_with(rondo_session_capture_end(r->base.session), RONDO_INVALID_STATE, RONDO_REASON_NOT_CAPTURING);
    r->base.wrong += rondo_session_release_stream(r->base.session, 0) != RONDO_OK;
  }
  atomic_store(r->base.is_over, true);
}

TEST(test_se6_no_stream_is_taken_while_the_session_captures) {
  rondo_session *session = open_session(((test_fixture *)t), 2);
  atomic_bool is_over = false;
  user_of_model inside = {.session = session, .is_over = &is_over};
  remover outside = {.base = inside, .rounds = test_effort(5000)};
  const test_thread threads[] = {{be_in_mode, &inside}, {be_outside, &outside}};
  add_recorded(session);
  test_scorer_add(session, "other", (rondo_model_options){0});
  test_on_threads(threads, 2);
  assert_int_equal(inside.wrong, 0);
  assert_int_equal(outside.base.wrong, 0);
}
