/* SPDX-License-Identifier: MIT
 * rondo bench model (ON-6): the latency of a model in an ONNX file, eagerly and recorded in alternation, the time until
 * it can run, and its memory. With --length, the latency for several sizes of a dynamic dimension, one after the other.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>

#include "bench/tool_benchmarks.h"
#include "common/tool.h"
#include "onnx/onnx_parts.h"
#include "onnx/onnx_program.h"

enum { MOST_ROUNDS = 100000, FEWEST_ROUNDS = 3, WARM_UPS = 3 };
enum { EAGER, RECORDED, WAYS };
enum { MOST_LENGTHS = 4, LENGTH_TEXT = 300 };

typedef struct measured_length {
  size_t length;
  summary us[WAYS];
} measured_length;

typedef struct model_bench {
  bench_base base;
  onnx_input_settings source;
  const char *without_patterns, *length;
  uint64_t longest;
  char longest_text[LENGTH_TEXT]; /* an item of the sizes */
  onnx_program program;           /* of the longest length */
  cost costs[WAYS];
  double first_seconds; /* until the first answer, with reading the file */
  measured_length lengths[MOST_LENGTHS];
  size_t length_count; /* 0: without --length */
} model_bench;

static int check(void *bench) {
  model_bench *b = bench;
  if (!b->length) return TOOL_OK;
  if (b->source.sizes.count == OPTION_LIST_MAX || strlen(b->length) > LENGTH_TEXT - 32)
    return tool_fail_usage("--length %s: there are too many sizes, or the name is too long", b->length);
  return TOOL_OK;
}

/* Makes a program, with a size of --length if there is one. */
static int make_program(const model_bench *b, const char *size, onnx_program *out) {
  const rondo_compile_options options = {RONDO_COMPILE_OPTIONS_INIT, .without_patterns = b->without_patterns};
  onnx_input_settings source = b->source;
  if (size) source.sizes.items[source.sizes.count++] = size;
  int result = onnx_program_load(b->base.operand, out);
  if (result == TOOL_OK) result = onnx_program_take_inputs(out, &source, NULL);
  if (result == TOOL_OK) result = onnx_program_build(out, b->base.device, false);
  if (result == TOOL_OK) result = onnx_program_compile(out, b->base.device, &options);
  if (result == TOOL_OK && !out->compiled && !out->parts)
    result = tool_fail("%s: its outputs are constants, so there is nothing to measure", b->base.operand);
  if (result == TOOL_OK && out->parts && b->length)
    result = tool_fail("%s: shapes depend on data, so it runs in parts: leave --length out", b->base.operand);
  return result == TOOL_OK ? onnx_program_run(out, false) : result;
}

static int prepare(void *bench) {
  model_bench *b = bench;
  if (b->length) snprintf(b->longest_text, sizeof b->longest_text, "%s=%" PRIu64, b->length, b->longest);
  const uint64_t begin = clock_ns();
  const int result = make_program(b, b->length ? b->longest_text : NULL, &b->program);
  b->first_seconds = (double)(clock_ns() - begin) / 1e9;
  return result == TOOL_OK ? costs_create(b->costs, WAYS, MOST_ROUNDS) : result;
}

static rondo_status measure_rounds(rondo_compiled *compiled, double seconds, cost costs[WAYS]) {
  static const run_function ways[WAYS] = {rondo_compiled_run_eager, rondo_compiled_run};
  for (size_t i = 0; i < WARM_UPS * WAYS; i++) TOOL_TRY(run_timed(compiled, ways[i % WAYS], NULL));
  for (rounds r = rounds_begin(seconds, FEWEST_ROUNDS, MOST_ROUNDS); rounds_next(&r);)
    for (size_t i = 0; i < WAYS; i++) TOOL_TRY(run_timed(compiled, ways[i], &costs[i]));
  return RONDO_OK;
}

/* Parts run eagerly once, so their recordings are measured alone. */
static int measure_parts(model_bench *b) {
  cost *recorded = &b->costs[RECORDED];
  int result = TOOL_OK;
  for (size_t i = 0; i < WARM_UPS && result == TOOL_OK; i++) result = onnx_parts_run(&b->program);
  for (rounds r = rounds_begin(b->base.seconds, FEWEST_ROUNDS, MOST_ROUNDS); result == TOOL_OK && rounds_next(&r);) {
    const uint64_t begin = clock_ns();
    result = onnx_parts_run(&b->program);
    const uint64_t end = clock_ns();
    cost_add(recorded, begin, end, end);
  }
  return result;
}

static void add_length(model_bench *b, size_t length, cost costs[WAYS]) {
  measured_length *added = &b->lengths[b->length_count++];
  added->length = length;
  costs_summarize(costs, WAYS);
  for (size_t i = 0; i < WAYS; i++) added->us[i] = costs[i].result[COST_TOTAL];
}

