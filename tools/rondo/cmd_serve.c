/* SPDX-License-Identifier: MIT
 * rondo serve MODEL --load: a model in a session, loaded from inside the process: how many requests a second there can
 * be, and how long they take when they come at a given rate; recorded and un-recorded in one run, with the same
 * requests.
 */
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "commands.h"
#include "json.h"
#include "load.h"
#include "options.h"
#include "recommender.h"
#include "tool.h"

typedef struct serve_settings {
  const char *device, *history;
  uint64_t streams, sizes, delay_us, clients, requests, least, most, seed, table_rows;
  double seconds, rate, median, spread;
  bool load, json;
} serve_settings;

static const serve_settings defaults = {.device = "cpu",
                                        .history = "",
                                        .streams = 2,
                                        .sizes = 16,
                                        .clients = 4,
                                        .requests = 64,
                                        .least = 100,
                                        .most = 1200,
                                        .seed = 1,
                                        .table_rows = 10000,
                                        .seconds = 3,
                                        .rate = 0,
                                        .median = 350,
                                        .spread = 0.5};

#define OFFSET(member) offsetof(serve_settings, member)

static const option_row rows[] = {
    {"load", NULL, OPTION_FLAG, OFFSET(load), 0, 0, "load the model from inside the process; required"},
    OPTION_ROW_DEVICE(serve_settings),
    {"streams", "N", OPTION_COUNT, OFFSET(streams), 1, RONDO_SESSION_MAX_STREAMS, "streams to serve on"},
    {"sizes", "N", OPTION_COUNT, OFFSET(sizes), 1, RONDO_SESSION_MAX_SIZES, "batch sizes to record, at most"},
    {"delay-us", "N", OPTION_COUNT, OFFSET(delay_us), 0, 1000000, "microseconds that a request waits for others"},
    {"seconds", "X", OPTION_REAL, OFFSET(seconds), 0.05, 3600, "how long each of the four loads lasts"},
    {"clients", "N", OPTION_COUNT, OFFSET(clients), 1, 256, "clients of the closed loop"},
    {"rate", "X", OPTION_REAL, OFFSET(rate), 0, 1e7,
     "requests a second of the open loop; 0: 70 % of what there can be un-recorded"},
    {"history", "FILE", OPTION_TEXT, OFFSET(history), 0, 0,
     "sizes of requests, as for rondo session plan; else drawn:"},
    {"requests", "N", OPTION_COUNT, OFFSET(requests), 1, 4096, "sizes that are drawn, which come in turn"},
    {"least", "N", OPTION_COUNT, OFFSET(least), 1, TRAFFIC_MAX_ROWS, "rows of the smallest request"},
    {"most", "N", OPTION_COUNT, OFFSET(most), 1, TRAFFIC_MAX_ROWS, "rows of the largest"},
    {"median", "X", OPTION_REAL, OFFSET(median), 1, TRAFFIC_MAX_ROWS, "median of the log-normal they are drawn from"},
    {"spread", "X", OPTION_REAL, OFFSET(spread), 0, 4, "its spread, of the logarithm"},
    {"table-rows", "N", OPTION_COUNT, OFFSET(table_rows), 1, 10000000, "rows of each table of the recommender"},
    {"seed", "N", OPTION_COUNT, OFFSET(seed), 0, 0, "seed of sizes, states, inputs and arrivals"},
    OPTION_ROW_JSON(serve_settings),
};

static const option_table table = {
    .command = "rondo serve",
    .operand = "MODEL",
    .operand_help = "dense: a recommender without its tables; recommender: with them",
    .description =
        "Serves a model from recordings and loads it from inside the process, as fast as clients get answers (closed\n"
        "loop) and at a given rate (open loop, a Poisson process), recorded and un-recorded with the same requests.\n"
        "Prints requests a second, response times, what was padded, and bytes.",
    .defaults = &defaults,
    .rows = rows,
    .count = sizeof rows / sizeof rows[0],
};

