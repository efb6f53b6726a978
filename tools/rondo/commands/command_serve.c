/* SPDX-License-Identifier: MIT
 * rondo serve MODEL --load: serves a model in a session, with requests from inside the process. Measures the highest
 * rate of requests, and response times at a given rate, for recorded and eager runs with the same requests.
 */
#include <inttypes.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "commands/commands.h"
#include "common/file.h"
#include "common/options.h"
#include "common/tool.h"
#include "serve/serve.h"

static const serve_settings defaults = {.device = "cpu",
                                        .look_ups = "",
                                        .streams = 2,
                                        .sizes = 16,
                                        .clients = 4,
                                        .requests = 64,
                                        .seed = 1,
                                        .longest = 64,
                                        .table_rows = 10000,
                                        .batch_rows = 0,
                                        .seconds = 3,
                                        .rate = 0,
                                        .spread = 0.5,
                                        .answer_seconds = 30};

#define OFFSET(member) offsetof(serve_settings, member)

static const option_row rows[] = {
    {"load", NULL, OPTION_FLAG, OFFSET(load), 0, 0, "send requests from inside the process; required"},
    OPTION_ROW_DEVICE(serve_settings, device),
    {"look-ups", "NAME", OPTION_TEXT, OFFSET(look_ups), 0, 0,
     "device for the recommender's tables and look-ups; the undivided model is measured too"},
    {"streams", "N", OPTION_COUNT, OFFSET(streams), 1, RONDO_SESSION_MAX_STREAMS, "streams to serve on"},
    {"sizes", "N", OPTION_COUNT, OFFSET(sizes), 1, RONDO_SESSION_MAX_SIZES, "record at most N batch sizes"},
    {"delay-us", "N", OPTION_COUNT, OFFSET(delay_us), 0, 1000000,
     "microseconds that a request may wait for others to run with"},
    {"batch", "N", OPTION_COUNT, OFFSET(batch), 0, RONDO_SESSION_MAX_BATCH,
     "most requests in a batch; 0: no limit; 1: no batching"},
    {"batch-rows", "N", OPTION_COUNT, OFFSET(batch_rows), 0, TRAFFIC_MAX_ROWS,
     "most rows in a batch; 0: four times the largest request; 1: no sizes larger than that request"},
    {"seconds", "X", OPTION_REAL, OFFSET(seconds), 0.05, 3600, "duration of each load"},
    {"clients", "N", OPTION_COUNT, OFFSET(clients), 1, 256, "clients of the closed loop"},
    {"rate", "X", OPTION_REAL, OFFSET(rate), 0, 1e7,
     "requests per second of the open loop; 0: 70 % of what eager runs answer"},
    {"regret", NULL, OPTION_FLAG, OFFSET(regret), 0, 0,
     "compare the chosen sizes with the best choice and with sizes from rules"},
    {"soak", "X", OPTION_REAL, OFFSET(soak), 0, 86400,
     "seconds of an open loop at 90 % of saturation, with cancelled, late and bad requests; 0: none"},
    {"answer-seconds", "X", OPTION_REAL, OFFSET(answer_seconds), 0.1, 86400,
     "seconds in which each request of a soak must be answered"},
    {"report", "FILE", OPTION_OUTPUT, OFFSET(report), 0, 0,
     "write a page with latency curves to FILE (HTML); runs 16 more loads"},
    {"history", "FILE", OPTION_INPUT, OFFSET(history), 0, 0,
     "sizes of the requests, as for rondo session plan; by default they are random:"},
    {"requests", "N", OPTION_COUNT, OFFSET(requests), 1, 4096, "number of random sizes, which are sent in turn"},
    {"least", "N", OPTION_COUNT, OFFSET(least), 0, TRAFFIC_MAX_ROWS,
     "rows of the smallest request; 0: 100, and 1 of a model in a file"},
    {"most", "N", OPTION_COUNT, OFFSET(most), 0, TRAFFIC_MAX_ROWS,
     "rows of the largest request; 0: 1200, and 8 of a model in a file"},
    {"median", "X", OPTION_REAL, OFFSET(median), 0, TRAFFIC_MAX_ROWS,
     "median of the log-normal distribution of rows; 0: 350, or 3, or else between the least and the most"},
    {"spread", "X", OPTION_REAL, OFFSET(spread), 0, 4, "standard deviation of the logarithm of rows"},
    {"input", "NAME=VALUE", OPTION_LIST, OFFSET(file.inputs), 0, 0,
     "an input of a model in a file: rows in a file (.npy, .pb), 'random' or 'zeros'; others are random"},
    {"size", "NAME=N", OPTION_LIST, OFFSET(file.sizes), 0, 0,
     "the size of another dynamic dimension of such a model; others have that of a file, or 1"},
    {"rows", "NAME", OPTION_TEXT, OFFSET(file.rows), 0, 0,
     "the dynamic dimension of such a model that is the number of rows; by default the first one of each input"},
    {"length", "NAME", OPTION_TEXT, OFFSET(file.length), 0, 0,
     "another dynamic dimension of such a model that each request has its own size of, such as the tokens of a text"},
    {"longest", "N", OPTION_COUNT, OFFSET(longest), 1, TRAFFIC_MAX_ROWS,
     "length of the longest request; lengths are random, with a median of half of that"},
    {"mask", "NAME", OPTION_TEXT, OFFSET(file.mask), 0, 0,
     "the input that is 0 where a length is padded, so that requests are padded; it is 1 elsewhere"},
    {"causal", NULL, OPTION_FLAG, OFFSET(file.causal), 0, 0,
     "positions depend on earlier ones only, so that requests are padded to larger lengths"},
    {"table-rows", "N", OPTION_COUNT, OFFSET(table_rows), 1, 10000000, "rows of each table of the recommender"},
    {"seed", "N", OPTION_COUNT, OFFSET(seed), 0, 0, "seed of sizes, states, inputs and arrivals"},
    OPTION_ROW_JSON(serve_settings),
};

