/* SPDX-License-Identifier: MIT
 * rondo bench executor (SE-10): what runs of programs cost that are not recorded, in a line and by an executor, beside
 * recorded ones: of the recommender that `rondo serve` serves, of one with a look-up of its own for each table, and of
 * independent branches. The programs have their states in common and are run in turns.
 */
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/bench_steps.h"
#include "commands/commands.h"
#include "common/json.h"
#include "common/options.h"
#include "common/timing.h"
#include "common/tool.h"
#include "models/recommender.h"

typedef struct executor_settings {
  const char *device;
  uint64_t rows, table_rows, branches, length, width, threads, workers;
  double expensive_us, seconds;
  bool json;
} executor_settings;

static const executor_settings defaults = {
    .device = "cpu", .rows = 300, .table_rows = 100000, .branches = 32, .length = 4, .width = 64, .seconds = 6};

#define OFFSET(member) offsetof(executor_settings, member)

static const option_row rows[] = {
    OPTION_ROW_DEVICE(executor_settings),
    {"rows", "N", OPTION_COUNT, OFFSET(rows), 1, 1 << 20, "rows of a request of the recommenders"},
    {"table-rows", "N", OPTION_COUNT, OFFSET(table_rows), 1, 1 << 24, "rows of each of their tables"},
    {"branches", "N", OPTION_COUNT, OFFSET(branches), 1, 256, "independent branches"},
    {"length", "N", OPTION_COUNT, OFFSET(length), 1, 64, "products in each branch"},
    {"width", "N", OPTION_COUNT, OFFSET(width), 1, 1024, "rows and columns of their matrices"},
    {"threads", "N", OPTION_COUNT, OFFSET(threads), 0, RONDO_EXECUTOR_MAX_THREADS,
     "threads of the executor; 0 chooses"},
    {"expensive", "US", OPTION_REAL, OFFSET(expensive_us), 0, 1e6,
     "microseconds from which an operator counts as expensive; 0: 20"},
    {"workers", "N", OPTION_COUNT, OFFSET(workers), 0, 1024, "worker threads of a CPU device; 0 chooses"},
    OPTION_ROW_SECONDS(executor_settings, "about how long to measure"),
    OPTION_ROW_JSON(executor_settings),
};

static const option_table table = {
    .command = "rondo bench executor",
    .description =
        "Measures runs of programs that are not recorded, operator by operator in a line and by an executor,\n"
        "beside recorded runs, in alternation: the recommender that 'rondo serve' serves, the same with a separate\n"
        "look-up for each table, and independent branches of matrix products. It gives the time that the host\n"
        "spends on a run and the time until it is done, in microseconds, medians; which way the library chooses\n"
        "when it is left to it; what the executor did in a run; and whether all ways gave the same bits.",
    .defaults = &defaults,
    .rows = rows,
    .count = sizeof rows / sizeof rows[0],
};

enum { LINE, EXECUTOR, RECORDED, WAYS };
static const char *const way_names[WAYS] = {"line", "executor", "recorded"};

enum { MOST_ROUNDS = 5000, FEWEST_ROUNDS = 5, TURN = 5, MOST_JOINED = 8, TAKEN_RUNS = 10 };

/* A program, compiled three times over the same states. */
typedef struct executor_case {
  const char *name;
  rondo_status (*build)(void *bench, size_t rows, rondo_program *program);
  rondo_compiled *compiled[2]; /* with the executor, which has the recording as well; and in a line */
  rondo_compiled_info info;
  rondo_unexecuted unexecuted; /* left to the library */
  double line_us, executor_us; /* what it measured */
  rondo_executor_info did;     /* in TAKEN_RUNS runs */
  cost times[WAYS];
} executor_case;

static rondo_status build_recommender(void *bench, size_t batch, rondo_program *program);
static rondo_status build_tables(void *bench, size_t batch, rondo_program *program);
static rondo_status build_branches(void *bench, size_t batch, rondo_program *program);

enum { CASES = 3 };

typedef struct executor_bench {
  executor_settings settings;
  recommender network;
  rondo_device *device;
  rondo_device_info device_info;
  rondo_executor *executor;
  executor_case cases[CASES];
} executor_bench;

/* Programs --------------------------------------------------------------------------------------------------------- */

static rondo_status build_recommender(void *bench, size_t batch, rondo_program *program) {
  executor_bench *b = bench;
  return recommender_build(&b->network, batch, program);
}

