/* SPDX-License-Identifier: MIT
 * rondo_bench executor (SE-10): the cost of eager runs of programs, sequentially and with an executor, compared with
 * recorded runs. The programs are the recommender that `rondo serve` serves, one with a separate lookup for each table,
 * and independent branches. They share their states and run in alternation.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "bench_check.h"
#include "models/recommender.h"
#include "rondo_bench.h"

enum { LINE, EXECUTOR, RECORDED, WAYS };
static const char *const way_names[WAYS] = {"line", "executor", "recorded"};

enum { MOST_ROUNDS = 5000, FEWEST_ROUNDS = 5, TURN = 5, MOST_JOINED = 8, TAKEN_RUNS = 10 };

/* A program, compiled three times over the same states. */
typedef struct executor_case {
  const char *name;
  rondo_status (*build)(void *bench, size_t rows, rondo_program *program);
  rondo_compiled *compiled[2]; /* with the executor, which also has the recording; and without it */
  rondo_compiled_info info;
  rondo_sequential_reason sequential_reason; /* Rondo decides */
  double sequential_us, executor_us;         /* what the decision measured */
  rondo_executor_info did;                   /* in TAKEN_RUNS runs */
  cost times[WAYS];
} executor_case;

static rondo_status build_recommender(void *bench, size_t batch, rondo_program *program);
static rondo_status build_tables(void *bench, size_t batch, rondo_program *program);
static rondo_status build_branches(void *bench, size_t batch, rondo_program *program);

enum { CASES = 3 };

typedef struct executor_bench {
  bench_base base;
  uint64_t rows, table_rows, branches, length, width, threads;
  double expensive_us;
  recommender network;
  rondo_executor *executor;
  executor_case cases[CASES];
} executor_bench;

/* Programs -------------------------------------------------------------------------------------------------------- */

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

/* One table, whose ids are an input. */
static rondo_status look_up(const executor_bench *b, size_t number, size_t batch, rondo_program *program,
                            rondo_value *out) {
  const size_t ids_shape[] = {batch}, table_shape[] = {b->table_rows, RECOMMENDER_WIDTH};
  rondo_value ids, looked_up;
  char name[32];
  snprintf(name, sizeof name, "ids.%zu", number);
  TOOL_TRY(rondo_program_input(program, name, RONDO_I32, ids_shape, 1, &ids));
  snprintf(name, sizeof name, "table.%zu", number);
  TOOL_TRY(rondo_program_state(program, name, RONDO_F32, table_shape, 2, &looked_up));
  return rondo_op_embedding(program, looked_up, ids, out);
}

/* Adds them up, eight at a time. */
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
  const size_t width = b->width, shape[] = {width, width};
  rondo_value x, sum = {0};
  char name[48];
  (void)batch;
  TOOL_TRY(rondo_program_input(program, "x", RONDO_F32, shape, 2, &x));
  for (size_t i = 0; i < b->branches; i++) {
    rondo_value y = x;
    for (size_t k = 0; k < b->length; k++) {
      snprintf(name, sizeof name, "w.%zu.%zu", i, k);
      TOOL_TRY(add_product(program, name, width, width, &y));
    }
    if (i > 0) TOOL_TRY(rondo_op_add(program, sum, y, &y));
    sum = y;
  }
  return rondo_program_output(program, "score", sum);
}

/* Preparing ------------------------------------------------------------------------------------------------------- */

/* With the executor; without it; and again, to read which one Rondo chooses. */
static void compile(executor_bench *b, executor_case *of) {
  rondo_program *program = bench_program(of->name);
  rondo_compiled_info info = {.struct_size = sizeof info};
  rondo_compile_options options = {RONDO_COMPILE_OPTIONS_INIT, .executor = b->executor,
                                   .executor_policy = RONDO_EXECUTOR_ALWAYS};
  check(of->build(b, b->rows, program));
  check(rondo_compile(program, b->base.device, &options, &of->compiled[0]));
  options = (rondo_compile_options){RONDO_COMPILE_OPTIONS_INIT, .record = RONDO_RECORD_NEVER, .share = of->compiled[0],
                                    .share_states_only = true};
  check(rondo_compile(program, b->base.device, &options, &of->compiled[1]));
  options.executor = b->executor;
  rondo_compiled *left = bench_compile(program, b->base.device, &options);
  check(rondo_compiled_get_info(left, &info));
  check(rondo_compiled_destroy(left));
  of->sequential_reason = info.sequential_reason;
  of->sequential_us = info.sequential_us;
  of->executor_us = info.executor_us;
  of->info.struct_size = sizeof of->info;
  check(rondo_compiled_get_info(of->compiled[0], &of->info));
}