static const option_table table = {
    .command = "rondo serve",
    .operand = "MODEL",
    .operand_help =
        "a model in an ONNX file; dense: a recommender without its tables; recommender: with them; gpt FILE: a "
        "language model, see 'rondo serve gpt --help'",
    .description =
        "Serves a model from recordings and measures it under load. The requests come from inside the process: from\n"
        "clients that wait for each answer (closed loop), and at a fixed rate (open loop, a Poisson process).\n"
        "Recorded and eager runs serve the same requests, and recorded answers are compared with eager ones. Prints\n"
        "requests per second, response times, the share of padding, and memory.\n\n"
        "A model in a file needs a dynamic batch size: each input and output has the "
        "rows, as its first dimension or as the one that --rows names. Of a length, a few sizes are recorded. With\n"
        "--mask or --causal, requests are padded to the next of them; without, other lengths run eagerly.",
    OPTION_ROWS(rows, defaults),
};

/* The name of the undivided copy of a divided model. */
static const char whole_name[] = "undivided";

/* The number of random requests for which sizes are chosen. */
enum { DRAWN_HISTORY = 2000 };

/* Setup ----------------------------------------------------------------------------------------------------------- */

/* Adds the model, divided or whole. */
static rondo_status add_model(serving *s, const char *name, bool divided) {
  rondo_device *const devices[] = {s->device, s->look_ups};
  const rondo_placement_rule look_ups = {.operator_name = "embedding", .place = 1};
  const rondo_model_options options = {RONDO_MODEL_OPTIONS_INIT,
                                       .max_sizes = (uint32_t)s->settings.sizes,
                                       .build = s->model.build,
                                       .build_sized = s->model.build_sized,
                                       .user = s->model.user,
                                       .weights = s->model.weights,
                                       .history = s->history.rows,
                                       .history_count = s->history.count,
                                       .history_lengths = s->history.lengths,
                                       .exact_lengths = s->model.exact_lengths,
                                       .max_batch_rows = (size_t)s->settings.batch_rows,
                                       .devices = devices,
                                       .device_count = divided ? 2 : 0,
                                       .rules = &look_ups,
                                       .rule_count = divided};
  return rondo_session_add_model(s->session, name, &options);
}