static rondo_status add_product(rondo_program *program, const char *name, size_t from, size_t to, rondo_value *inout) {
  const size_t shape[] = {from, to};
  const rondo_matmul_options options = {RONDO_MATMUL_OPTIONS_INIT, .activation = RONDO_ACTIVATION_RELU};
  rondo_value weight;
  TOOL_TRY(rondo_program_state(program, name, RONDO_F32, shape, 2, &weight));
  return rondo_op_matmul_with(program, *inout, weight, &options, inout);
}

/* One table: its ids are an input of their own. */
static rondo_status look_up(const executor_bench *b, size_t number, size_t batch, rondo_program *program,
                            rondo_value *out) {
  const size_t ids_shape[] = {batch}, table_shape[] = {b->settings.table_rows, RECOMMENDER_WIDTH};
  rondo_value ids, looked_up;
  char name[32];
  snprintf(name, sizeof name, "ids.%zu", number);
  TOOL_TRY(rondo_program_input(program, name, RONDO_I32, ids_shape, 1, &ids));
  snprintf(name, sizeof name, "table.%zu", number);
  TOOL_TRY(rondo_program_state(program, name, RONDO_F32, table_shape, 2, &looked_up));
  return rondo_op_embedding(program, looked_up, ids, out);
}

/* Put together, eight at a time. */
static rondo_status join_values(rondo_program *program, rondo_value *values, size_t count, rondo_value *out) {
  while (count > 1) {
    size_t joined = 0;
    for (size_t i = 0; i < count; i += MOST_JOINED) {
      const size_t left = count - i, some = left < MOST_JOINED ? left : MOST_JOINED;
      rondo_value put = values[i];
      if (some > 1) TOOL_TRY(rondo_op_concat(program, &values[i], some, 1, &put));
      values[joined++] = put;
    }
    count = joined;
  }
  *out = values[0];
  return RONDO_OK;
}

static rondo_status build_tables(void *bench, size_t batch, rondo_program *program) {
  static const size_t bottom[] = {RECOMMENDER_NUMBERS, 512, 256, 64, RECOMMENDER_WIDTH};
  static const size_t top[] = {(RECOMMENDER_TABLES + 1) * RECOMMENDER_WIDTH, 512, 256, 1};
  const executor_bench *b = bench;
  const size_t shape[] = {batch, RECOMMENDER_NUMBERS};
  rondo_value vectors[RECOMMENDER_TABLES + 1], y;
  char name[32];
  TOOL_TRY(rondo_program_input(program, "numbers", RONDO_F32, shape, 2, &vectors[0]));
  for (size_t i = 0; i < 4; i++) {
    snprintf(name, sizeof name, "bottom.%zu", i);
    TOOL_TRY(add_product(program, name, bottom[i], bottom[i + 1], &vectors[0]));
  }
  for (size_t i = 0; i < RECOMMENDER_TABLES; i++) TOOL_TRY(look_up(b, i, batch, program, &vectors[i + 1]));
  TOOL_TRY(join_values(program, vectors, RECOMMENDER_TABLES + 1, &y));
  for (size_t i = 0; i < 3; i++) {
    snprintf(name, sizeof name, "top.%zu", i);
    TOOL_TRY(add_product(program, name, top[i], top[i + 1], &y));
  }
  TOOL_TRY(rondo_op_sigmoid(program, y, &y));
  return rondo_program_output(program, "score", y);
}

static rondo_status build_branches(void *bench, size_t batch, rondo_program *program) {
  const executor_bench *b = bench;
  const size_t width = b->settings.width, shape[] = {width, width};
  rondo_value x, sum = {0};
  char name[48];
  (void)batch;
  TOOL_TRY(rondo_program_input(program, "x", RONDO_F32, shape, 2, &x));
  for (size_t i = 0; i < b->settings.branches; i++) {
    rondo_value y = x;
    for (size_t k = 0; k < b->settings.length; k++) {
      snprintf(name, sizeof name, "w.%zu.%zu", i, k);
      TOOL_TRY(add_product(program, name, width, width, &y));
    }
    if (i > 0) TOOL_TRY(rondo_op_add(program, sum, y, &y));
    sum = y;
  }
  return rondo_program_output(program, "score", sum);
}

/* Making ready ----------------------------------------------------------------------------------------------------- */

