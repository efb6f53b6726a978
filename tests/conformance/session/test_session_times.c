/* SPDX-License-Identifier: MIT
 * Requests correct times that were measured under load: a flag slows the work of a model down while it is captured, and
 * then the model serves a single client. The tests assert modes, not times: a slow graph takes many times as long as a
 * fast one (SE-8).
 */
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#include "support/rondo_test.h"
#include "support/test_session.h"

enum { LARGE = 64, SMALL = 16, MOST_REQUESTS = 10000 };

/* y = x, after a host function. While the work is slow, a graph of `rows` rows takes rows^2 / 128 ms, so that four
 * small graphs in a row take a quarter of the time of a large one. While it is fast, a graph takes almost no time. The
 * body sleeps, too, so an eager run takes half as long again as a slow graph, and a millisecond longer than a fast one:
 * eager runs must not seem faster than graphs because of noise in the measurements. */
typedef struct slowed {
  atomic_bool *is_slow;
  size_t rows;
} slowed;

static atomic_bool is_slow;
static slowed by_rows[2 * LARGE + 1];

static rondo_status be_slow(void *user) {
  const slowed *s = user;
  if (atomic_load(s->is_slow)) test_sleep_ms((unsigned)(s->rows * s->rows / 128));
  return RONDO_OK;
}

static rondo_status body(rondo_call *call, void *user) {
  rondo_stream *stream = rondo_call_stream(call);
  rondo_input x;
  void *y = NULL;
  slowed *all = user;
  rondo_status status = rondo_call_get_input(call, 0, &x);
  if (status == RONDO_OK) test_sleep_ms(atomic_load(&is_slow) ? (unsigned)(x.shape[0] * x.shape[0] / 256) : 1);
  if (status == RONDO_OK) status = rondo_call_output(call, 0, x.bytes, NULL, &y);
  if (status == RONDO_OK) status = rondo_host_async(stream, be_slow, &all[x.shape[0]]);
  return status == RONDO_OK ? rondo_copy_async(stream, y, x.address, x.bytes) : status;
}

typedef struct words {
  int32_t x[LARGE], y[LARGE];
  const void *inputs[1];
  void *outputs[1];
  rondo_request request;
} words;

static void fill(words *w, size_t rows, rondo_run_mode mode) {
  for (size_t i = 0; i < rows; i++) w->x[i] = (int32_t)i + 7;
  memset(w->y, 0, sizeof w->y);
  w->inputs[0] = w->x;
  w->outputs[0] = w->y;
  w->request =
      (rondo_request){RONDO_REQUEST_INIT, .mode = mode, .rows = rows, .inputs = w->inputs, .outputs = w->outputs};
}

static rondo_answer ask(rondo_session *session, size_t rows) {
  words w;
  rondo_answer answer = {.struct_size = sizeof answer};
  fill(&w, rows, RONDO_RUN_AUTO);
  assert_ok(rondo_session_run(session, "f", &w.request, &answer));
  assert_memory_equal(w.x, w.y, rows * sizeof *w.x);
  return answer;
}

/* Records both sizes and measures them while the work is slow. */
static rondo_session *open_slow(test_fixture *t, uint32_t streams) {
  static const rondo_row_value word = {.name = "word", .type = RONDO_I32};
  const rondo_session_options options = {RONDO_SESSION_OPTIONS_INIT, .streams = streams};
  const rondo_model_options model = {RONDO_MODEL_OPTIONS_INIT, .body = body,     .user = by_rows,  .inputs = &word,
                                     .input_count = 1,         .outputs = &word, .output_count = 1};
  static const size_t sizes[] = {LARGE, SMALL};
  rondo_session *session = NULL;
  for (size_t i = 0; i <= 2 * LARGE; i++) by_rows[i] = (slowed){&is_slow, i};
  atomic_store(&is_slow, true);
  assert_ok(rondo_session_create(t->device, &options, &session));
  test_leave_session(session);
  assert_ok(rondo_session_add_model(session, "f", &model));
  assert_ok(rondo_session_capture_begin(session, "f"));
  for (size_t i = 0; i < 2; i++) {
    words w;
    fill(&w, sizes[i], RONDO_RUN_AUTO);
    assert_ok(rondo_session_run(session, "f", &w.request, NULL));
  }
  assert_ok(rondo_session_capture_end(session));
  return session;
}

static rondo_run_mode decide(rondo_session *session, size_t rows) {
  rondo_run_mode mode = RONDO_RUN_AUTO;
  uint32_t parts[RONDO_SESSION_MAX_PARTS], count = 0;
  double us = 0;
  assert_ok(rondo_session_get_dispatch(session, "f", rows, &mode, parts, &count, &us));
  return mode;
}

static rondo_model_graph graph_of(rondo_session *session, size_t index) {
  return test_model_graph(session, "f", index);
}