enum { CLOSED_RECORDED, CLOSED_UNRECORDED, OPEN_RECORDED, OPEN_UNRECORDED, LOADS };

static const char *const load_names[LOADS] = {"closed_recorded", "closed_unrecorded", "open_recorded",
                                              "open_unrecorded"};
static const char *const load_labels[LOADS] = {"closed, recorded", "closed, un-recorded", "open, recorded",
                                               "open, un-recorded"};

typedef struct serving {
  serve_settings settings;
  const char *name;
  recommender model;
  traffic traffic;
  size_t most_rows;
  recommender_inputs inputs;
  rondo_device *device;
  rondo_session *session;
  rondo_device_info device_info;
  rondo_model_info info;
  double rate;
  double decide_ns; /* to say what runs a request, its model looked up by name */
  load_result results[LOADS];
} serving;

/* Starting ----------------------------------------------------------------------------------------------------------
 */

static rondo_status add_model(serving *s) {
  rondo_weights *weights = NULL;
  TOOL_TRY(recommender_weights(&s->model, s->settings.seed, &weights));
  const rondo_model_options options = {RONDO_MODEL_OPTIONS_INIT,
                                       .max_sizes = (uint32_t)s->settings.sizes,
                                       .build = recommender_build,
                                       .user = &s->model,
                                       .weights = weights,
                                       .history = s->traffic.rows,
                                       .history_count = s->traffic.count};
  const rondo_status status = rondo_session_add_model(s->session, s->name, &options);
  rondo_weights_destroy(weights);
  return status;
}

static rondo_status open_device(serving *s) {
  s->device_info.struct_size = sizeof s->device_info;
  TOOL_TRY(rondo_device_open(s->settings.device, NULL, &s->device));
  return rondo_device_get_info(s->device, &s->device_info);
}

static rondo_status start(serving *s) {
  const rondo_session_options options = {RONDO_SESSION_OPTIONS_INIT, .streams = (uint32_t)s->settings.streams,
                                         .max_delay_us = (uint32_t)s->settings.delay_us, .max_queue = 4096,
                                         .max_unrecorded = 4096};
  TOOL_TRY(rondo_session_create(s->device, &options, &s->session));
  TOOL_TRY(add_model(s));
  tool_show_progress("recording");
  return rondo_session_capture(s->session, s->name);
}

static rondo_status run_all_sizes(const serving *s) {
  for (size_t i = 0; i < s->traffic.count; i++) {
    void *output = NULL;
    const rondo_request request = {RONDO_REQUEST_INIT, .way = RONDO_WAY_UNRECORDED, .rows = s->traffic.rows[i],
                                   .inputs = s->inputs.inputs, .outputs = &output};
    TOOL_TRY(rondo_session_run(s->session, s->name, &request, NULL));
  }
  return RONDO_OK;
}

static rondo_status hold_others(const serving *s, size_t number, bool hold) {
  rondo_stream *stream;
  for (size_t i = 0; i < s->settings.streams; i++) {
    if (i == number) continue;
    TOOL_TRY(hold ? rondo_session_take_stream(s->session, s->name, i, &stream)
                  : rondo_session_give_stream(s->session, i));
  }
  return RONDO_OK;
}

/* The programs of un-recorded runs are compiled before they are timed, on each stream while the others are held. */
static rondo_status warm_up(const serving *s) {
  for (size_t i = 0; i < s->settings.streams; i++) {
    tool_show_progress("warming up stream %zu of %" PRIu64, i + 1, s->settings.streams);
    TOOL_TRY(hold_others(s, i, true));
    TOOL_TRY(run_all_sizes(s));
    TOOL_TRY(hold_others(s, i, false));
  }
  return RONDO_OK;
}

/* Loading -----------------------------------------------------------------------------------------------------------
 */