static rondo_status compile(executor_bench *b, executor_case *of) {
  rondo_program *program = NULL;
  rondo_compiled *left = NULL;
  rondo_compiled_info info = {.struct_size = sizeof info};
  rondo_compile_options options = {RONDO_COMPILE_OPTIONS_INIT, .executor = b->executor};
  TOOL_TRY(rondo_program_create(&(rondo_program_options){RONDO_PROGRAM_OPTIONS_INIT, .name = of->name}, &program));
  rondo_status status = of->build(b, b->settings.rows, program);
  options.executor_policy = RONDO_EXECUTOR_ALWAYS;
  if (!status) status = rondo_compile(program, b->device, &options, &of->compiled[0]);
  options = (rondo_compile_options){RONDO_COMPILE_OPTIONS_INIT, .record = RONDO_RECORD_NEVER, .share = of->compiled[0],
                                    .share_states_only = true};
  if (!status) status = rondo_compile(program, b->device, &options, &of->compiled[1]);
  options.executor = b->executor;
  if (!status) status = rondo_compile(program, b->device, &options, &left);
  rondo_program_destroy(program);
  if (!status) status = rondo_compiled_get_info(left, &info);
  const rondo_status destroyed = rondo_compiled_destroy(left);
  of->unexecuted = info.unexecuted;
  of->line_us = info.line_us;
  of->executor_us = info.executor_us;
  of->info.struct_size = sizeof of->info;
  if (!status) status = destroyed;
  return status ? status : rondo_compiled_get_info(of->compiled[0], &of->info);
}

/* Small numbers of either sign, and ids within a table. */
static void fill(void *data, const rondo_compiled_value *value, uint64_t table_rows) {
  const size_t count = value->bytes / 4;
  for (size_t i = 0; i < count; i++) {
    if (value->type == RONDO_I32)
      ((int32_t *)data)[i] = (int32_t)(i * 7919 % table_rows);
    else
      ((float *)data)[i] = (float)((int)(i * 37 % 101) - 50) / 400;
  }
}

/* Inputs of each program, and states, which they have in common: another stream sees them once they were waited for. */
static int write_values(const executor_bench *b, rondo_compiled *compiled, bool has_states) {
  rondo_compiled_value value = {.struct_size = sizeof value};
  for (size_t i = 0; rondo_compiled_get_value(compiled, i, &value) == RONDO_OK; i++) {
    if (value.kind != 'i' && (value.kind != 's' || !has_states)) continue;
    void *data = malloc(value.bytes);
    if (!data) return tool_fail_memory("'%s'", value.name);
    fill(data, &value, b->settings.table_rows);
    const rondo_status status = rondo_compiled_write(compiled, value.name, data, value.bytes);
    free(data);
    if (status) return tool_fail_status("'%s'", value.name);
  }
  return TOOL_OK;
}

static int prepare_case(executor_bench *b, executor_case *of) {
  tool_show_progress("%s", of->name);
  if (!costs_create(of->times, WAYS, MOST_ROUNDS)) return tool_fail_memory("the times");
  if (compile(b, of)) return tool_fail_status("'%s' could not be compiled", of->name);
  if (write_values(b, of->compiled[0], true) != TOOL_OK) return TOOL_FAILURE;
  if (rondo_compiled_synchronize(of->compiled[0])) return tool_fail_status("the states of '%s'", of->name);
  return write_values(b, of->compiled[1], false);
}

static int prepare(void *bench) {
  static const executor_case cases[CASES] = {{.name = "recommender", .build = build_recommender},
                                             {.name = "tables", .build = build_tables},
                                             {.name = "branches", .build = build_branches}};
  executor_bench *b = bench;
  const executor_settings *s = &b->settings;
  const rondo_device_options device = {RONDO_DEVICE_OPTIONS_INIT, .workers = (uint32_t)s->workers};
  const rondo_executor_options executor = {RONDO_EXECUTOR_OPTIONS_INIT, .threads = (uint32_t)s->threads,
                                           .expensive_us = s->expensive_us};
  b->network = (recommender){.has_tables = true, .table_rows = s->table_rows};
  memcpy(b->cases, cases, sizeof cases);
  if (rondo_device_open(s->device, &device, &b->device)) return tool_fail_status("--device");
  if (rondo_device_get_info(b->device, &b->device_info)) return tool_fail_status("the device");
  if (rondo_executor_create(b->device, &executor, &b->executor)) return tool_fail_status("the executor");
  for (size_t i = 0; i < CASES; i++)
    if (prepare_case(b, &b->cases[i]) != TOOL_OK) return TOOL_FAILURE;
  tool_clear_progress();
  return TOOL_OK;
}

