/* SPDX-License-Identifier: MIT
 * A session under load from several threads, with cancelled requests, deadlines, wrong indices and NaNs, while streams
 * are acquired and states are written: each request has the right answer, the counters add up, and nothing is left
 * (SE-6, SE-8, SE-11).
 */
#include <math.h>
#include <stdatomic.h>

#include "support/rondo_test.h"
#include "support/test_effort.h"
#include "support/test_session.h"

enum { CLIENTS = 8, MOST_REQUEST_ROWS = 150 };

typedef struct client {
  rondo_session *session;
  uint64_t random;
  uint32_t rounds;
  uint32_t right, cancelled, timed_out, refused_index, wrong;
  test_request *request; /* for half of them in host memory of the device, from which the session copies directly */
  size_t bad_row;        /* with a wrong index, or a NaN */
} client;

/* The possible outcomes of a request. */
typedef enum fate { FATE_PLAIN, FATE_CANCELLED, FATE_DEADLINE, FATE_BAD_INDEX, FATE_NOT_A_NUMBER, FATES } fate;

static void spoil(client *c, fate what) {
  test_request *r = c->request;
  c->bad_row = test_random_below(&c->random, (uint32_t)r->request.rows);
  if (what == FATE_BAD_INDEX) r->ids[c->bad_row] = TEST_IDS + 3;
  if (what == FATE_NOT_A_NUMBER) r->x[c->bad_row * TEST_FEATURES] = NAN;
  if (what == FATE_DEADLINE) r->request.deadline_us = 1 + test_random_below(&c->random, 2000);
  r->request.mode = test_random_below(&c->random, 8) == 0 ? RONDO_RUN_EAGER : RONDO_RUN_RECORDED;
}

static rondo_status hand_in(client *c, fate what) {
  rondo_ticket ticket = {0};
  if (what == FATE_PLAIN && test_random_below(&c->random, 2) == 0)
    return rondo_session_run(c->session, "scorer", &c->request->request, NULL);
  const rondo_status status = rondo_session_submit(c->session, "scorer", &c->request->request, &ticket);
  if (status != RONDO_OK) return status;
  if (what == FATE_CANCELLED) rondo_ticket_cancel(ticket);
  return rondo_ticket_wait(ticket, NULL);
}

/* A NaN makes its own row NaN, and no other row. */
static bool is_right(client *c, fate what) {
  test_request *r = c->request;
  if (what != FATE_NOT_A_NUMBER) return test_request_is_right(r);
  for (size_t j = 0; j < TEST_SCORES; j++)
    if (!isnan(r->y[c->bad_row * TEST_SCORES + j])) return false;
  for (size_t row = 0; row < r->request.rows; row++)
    if (row != c->bad_row && !test_request_row_is_right(r, row)) return false;
  return true;
}

static void judge(client *c, fate what, rondo_status status) {
  const rondo_reason reason = status == RONDO_OK ? RONDO_REASON_NONE : rondo_last_error()->reason;
  if (status == RONDO_OK && what != FATE_BAD_INDEX && is_right(c, what))
    c->right++;
  else if (what == FATE_CANCELLED && reason == RONDO_REASON_ABORTED)
    c->cancelled++;
  else if (what == FATE_DEADLINE && reason == RONDO_REASON_TIMED_OUT)
    c->timed_out++;
  else if (what == FATE_BAD_INDEX && status == RONDO_EXECUTION_FAILED && reason == RONDO_REASON_OUT_OF_RANGE)
    c->refused_index++;
  else
    c->wrong++;
}

static void be_client(void *user) {
  client *c = user;
  for (uint32_t i = 0; i < c->rounds; i++) {
    const uint32_t drawn = test_random_below(&c->random, 12);
    const fate what = drawn < FATES ? (fate)drawn : FATE_PLAIN;
    test_request_fill(c->request, 1 + test_random_below(&c->random, MOST_REQUEST_ROWS), test_random(&c->random));
    spoil(c, what);
    judge(c, what, hand_in(c, what));
  }
}

