/* SPDX-License-Identifier: MIT
 * rondo_bench capture (GX-11, SE-1): how much faster several models are captured in parallel, each in a session and a
 * thread of its own, than one after the other. Both modes record the same graphs, in alternation, in new sessions each
 * time. Only the recording is timed: building the program, its memory plan, and the exec.
 */
#include <inttypes.h>
#include <pthread.h>

#include "bench_check.h"
#include "models/recommender.h"
#include "rondo_bench.h"

enum { MOST_MODELS = 4, CASES = 3 };
static const uint32_t counts[CASES] = {1, 2, MOST_MODELS};

enum { IN_TURN, AT_ONCE, WAYS };

typedef struct capture_bench {
  bench_base base;
  const char *model_name;
  uint64_t sizes, rows, streams, rounds, table_rows;
  recommender model;
  samples times[CASES][WAYS];
} capture_bench;

/* A model to capture. */
typedef struct capturer {
  const capture_bench *bench;
  rondo_session *session;
  pthread_t thread;
  pthread_mutex_t *gate; /* blocks until all threads have started */
  rondo_status status;
  char message[512]; /* the last error of its thread */
} capturer;

/* Capturing ------------------------------------------------------------------------------------------------------- */

static void open_session(capturer *c) {
  const capture_bench *b = c->bench;
  const rondo_session_options options = {RONDO_SESSION_OPTIONS_INIT, .streams = (uint32_t)b->streams};
  const rondo_model_options model = {RONDO_MODEL_OPTIONS_INIT, .build = recommender_build,
                                     .user = (void *)(uintptr_t)&b->model};
  check(rondo_session_create(b->base.device, &options, &c->session));
  check(rondo_session_add_model(c->session, b->model_name, &model));
  check(rondo_session_capture_begin(c->session, b->model_name));
}

/* The largest batch first. Capturing does not read the inputs. */
static rondo_status record(const capturer *c) {
  static const char unread;
  const void *const inputs[] = {&unread, &unread};
  const capture_bench *b = c->bench;
  for (uint64_t i = b->sizes; i > 0; i--) {
    const rondo_request request = {RONDO_REQUEST_INIT, .rows = (size_t)(b->rows * i / b->sizes), .inputs = inputs};
    TOOL_TRY(rondo_session_run(c->session, b->model_name, &request, NULL));
  }
  return RONDO_OK;
}

static void *run_capturer(void *user) {
  capturer *c = user;
  pthread_mutex_lock(c->gate);
  pthread_mutex_unlock(c->gate);
  c->status = record(c);
  if (c->status) snprintf(c->message, sizeof c->message, "%s", rondo_last_error()->message);
  return NULL;
}

static double record_in_turn(capturer *capturers, uint32_t count) {
  const uint64_t begin = clock_ns();
  for (uint32_t i = 0; i < count; i++) check(record(&capturers[i]));
  return (double)(clock_ns() - begin) / 1e3;
}

/* All threads start recording when the gate opens. */
static double record_at_once(capturer *capturers, uint32_t count) {
  pthread_mutex_t gate = PTHREAD_MUTEX_INITIALIZER;
  pthread_mutex_lock(&gate);
  for (uint32_t i = 0; i < count; i++) {
    capturers[i].gate = &gate;
    const int error = pthread_create(&capturers[i].thread, NULL, run_capturer, &capturers[i]);
    if (error) check_tool(tool_fail_thread(error));
  }
  const uint64_t begin = clock_ns();
  pthread_mutex_unlock(&gate);
  for (uint32_t i = 0; i < count; i++) pthread_join(capturers[i].thread, NULL);
  const double us = (double)(clock_ns() - begin) / 1e3;
  for (uint32_t i = 0; i < count; i++)
    if (capturers[i].status) check_tool(tool_fail("capturing: %s", capturers[i].message));
  return us;
}

/* Measuring ------------------------------------------------------------------------------------------------------- */