/* Measuring -------------------------------------------------------------------------------------------------------- */

static rondo_status run(const executor_case *of, int way) {
  if (way == RECORDED) return rondo_compiled_run(of->compiled[0]);
  return rondo_compiled_run_unrecorded(of->compiled[way == LINE]);
}

static rondo_status run_timed(executor_case *of, int way) {
  const uint64_t begin = clock_ns();
  TOOL_TRY(run(of, way));
  const uint64_t queued = clock_ns();
  TOOL_TRY(rondo_compiled_synchronize(of->compiled[way == LINE]));
  cost_note(&of->times[way], begin, queued, clock_ns());
  return RONDO_OK;
}

static int compare_bits(executor_case *of, size_t bytes, float *scores) {
  for (int way = 0; way < WAYS; way++) {
    float *mine = scores + (size_t)way * bytes / sizeof *scores;
    if (run(of, way) || rondo_compiled_read(of->compiled[way == LINE], "score", mine, bytes))
      return tool_fail_status("%s, %s", of->name, way_names[way]);
    if (memcmp(mine, scores, bytes) != 0) return tool_fail("%s: the ways give other numbers", of->name);
  }
  return TOOL_OK;
}

static int compare(executor_case *of) {
  rondo_compiled_value value = {.struct_size = sizeof value};
  for (size_t i = 0; rondo_compiled_get_value(of->compiled[0], i, &value) == RONDO_OK; i++) continue;
  float *scores = malloc(WAYS * value.bytes);
  if (!scores) return tool_fail_memory("the scores");
  const int result = compare_bits(of, value.bytes, scores);
  free(scores);
  return result;
}

/* What the executor does in some runs, by what it has counted before and behind them. */
static int count_work(const executor_bench *b, executor_case *of) {
  rondo_executor_info before = {.struct_size = sizeof before}, after = {.struct_size = sizeof after};
  if (rondo_executor_get_info(b->executor, &before)) return tool_fail_status("the executor");
  for (int i = 0; i < TAKEN_RUNS; i++)
    if (run(of, EXECUTOR)) return tool_fail_status("%s", of->name);
  if (rondo_compiled_synchronize(of->compiled[0]) || rondo_executor_get_info(b->executor, &after))
    return tool_fail_status("the executor");
  of->did = (rondo_executor_info){.nodes = after.nodes - before.nodes,
                                  .thread_nodes = after.thread_nodes - before.thread_nodes,
                                  .events = after.events - before.events,
                                  .waits = after.waits - before.waits,
                                  .run_us = after.run_us - before.run_us,
                                  .idle_us = after.idle_us - before.idle_us};
  return TOOL_OK;
}

static int measure_case(const executor_bench *b, executor_case *of) {
  const uint64_t end = clock_ns() + (uint64_t)(b->settings.seconds * 1e9 / CASES);
  tool_show_progress("%s", of->name);
  if (compare(of) != TOOL_OK || count_work(b, of) != TOOL_OK) return TOOL_FAILURE;
  for (size_t round = 0; round < MOST_ROUNDS / TURN && (round < FEWEST_ROUNDS || clock_ns() < end); round++)
    for (int way = 0; way < WAYS; way++)
      for (int i = 0; i < TURN && (i == 0 || clock_ns() < end); i++)
        if (run_timed(of, way)) return tool_fail_status("%s, %s", of->name, way_names[way]);
  costs_summarize(of->times, WAYS);
  return TOOL_OK;
}

static int measure(void *bench) {
  executor_bench *b = bench;
  for (size_t i = 0; i < CASES; i++)
    if (measure_case(b, &b->cases[i]) != TOOL_OK) return TOOL_FAILURE;
  tool_clear_progress();
  return TOOL_OK;
}

/* Results ---------------------------------------------------------------------------------------------------------- */

static const char *taken_name(rondo_unexecuted reason) {
  static const char *const names[] = {"executor", "not asked", "line, faster", "line, nothing else", "line, busy"};
  return names[reason];
}

static double per_run(double count) { return count / TAKEN_RUNS; }