typedef struct keeper {
  rondo_session *session;
  atomic_uint *running; /* clients */
  rondo_weights *weights;
  uint32_t rounds, failed;
} keeper;

/* Acquires and releases streams, and writes the states with their current values. */
static void be_keeper(void *user) {
  keeper *k = user;
  rondo_weight w;
  k->failed += rondo_weights_find(k->weights, "w", &w) != RONDO_OK;
  for (; k->rounds < 3 || atomic_load(k->running) > 0; k->rounds++) {
    rondo_stream *stream = NULL;
    const size_t number = k->rounds % 2;
    k->failed += rondo_session_acquire_stream(k->session, "scorer", number, &stream) != RONDO_OK;
    k->failed += rondo_session_release_stream(k->session, number) != RONDO_OK;
    k->failed += rondo_session_write(k->session, "scorer", "w", w.data, w.bytes) != RONDO_OK;
    test_sleep_ms(1);
  }
}

static rondo_session *open_session(test_fixture *t, uint32_t streams) {
  const size_t sizes[] = {128, 64, 16};
  const double times[] = {60, 40, 20};
  rondo_session *session = test_session_open(
      t->device, (rondo_session_options){.streams = streams, .max_delay_us = 100, .max_eager_programs = 4});
  test_scorer_add(session, "scorer", (rondo_model_options){0});
  test_scorer_capture(session, "scorer", sizes, 3);
  assert_ok(rondo_session_set_times(session, "scorer", times, NULL, 3, 0.75));
  return session;
}

static client clients[CLIENTS];
static test_request requests[CLIENTS];
static atomic_uint running;

static void make_client(test_fixture *t, rondo_session *session, size_t index) {
  void *memory = &requests[index];
  if (index % 2 == 1) assert_ok(rondo_host_malloc(t->device, sizeof(test_request), &memory));
  clients[index] = (client){.session = session, .random = 77 + index, .rounds = test_effort(400), .request = memory};
}

static void run_client(void *user) {
  be_client(user);
  atomic_fetch_sub(&running, 1);
}

static void check_counters(rondo_session *session, uint32_t rounds) {
  const rondo_model_info info = test_model_info(session, "scorer");
  uint32_t right = 0, cancelled = 0, timed_out = 0, refused_index = 0;
  for (size_t i = 0; i < CLIENTS; i++) {
    assert_int_equal(clients[i].wrong, 0);
    right += clients[i].right;
    cancelled += clients[i].cancelled;
    timed_out += clients[i].timed_out;
    refused_index += clients[i].refused_index;
  }
  assert_int_equal(right + cancelled + timed_out + refused_index, CLIENTS * rounds);
  assert_int_equal(info.requests, right);
  assert_int_equal(info.cancelled, cancelled);
  assert_int_equal(info.timed_out, timed_out);
  assert_int_equal(info.failed, refused_index);
  assert_int_equal(info.recorded + info.split + info.eager, right);
  assert_int_equal(info.refused, 0);
}

TEST(test_se8_a_soak) {
  rondo_weights *weights = test_scorer_weights();
  rondo_session *session = open_session(t, 4);
  static keeper k;
  test_thread threads[CLIENTS + 1];
  for (size_t i = 0; i < CLIENTS; i++) {
    make_client(t, session, i);
    threads[i] = (test_thread){run_client, &clients[i]};
  }
  atomic_store(&running, CLIENTS);
  k = (keeper){.session = session, .running = &running, .weights = weights};
  threads[CLIENTS] = (test_thread){be_keeper, &k};
  test_on_threads(threads, CLIENTS + 1);
  assert_int_equal(k.failed, 0);
  assert_ok(rondo_session_drain(session));
  check_counters(session, test_effort(400));
  assert_ok(rondo_session_destroy(session));
  for (size_t i = 1; i < CLIENTS; i += 2) assert_ok(rondo_host_free(t->device, clients[i].request));
  rondo_weights_destroy(weights);
}