static rondo_status record_whole(serving *s) {
  TOOL_TRY(add_model(s, whole_name, false));
  return rondo_session_capture(s->session, whole_name);
}

static rondo_status add_models(serving *s) {
  TOOL_TRY(add_model(s, s->name, s->look_ups != NULL));
  tool_show_progress("recording");
  const uint64_t begin = clock_ns();
  TOOL_TRY(rondo_session_capture(s->session, s->name));
  s->start_seconds = (double)(clock_ns() - begin) / 1e9;
  if (s->look_ups == NULL) return RONDO_OK;
  tool_show_progress("recording it undivided");
  const rondo_status status = record_whole(s);
  s->has_whole = status == RONDO_OK;
  return status == RONDO_OUT_OF_MEMORY ? RONDO_OK : status;
}

static int open_device(const char *name, rondo_device **out, rondo_device_info *info) {
  info->struct_size = sizeof *info;
  if (rondo_device_open(name, NULL, out) || rondo_device_get_info(*out, info)) return tool_fail_status("%s", name);
  return TOOL_OK;
}

static int open_devices(serving *s) {
  const int result = open_device(s->settings.device, &s->device, &s->device_info);
  if (result != TOOL_OK || s->settings.look_ups[0] == '\0') return result;
  return open_device(s->settings.look_ups, &s->look_ups, &s->look_ups_info);
}

static rondo_status start(serving *s) {
  const rondo_session_options options = {RONDO_SESSION_OPTIONS_INIT,
                                         .streams = (uint32_t)s->settings.streams,
                                         .max_delay_us = (uint32_t)s->settings.delay_us,
                                         .max_queue = 4096,
                                         .max_eager_programs = 4096,
                                         .max_batch = (uint32_t)s->settings.batch,
                                         .timed = true};
  TOOL_TRY(rondo_session_create(s->device, &options, &s->session));
  TOOL_TRY(add_models(s));
  served_model_drop_weights(&s->model);
  return RONDO_OK;
}

static rondo_status run_all_sizes(const serving *s) {
  for (size_t i = 0; i < s->traffic.count; i++) {
    void *const outputs[RONDO_SESSION_MAX_VALUES] = {NULL};
    const rondo_request request = {RONDO_REQUEST_INIT,         .mode = RONDO_RUN_EAGER,
                                   .rows = s->traffic.rows[i], .length = traffic_length(&s->traffic, i),
                                   .inputs = s->model.inputs,  .outputs = outputs};
    TOOL_TRY(rondo_session_run(s->session, s->name, &request, NULL));
  }
  return RONDO_OK;
}

static rondo_status hold_others(const serving *s, size_t number, bool hold) {
  rondo_stream *stream;
  for (size_t i = 0; i < s->settings.streams; i++) {
    if (i == number) continue;
    TOOL_TRY(hold ? rondo_session_acquire_stream(s->session, s->name, i, &stream)
                  : rondo_session_release_stream(s->session, i));
  }
  return RONDO_OK;
}

/* Compiles the programs of eager runs before they are timed. Holds the other streams while it runs on one. */
static rondo_status warm_up(const serving *s) {
  for (size_t i = 0; i < s->settings.streams; i++) {
    tool_show_progress("warming up stream %zu of %" PRIu64, i + 1, s->settings.streams);
    TOOL_TRY(hold_others(s, i, true));
    TOOL_TRY(run_all_sizes(s));
    TOOL_TRY(hold_others(s, i, false));
  }
  return RONDO_OK;
}

/* Loads ----------------------------------------------------------------------------------------------------------- */

/* The load of the requests from index `first` on. A rate of 0 is the closed loop. Recorded runs of a model with exact
 * lengths are eager where no graph has the length. */
