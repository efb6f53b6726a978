/* SPDX-License-Identifier: MIT
 * rondo session plan: the batch sizes that a session chooses for a history of requests, the measured cost of each when
 * recorded on the device, and how the requests of the history would run.
 */
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "commands/commands.h"
#include "common/json.h"
#include "common/options.h"
#include "common/tool.h"
#include "models/recommender.h"
#include "serve/request_sizes.h"
#include "serve/size_comparison.h"

typedef struct session_settings {
  const char *history, *model, *device;
  uint64_t sizes, streams, budget_bytes, budget_ms, table_rows;
  bool json;
} session_settings;

static const session_settings defaults = {
    .model = "dense", .device = "cpu", .sizes = 16, .streams = 1, .table_rows = 10000};

#define OFFSET(member) offsetof(session_settings, member)

static const option_row rows[] = {
    {"history", "FILE", OPTION_INPUT, OFFSET(history), 0, 0,
     "lines of ROWS or ROWS,REQUESTS; '-' is standard input; by default 2000 random requests of 100 to 1200 rows"},
    {"model", "NAME", OPTION_TEXT, OFFSET(model), 0, 0, "model to serve: dense or recommender"},
    OPTION_ROW_DEVICE(session_settings, device),
    {"sizes", "N", OPTION_COUNT, OFFSET(sizes), 1, RONDO_SESSION_MAX_SIZES, "choose at most N sizes"},
    {"streams", "N", OPTION_COUNT, OFFSET(streams), 1, RONDO_SESSION_MAX_STREAMS, "streams to record on"},
    {"budget-bytes", "N", OPTION_COUNT, OFFSET(budget_bytes), 0, 0,
     "maximum number of bytes for the graphs of a stream; 0: no limit"},
    {"budget-ms", "N", OPTION_COUNT, OFFSET(budget_ms), 0, 86400e3,
     "most milliseconds to record on a stream; 0: no limit"},
    {"table-rows", "N", OPTION_COUNT, OFFSET(table_rows), 1, 10000000, "rows of each table of the recommender"},
    OPTION_ROW_JSON(session_settings),
};

static const option_table table = {
    .command = "rondo session",
    .operand = "plan",
    .operand_help = "choose sizes",
    .description =
        "Chooses batch sizes for a history of requests. The model is recorded at some sizes and measured. Then the\n"
        "sizes are chosen with which the requests, alone and batched up to the rows of the largest request, cost\n"
        "the least within the budgets. Prints the cost of each size, how the requests of the history would run, and\n"
        "memory, as planned before recording and as used. Then compares the chosen sizes with sizes from rules,\n"
        "where each request is padded to the next size.",
    OPTION_ROWS(rows, defaults),
};

/* How the requests of the history would run. */
typedef struct outlook {
  uint64_t by_graph[RONDO_SESSION_MAX_SIZES]; /* requests whose first graph has this size */
  uint64_t recorded, split, eager;
  uint64_t rows, run_rows; /* of the requests that run on graphs */
  double us;
} outlook;

typedef struct planning {
  session_settings settings;
  recommender model;
  traffic history;
  rondo_device *device;
  rondo_session *session;
  rondo_model_info info;
  rondo_model_bytes planned; /* rondo_session_plan's answer, before anything is recorded */
  rondo_model_graph graphs[RONDO_SESSION_MAX_SIZES];
  outlook outlook;
  ladder ladders[LADDERS];
} planning;

/* Planning --------------------------------------------------------------------------------------------------------- */

static rondo_status record(planning *p) {
  const session_settings *s = &p->settings;
  const rondo_session_options options = {RONDO_SESSION_OPTIONS_INIT, .streams = (uint32_t)s->streams};
  const rondo_model_options model = {RONDO_MODEL_OPTIONS_INIT,
                                     .max_sizes = (uint32_t)s->sizes,
                                     .build = recommender_build,
                                     .user = &p->model,
                                     .history = p->history.rows,
                                     .history_count = p->history.count,
                                     .budget_bytes = s->budget_bytes,
                                     .budget_startup_us = s->budget_ms * 1000,
                                     .max_batch_rows = 1};
  TOOL_TRY(rondo_device_open(s->device, NULL, &p->device));
  TOOL_TRY(rondo_session_create(p->device, &options, &p->session));
  TOOL_TRY(rondo_session_add_model(p->session, s->model, &model));
  TOOL_TRY(rondo_session_capture(p->session, s->model));
  p->info.struct_size = sizeof p->info;
  TOOL_TRY(rondo_session_get_model_info(p->session, s->model, &p->info));
  for (size_t i = 0; i < p->info.graphs; i++) {
    p->graphs[i].struct_size = sizeof p->graphs[i];
    TOOL_TRY(rondo_session_get_graph(p->session, s->model, i, &p->graphs[i]));
  }
  return RONDO_OK;
}

