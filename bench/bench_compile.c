/* SPDX-License-Identifier: MIT
 * rondo_bench compile (PR-6): how long it takes to compile a training step of one of the tool's models, to compile it
 * again for another batch size, and to compile a long chain of small operators. Libraries are loaded before. The time
 * on the processors, of all threads, says more than the clock while other programs run.
 */
#define _GNU_SOURCE
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "bench_check.h"
#include "models/model.h"
#include "rondo_bench.h"

enum { MOST_ROUNDS = 1000, FEWEST_ROUNDS = 3, CHAIN_ROWS = 4, CHAIN_COLUMNS = 16 };

enum { FIRST, AGAIN, CHAIN, KINDS };
static const char *const kind_names[KINDS] = {"compile", "recompile", "chain"};

typedef struct compile_bench {
  bench_base base;
  uint64_t sizes[MODEL_SIZES], batch, chain;
  language_model model;
  rondo_compiled_info info; /* of the step, recompiled */
  double us[KINDS][MOST_ROUNDS], cpu_us[KINDS][MOST_ROUNDS];
  size_t rounds;
} compile_bench;

static int choose_model(void *bench) {
  compile_bench *b = bench;
  unsigned char occurs[256];
  char why[MODEL_WHY_BYTES];
  memset(occurs, 1, sizeof occurs);
  b->model =
      (language_model){.kind = model_kind_named("gpt"), .type = RONDO_F32, .vocabulary = vocabulary_create(occurs)};
  for (size_t i = 0; i < MODEL_SIZES; i++)
    if (b->model.kind->sizes[i] > 0) b->model.sizes[i] = (uint32_t)b->sizes[i];
  return model_sizes_fit(&b->model, why) ? TOOL_OK : tool_fail_usage("%s", why);
}

static rondo_program *make_step(const compile_bench *b, size_t batch) {
  rondo_program *program = bench_program("step");
  check(model_build_step(&b->model, program, batch, NULL));
  return program;
}

/* Softmax is not fused. */
static rondo_program *make_chain(const compile_bench *b) {
  rondo_program *program = bench_program("chain");
  rondo_value x;
  check(rondo_program_input(program, "x", RONDO_F32, (const size_t[]){CHAIN_ROWS, CHAIN_COLUMNS}, 2, &x));
  for (uint64_t i = 0; i < b->chain; i++) check(rondo_op_softmax(program, x, &x));
  check(rondo_program_output(program, "y", x));
  return program;
}

typedef struct instant {
  uint64_t clock, cpu; /* ns */
} instant;

static instant now(void) {
  struct timespec used;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
  return (instant){clock_ns(), (uint64_t)used.tv_sec * 1000000000u + (uint64_t)used.tv_nsec};
}

static void note_time(compile_bench *b, int kind, size_t round, instant begin) {
  const instant end = now();
  b->us[kind][round] = (double)(end.clock - begin.clock) / 1e3;
  b->cpu_us[kind][round] = (double)(end.cpu - begin.cpu) / 1e3;
}

/* Compiles a program, which it destroys. */
static rondo_compiled *compile(compile_bench *b, int kind, size_t round, rondo_program *program) {
  rondo_compiled *compiled;
  const instant begin = now();
  check(rondo_compile(program, b->base.device, NULL, &compiled));
  note_time(b, kind, round, begin);
  rondo_program_destroy(program);
  return compiled;
}

static void take_round(compile_bench *b, size_t round) {
  rondo_program *larger = make_step(b, (size_t)b->batch + 1 + round % 7);
  rondo_compiled *compiled = compile(b, FIRST, round, make_step(b, (size_t)b->batch));
  const instant begin = now();
  check(rondo_compiled_recompile(compiled, larger, NULL));
  note_time(b, AGAIN, round, begin);
  rondo_program_destroy(larger);
  check(rondo_compiled_get_info(compiled, &b->info));
  check(rondo_compiled_destroy(compiled));
  check(rondo_compiled_destroy(compile(b, CHAIN, round, make_chain(b))));
}

static int measure(void *bench) {
  compile_bench *b = bench;
  b->info.struct_size = sizeof b->info;
  take_round(b, 0); /* loads libraries; its times are written again */
  for (rounds r = rounds_begin(b->base.seconds, FEWEST_ROUNDS, MOST_ROUNDS); rounds_next(&r);)
    take_round(b, b->rounds++);
  return TOOL_OK;
}

static int compare_numbers(const void *a, const void *b) {
  const double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

static void report(void *bench, json *out) {
  compile_bench *b = bench;
  for (size_t i = 0; i < MODEL_SIZES; i++)
    if (b->model.sizes[i] > 0) json_integer(out, model_size_rows[i].name, b->model.sizes[i]);
  json_integer(out, "batch", b->batch);
  json_integer(out, "operators", b->info.operators);
  json_integer(out, "chain_operators", b->chain);
  json_integer(out, "reused_plans", b->info.reused_plans);
  json_boolean(out, "skipped_warm_up", b->info.skipped_warm_up);
  for (size_t k = 0; k < KINDS; k++) {
    qsort(b->us[k], b->rounds, sizeof b->us[k][0], compare_numbers);
    qsort(b->cpu_us[k], b->rounds, sizeof b->cpu_us[k][0], compare_numbers);
    json_begin_object(out, kind_names[k]);
    json_real(out, "us", b->us[k][b->rounds / 2]);
    json_real(out, "minimum_us", b->us[k][0]);
    json_real(out, "cpu_us", b->cpu_us[k][b->rounds / 2]);
    json_real(out, "minimum_cpu_us", b->cpu_us[k][0]);
    json_end(out);
  }
}

static const compile_bench defaults = {
    .base = {.device_name = "cpu", .seconds = 3},
    .sizes = {[MODEL_CONTEXT] = 64, [MODEL_LAYERS] = 8, [MODEL_WIDTH] = 128, [MODEL_HEADS] = 4},
    .batch = 8,
    .chain = 10000};

#define OFFSET(member) offsetof(compile_bench, member)

static const option_row rows[] = {
    {"context", "N", OPTION_COUNT, OFFSET(sizes[MODEL_CONTEXT]), 1, MODEL_MAX_CONTEXT, "tokens that the model sees"},
    {"layers", "N", OPTION_COUNT, OFFSET(sizes[MODEL_LAYERS]), 1, 64, "number of blocks"},
    {"width", "N", OPTION_COUNT, OFFSET(sizes[MODEL_WIDTH]), 1, 4096, "size of the vector of a token"},
    {"heads", "N", OPTION_COUNT, OFFSET(sizes[MODEL_HEADS]), 1, 64, "attention heads in a block"},
    {"batch", "N", OPTION_COUNT, OFFSET(batch), 1, 1 << 16, "rows of tokens in a step"},
    {"chain", "N", OPTION_COUNT, OFFSET(chain), 1, 1 << 20, "operators of the chain"},
    BENCH_WORKERS(compile_bench),
};

const benchmark bench_compile_time = {
    .name = "compile",
    .summary = "compiling a training step, again for another batch size, and a long chain",
    .description =
        "Measures how long compiling takes: a training step of a GPT, the same step for another batch size with\n"
        "rondo_compiled_recompile, and a chain of small operators. Gives medians and minima in microseconds, by\n"
        "the clock and on the processors, and what recompiling reused.",
    BENCH_STATE(defaults),
    BENCH_OPTIONS(rows),
    .check = choose_model,
    .measure = measure,
    .report = report,
};