static load load_of(const serving *s, const char *model, rondo_run_mode mode, size_t first, double rate,
                    double seconds) {
  return (load){.session = s->session,
                .model = model,
                .served = &s->model,
                .traffic = &s->traffic,
                .most_rows = s->most_rows,
                .mode = mode == RONDO_RUN_RECORDED && s->model.exact_lengths ? RONDO_RUN_AUTO : mode,
                .seconds = seconds,
                .first = first,
                .rate = rate,
                .clients = (uint32_t)s->settings.clients,
                .seed = s->settings.seed};
}

/* The ways alternate, so that a disturbance of the machine affects all of them. */
static int run_ways(serving *s, double rate, const char *what, load_result *results) {
  enum { ROUNDS = 4 };
  static const rondo_run_mode ways[SERVE_WAYS] = {RONDO_RUN_RECORDED, RONDO_RUN_EAGER, RONDO_RUN_AUTO,
                                                  RONDO_RUN_RECORDED};
  const size_t count = s->has_whole ? SERVE_WAYS : SERVE_WAYS - 1;
  load_tally tallies[SERVE_WAYS] = {{.answered = 0}};
  int result = TOOL_OK;
  for (size_t i = 0; i < count * ROUNDS && result == TOOL_OK; i++) {
    const size_t mode = i % count, first = i / count * s->traffic.count / ROUNDS;
    const load l =
        load_of(s, mode == CLOSED_WHOLE ? whole_name : s->name, ways[mode], first, rate, s->settings.seconds / ROUNDS);
    tool_show_progress("%s, %zu of %zu", what, i + 1, count * ROUNDS);
    result = load_run(&l, &tallies[mode]);
  }
  for (size_t i = 0; i < count; i++) results[i] = load_summarize(&tallies[i]);
  return result;
}

/* A recorded request of each size by itself, and requests of all clients that the session runs as it chooses. */
static int check_answers(serving *s) {
  load l = load_of(s, s->name, RONDO_RUN_AUTO, 0, 0, s->settings.seconds / 8);
  load_tally tally = {.answered = 0};
  int result = answer_check_create(&s->model, s->session, &s->traffic, &s->check);
  if (result == TOOL_OK) result = answer_check_recorded(&s->check, s->session, &s->answers);
  l.check = &s->check;
  tool_show_progress("checking answers");
  if (result == TOOL_OK) result = load_run(&l, &tally);
  answer_tally_add(&s->answers, &tally.answers);
  (void)load_summarize(&tally);
  answer_check_destroy(&s->check);
  return result == TOOL_OK ? answer_tally_judge(&s->answers, s->name) : result;
}

static int run_loads(serving *s) {
  load_result *r = s->results;
  const int result = run_ways(s, 0, "closed loop", &r[CLOSED_RECORDED]);
  s->rate = s->settings.rate > 0 ? s->settings.rate : 0.7 * r[CLOSED_EAGER].rate;
  if (result != TOOL_OK) return result;
  if (!(s->rate > 0))
    return tool_fail("no request was answered eagerly in %g seconds: raise --seconds", s->settings.seconds);
  return run_ways(s, s->rate, "open loop", &r[OPEN_RECORDED]);
}

static int run_curve(serving *s) {
  static const double parts[SERVE_POINTS] = {0.1, 0.25, 0.4, 0.55, 0.7, 0.8, 0.9, 1};
  const double seconds = s->settings.seconds / 3;
  int result = TOOL_OK;
  for (size_t i = 0; i < 2 * SERVE_POINTS && result == TOOL_OK; i++) {
    const bool is_recorded = i < SERVE_POINTS;
    const double most = s->results[is_recorded ? CLOSED_RECORDED : CLOSED_EAGER].rate;
    const load l = load_of(s, s->name, is_recorded ? RONDO_RUN_RECORDED : RONDO_RUN_EAGER, 0,
                           parts[i % SERVE_POINTS] * most, seconds);
    load_tally tally = {.answered = 0};
    tool_show_progress("curve, %zu of %d", i + 1, 2 * SERVE_POINTS);
    result = load_run(&l, &tally);
    s->curve[is_recorded ? 0 : 1][i % SERVE_POINTS] = load_summarize(&tally);
  }
  return result;
}

/* The highest rate of recorded runs: the median of several closed loops, because a single one may be disturbed. They
 * are long enough to measure, but no longer than the soak justifies. */