static rondo_status look_ahead(planning *p, size_t request_rows) {
  outlook *o = &p->outlook;
  rondo_run_mode mode;
  uint32_t parts[RONDO_SESSION_MAX_PARTS], count;
  double us;
  TOOL_TRY(rondo_session_get_dispatch(p->session, p->settings.model, request_rows, &mode, parts, &count, &us));
  o->us += us;
  o->recorded += mode == RONDO_RUN_RECORDED;
  o->split += mode == RONDO_RUN_SPLIT;
  o->eager += mode == RONDO_RUN_EAGER;
  if (count > 0) o->by_graph[parts[0]]++;
  if (count > 0) o->rows += request_rows;
  for (uint32_t i = 0; i < count; i++) o->run_rows += p->graphs[parts[i]].rows;
  return RONDO_OK;
}

/* Plans the memory in a new session, in which nothing has been recorded. */
static rondo_status say_bytes(planning *p, rondo_session *session) {
  const rondo_model_options model = {RONDO_MODEL_OPTIONS_INIT, .build = recommender_build, .user = &p->model};
  size_t sizes[RONDO_SESSION_MAX_SIZES];
  for (size_t i = 0; i < p->info.graphs; i++) sizes[i] = p->graphs[i].rows;
  p->planned.struct_size = sizeof p->planned;
  TOOL_TRY(rondo_session_add_model(session, p->settings.model, &model));
  return rondo_session_plan(session, p->settings.model, sizes, p->info.graphs, &p->planned);
}

static rondo_status forecast(planning *p) {
  rondo_session *session = NULL;
  const rondo_session_options options = {RONDO_SESSION_OPTIONS_INIT, .streams = (uint32_t)p->settings.streams};
  TOOL_TRY(rondo_session_create(p->device, &options, &session));
  const rondo_status status = say_bytes(p, session);
  const rondo_status destroyed = rondo_session_destroy(session);
  return status ? status : destroyed;
}

static rondo_status plan(planning *p) {
  TOOL_TRY(record(p));
  for (size_t i = 0; i < p->history.count; i++) TOOL_TRY(look_ahead(p, p->history.rows[i]));
  return forecast(p);
}

static int compare_ladders(planning *p) {
  size_t sizes[RONDO_SESSION_MAX_SIZES];
  for (size_t i = 0; i < p->info.graphs; i++) sizes[i] = p->graphs[i].rows;
  const served_model model = {.name = p->settings.model, .build = recommender_build, .user = &p->model};
  const choice_question question = {
      .device = p->device, .model = &model, .history = &p->history, .chosen = sizes, .chosen_count = p->info.graphs};
  return ladders_compare(&question, p->ladders);
}

static int make_plan(planning *p) {
  int result = plan(p) ? tool_fail_status("model '%s' on %s", p->settings.model, p->settings.device) : TOOL_OK;
  if (result == TOOL_OK) result = compare_ladders(p);
  if (rondo_session_destroy(p->session) && result == TOOL_OK) result = tool_fail_status("the session");
  if (rondo_device_close(p->device) && result == TOOL_OK) result = tool_fail_status("%s", p->settings.device);
  tool_clear_progress();
  return result;
}

/* Results ---------------------------------------------------------------------------------------------------------- */

static double padding_of(const outlook *o) { return o->run_rows == 0 ? 0 : 1 - (double)o->rows / (double)o->run_rows; }

static double startup_ms(const planning *p) {
  double us = 0;
  for (size_t i = 0; i < p->info.graphs; i++) us += p->graphs[i].capture_us;
  return us / 1000;
}

static void graphs_to_json(const planning *p, json *out) {
  json_begin_array(out, "graphs");
  for (size_t i = 0; i < p->info.graphs; i++) {
    json_begin_object(out, NULL);
    json_integer(out, "rows", p->graphs[i].rows);
    json_real(out, "run_us", p->graphs[i].run_us);
    json_real(out, "eager_us", p->graphs[i].eager_us);
    json_real(out, "capture_us", p->graphs[i].capture_us);
    json_integer(out, "nodes", p->graphs[i].nodes);
    json_integer(out, "exec_bytes", p->graphs[i].exec_bytes);
    json_integer(out, "arena_bytes", p->graphs[i].arena_bytes);
    json_integer(out, "requests", p->outlook.by_graph[i]);
    json_end(out);
  }
  json_end(out);
}

