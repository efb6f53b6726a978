/* SPDX-License-Identifier: MIT
 * rondo_bench networks (PR-1 to PR-12): steps of whole networks (bench/networks), recorded; their memory and first
 * losses. bench/networks_vs_torch.py runs it in turns with PyTorch, from the same weights and inputs.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "bench_check.h"
#include "bench_turns.h"
#include "common/random_numbers.h"
#include "networks/network.h"
#include "rondo_bench.h"

enum { MOST_SAMPLES = 100000, WARM_UPS = 2, FEWEST_STEPS = 3, MOST_LOSSES = 16 };

typedef struct networks_bench {
  bench_base base;
  const char *name, *weights_path;
  uint64_t loss_count;
  bool in_turns;
  const network_row *row;
  network_builder builder;
  rondo_compiled *compiled;
  samples times;
  float losses[MOST_LOSSES];
  uint64_t start_bytes, peak_bytes;
} networks_bench;

/* States and inputs ------------------------------------------------------------------------------------------------ */

static bool ends_with(const char *text, const char *end) {
  const size_t length = strlen(text), count = strlen(end);
  return length >= count && strcmp(text + length - count, end) == 0;
}

/* Whether a file of weights has the state: optimizers' states and caches begin as zeros. */
static bool is_parameter(const char *name, void *user) {
  static const char *const others[] = {".m", ".v", ".momentum", ".step", "_cache"};
  (void)user;
  for (size_t i = 0; i < sizeof others / sizeof others[0]; i++)
    if (ends_with(name, others[i])) return false;
  return true;
}

static void write_value(networks_bench *b, const rondo_compiled_value *value, const void *data) {
  check(rondo_compiled_write(b->compiled, value->name, data, value->bytes));
}

/* Matrices are random with the scale of their rows, biases and means are 0, factors and variances 1. */
static void fill_state(networks_bench *b, const rondo_compiled_value *value, draw_source *source) {
  const size_t count = value->bytes / sizeof(float);
  const float scale = value->rank > 1 ? 1 / sqrtf((float)count / (float)value->shape[0]) : 0;
  const bool is_zero = ends_with(value->name, "bias") || ends_with(value->name, "mean");
  float *data = bench_allocate(count, sizeof *data);
  for (size_t i = 0; i < count; i++)
    data[i] = value->rank > 1 ? scale * (float)(2 * draw_unit(source) - 1) : is_zero ? 0 : 1;
  write_value(b, value, data);
  free(data);
}

static size_t limit_of(const networks_bench *b, const char *name) {
  for (size_t i = 0; i < b->builder.input_count; i++)
    if (strcmp(b->builder.inputs[i].name, name) == 0) return b->builder.inputs[i].limit;
  return 0;
}

static void fill_input(networks_bench *b, const rondo_compiled_value *value, draw_source *source) {
  const size_t count = value->bytes / 4, limit = limit_of(b, value->name);
  union {
    float real;
    int32_t integer;
  } *data = bench_allocate(count, sizeof *data);
  for (size_t i = 0; i < count; i++) {
    if (value->type == RONDO_F32)
      data[i].real = (float)draw_unit(source);
    else
      data[i].integer = (int32_t)draw_below(source, (uint32_t)limit);
  }
  write_value(b, value, data);
  free(data);
}

static void fill(networks_bench *b) {
  draw_source source = draw_create(1, DRAW_PARAMETERS);
  for (size_t i = 0;; i++) {
    rondo_compiled_value value = {.struct_size = sizeof value};
    const rondo_status status = rondo_compiled_get_value(b->compiled, i, &value);
    if (status == RONDO_NOT_FOUND) return;
    check(status);
    if (value.kind == 's' && is_parameter(value.name, NULL)) fill_state(b, &value, &source);
    if (value.kind == 'i') fill_input(b, &value, &source);
  }
}

static void write_inputs(networks_bench *b, const rondo_weights *weights) {
  for (size_t i = 0; i < b->builder.input_count; i++) {
    char name[NETWORK_NAME];
    rondo_weight input;
    snprintf(name, sizeof name, "input.%s", b->builder.inputs[i].name);
    check(rondo_weights_find(weights, name, &input));
    check(rondo_compiled_write(b->compiled, b->builder.inputs[i].name, input.data, input.bytes));
  }
}

static void load(networks_bench *b) {
  rondo_weights *weights;
  check(rondo_weights_load(b->weights_path, NULL, &weights));
  check(rondo_weights_apply(weights, b->compiled, is_parameter, NULL));
  write_inputs(b, weights);
  rondo_weights_destroy(weights);
}