static int find_saturation(serving *s) {
  enum { LOOPS = 9, ENOUGH_SECONDS = 20 };
  const double enough = s->settings.soak / 6 < ENOUGH_SECONDS ? s->settings.soak / 6 : ENOUGH_SECONDS;
  const double seconds = s->settings.seconds > enough ? s->settings.seconds : enough;
  double rates[LOOPS];
  samples found = {.values = rates, .capacity = LOOPS};
  int result = TOOL_OK;
  for (size_t i = 0; i < LOOPS && result == TOOL_OK; i++) {
    const load l = load_of(s, s->name, RONDO_RUN_RECORDED, i * s->traffic.count / LOOPS, 0, seconds / LOOPS);
    load_tally tally = {.answered = 0};
    tool_show_progress("saturation, %zu of %d", i + 1, LOOPS);
    result = load_run(&l, &tally);
    samples_add(&found, load_summarize(&tally).rate);
  }
  s->saturation = samples_summarize(&found).median;
  if (result == TOOL_OK && !(s->saturation > 0))
    return tool_fail("no request was answered in %g seconds: raise --seconds", seconds / LOOPS);
  return result;
}

static int run_soak(serving *s) {
  const int result = find_saturation(s);
  if (result != TOOL_OK) return result;
  const soak given = {.device = s->device,
                      .session = s->session,
                      .name = s->name,
                      .model = &s->model.built_in,
                      .traffic = &s->traffic,
                      .most_rows = s->most_rows,
                      .seconds = s->settings.soak,
                      .rate = 0.9 * s->saturation,
                      .answer_seconds = s->settings.answer_seconds,
                      .seed = s->settings.seed};
  return soak_run(&given, &s->soaked);
}

static int judge_choice(serving *s) {
  const choice_question question = {.device = s->device,
                                    .model = &s->model,
                                    .history = &s->history,
                                    .chosen = s->sizes,
                                    .chosen_count = s->info.graphs};
  const int result = choice_judge(&question, &s->choice);
  return result == TOOL_OK ? ladders_compare(&question, s->ladders) : result;
}

static rondo_status time_decisions(serving *s) {
  enum { DECISIONS = 100000 };
  const uint64_t begin = clock_ns();
  for (size_t i = 0; i < DECISIONS; i++) {
    rondo_run_mode mode;
    uint32_t parts[RONDO_SESSION_MAX_PARTS], count;
    double us;
    TOOL_TRY(rondo_session_get_dispatch(s->session, s->name, s->traffic.rows[i % s->traffic.count], &mode, parts,
                                        &count, &us));
  }
  s->decide_ns = (double)(clock_ns() - begin) / DECISIONS;
  return RONDO_OK;
}

/* Adds the graphs of a model without lengths, or of a length, to those that are listed. */
static rondo_status list_graphs(serving *s, const char *name, size_t length, size_t count) {
  for (size_t i = 0; i < count; i++) {
    rondo_model_graph graph = {.struct_size = sizeof graph};
    TOOL_TRY(rondo_session_get_graph(s->session, name, i, &graph));
    const size_t at = s->info.graphs++;
    s->sizes[at] = graph.rows;
    s->lengths[at] = length;
    s->run_us[at] = graph.run_us;
    s->current_us[at] = graph.current_us;
  }
  return RONDO_OK;
}

/* Lengths share states and arenas. */
static rondo_status add_length(serving *s, const rondo_model_length *length) {
  rondo_model_info info = {.struct_size = sizeof info};
  TOOL_TRY(rondo_session_get_model_info(s->session, length->name, &info));
  s->info.trials += info.trials;
  s->info.renewals += info.renewals;
  s->info.exec_bytes += info.exec_bytes;
  s->info.staging_bytes += info.staging_bytes;
  if (info.arena_bytes > s->info.arena_bytes) s->info.arena_bytes = info.arena_bytes;
  return list_graphs(s, length->name, length->length, info.graphs);
}