/* A thread of the session updates the tables after each request. */
static void ask_until(rondo_session *session, rondo_run_mode expected) {
  rondo_run_mode mode = decide(session, LARGE);
  for (size_t i = 0; i < MOST_REQUESTS && mode != expected; i++) {
    ask(session, LARGE);
    test_sleep_ms(1);
    mode = decide(session, LARGE);
  }
  if (mode == expected) return;
  const rondo_model_graph large = graph_of(session, 0), small = graph_of(session, 1);
  fail_msg(
      "the mode is %d, expected %d: graphs of %g and %g us, eager %g us, were measured as %g, %g and %g us; "
      "%d samples, %d trials, %d renewals",
      (int)mode, (int)expected, large.current_us, small.current_us, large.current_eager_us, large.run_us, small.run_us,
      large.eager_us, (int)large.samples, (int)large.trials, (int)test_model_info(session, "f").renewals);
}

static void serve_a_lone_client(test_fixture *t, uint32_t streams) {
  enum { REQUESTS = 54 };
  rondo_session *session = open_slow(t, streams);
  assert_int_equal(decide(session, LARGE), RONDO_RUN_SPLIT);
  atomic_store(&is_slow, false);
  ask_until(session, RONDO_RUN_RECORDED);
  for (size_t i = 0; i < REQUESTS; i++) assert_int_equal(ask(session, LARGE).mode, RONDO_RUN_RECORDED);
  assert_ok(rondo_session_destroy(session));
}

TEST(test_se8_times_measured_under_load_are_corrected) { serve_a_lone_client(t, 2); }

TEST(test_se8_also_on_one_stream) { serve_a_lone_client(t, 1); }

/* The first request that runs alone is the trial. */
TEST(test_se8_what_is_known_of_times_is_reported) {
  rondo_session *session = open_slow(t, 2);
  const rondo_model_graph before = graph_of(session, 0);
  assert_true(before.current_us == before.run_us && before.current_eager_us == before.eager_us);
  assert_true(before.samples == 0 && before.trials == 0);
  atomic_store(&is_slow, false);
  const rondo_answer answer = ask(session, LARGE);
  assert_int_equal(answer.mode, RONDO_RUN_RECORDED);
  assert_int_equal(answer.reason, RONDO_RUN_TRIAL);
  ask_until(session, RONDO_RUN_RECORDED);
  const rondo_model_graph after = graph_of(session, 0);
  const rondo_model_info info = test_model_info(session, "f");
  assert_true(after.run_us == before.run_us && after.current_us < before.run_us / 2);
  assert_true(after.samples > 0 && after.trials > 0 && after.trials == info.trials && info.renewals > 0);
  assert_true(graph_of(session, 1).current_us <= after.current_us);
}

TEST(test_se8_a_slowdown_is_followed) {
  rondo_session *session = open_slow(t, 2);
  atomic_store(&is_slow, false);
  ask_until(session, RONDO_RUN_RECORDED);
  atomic_store(&is_slow, true);
  ask_until(session, RONDO_RUN_SPLIT);
  assert_true(graph_of(session, 0).samples >= 16);
}

TEST(test_se8_times_that_were_given_stay) {
  rondo_session *session = open_slow(t, 2);
  const double recorded[] = {400000, 10000};
  assert_ok(rondo_session_set_times(session, "f", recorded, NULL, 2, 1));
  atomic_store(&is_slow, false);
  for (size_t i = 0; i < 50; i++) assert_int_equal(ask(session, LARGE).mode, RONDO_RUN_SPLIT);
  for (size_t i = 0; i < 20; i++) assert_int_equal(ask(session, SMALL).reason, RONDO_RUN_CHEAPEST);
  for (size_t i = 0; i < 2; i++) {
    const rondo_model_graph graph = graph_of(session, i);
    assert_true(graph.current_us == recorded[i] && graph.run_us == recorded[i]);
    assert_true(graph.samples == 0 && graph.trials == 0);
  }
  const rondo_model_info info = test_model_info(session, "f");
  assert_true(info.trials == 0 && info.renewals == 0);
}

/* A run that overlaps with another says nothing about a graph's time, and is no trial. */
TEST(test_se8_readings_are_of_what_runs_alone) {
  rondo_session *session = open_slow(t, 2);
  rondo_stream *stream = NULL;
  assert_ok(rondo_session_acquire_stream(session, "f", 1, &stream));
  atomic_store(&is_slow, false);
  for (size_t i = 0; i < 5; i++) assert_int_equal(ask(session, LARGE).reason, RONDO_RUN_CHEAPEST);
  for (size_t i = 0; i < 5; i++) ask(session, SMALL);
  assert_true(graph_of(session, 0).samples == 0 && graph_of(session, 0).trials == 0);
  assert_int_equal(graph_of(session, 1).samples, 0);
  assert_ok(rondo_session_release_stream(session, 1));
  ask(session, SMALL);
  assert_int_equal(graph_of(session, 1).samples, 1);
}