static double measure_once(const capture_bench *b, uint32_t count, int way) {
  capturer capturers[MOST_MODELS] = {{0}};
  for (uint32_t i = 0; i < count; i++) {
    capturers[i].bench = b;
    open_session(&capturers[i]);
  }
  const double us = way == AT_ONCE ? record_at_once(capturers, count) : record_in_turn(capturers, count);
  for (uint32_t i = 0; i < count; i++) check(rondo_session_destroy(capturers[i].session));
  return us;
}

static int measure(void *bench) {
  capture_bench *b = bench;
  for (size_t i = 0; i < CASES * WAYS; i++) bench_samples_create(&b->times[i / WAYS][i % WAYS], (size_t)b->rounds);
  (void)measure_once(b, 1, IN_TURN); /* the first captures compile kernels and load libraries */
  for (uint64_t round = 0; round < b->rounds; round++) {
    tool_show_progress("round %" PRIu64 " of %" PRIu64, round + 1, b->rounds);
    for (size_t i = 0; i < CASES * WAYS; i++)
      samples_add(&b->times[i / WAYS][i % WAYS], measure_once(b, counts[i / WAYS], i % WAYS));
  }
  return TOOL_OK;
}

static void report(void *bench, json *out) {
  capture_bench *b = bench;
  json_text(out, "model", b->model_name);
  json_integer(out, "streams", b->streams);
  json_integer(out, "graphs", b->sizes * b->streams);
  json_begin_array(out, "cases");
  for (size_t i = 0; i < CASES; i++) {
    const summary in_turn = samples_summarize(&b->times[i][IN_TURN]);
    const summary at_once = samples_summarize(&b->times[i][AT_ONCE]);
    json_begin_object(out, NULL);
    json_integer(out, "models", counts[i]);
    json_summary(out, "in_turn_us", in_turn);
    json_summary(out, "at_once_us", at_once);
    json_real(out, "scaling", bench_ratio(in_turn.median, at_once.median));
    json_end(out);
  }
  json_end(out);
}

static int check_settings(void *bench) {
  capture_bench *b = bench;
  b->model.table_rows = (size_t)b->table_rows;
  if (recommender_find(b->model_name, &b->model)) return TOOL_OK;
  return tool_fail_usage("there is no model '%s'; the models are dense and recommender", b->model_name);
}

static const capture_bench defaults = {.base = {.device_name = "cpu"},
                                       .model_name = "dense",
                                       .sizes = 4,
                                       .rows = 64,
                                       .streams = 1,
                                       .rounds = 9,
                                       .table_rows = 1000};

#define OFFSET(member) offsetof(capture_bench, member)

static const option_row rows[] = {
    {"model", "NAME", OPTION_TEXT, OFFSET(model_name), 0, 0, "model to capture: dense or recommender"},
    {"sizes", "N", OPTION_COUNT, OFFSET(sizes), 1, RONDO_SESSION_MAX_SIZES, "graphs of each model on a stream"},
    {"rows", "N", OPTION_COUNT, OFFSET(rows), RONDO_SESSION_MAX_SIZES, 100000, "rows of the largest graph"},
    {"streams", "N", OPTION_COUNT, OFFSET(streams), 1, RONDO_SESSION_MAX_STREAMS, "streams of each session"},
    {"rounds", "N", OPTION_COUNT, OFFSET(rounds), 1, 1000, "repetitions of each measurement"},
    {"table-rows", "N", OPTION_COUNT, OFFSET(table_rows), 1, 10000000, "rows of each table of the recommender"},
};

const benchmark bench_capture = {
    .name = "capture",
    .summary = "capturing several models at once and one after the other",
    .description =
        "Captures one, two and four models, one after the other and in parallel, each in its own session and\n"
        "thread. scaling is the median time one after the other divided by the median time in parallel. Times are\n"
        "microseconds.",
    BENCH_STATE(defaults),
    BENCH_OPTIONS(rows),
    .check = check_settings,
    .measure = measure,
    .report = report,
};