static rondo_status look_at_model(serving *s) {
  rondo_model_length length = {.struct_size = sizeof length};
  s->info.struct_size = sizeof s->info;
  TOOL_TRY(rondo_session_get_model_info(s->session, s->name, &s->info));
  const uint32_t graphs = s->info.graphs;
  s->info.graphs = 0;
  if (!s->model.build_sized) return list_graphs(s, s->name, 0, graphs);
  s->info.trials = s->info.renewals = s->info.exec_bytes = s->info.staging_bytes = 0;
  for (size_t i = 0; rondo_session_get_length(s->session, s->name, i, &length) == RONDO_OK; i++)
    TOOL_TRY(add_length(s, &length));
  return RONDO_OK;
}

static int open_model(serving *s) {
  recommender built_in = {.table_rows = (size_t)s->settings.table_rows};
  if (recommender_find(s->name, &built_in))
    return served_model_open_built_in(s->name, &built_in, s->settings.seed, &s->model);
  s->settings.file.device = s->device;
  const int result = served_onnx_open(s->name, &s->settings.file, &s->model);
  if (s->settings.file.length) s->model.longest = (size_t)s->settings.longest;
  return result;
}

static int fail_model(const serving *s) {
  return tool_fail("model '%s' on %s: %s%s", s->name, s->settings.device, rondo_last_error()->message, s->model.hint);
}

static int serve(serving *s) {
  int result = start(s) ? fail_model(s) : TOOL_OK;
  if (result == TOOL_OK) result = served_model_find_values(&s->model, s->session);
  if (result == TOOL_OK) result = served_model_make_inputs(&s->model, s->device, s->most_rows, s->settings.seed);
  if (result == TOOL_OK && (warm_up(s) || time_decisions(s))) result = fail_model(s);
  if (result == TOOL_OK) result = check_answers(s);
  if (result == TOOL_OK) result = run_loads(s);
  if (result == TOOL_OK && s->settings.report) result = run_curve(s);
  if (result == TOOL_OK && s->settings.soak > 0) result = run_soak(s);
  if (result == TOOL_OK && look_at_model(s)) result = tool_fail_status("model '%s'", s->name);
  if (result == TOOL_OK && s->settings.regret) result = judge_choice(s);
  if (result == TOOL_OK && s->settings.report) result = serve_write_page(s);
  return result;
}

/* If a request is stuck, the session cannot be waited for, and exit handlers would unload libraries that its threads
 * use: the process ends at once. */
static int serve_and_close(serving *s) {
  int result = open_devices(s);
  if (result == TOOL_OK) result = open_model(s);
  if (result == TOOL_OK) result = serve(s);
  if (s->soaked.stuck > 0) _Exit(result);
  if (rondo_session_destroy(s->session) && result == TOOL_OK) result = tool_fail_status("the session");
  if (served_model_close(&s->model) != TOOL_OK) result = TOOL_FAILURE;
  if (rondo_device_close(s->device) && result == TOOL_OK) result = tool_fail_status("%s", s->settings.device);
  if (rondo_device_close(s->look_ups) && result == TOOL_OK) result = tool_fail_status("%s", s->settings.look_ups);
  tool_clear_progress();
  return result;
}

/* Command --------------------------------------------------------------------------------------------------------- */

/* Other names are those of built-in models. */
static bool names_file(const char *name) { return strpbrk(name, "./") != NULL; }

static int check_built_in(const serving *s) {
  const serve_settings *o = &s->settings;
  recommender built_in;
  if (!recommender_find(s->name, &built_in))
    return tool_fail_usage("there is no model '%s'; the models are dense, recommender and gpt, and ONNX files",
                           s->name);
  if (o->look_ups[0] != '\0' && !built_in.has_tables)
    return tool_fail_usage("model '%s' has no tables: --look-ups requires recommender", s->name);
  if (o->file.inputs.count > 0 || o->file.sizes.count > 0 || o->file.rows || o->file.length)
    return tool_fail_usage("--input, --size, --rows and --length are for models in files, not for '%s'", s->name);
  return TOOL_OK;
}

