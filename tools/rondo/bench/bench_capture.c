/* SPDX-License-Identifier: MIT
 * rondo bench capture (GX-11, SE-1): what it gains to capture models at once, each in a session and a thread of its
 * own, against one after the other. Both record the same graphs, in turns, in sessions that are new each time; what is
 * timed is the recording alone: building the program, its memory plan, and the exec.
 */
#include <inttypes.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>

#include "bench/bench_steps.h"
#include "commands/commands.h"
#include "common/json.h"
#include "common/options.h"
#include "common/tool.h"
#include "models/recommender.h"

typedef struct capture_settings {
  const char *device, *model;
  uint64_t sizes, rows, streams, rounds, table_rows;
  bool json;
} capture_settings;

static const capture_settings defaults = {
    .device = "cpu", .model = "dense", .sizes = 4, .rows = 64, .streams = 1, .rounds = 9, .table_rows = 1000};

#define OFFSET(member) offsetof(capture_settings, member)

static const option_row rows[] = {
    OPTION_ROW_DEVICE(capture_settings),
    {"model", "NAME", OPTION_TEXT, OFFSET(model), 0, 0, "network to capture: dense or recommender"},
    {"sizes", "N", OPTION_COUNT, OFFSET(sizes), 1, RONDO_SESSION_MAX_SIZES, "graphs of each model on a stream"},
    {"rows", "N", OPTION_COUNT, OFFSET(rows), RONDO_SESSION_MAX_SIZES, 100000, "rows of the largest graph"},
    {"streams", "N", OPTION_COUNT, OFFSET(streams), 1, RONDO_SESSION_MAX_STREAMS, "streams of each session"},
    {"rounds", "N", OPTION_COUNT, OFFSET(rounds), 1, 1000, "how often each is timed"},
    {"table-rows", "N", OPTION_COUNT, OFFSET(table_rows), 1, 10000000, "rows of each table of the recommender"},
    OPTION_ROW_JSON(capture_settings),
};

static const option_table table = {
    .command = "rondo bench capture",
    .description =
        "Captures one, two and four models, one after the other and at once, each in a session and a thread of its\n"
        "own. Scaling is the median time of the first divided by that of the second.",
    .defaults = &defaults,
    .rows = rows,
    .count = sizeof rows / sizeof rows[0],
};

enum { MOST_MODELS = 4, CASES = 3 };
static const uint32_t counts[CASES] = {1, 2, MOST_MODELS};

typedef struct capture_case {
  samples in_turn, at_once;
  summary in_turn_us, at_once_us;
} capture_case;

typedef struct capture_bench {
  capture_settings settings;
  recommender model;
  rondo_device *device;
  rondo_device_info info;
  capture_case cases[CASES];
} capture_bench;

/* A model on its way. */
typedef struct capturer {
  const capture_bench *bench;
  rondo_session *session;
  pthread_t thread;
  pthread_mutex_t *gate; /* is open when all have come */
  rondo_status status;
  char message[512]; /* of its thread's last error */
} capturer;

/* Capturing ------------------------------------------------------------------------------------------------------- */

static rondo_status open_session(capturer *c) {
  const capture_bench *b = c->bench;
  const rondo_session_options options = {RONDO_SESSION_OPTIONS_INIT, .streams = (uint32_t)b->settings.streams};
  const rondo_model_options model = {RONDO_MODEL_OPTIONS_INIT, .build = recommender_build,
                                     .user = (void *)(uintptr_t)&b->model};
  TOOL_TRY(rondo_session_create(b->device, &options, &c->session));
  TOOL_TRY(rondo_session_add_model(c->session, b->settings.model, &model));
  return rondo_session_capture_begin(c->session, b->settings.model);
}

