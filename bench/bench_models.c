/* SPDX-License-Identifier: MIT
 * rondo_bench models (ON-8): recorded runs of a model in an ONNX file, in turns with another engine that runs it
 * (models_vs_onnxruntime.py, models_vs_torch.py); the time until the first answer, and the memory of the process.
 * `rondo bench model` is for users.
 */
#define _POSIX_C_SOURCE 200809L
#include <time.h>

#include "bench_check.h"
#include "bench_turns.h"
#include "onnx/onnx_program.h"
#include "rondo_bench.h"

enum { MOST_SAMPLES = 100000, WARM_UPS = 2, FEWEST_RUNS = 3 };

typedef struct models_bench {
  bench_base base;
  onnx_input_settings source;
  const char *data, *output;
  bool in_turns, allow_tf32;
  onnx_program program;
  double first_seconds; /* from reading the file to the first answer */
  double first_cpu_us;  /* processor time of all threads, the same */
  samples times;
  double cpu_us; /* processor time of all threads, of a run */
  uint64_t start_bytes, peak_bytes;
} models_bench;

static double time_run(void *bench) {
  const models_bench *b = bench;
  const uint64_t begin = clock_ns();
  check(rondo_compiled_run(b->program.compiled));
  check(rondo_compiled_synchronize(b->program.compiled));
  return (double)(clock_ns() - begin) / 1e3;
}

/* Of all threads, in microseconds. */
static double processor_time(void) {
  struct timespec now = {0};
  (void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return (double)now.tv_sec * 1e6 + (double)now.tv_nsec / 1e3;
}

static void write_outputs(const models_bench *b) {
  for (size_t i = 0; b->output && i < b->program.built.outputs; i++) {
    onnx_output output = {0};
    check_tool(onnx_program_read_output(&b->program, i, &output));
    check_tool(onnx_program_write_output(&b->program, i, &output, b->output));
    host_tensor_destroy(&output.tensor);
  }
}

static void load(models_bench *b) {
  const rondo_compile_options options = {RONDO_COMPILE_OPTIONS_INIT, .allow_tf32 = b->allow_tf32};
  const uint64_t begin = clock_ns();
  const double cpu_begin = processor_time();
  check_tool(onnx_program_load(b->base.operand, &b->program));
  check_tool(onnx_program_take_inputs(&b->program, &b->source, b->data));
  check_tool(onnx_program_build(&b->program, b->base.device, false));
  check_tool(onnx_program_compile(&b->program, b->base.device, &options));
  check_tool(onnx_program_run(&b->program, false));
  b->first_seconds = (double)(clock_ns() - begin) / 1e9;
  b->first_cpu_us = processor_time() - cpu_begin;
}

static int measure(void *bench) {
  models_bench *b = bench;
  b->start_bytes = bench_read_status("VmRSS:");
  load(b);
  if (!b->program.compiled) return tool_fail("%s: nothing depends on a run", b->base.operand);
  write_outputs(b);
  bench_samples_create(&b->times, MOST_SAMPLES);
  for (size_t i = 0; i < WARM_UPS; i++) (void)time_run(b);
  const double begin = processor_time();
  if (b->in_turns) bench_take_turns(time_run, b, &b->times);
  for (rounds r = rounds_begin(b->base.seconds, FEWEST_RUNS, MOST_SAMPLES); !b->in_turns && rounds_next(&r);)
    samples_add(&b->times, time_run(b));
  b->cpu_us = bench_ratio(processor_time() - begin, (double)b->times.count);
  b->peak_bytes = bench_read_status("VmHWM:");
  return TOOL_OK;
}

static void report(void *bench, json *out) {
  models_bench *b = bench;
  onnx_program_to_json(&b->program, out);
  json_summary(out, "run_us", samples_summarize(&b->times));
  json_real(out, "cpu_us", b->cpu_us);
  json_real(out, "first_answer_seconds", b->first_seconds);
  json_real(out, "first_answer_cpu_seconds", b->first_cpu_us / 1e6);
  json_integer(out, "peak_bytes", b->peak_bytes - b->start_bytes);
  memory_to_json(&b->program.memory, out);
}

static const models_bench defaults = {.base = {.device_name = "cpu", .seconds = 3}, .source = {.seed = 1}};

static const option_row rows[] = {
    ONNX_INPUT_ROWS(models_bench),
    {"data", "FOLDER", OPTION_TEXT, offsetof(models_bench, data), 0, 0,
     "folder with input_0.pb and so on, or NAME.npy, for inputs that are not given"},
    {"output", "FOLDER", OPTION_TEXT, offsetof(models_bench, output), 0, 0,
     "write each output of the first run to FOLDER/NAME.npy"},
    {"tf32", NULL, OPTION_FLAG, offsetof(models_bench, allow_tf32), 0, 0,
     "on CUDA, let the factors of F32 products and convolutions be rounded to TF32"},
    {"turns", NULL, OPTION_FLAG, offsetof(models_bench, in_turns), 0, 0,
     "instead of measuring for some seconds, read numbers of runs from standard input, and answer with their times"},
    BENCH_WORKERS(models_bench),
};

const benchmark bench_models = {
    .name = "models",
    .summary = "runs of a model in an ONNX file",
    .operand = "MODEL",
    .operand_help = "a model in an ONNX file",
    .description =
        "Measures recorded runs of a model; inputs and outputs stay in the device's memory. Gives the time of a run "
        "in\n"
        "microseconds, its processor time on all threads, the time from reading the file to the first answer, and the\n"
        "peak memory of the process beyond its start.",
    BENCH_STATE(defaults),
    BENCH_OPTIONS(rows),
    .measure = measure,
    .report = report,
};