static int run_load(serving *s, int which) {
  const bool is_recorded = which == CLOSED_RECORDED || which == OPEN_RECORDED;
  const bool is_open = which == OPEN_RECORDED || which == OPEN_UNRECORDED;
  const load l = {.session = s->session,
                  .model = s->name,
                  .inputs = s->inputs.inputs,
                  .output_bytes = sizeof(float),
                  .traffic = &s->traffic,
                  .most_rows = s->most_rows,
                  .way = is_recorded ? RONDO_WAY_RECORDED : RONDO_WAY_UNRECORDED,
                  .seconds = s->settings.seconds,
                  .rate = is_open ? s->rate : 0,
                  .clients = (uint32_t)s->settings.clients,
                  .seed = s->settings.seed};
  tool_show_progress("load %d of %d: %s", which + 1, LOADS, load_labels[which]);
  return load_run(&l, &s->results[which]);
}

static int run_loads(serving *s) {
  for (int which = 0; which < LOADS; which++) {
    s->rate = s->settings.rate > 0 ? s->settings.rate : 0.7 * s->results[CLOSED_UNRECORDED].rate;
    if (which >= OPEN_RECORDED && !(s->rate > 0))
      return tool_fail("no request was answered un-recorded in %g seconds: give more of them", s->settings.seconds);
    if (run_load(s, which) != TOOL_OK) return TOOL_FAILURE;
  }
  return TOOL_OK;
}

static rondo_status time_decisions(serving *s) {
  enum { DECISIONS = 100000 };
  const uint64_t begin = clock_ns();
  for (size_t i = 0; i < DECISIONS; i++) {
    rondo_way way;
    uint32_t parts[RONDO_SESSION_MAX_PARTS], count;
    double us;
    TOOL_TRY(
        rondo_session_decide(s->session, s->name, s->traffic.rows[i % s->traffic.count], &way, parts, &count, &us));
  }
  s->decide_ns = (double)(clock_ns() - begin) / DECISIONS;
  return RONDO_OK;
}

static int serve(serving *s) {
  if (open_device(s)) return tool_fail_status("%s", s->settings.device);
  if (recommender_inputs_create(&s->model, s->device, s->most_rows, s->settings.seed, &s->inputs) != TOOL_OK)
    return TOOL_FAILURE;
  if (start(s) || warm_up(s) || time_decisions(s))
    return tool_fail_status("model '%s' on %s", s->name, s->settings.device);
  if (run_loads(s) != TOOL_OK) return TOOL_FAILURE;
  s->info.struct_size = sizeof s->info;
  if (rondo_session_get_model_info(s->session, s->name, &s->info)) return tool_fail_status("model '%s'", s->name);
  return TOOL_OK;
}

static int serve_and_close(serving *s) {
  int result = serve(s);
  if (rondo_session_destroy(s->session) && result == TOOL_OK) result = tool_fail_status("the session");
  if (recommender_inputs_destroy(&s->inputs) != TOOL_OK) result = TOOL_FAILURE;
  if (rondo_device_close(s->device) && result == TOOL_OK) result = tool_fail_status("%s", s->settings.device);
  tool_clear_progress();
  return result;
}

/* Results -----------------------------------------------------------------------------------------------------------
 */

static double padding_of(const load_result *r) {
  const double all = (double)r->rows + (double)r->padding_rows;
  return all > 0 ? (double)r->padding_rows / all : 0;
}

static void result_to_json(const load_result *r, const char *name, json *out) {
  json_begin_object(out, name);
  json_real(out, "seconds", r->seconds);
  json_real(out, "requests_per_second", r->rate);
  json_real(out, "median_us", r->median_us);
  json_real(out, "p95_us", r->p95_us);
  json_real(out, "p99_us", r->p99_us);
  json_real(out, "p999_us", r->p999_us);
  json_real(out, "maximum_us", r->maximum_us);
  json_integer(out, "answered", r->answered);
  json_integer(out, "failed", r->failed);
  json_integer(out, "refused", r->refused);
  json_integer(out, "batched", r->batched);
  json_integer(out, "rows", r->rows);
  json_real(out, "padding", padding_of(r));
  json_real(out, "busy", r->busy);
  json_end(out);
}