static int measure_length(model_bench *b, size_t length, double seconds) {
  char size[LENGTH_TEXT];
  onnx_program program = {.path = NULL};
  cost costs[WAYS] = {0};
  snprintf(size, sizeof size, "%s=%zu", b->length, length);
  int result = costs_create(costs, WAYS, MOST_ROUNDS);
  if (result == TOOL_OK) result = make_program(b, size, &program);
  tool_show_progress("measuring length %zu", length);
  if (result == TOOL_OK && measure_rounds(program.compiled, seconds, costs)) result = tool_fail_status("a run");
  if (result == TOOL_OK) add_length(b, length, costs);
  costs_destroy(costs, WAYS);
  return onnx_program_destroy(&program) == TOOL_OK ? result : TOOL_FAILURE;
}

/* The longest length, then halves of it. */
static int measure(void *bench) {
  model_bench *b = bench;
  const double seconds = b->length ? b->base.seconds / MOST_LENGTHS : b->base.seconds;
  int result = TOOL_OK;
  tool_show_progress("measuring");
  if (b->program.parts) return measure_parts(b);
  if (measure_rounds(b->program.compiled, seconds, b->costs)) return tool_fail_status("a run");
  if (!b->length) return TOOL_OK;
  add_length(b, (size_t)b->longest, b->costs);
  for (size_t i = 1; i < MOST_LENGTHS && b->longest >> i > 0 && result == TOOL_OK; i++)
    result = measure_length(b, (size_t)(b->longest >> i), seconds);
  return result;
}

static void lengths_to_json(const model_bench *b, json *out) {
  if (!b->length) return;
  json_begin_array(out, "lengths");
  for (size_t i = 0; i < b->length_count; i++) {
    const measured_length *m = &b->lengths[i];
    json_begin_object(out, NULL);
    json_integer(out, "length", m->length);
    json_real(out, "eager_us", m->us[EAGER].median);
    json_real(out, "recorded_us", m->us[RECORDED].median);
    json_real(out, "gain", bench_ratio(m->us[EAGER].median, m->us[RECORDED].median));
    json_end(out);
  }
  json_end(out);
}

static void write_way(json *out, const char *name, const cost *of) {
  json_begin_object(out, name);
  cost_to_json(out, of);
  json_real(out, "runs_per_second", bench_ratio(1e6, of->result[COST_TOTAL].median));
  json_end(out);
}

static void report(void *bench, json *out) {
  model_bench *b = bench;
  struct rusage usage = {0};
  const size_t first = b->program.parts ? RECORDED : EAGER;
  costs_summarize(b->costs + first, WAYS - first);
  onnx_program_to_json(&b->program, out);
  json_real(out, "first_answer_seconds", b->first_seconds);
  if (b->program.parts) {
    (void)onnx_parts_to_json(&b->program, out);
    write_way(out, "recorded", &b->costs[RECORDED]);
  } else {
    write_way(out, "eager", &b->costs[EAGER]);
    write_way(out, "recorded", &b->costs[RECORDED]);
    json_real(out, "gain",
              bench_ratio(b->costs[EAGER].result[COST_TOTAL].median, b->costs[RECORDED].result[COST_TOTAL].median));
    lengths_to_json(b, out);
    memory_to_json(&b->program.memory, out);
  }
  if (getrusage(RUSAGE_SELF, &usage) == 0) json_integer(out, "peak_process_bytes", (uint64_t)usage.ru_maxrss << 10);
}

static int finish(void *bench) {
  model_bench *b = bench;
  costs_destroy(b->costs, WAYS);
  return onnx_program_destroy(&b->program);
}

static const model_bench defaults = {
    .base = {.device_name = "cpu", .seconds = 5}, .source = {.seed = 1}, .longest = 64};
static const option_row rows[] = {
    ONNX_INPUT_ROWS(model_bench),
    {"length", "NAME", OPTION_TEXT, offsetof(model_bench, length), 0, 0,
     "a dynamic dimension of which several sizes are measured: --longest, and halves of it"},
    {"longest", "N", OPTION_COUNT, offsetof(model_bench, longest), 1, 1 << 24, "the largest size of --length"},
    ONNX_PATTERNS_ROW(model_bench),
    BENCH_WORKERS(model_bench)};

const benchmark bench_model = {
    .name = "model",
    .summary = "latency and memory of a model in an ONNX file",
    .operand = "MODEL",
    .operand_help = "a model in an ONNX file",
    .description =
        "Measures a model: the time of a run, eagerly and recorded, in alternation, from the call until the outputs\n"
        "are computed; inputs stay in the device's memory. Also the time to load, build and compile it, the time\n"
        "until the first answer, and its memory. Times are microseconds, medians, unless they are called seconds.\n"
        "A model in which shapes depend on data runs in parts, of which recorded runs alone are measured.",
    BENCH_STATE(defaults),
    BENCH_OPTIONS(rows),
    .check = check,
    .prepare = prepare,
    .measure = measure,
    .report = report,
    .finish = finish,
};