/* Requests that never end ------------------------------------------------------------------------------------------ */

enum { FLOODERS = 3, OUTSTANDING = 48, FLOOD_ROWS = 200, MOST_REQUESTS = 40000 };

typedef struct flooder {
  rondo_session *session;
  uint32_t sent, failed;
  rondo_ticket tickets[OUTSTANDING];
  test_request requests[OUTSTANDING];
} flooder;

static flooder flooders[FLOODERS];
static atomic_bool is_over;
static atomic_uint ended; /* flooders that had no more to send */

static void wait_for(flooder *f, size_t index) {
  if (f->tickets[index].session != NULL) f->failed += rondo_ticket_wait(f->tickets[index], NULL) != RONDO_OK;
  f->tickets[index] = (rondo_ticket){0};
}

/* Some requests wait at any time. */
static void be_flooder(void *user) {
  flooder *f = user;
  for (size_t i = 0; i < OUTSTANDING; i++) {
    test_request_fill(&f->requests[i], FLOOD_ROWS, i);
    f->requests[i].request.mode = RONDO_RUN_EAGER; /* one by one */
  }
  while (f->sent < MOST_REQUESTS && !atomic_load(&is_over)) {
    const size_t index = f->sent++ % OUTSTANDING;
    wait_for(f, index);
    f->failed +=
        rondo_session_submit(f->session, "scorer", &f->requests[index].request, &f->tickets[index]) != RONDO_OK;
  }
  atomic_fetch_add(&ended, f->sent == MOST_REQUESTS);
  for (size_t i = 0; i < OUTSTANDING; i++) wait_for(f, i);
}

/* Meanwhile, acquires streams and writes states, and records another model. */
static void be_patient(void *user) {
  keeper *k = user;
  rondo_weight w;
  const rondo_model_options other = {RONDO_MODEL_OPTIONS_INIT, .build = test_build_scorer};
  static test_request r;
  k->failed += rondo_weights_find(k->weights, "w", &w) != RONDO_OK;
  test_sleep_ms(20); /* until they are in flight */
  for (size_t i = 0; i < 4; i++) {
    rondo_stream *stream = NULL;
    k->failed += rondo_session_acquire_stream(k->session, "scorer", i % 2, &stream) != RONDO_OK;
    k->failed += rondo_session_release_stream(k->session, i % 2) != RONDO_OK;
    k->failed += rondo_session_write(k->session, "scorer", "w", w.data, w.bytes) != RONDO_OK;
  }
  test_request_fill(&r, 8, 1);
  k->failed += rondo_session_add_model(k->session, "other", &other) != RONDO_OK;
  k->failed += rondo_session_capture_begin(k->session, "other") != RONDO_OK;
  k->failed += rondo_session_run(k->session, "other", &r.request, NULL) != RONDO_OK;
  k->failed += rondo_session_capture_end(k->session) != RONDO_OK;
  k->rounds = atomic_load(&ended);
  atomic_store(&is_over, true);
}

/* A thread that waits for a stream has priority over requests: it is finished long before those end. */
TEST(test_se6_streams_are_taken_while_requests_never_end) {
  rondo_weights *weights = test_scorer_weights();
  rondo_session *session = open_session(t, 2);
  keeper k = {.session = session, .weights = weights};
  test_thread threads[FLOODERS + 1];
  atomic_store(&is_over, false);
  atomic_store(&ended, 0);
  for (size_t i = 0; i < FLOODERS; i++) {
    flooders[i] = (flooder){.session = session};
    threads[i] = (test_thread){be_flooder, &flooders[i]};
  }
  threads[FLOODERS] = (test_thread){be_patient, &k};
  test_on_threads(threads, FLOODERS + 1);
  assert_int_equal(k.failed, 0);
  assert_int_equal(k.rounds, 0);
  for (size_t i = 0; i < FLOODERS; i++) assert_int_equal(flooders[i].failed, 0);
  rondo_weights_destroy(weights);
}