static int show_json(const serving *s) {
  json out;
  json_begin(&out);
  json_text(&out, "model", s->name);
  json_text(&out, "device", s->device_info.name);
  json_text(&out, "description", s->device_info.description);
  json_integer(&out, "streams", s->settings.streams);
  json_integer(&out, "graphs", s->info.graphs);
  json_integer(&out, "sizes", s->traffic.count);
  json_real(&out, "rate", s->rate);
  for (int i = 0; i < LOADS; i++) result_to_json(&s->results[i], load_names[i], &out);
  json_real(&out, "decide_ns", s->decide_ns);
  json_integer(&out, "state_bytes", s->info.state_bytes);
  json_integer(&out, "arena_bytes", s->info.arena_bytes);
  json_integer(&out, "exec_bytes", s->info.exec_bytes);
  json_integer(&out, "staging_bytes", s->info.staging_bytes);
  return json_print(&out);
}

static int show_text(const serving *s) {
  tool_print_device("device           ", s->device_info.name, &s->device_info);
  printf("graphs           %" PRIu32 " sizes on %" PRIu64 " streams\n", s->info.graphs, s->settings.streams);
  printf("%-20s %10s %10s %10s %10s %10s %9s %6s\n", "", "requests/s", "median us", "95 %", "99 %", "99.9 %",
         "padding %", "busy");
  for (int i = 0; i < LOADS; i++) {
    const load_result *r = &s->results[i];
    printf("%-20s %10.1f %10.1f %10.1f %10.1f %10.1f %9.2f %6.2f\n", load_labels[i], r->rate, r->median_us, r->p95_us,
           r->p99_us, r->p999_us, 100 * padding_of(r), r->busy);
  }
  printf("open loop        %.1f requests a second\n", s->rate);
  printf("decision         %.0f ns a request\n", s->decide_ns);
  printf("bytes            %" PRIu64 " of states, %" PRIu64 " of arenas, %" PRIu64 " of execs, %" PRIu64
         " of staging\n",
         s->info.state_bytes, s->info.arena_bytes, s->info.exec_bytes, s->info.staging_bytes);
  return TOOL_OK;
}

/* The command -------------------------------------------------------------------------------------------------------
 */

static int check(serving *s) {
  const serve_settings *o = &s->settings;
  s->model.table_rows = (size_t)o->table_rows;
  if (!o->load) return tool_fail_usage("--load is missing: nothing else is served so far");
  if (!recommender_find(s->name, &s->model))
    return tool_fail_usage("there is no model '%s'; there are dense and recommender", s->name);
  if (o->least > o->most) return tool_fail_usage("--least %" PRIu64 " is more than --most %" PRIu64, o->least, o->most);
  if (o->history[0] == '\0' && (o->median < (double)o->least || o->median > (double)o->most))
    return tool_fail_usage("--median %g is not from --least to --most", o->median);
  return TOOL_OK;
}

static int prepare(serving *s) {
  const serve_settings *o = &s->settings;
  const int result = o->history[0] != '\0' ? traffic_read(o->history, &s->traffic)
                                           : traffic_draw((size_t)o->requests, (size_t)o->least, (size_t)o->most,
                                                          o->median, o->spread, o->seed, &s->traffic);
  if (result != TOOL_OK) return result;
  for (size_t i = 0; i < s->traffic.count; i++)
    if (s->traffic.rows[i] > s->most_rows) s->most_rows = s->traffic.rows[i];
  return TOOL_OK;
}

int command_serve(int argc, char **argv) {
  static serving s;
  s.settings = defaults;
  const option_result parsed = options_parse(&table, argc, argv, &s.settings, &s.name);
  if (parsed != OPTIONS_RUN) return parsed == OPTIONS_DONE ? TOOL_OK : TOOL_USAGE;
  int result = check(&s);
  if (result == TOOL_OK) result = prepare(&s);
  if (result == TOOL_OK) result = serve_and_close(&s);
  if (result == TOOL_OK) result = s.settings.json ? show_json(&s) : show_text(&s);
  traffic_destroy(&s.traffic);
  return result;
}