static void write_case(const executor_case *of, json *out) {
  json_begin_object(out, NULL);
  json_text(out, "program", of->name);
  json_integer(out, "operators", of->info.operators);
  json_integer(out, "kernels", of->info.kernels);
  json_boolean(out, "identical", true); /* else it had failed */
  for (int way = 0; way < WAYS; way++) {
    json_begin_object(out, way_names[way]);
    cost_to_json(out, &of->times[way]);
    json_end(out);
  }
  json_text(out, "taken", taken_name(of->unexecuted));
  json_real(out, "taken_line_us", of->line_us);
  json_real(out, "taken_executor_us", of->executor_us);
  json_integer(out, "expensive", of->info.expensive);
  json_real(out, "nodes", per_run((double)of->did.nodes));
  json_real(out, "thread_nodes", per_run((double)of->did.thread_nodes));
  json_real(out, "events", per_run((double)of->did.events));
  json_real(out, "waits", per_run((double)of->did.waits));
  json_real(out, "run_us", per_run(of->did.run_us));
  json_real(out, "idle_us", per_run(of->did.idle_us));
  json_end(out);
}

static int show_json(const void *bench) {
  const executor_bench *b = bench;
  rondo_executor_info info = {.struct_size = sizeof info};
  if (rondo_executor_get_info(b->executor, &info)) return tool_fail_status("the executor");
  json out;
  json_begin(&out);
  json_text(&out, "device", b->settings.device);
  json_text(&out, "device_description", b->device_info.description);
  json_integer(&out, "rows", b->settings.rows);
  json_integer(&out, "threads", info.threads);
  json_begin_array(&out, "programs");
  for (size_t i = 0; i < CASES; i++) write_case(&b->cases[i], &out);
  json_end(&out);
  return json_print(&out);
}

static void print_case(const executor_case *of) {
  printf("%-12s %9" PRIu32, of->name, of->info.operators);
  for (int way = 0; way < WAYS; way++)
    printf("   %8.1f %9.1f", of->times[way].result[COST_HOST].median, of->times[way].result[COST_TOTAL].median);
  printf("   %9" PRIu32 " %7.1f %6.1f %8.1f   %s\n", of->info.expensive, per_run((double)of->did.thread_nodes),
         per_run((double)of->did.events), per_run(of->did.idle_us), taken_name(of->unexecuted));
}

static int show_text(const void *bench) {
  const executor_bench *b = bench;
  rondo_executor_info info = {.struct_size = sizeof info};
  if (rondo_executor_get_info(b->executor, &info)) return tool_fail_status("the executor");
  tool_print_device("device  ", b->settings.device, &b->device_info);
  printf("executor %" PRIu32 " threads; all ways gave the same, bit for bit; microseconds, medians\n\n", info.threads);
  printf("%22s", "");
  for (int way = 0; way < WAYS; way++) printf("   %18s", way_names[way]);
  printf("   %33s\n%-12s %9s", "in a run by the executor", "program", "operators");
  for (int way = 0; way < WAYS; way++) printf("   %8s %9s", "host", "done");
  printf("   %9s %7s %6s %8s   %s\n", "expensive", "threads", "events", "idle", "left to the library");
  for (size_t i = 0; i < CASES; i++) print_case(&b->cases[i]);
  return TOOL_OK;
}

static int take_down(void *bench) {
  executor_bench *b = bench;
  int result = TOOL_OK;
  for (size_t i = 0; i < CASES; i++) {
    costs_destroy(b->cases[i].times, WAYS);
    for (size_t k = 2; k > 0; k--)
      if (rondo_compiled_destroy(b->cases[i].compiled[k - 1])) result = tool_fail_status("%s", b->cases[i].name);
  }
  if (rondo_executor_destroy(b->executor)) result = tool_fail_status("the executor");
  return rondo_device_close(b->device) ? tool_fail_status("the device") : result;
}

static const bench_steps steps = {
    .prepare = prepare, .measure = measure, .show_json = show_json, .show_text = show_text, .take_down = take_down};

int bench_executor(int argc, char **argv) {
  static executor_bench b;
  b = (executor_bench){.settings = defaults};
  const int parsed = options_parse(&table, argc, argv, &b.settings, NULL);
  if (parsed != OPTIONS_RUN) return parsed;
  return bench_steps_run(&steps, &b, b.settings.json);
}