static int show_json(const planning *p) {
  json out;
  json_begin(&out);
  json_text(&out, "model", p->settings.model);
  json_text(&out, "device", p->settings.device);
  json_integer(&out, "requests", p->history.count);
  json_integer(&out, "streams", p->settings.streams);
  graphs_to_json(p, &out);
  json_real(&out, "mean_us", p->outlook.us / (double)p->history.count);
  json_real(&out, "padding", padding_of(&p->outlook));
  json_integer(&out, "recorded", p->outlook.recorded);
  json_integer(&out, "split", p->outlook.split);
  json_integer(&out, "eager", p->outlook.eager);
  json_real(&out, "overlap", p->info.overlap);
  json_real(&out, "startup_ms", startup_ms(p));
  json_integer(&out, "state_bytes", p->info.state_bytes);
  json_integer(&out, "arena_bytes", p->info.arena_bytes);
  json_integer(&out, "exec_bytes", p->info.exec_bytes);
  json_integer(&out, "staging_bytes", p->info.staging_bytes);
  json_begin_object(&out, "planned");
  json_integer(&out, "state_bytes", p->planned.state_bytes);
  json_integer(&out, "arena_bytes", p->planned.arena_bytes);
  json_integer(&out, "exec_bytes", p->planned.exec_bytes);
  json_integer(&out, "staging_bytes", p->planned.staging_bytes);
  json_end(&out);
  ladders_to_json(p->ladders, &out);
  return json_print(&out);
}

static void print_bytes(const char *heading, uint64_t states, uint64_t arenas, uint64_t execs, uint64_t staging) {
  printf("%s%" PRIu64 " of states, %" PRIu64 " of arenas, %" PRIu64 " of execs, %" PRIu64 " of staging\n", heading,
         states, arenas, execs, staging);
}

static int show_text(const planning *p) {
  const outlook *o = &p->outlook;
  printf("graph  rows      run us        eager us  capture ms  exec bytes  requests\n");
  for (size_t i = 0; i < p->info.graphs; i++) {
    const rondo_model_graph *g = &p->graphs[i];
    printf("%5zu %5zu %11.1f %15.1f %11.1f %11" PRIu64 " %9" PRIu64 "\n", i, g->rows, g->run_us, g->eager_us,
           g->capture_us / 1000, g->exec_bytes, o->by_graph[i]);
  }
  printf("requests         %zu: %" PRIu64 " by one graph, %" PRIu64 " by several, %" PRIu64 " eager\n",
         p->history.count, o->recorded, o->split, o->eager);
  printf("mean             %.1f us\npadding          %.2f %% of rows\n", o->us / (double)p->history.count,
         100 * padding_of(o));
  printf("start-up         %.1f ms a stream\n", startup_ms(p));
  print_bytes("planned          ", p->planned.state_bytes, p->planned.arena_bytes, p->planned.exec_bytes,
              p->planned.staging_bytes);
  print_bytes("bytes            ", p->info.state_bytes, p->info.arena_bytes, p->info.exec_bytes, p->info.staging_bytes);
  printf("\n");
  ladders_print(p->ladders);
  return TOOL_OK;
}

static int read_history(planning *p) {
  if (p->settings.history) return traffic_read(p->settings.history, &p->history);
  return traffic_draw(2000, 100, 1200, 350, 0.5, 1, &p->history);
}

int command_session(int argc, char **argv) {
  static planning p;
  const char *action = NULL;
  p.settings = defaults;
  const int parsed = options_parse(&table, argc, argv, &p.settings, &action);
  if (parsed != OPTIONS_RUN) return parsed;
  if (strcmp(action, "plan") != 0) return tool_fail_usage("there is no action '%s'; there is plan", action);
  p.model.table_rows = (size_t)p.settings.table_rows;
  if (!recommender_find(p.settings.model, &p.model))
    return tool_fail_usage("there is no model '%s'; the models are dense and recommender", p.settings.model);
  int result = read_history(&p);
  if (result == TOOL_OK) result = make_plan(&p);
  if (result == TOOL_OK) result = p.settings.json ? show_json(&p) : show_text(&p);
  traffic_destroy(&p.history);
  return result;
}