/* Small positive and negative numbers, and ids within a table. */
static void fill(void *data, const rondo_compiled_value *value, uint64_t table_rows) {
  const size_t count = value->bytes / 4;
  for (size_t i = 0; i < count; i++) {
    if (value->type == RONDO_I32)
      ((int32_t *)data)[i] = (int32_t)(i * 7919 % table_rows);
    else
      ((float *)data)[i] = (float)((int)(i * 37 % 101) - 50) / 400;
  }
}

/* Inputs of each program, and the shared states: other streams can read them after the wait. */
static void write_values(const executor_bench *b, rondo_compiled *compiled, bool has_states) {
  rondo_compiled_value value = {.struct_size = sizeof value};
  for (size_t i = 0; rondo_compiled_get_value(compiled, i, &value) == RONDO_OK; i++) {
    if (value.kind != 'i' && (value.kind != 's' || !has_states)) continue;
    void *data = bench_allocate(value.bytes, 1);
    fill(data, &value, b->table_rows);
    check(rondo_compiled_write(compiled, value.name, data, value.bytes));
    free(data);
  }
}

static int prepare(void *bench) {
  static const executor_case cases[CASES] = {{.name = "recommender", .build = build_recommender},
                                             {.name = "tables", .build = build_tables},
                                             {.name = "branches", .build = build_branches}};
  executor_bench *b = bench;
  const rondo_executor_options executor = {RONDO_EXECUTOR_OPTIONS_INIT, .threads = (uint32_t)b->threads,
                                           .expensive_us = b->expensive_us};
  b->network = (recommender){.has_tables = true, .table_rows = b->table_rows};
  memcpy(b->cases, cases, sizeof cases);
  check(rondo_executor_create(b->base.device, &executor, &b->executor));
  for (size_t i = 0; i < CASES; i++) {
    executor_case *of = &b->cases[i];
    tool_show_progress("%s", of->name);
    check_tool(costs_create(of->times, WAYS, MOST_ROUNDS));
    compile(b, of);
    write_values(b, of->compiled[0], true);
    check(rondo_compiled_synchronize(of->compiled[0]));
    write_values(b, of->compiled[1], false);
  }
  return TOOL_OK;
}

/* Measuring ------------------------------------------------------------------------------------------------------- */

static void run(const executor_case *of, int way) {
  check(way == RECORDED ? rondo_compiled_run(of->compiled[0]) : rondo_compiled_run_eager(of->compiled[way == LINE]));
}

static void time_run(executor_case *of, int way) {
  COST_TIME(&of->times[way], run(of, way), check(rondo_compiled_synchronize(of->compiled[way == LINE])));
}

static void compare(const executor_case *of) {
  rondo_compiled_value value = {.struct_size = sizeof value};
  for (size_t i = 0; rondo_compiled_get_value(of->compiled[0], i, &value) == RONDO_OK; i++) continue;
  char *first = bench_allocate(value.bytes, 1), *other = bench_allocate(value.bytes, 1);
  for (int way = 0; way < WAYS; way++) {
    run(of, way);
    check(rondo_compiled_read(of->compiled[way == LINE], "score", way == 0 ? first : other, value.bytes));
    if (way > 0 && memcmp(first, other, value.bytes) != 0)
      check_tool(tool_fail("%s: the modes give different numbers", of->name));
  }
  free(first);
  free(other);
}

/* Counts the executor's work in some runs, as differences of its counters. */
static void count_work(const executor_bench *b, executor_case *of) {
  rondo_executor_info before = {.struct_size = sizeof before}, after = {.struct_size = sizeof after};
  check(rondo_executor_get_info(b->executor, &before));
  for (int i = 0; i < TAKEN_RUNS; i++) run(of, EXECUTOR);
  check(rondo_compiled_synchronize(of->compiled[0]));
  check(rondo_executor_get_info(b->executor, &after));
  of->did = (rondo_executor_info){.nodes = after.nodes - before.nodes,
                                  .thread_nodes = after.thread_nodes - before.thread_nodes,
                                  .events = after.events - before.events,
                                  .waits = after.waits - before.waits,
                                  .run_us = after.run_us - before.run_us,
                                  .idle_us = after.idle_us - before.idle_us};
}

