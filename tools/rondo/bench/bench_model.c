/* SPDX-License-Identifier: MIT
 * rondo bench model (ON-6): the latency of a model in an ONNX file, eagerly and recorded in alternation, the time until
 * it can run, and its memory.
 */
#include <sys/resource.h>

#include "bench/tool_benchmarks.h"
#include "common/tool.h"
#include "onnx/onnx_parts.h"
#include "onnx/onnx_program.h"

enum { MOST_ROUNDS = 100000, FEWEST_ROUNDS = 3, WARM_UPS = 3 };
enum { EAGER, RECORDED, WAYS };

typedef struct model_bench {
  bench_base base;
  onnx_input_settings source;
  const char *without_patterns;
  onnx_program program;
  cost costs[WAYS];
  double first_seconds; /* until the first answer, with reading the file */
} model_bench;

static int prepare(void *bench) {
  model_bench *b = bench;
  const rondo_compile_options options = {RONDO_COMPILE_OPTIONS_INIT, .without_patterns = b->without_patterns};
  const uint64_t begin = clock_ns();
  int result = onnx_program_load(b->base.operand, &b->program);
  if (result == TOOL_OK) result = onnx_program_take_inputs(&b->program, &b->source, NULL);
  if (result == TOOL_OK) result = onnx_program_build(&b->program, b->base.device, false);
  if (result == TOOL_OK) result = onnx_program_compile(&b->program, b->base.device, &options);
  if (result == TOOL_OK && !b->program.compiled && !b->program.parts)
    result = tool_fail("%s: its outputs are constants, so there is nothing to measure", b->base.operand);
  if (result == TOOL_OK) result = onnx_program_run(&b->program, false);
  b->first_seconds = (double)(clock_ns() - begin) / 1e9;
  return result == TOOL_OK ? costs_create(b->costs, WAYS, MOST_ROUNDS) : result;
}

static rondo_status measure_rounds(model_bench *b) {
  static const run_function ways[WAYS] = {rondo_compiled_run_eager, rondo_compiled_run};
  for (size_t i = 0; i < WARM_UPS * WAYS; i++) TOOL_TRY(run_timed(b->program.compiled, ways[i % WAYS], NULL));
  for (rounds r = rounds_begin(b->base.seconds, FEWEST_ROUNDS, MOST_ROUNDS); rounds_next(&r);)
    for (size_t i = 0; i < WAYS; i++) TOOL_TRY(run_timed(b->program.compiled, ways[i], &b->costs[i]));
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

static int measure(void *bench) {
  model_bench *b = bench;
  tool_show_progress("measuring");
  if (b->program.parts) return measure_parts(b);
  return measure_rounds(b) ? tool_fail_status("a run") : TOOL_OK;
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
    memory_to_json(&b->program.memory, out);
  }
  if (getrusage(RUSAGE_SELF, &usage) == 0) json_integer(out, "peak_process_bytes", (uint64_t)usage.ru_maxrss << 10);
}

static int finish(void *bench) {
  model_bench *b = bench;
  costs_destroy(b->costs, WAYS);
  return onnx_program_destroy(&b->program);
}

static const model_bench defaults = {.base = {.device_name = "cpu", .seconds = 5}, .source = {.seed = 1}};
static const option_row rows[] = {ONNX_INPUT_ROWS(model_bench), ONNX_PATTERNS_ROW(model_bench),
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
    .prepare = prepare,
    .measure = measure,
    .report = report,
    .finish = finish,
};