static int check_file(const serving *s) {
  const serve_settings *o = &s->settings;
  if (!o->file.length && (o->file.mask || o->file.causal))
    return tool_fail_usage("--mask and --causal are about the padding of a length: name it with --length");
  if (o->file.length && (o->regret || o->report || o->history))
    return tool_fail_usage("--regret, --report and --history do not support lengths: use them without --length");
  if (o->look_ups[0] != '\0') return tool_fail_usage("--look-ups requires recommender");
  if (o->soak > 0)
    return tool_fail_usage("--soak requires dense or recommender: it sends requests that are wrong for these");
  return TOOL_OK;
}

static void set_sizes(serve_settings *o, bool is_file) {
  if (o->least == 0) o->least = is_file ? 1 : 100;
  if (o->most == 0) o->most = is_file ? 8 : 1200;
  if (o->median > 0) return;
  o->median = is_file ? 3 : 350;
  if (o->median < (double)o->least || o->median > (double)o->most) o->median = sqrt((double)o->least * (double)o->most);
}

static int check(serving *s) {
  serve_settings *o = &s->settings;
  const bool is_file = names_file(s->name);
  set_sizes(o, is_file);
  if (!o->load) return tool_fail_usage("--load is required: requests come from this process only");
  const int result = is_file ? check_file(s) : check_built_in(s);
  if (result != TOOL_OK) return result;
  if (o->look_ups[0] != '\0' && o->regret)
    return tool_fail_usage("--regret does not support a divided model: use it without --look-ups");
  if (o->least > o->most) return tool_fail_usage("--least %" PRIu64 " is more than --most %" PRIu64, o->least, o->most);
  if (!o->history && (o->median < (double)o->least || o->median > (double)o->most))
    return tool_fail_usage("--median %g is not between --least and --most", o->median);
  return TOOL_OK;
}

static int draw(const serve_settings *o, size_t count, uint64_t seed, traffic *out) {
  return traffic_draw(count, (size_t)o->least, (size_t)o->most, o->median, o->spread, seed, out);
}

static int find_traffic(serving *s) {
  const serve_settings *o = &s->settings;
  int result;
  if (o->history) {
    result = traffic_read(o->history, &s->history);
    return result == TOOL_OK ? traffic_copy(&s->history, &s->traffic) : result;
  }
  result = draw(o, DRAWN_HISTORY, o->seed, &s->history);
  return result == TOOL_OK ? draw(o, (size_t)o->requests, o->seed + 1, &s->traffic) : result;
}

/* Random lengths have seeds of their own. */
static int find_lengths(serving *s) {
  const serve_settings *o = &s->settings;
  if (!o->file.length) return TOOL_OK;
  const int result = traffic_draw_lengths(&s->history, (size_t)o->longest, o->spread, o->seed + 2);
  if (result != TOOL_OK) return result;
  s->history.lengths[0] = (size_t)o->longest; /* so that it is one of the lengths */
  return traffic_draw_lengths(&s->traffic, (size_t)o->longest, o->spread, o->seed + 3);
}

static int prepare(serving *s) {
  int result = find_traffic(s);
  if (result == TOOL_OK) result = find_lengths(s);
  if (result != TOOL_OK) return result;
  const size_t sent = traffic_most_rows(&s->traffic), earlier = traffic_most_rows(&s->history);
  s->most_rows = sent > earlier ? sent : earlier;
  return TOOL_OK;
}

int command_serve(int argc, char **argv) {
  static serving s;
  if (argc > 1 && strcmp(argv[1], "gpt") == 0) return command_serve_gpt(argc - 1, argv + 1);
  s.settings = defaults;
  const int parsed = options_parse(&table, argc, argv, &s.settings, &s.name);
  if (parsed != OPTIONS_RUN) return parsed;
  int result = check(&s);
  if (result == TOOL_OK) result = prepare(&s);
  if (result == TOOL_OK) result = serve_and_close(&s);
  if (result == TOOL_OK) result = s.settings.json ? serve_show_json(&s) : serve_show_text(&s);
  traffic_destroy(&s.history);
  traffic_destroy(&s.traffic);
  return result;
}