/* Measuring -------------------------------------------------------------------------------------------------------- */

/* The libraries for arithmetic, which are code of this process like that of PyTorch, whose import is not counted. */
static void load_libraries(void) {
  rondo_library_info info = {RONDO_LIBRARY_INFO_INIT};
  for (size_t i = 0; rondo_library_enumerate(i, &info) == RONDO_OK; i++) continue;
}

static int choose_network(void *bench) {
  networks_bench *b = bench;
  load_libraries();
  b->start_bytes = bench_read_status("VmRSS:");
  b->row = network_find(b->name);
  return b->row ? TOOL_OK : tool_fail_usage("there is no network '%s'; there are %s", b->name, network_names());
}

static void compile_network(networks_bench *b) {
  rondo_program *program = bench_program(b->row->name);
  b->builder = (network_builder){.program = program};
  network_add(&b->builder, b->row);
  b->compiled = bench_compile(program, b->base.device, NULL);
}

static double time_step(void *bench) {
  const networks_bench *b = bench;
  const uint64_t begin = clock_ns();
  check(rondo_compiled_run(b->compiled));
  check(rondo_compiled_synchronize(b->compiled));
  return (double)(clock_ns() - begin) / 1e3;
}

/* The losses of the first steps. They warm up, too. */
static void run_first_steps(networks_bench *b) {
  for (size_t i = 0; i < b->loss_count + WARM_UPS; i++) {
    (void)time_step(b);
    if (i < b->loss_count && b->builder.trains)
      check(rondo_compiled_read(b->compiled, "loss", &b->losses[i], sizeof b->losses[i]));
  }
}

static int measure(void *bench) {
  networks_bench *b = bench;
  compile_network(b);
  if (b->weights_path)
    load(b);
  else
    fill(b);
  bench_samples_create(&b->times, MOST_SAMPLES);
  run_first_steps(b);
  if (b->in_turns) bench_take_turns(time_step, b, &b->times);
  for (rounds r = rounds_begin(b->base.seconds, FEWEST_STEPS, MOST_SAMPLES); !b->in_turns && rounds_next(&r);)
    samples_add(&b->times, time_step(b));
  b->peak_bytes = bench_read_status("VmHWM:");
  return TOOL_OK;
}

static void report(void *bench, json *out) {
  networks_bench *b = bench;
  rondo_compiled_info info = {.struct_size = sizeof info};
  check(rondo_compiled_get_info(b->compiled, &info));
  json_text(out, "network", b->name);
  json_integer(out, "parameters", info.parameters);
  json_integer(out, "kernels", info.kernels);
  json_integer(out, "steps", b->times.count);
  json_summary(out, "step_us", samples_summarize(&b->times));
  json_integer(out, "peak_bytes", b->peak_bytes - b->start_bytes);
  json_integer(out, "state_bytes", info.state_bytes);
  memory_to_json(&info, out);
  json_begin_array(out, "losses");
  for (size_t i = 0; i < b->loss_count; i++) json_real(out, NULL, (double)b->losses[i]);
  json_end(out);
}

static const networks_bench defaults = {.base = {.device_name = "cpu", .seconds = 3}, .name = "gpt2_0.9m"};

#define OFFSET(member) offsetof(networks_bench, member)

static const option_row rows[] = {
    {"network", "NAME", OPTION_TEXT, OFFSET(name), 0, 0, "network; a name that there is not lists all"},
    {"weights", "FILE", OPTION_INPUT, OFFSET(weights_path), 0, 0,
     "safetensors file of weights, and of inputs as input.NAME; otherwise they are random"},
    {"losses", "N", OPTION_COUNT, OFFSET(loss_count), 0, MOST_LOSSES, "report the losses of so many first steps"},
    {"turns", NULL, OPTION_FLAG, OFFSET(in_turns), 0, 0,
     "instead of measuring for some seconds, read numbers of steps from standard input, and answer with their times"},
    BENCH_WORKERS(networks_bench),
};

const benchmark bench_networks = {
    .name = "networks",
    .summary = "steps of whole networks",
    .description =
        "Measures steps of a network: a whole training step (forward, loss, backward, optimizer), or inference,\n"
        "replayed as one graph. Gives the time of a step in microseconds, the peak memory of the process beyond that\n"
        "after its libraries are loaded, the memory between operators, and the first losses.",
    BENCH_STATE(defaults),
    BENCH_OPTIONS(rows),
    .check = choose_network,
    .measure = measure,
    .report = report,
};