static int measure(void *bench) {
  executor_bench *b = bench;
  for (size_t i = 0; i < CASES; i++) {
    executor_case *of = &b->cases[i];
    tool_show_progress("%s", of->name);
    compare(of);
    count_work(b, of);
    for (rounds r = rounds_begin(b->base.seconds / CASES, FEWEST_ROUNDS, MOST_ROUNDS / TURN); rounds_next(&r);)
      for (int way = 0; way < WAYS; way++)
        for (int k = 0; k < TURN && (k == 0 || clock_ns() < r.end); k++) time_run(of, way);
    costs_summarize(of->times, WAYS);
  }
  return TOOL_OK;
}

/* Results --------------------------------------------------------------------------------------------------------- */

static const char *taken_name(rondo_sequential_reason reason) {
  static const char *const names[] = {"executor", "not asked", "line, faster", "line, nothing else", "line, busy"};
  return names[reason];
}

static double per_run(double count) { return count / TAKEN_RUNS; }

static void write_case(const executor_case *of, json *out) {
  json_begin_object(out, NULL);
  json_text(out, "program", of->name);
  json_integer(out, "operators", of->info.operators);
  json_integer(out, "kernels", of->info.kernels);
  json_boolean(out, "identical", true); /* otherwise it had failed */
  for (int way = 0; way < WAYS; way++) cost_object_to_json(out, way_names[way], &of->times[way]);
  json_text(out, "taken", taken_name(of->sequential_reason));
  json_real(out, "taken_line_us", of->sequential_us);
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

static void report(void *bench, json *out) {
  const executor_bench *b = bench;
  rondo_executor_info info = {.struct_size = sizeof info};
  check(rondo_executor_get_info(b->executor, &info));
  json_integer(out, "rows", b->rows);
  json_integer(out, "threads", info.threads);
  json_begin_array(out, "programs");
  for (size_t i = 0; i < CASES; i++) write_case(&b->cases[i], out);
  json_end(out);
}

static const executor_bench defaults = {.base = {.device_name = "cpu", .seconds = 6},
                                        .rows = 300,
                                        .table_rows = 100000,
                                        .branches = 32,
                                        .length = 4,
                                        .width = 64};

#define OFFSET(member) offsetof(executor_bench, member)

static const option_row rows[] = {
    {"rows", "N", OPTION_COUNT, OFFSET(rows), 1, 1 << 20, "rows of a request of the recommenders"},
    {"table-rows", "N", OPTION_COUNT, OFFSET(table_rows), 1, 1 << 24, "rows of each of their tables"},
    {"branches", "N", OPTION_COUNT, OFFSET(branches), 1, 256, "independent branches"},
    {"length", "N", OPTION_COUNT, OFFSET(length), 1, 64, "products in each branch"},
    {"width", "N", OPTION_COUNT, OFFSET(width), 1, 1024, "rows and columns of their matrices"},
    {"threads", "N", OPTION_COUNT, OFFSET(threads), 0, RONDO_EXECUTOR_MAX_THREADS,
     "threads of the executor; 0 chooses"},
    {"expensive", "US", OPTION_REAL, OFFSET(expensive_us), 0, 1e6,
     "microseconds from which an operator counts as expensive; 0: 20"},
    BENCH_WORKERS(executor_bench),
};

const benchmark bench_executor = {
    .name = "executor",
    .summary = "eager runs: sequentially and by an executor",
    .description =
        "Measures eager runs of programs, sequentially and by an executor, and recorded runs,\n"
        "in alternation: the recommender of 'rondo serve', the same with a separate look-up for each table, and\n"
        "independent branches of matrix products. Gives the time of the host and the total time of a run, in\n"
        "microseconds, medians; the mode that the library chooses by default; and what the executor did in a run.\n"
        "Fails unless all modes give the same bits.",
    BENCH_STATE(defaults),
    BENCH_OPTIONS(rows),
    .prepare = prepare,
    .measure = measure,
    .report = report,
};