/* The largest first. Nothing is read from the inputs in capture mode. */
static rondo_status record(const capturer *c) {
  static const char unread;
  const void *const inputs[] = {&unread, &unread};
  const capture_settings *s = &c->bench->settings;
  for (uint64_t i = s->sizes; i > 0; i--) {
    const rondo_request request = {RONDO_REQUEST_INIT, .rows = (size_t)(s->rows * i / s->sizes), .inputs = inputs};
    TOOL_TRY(rondo_session_run(c->session, s->model, &request, NULL));
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

static int record_in_turn(capturer *capturers, uint32_t count, double *out_us) {
  const uint64_t begin = clock_ns();
  for (uint32_t i = 0; i < count; i++)
    if (record(&capturers[i])) return tool_fail_status("capturing");
  *out_us = (double)(clock_ns() - begin) / 1e3;
  return TOOL_OK;
}

/* With the gate shut. Those that could be started are all that there are. */
static int start_all(capturer *capturers, uint32_t count, uint32_t *out_started) {
  for (*out_started = 0; *out_started < count; (*out_started)++) {
    capturer *c = &capturers[*out_started];
    const int error = pthread_create(&c->thread, NULL, run_capturer, c);
    if (error) return tool_fail_thread(error);
  }
  return TOOL_OK;
}

static int record_at_once(capturer *capturers, uint32_t count, double *out_us) {
  pthread_mutex_t gate = PTHREAD_MUTEX_INITIALIZER;
  uint32_t started;
  for (uint32_t i = 0; i < count; i++) capturers[i].gate = &gate;
  pthread_mutex_lock(&gate);
  int result = start_all(capturers, count, &started);
  const uint64_t begin = clock_ns();
  pthread_mutex_unlock(&gate);
  for (uint32_t i = 0; i < started; i++) pthread_join(capturers[i].thread, NULL);
  *out_us = (double)(clock_ns() - begin) / 1e3;
  for (uint32_t i = 0; i < started && result == TOOL_OK; i++)
    if (capturers[i].status) result = tool_fail("capturing: %s", capturers[i].message);
  return result;
}

/* Measuring ------------------------------------------------------------------------------------------------------- */

static int measure_once(const capture_bench *b, uint32_t count, bool at_once, double *out_us) {
  capturer capturers[MOST_MODELS] = {{0}};
  int result = TOOL_OK;
  for (uint32_t i = 0; i < count && result == TOOL_OK; i++) {
    capturers[i].bench = b;
    if (open_session(&capturers[i])) result = tool_fail_status("model '%s'", b->settings.model);
  }
  if (result == TOOL_OK)
    result = at_once ? record_at_once(capturers, count, out_us) : record_in_turn(capturers, count, out_us);
  for (uint32_t i = 0; i < count; i++)
    if (rondo_session_destroy(capturers[i].session) && result == TOOL_OK) result = tool_fail_status("a session");
  return result;
}

static int measure_case(const capture_bench *b, size_t which, capture_case *of) {
  double in_turn_us = 0, at_once_us = 0;
  int result = measure_once(b, counts[which], false, &in_turn_us);
  if (result == TOOL_OK) result = measure_once(b, counts[which], true, &at_once_us);
  samples_add(&of->in_turn, in_turn_us);
  samples_add(&of->at_once, at_once_us);
  return result;
}

/* The first captures compile kernels and open libraries. */
static int measure(void *bench) {
  capture_bench *b = bench;
  double us;
  int result = measure_once(b, 1, false, &us);
  for (uint64_t round = 0; round < b->settings.rounds; round++) {
    tool_show_progress("round %" PRIu64 " of %" PRIu64, round + 1, b->settings.rounds);
    for (size_t i = 0; i < CASES && result == TOOL_OK; i++) result = measure_case(b, i, &b->cases[i]);
  }
  for (size_t i = 0; i < CASES; i++) {
    b->cases[i].in_turn_us = samples_summarize(&b->cases[i].in_turn);
    b->cases[i].at_once_us = samples_summarize(&b->cases[i].at_once);
  }
  tool_clear_progress();
  return result;
}

/* Results --------------------------------------------------------------------------------------------------------- */

static double scaling_of(const capture_case *of) {
  return of->at_once_us.median > 0 ? of->in_turn_us.median / of->at_once_us.median : 0;
}

static int show_json(const void *bench) {
  const capture_bench *b = bench;
  json out;
  json_begin(&out);
  json_text(&out, "device", b->settings.device);
  json_text(&out, "device_description", b->info.description);
  json_text(&out, "model", b->settings.model);
  json_integer(&out, "streams", b->settings.streams);
  json_integer(&out, "graphs", b->settings.sizes * b->settings.streams);
  json_begin_array(&out, "cases");
  for (size_t i = 0; i < CASES; i++) {
    json_begin_object(&out, NULL);
    json_integer(&out, "models", counts[i]);
    json_summary(&out, "in_turn_us", b->cases[i].in_turn_us);
    json_summary(&out, "at_once_us", b->cases[i].at_once_us);
    json_real(&out, "scaling", scaling_of(&b->cases[i]));
    json_end(&out);
  }
  json_end(&out);
  return json_print(&out);
}

static int show_text(const void *bench) {
  const capture_bench *b = bench;
  tool_print_device("device   ", b->settings.device, &b->info);
  printf("graphs   %" PRIu64 " of a model: %" PRIu64 " sizes up to %" PRIu64 " rows on %" PRIu64 " streams\n\n",
         b->settings.sizes * b->settings.streams, b->settings.sizes, b->settings.rows, b->settings.streams);
  printf("models  one after the other ms  at once ms  scaling\n");
  for (size_t i = 0; i < CASES; i++)
    printf("%6" PRIu32 " %23.2f %11.2f %8.2f\n", counts[i], b->cases[i].in_turn_us.median / 1000,
           b->cases[i].at_once_us.median / 1000, scaling_of(&b->cases[i]));
  return TOOL_OK;
}

/* Making ready ---------------------------------------------------------------------------------------------------- */

static int prepare(void *bench) {
  capture_bench *b = bench;
  b->info.struct_size = sizeof b->info;
  if (rondo_device_open(b->settings.device, NULL, &b->device)) return tool_fail_status("--device");
  if (rondo_device_get_info(b->device, &b->info)) return tool_fail_status("the device");
  for (size_t i = 0; i < CASES; i++)
    if (!samples_create(&b->cases[i].in_turn, (size_t)b->settings.rounds) ||
        !samples_create(&b->cases[i].at_once, (size_t)b->settings.rounds))
      return tool_fail_memory("the times");
  return TOOL_OK;
}

static int take_down(void *bench) {
  capture_bench *b = bench;
  for (size_t i = 0; i < CASES; i++) {
    samples_destroy(&b->cases[i].in_turn);
    samples_destroy(&b->cases[i].at_once);
  }
  return rondo_device_close(b->device) ? tool_fail_status("the device") : TOOL_OK;
}

static const bench_steps steps = {
    .prepare = prepare, .measure = measure, .show_json = show_json, .show_text = show_text, .take_down = take_down};

int bench_capture(int argc, char **argv) {
  static capture_bench b;
  b = (capture_bench){.settings = defaults};
  const int parsed = options_parse(&table, argc, argv, &b.settings, NULL);
  if (parsed != OPTIONS_RUN) return parsed;
  b.model.table_rows = (size_t)b.settings.table_rows;
  if (!recommender_find(b.settings.model, &b.model))
    return tool_fail_usage("there is no model '%s'; there are dense and recommender", b.settings.model);
  return bench_steps_run(&steps, &b, b.settings.json);
}