/* After the first ones: at most as many as fit into 1 % of the time. */
TEST(test_se8_trials_are_few) {
  enum { REQUESTS = 40 };
  rondo_session *session = open_slow(t, 2); /* and it stays slow: several graphs are the right mode */
  size_t split = 0;
  for (size_t i = 0; i < REQUESTS; i++) split += ask(session, LARGE).mode == RONDO_RUN_SPLIT;
  assert_true(graph_of(session, 0).trials <= 4);
  assert_true(split >= REQUESTS - 4);
}

/* Tables are exchanged while requests are decided by them and parts of them run. */
typedef struct client {
  rondo_session *session;
  size_t first;
  uint32_t wrong;
} client;

static void serve(void *user) {
  enum { REQUESTS = 120 };
  client *c = user;
  for (size_t i = 0; i < REQUESTS; i++) {
    const size_t rows = 1 + (c->first + i * 13) % LARGE;
    words w;
    fill(&w, rows, RONDO_RUN_AUTO);
    const rondo_status status = rondo_session_run(c->session, "f", &w.request, NULL);
    c->wrong += status != RONDO_OK || memcmp(w.x, w.y, rows * sizeof *w.x) != 0;
    if (c->first == 0 && i % 40 == 39) atomic_store(&is_slow, !atomic_load(&is_slow));
  }
}

TEST(test_se8_tables_are_renewed_while_requests_run) {
  enum { CLIENTS = 3 };
  rondo_session *session = open_slow(t, 2);
  client clients[CLIENTS];
  test_thread threads[CLIENTS];
  atomic_store(&is_slow, false);
  ask(session, LARGE);
  for (size_t i = 0; i < CLIENTS; i++) {
    clients[i] = (client){.session = session, .first = i * 7};
    threads[i] = (test_thread){serve, &clients[i]};
  }
  test_on_threads(threads, CLIENTS);
  for (size_t i = 0; i < CLIENTS; i++) assert_int_equal(clients[i].wrong, 0);
}

/* Blocks an update of the tables in its first allocation, which only the session's thread makes. */
typedef struct stop {
  test_fixture *fixture;
  pthread_t client;
  atomic_bool is_there, may_go;
} stop;

static void stand_still(void *user) {
  stop *s = user;
  if (pthread_equal(pthread_self(), s->client)) {
    atomic_store(&s->fixture->allocator.meanwhile, stand_still);
    return;
  }
  atomic_store(&s->is_there, true);
  while (!atomic_load(&s->may_go)) test_sleep_ms(1);
}

/* Returns in the midst of a renewal. */
static rondo_session *open_renewing(test_fixture *t, stop *s) {
  rondo_session *session = open_slow(t, 2);
  *s = (stop){.fixture = t, .client = pthread_self()};
  atomic_store(&is_slow, false);
  t->allocator.user = s;
  atomic_store(&t->allocator.meanwhile, stand_still);
  for (size_t i = 0; i < MOST_REQUESTS && !atomic_load(&s->is_there); i++) {
    ask(session, LARGE);
    test_sleep_ms(1);
  }
  atomic_store(&t->allocator.meanwhile, NULL);
  assert_true(atomic_load(&s->is_there));
  return session;
}

TEST(test_se8_requests_run_while_tables_are_renewed) {
  static stop s;
  rondo_session *session = open_renewing(t, &s);
  for (size_t i = 0; i < 20; i++) ask(session, 1 + i * 7 % LARGE);
  assert_int_equal(test_model_info(session, "f").renewals, 0);
  atomic_store(&s.may_go, true);
  ask_until(session, RONDO_RUN_RECORDED);
}

/* When a model changes or is removed, an update in progress is discarded: no change waits for it or fails. */
TEST(test_se8_a_model_changes_while_its_tables_are_renewed) {
  static stop s;
  const double recorded[] = {4, 0.25};
  rondo_session *session = open_renewing(t, &s);
  assert_ok(rondo_session_set_times(session, "f", recorded, NULL, 2, 1));
  atomic_store(&s.may_go, true);
  test_sleep_ms(20); /* enough for tables that are not thrown away */
  assert_int_equal(decide(session, LARGE), RONDO_RUN_SPLIT);
  assert_true(graph_of(session, 0).current_us == 4);
  assert_int_equal(test_model_info(session, "f").renewals, 0);
}

TEST(test_se8_a_model_goes_while_its_tables_are_renewed) {
  static stop s;
  rondo_session *session = open_renewing(t, &s);
  assert_ok(rondo_session_destroy_graphs(session, "f"));
  assert_int_equal(decide(session, LARGE), RONDO_RUN_EAGER);
  assert_ok(rondo_session_remove_model(session, "f"));
  atomic_store(&s.may_go, true);
}

/* The old tables stay, and are updated when memory is available again. */
TEST(test_se8_there_is_no_memory_for_new_tables) {
  rondo_session *session = open_slow(t, 2);
  atomic_store(&is_slow, false);
  atomic_store(&t->allocator.calls, 0);
  atomic_store(&t->allocator.fail_at, 1);
  ask(session, LARGE);
  ask_until(session, RONDO_RUN_RECORDED);
  assert_true(atomic_load(&t->allocator.calls) > 1);
  atomic_store(&t->allocator.fail_at, 0);
}
