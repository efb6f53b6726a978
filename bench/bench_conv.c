/* SPDX-License-Identifier: MIT
 * rondo_bench conv: convolutions and their gradients on a CUDA device, computed by cuDNN and by Rondo's own kernels, in
 * alternation. Each is a separate recorded program.
 */
#include <stdlib.h>
#include <string.h>

#include "bench_check.h"
#include "common/random_numbers.h"
#include "rondo_bench.h"

/* images: 0 is the batch. The result has the size of the image, divided by the stride. */
typedef struct conv_case {
  const char *name;
  size_t images, in, out, edge, kernel, stride, groups;
} conv_case;

static const conv_case cases[] = {
    {"first", 0, 3, 64, 224, 7, 2, 1},       {"64, 3 x 3", 0, 64, 64, 56, 3, 1, 1},
    {"64 to 256", 0, 64, 256, 56, 1, 1, 1},  {"128, 3 x 3", 0, 128, 128, 28, 3, 1, 1},
    {"half size", 0, 256, 512, 56, 1, 2, 1}, {"256, 3 x 3", 0, 256, 256, 14, 3, 1, 1},
    {"512, 3 x 3", 0, 512, 512, 7, 3, 1, 1}, {"in groups", 0, 128, 128, 28, 3, 1, 128},
    {"small", 8, 32, 32, 16, 3, 1, 1},       {"smaller", 8, 16, 16, 8, 3, 1, 1},
    {"smallest", 1, 16, 16, 8, 3, 1, 1},     {"first of 128", 8, 3, 64, 128, 7, 2, 1},
    {"64 of 32", 8, 64, 64, 32, 3, 1, 1},    {"128 of 16", 8, 128, 128, 16, 3, 1, 1},
    {"256 of 8", 8, 256, 256, 8, 3, 1, 1},   {"512 of 4", 8, 512, 512, 4, 3, 1, 1},
    {"halves 8", 8, 256, 512, 8, 3, 2, 1},   {"halves 8, 1 x 1", 8, 256, 512, 8, 1, 2, 1}};
#define CASES (sizeof cases / sizeof cases[0])

enum { FORWARD, INPUT_GRADIENT, WEIGHT_GRADIENT, PASSES };
static const char *const pass_names[PASSES] = {"forward", "input_gradient", "weight_gradient"};
enum { CUDNN, OWN, WAYS };

#define MOST_TURNS 200
#define FEWEST_TURNS 3
#define TURN_US 2000.0 /* approximate duration of runs that are timed together */
#define MOST_RUNS 100

typedef struct conv_result {
  bool is_librarys;
  samples samples[WAYS];
  summary us[WAYS];
} conv_result;

typedef struct conv_bench {
  bench_base base;
  const char *type_name;
  uint64_t batch, most;
  bool tf32;
  rondo_type type;
  conv_result results[CASES][PASSES];
} conv_bench;

static size_t images_of(const conv_bench *b, const conv_case *of) {
  return of->images > 0 ? of->images : (size_t)b->batch;
}

static size_t out_edge(const conv_case *of) { return (of->edge + 2 * (of->kernel / 2) - of->kernel) / of->stride + 1; }

static double multiplications(const conv_bench *b, const conv_case *of) {
  const double results = (double)(images_of(b, of) * of->out) * (double)(out_edge(of) * out_edge(of));
  return results * (double)(of->in / of->groups * of->kernel * of->kernel);
}

static bool is_taken(const conv_bench *b, size_t index) {
  return multiplications(b, &cases[index]) <= (double)b->most * 1e6;
}

/* Programs -------------------------------------------------------------------------------------------------------- */

/* Differentiates the sum of the result times given slopes, so that the slopes are the result's gradient. */
static rondo_status add_gradient(rondo_program *program, rondo_value y, rondo_value slope, rondo_value of,
                                 rondo_value *out) {
  rondo_value loss;
  TOOL_TRY(rondo_op_mul(program, y, slope, &loss));
  TOOL_TRY(rondo_op_sum(program, loss, NULL, 0, false, &loss));
  TOOL_TRY(rondo_op_cast(program, loss, RONDO_F32, &loss));
  return rondo_program_gradients(program, loss, &of, 1, out);
}

static rondo_status build(const conv_bench *b, const conv_case *of, size_t pass, rondo_program *program) {
  const rondo_conv_options options = {RONDO_CONV_OPTIONS_INIT, .groups = (uint32_t)of->groups,
                                      .stride = {of->stride, of->stride}, .padding = {of->kernel / 2, of->kernel / 2}};
  const size_t images = images_of(b, of), edge = out_edge(of);
  rondo_value x, weight, slope, result;
  TOOL_TRY(rondo_program_input(program, "x", b->type, (size_t[]){images, of->in, of->edge, of->edge}, 4, &x));
  TOOL_TRY(rondo_program_input(program, "weight", b->type,
                               (size_t[]){of->out, of->in / of->groups, of->kernel, of->kernel}, 4, &weight));
  TOOL_TRY(rondo_op_conv(program, x, weight, &options, &result));
  if (pass != FORWARD) {
    TOOL_TRY(rondo_program_input(program, "slope", b->type, (size_t[]){images, of->out, edge, edge}, 4, &slope));
    TOOL_TRY(add_gradient(program, result, slope, pass == INPUT_GRADIENT ? x : weight, &result));
  }
  return rondo_program_output(program, "result", result);
}

static rondo_compiled *compile(const conv_bench *b, const conv_case *of, size_t pass, size_t way) {
  const rondo_compile_options options = {RONDO_COMPILE_OPTIONS_INIT, .record = RONDO_RECORD_ALWAYS,
                                         .allow_tf32 = b->tf32, .own_kernels = way == OWN};
  rondo_program *program = bench_program("conv");
  check(build(b, of, pass, program));
  return bench_compile(program, b->base.device, &options);
}

/* Between -1 and 1: a processor that multiplies zeros uses less power and is faster. */
static void draw_element(rondo_type type, draw_source *source, unsigned char *to) {
  const float number = (float)(2 * draw_unit(source) - 1);
  uint32_t bits;
  memcpy(&bits, &number, sizeof bits);
  const uint16_t half = (uint16_t)((bits >> 16 & 0x8000) | 0x3800 | (bits >> 13 & 0x3ff)),
                 upper = (uint16_t)(bits >> 16);
  if (type == RONDO_F32) memcpy(to, &bits, sizeof bits);
  if (type == RONDO_F16) memcpy(to, &half, sizeof half);
  if (type == RONDO_BF16) memcpy(to, &upper, sizeof upper);
}

#define DRAWN 65536 /* number of elements; then they repeat */

static void draw_elements(rondo_type type, unsigned char *to, size_t bytes) {
  const size_t each = rondo_type_bytes(type), first = bytes < DRAWN * each ? bytes : DRAWN * each;
  draw_source source = draw_create(1, DRAW_BATCHES);
  for (size_t at = 0; at < first; at += each) draw_element(type, &source, to + at);
  for (size_t at = first; at < bytes; at++) to[at] = to[at - first];
}

static void write_inputs(rondo_compiled *compiled) {
  rondo_compiled_value value = {.struct_size = sizeof value};
  for (size_t i = 0; rondo_compiled_get_value(compiled, i, &value) == RONDO_OK; i++) {
    if (value.kind != 'i') continue;
    unsigned char *elements = bench_allocate(value.bytes, 1);
    draw_elements(value.type, elements, value.bytes);
    check(rondo_compiled_write(compiled, value.name, elements, value.bytes));
    free(elements);
  }
}

/* Returns whether no kernel of Rondo computes it. The names of Rondo's kernels begin with conv, except the bias
 * kernel's, which is not used here. */
static bool is_by_cudnn(const rondo_compiled *compiled) {
  const rondo_graph *graph = rondo_compiled_graph(compiled);
  size_t count = 0;
  bool is_librarys = true;
  rondo_node *nodes = bench_list_nodes(graph, &count);
  for (size_t i = 0; i < count; i++) {
    rondo_node_params params;
    check(rondo_graph_get_params(graph, nodes[i], &params));
    if (params.name && strncmp(params.name, "conv", strlen("conv")) == 0) is_librarys = false;
  }
  free(nodes);
  return is_librarys;
}

/* Measuring ------------------------------------------------------------------------------------------------------- */

static double time_runs(rondo_compiled *compiled, size_t runs) {
  const uint64_t begin = clock_ns();
  for (size_t i = 0; i < runs; i++) check(rondo_compiled_run(compiled));
  check(rondo_compiled_synchronize(compiled));
  return (double)(clock_ns() - begin) / 1e3 / (double)runs;
}

/* The first round warms up, and determines how many runs are timed together. */
static void measure_ways(rondo_compiled *const *compiled, double seconds, conv_result *result) {
  size_t runs[WAYS] = {1, 1};
  for (rounds r = rounds_begin(seconds, FEWEST_TURNS + 1, MOST_TURNS); rounds_next(&r);) {
    for (size_t way = 0; way < WAYS; way++) {
      const double us = time_runs(compiled[way], runs[way]), fit = TURN_US / us;
      if (r.done > 1) samples_add(&result->samples[way], us);
      if (r.done == 1) runs[way] = fit < 1 ? 1 : fit > MOST_RUNS ? MOST_RUNS : (size_t)fit;
    }
  }
}

static void measure_pass(const conv_bench *b, const conv_case *of, size_t pass, conv_result *result) {
  rondo_compiled *compiled[WAYS];
  for (size_t way = 0; way < WAYS; way++) {
    bench_samples_create(&result->samples[way], MOST_TURNS);
    compiled[way] = compile(b, of, pass, way);
    write_inputs(compiled[way]);
  }
  result->is_librarys = is_by_cudnn(compiled[CUDNN]);
  measure_ways(compiled, b->base.seconds / (double)(CASES * PASSES), result);
  for (size_t way = 0; way < WAYS; way++) {
    result->us[way] = samples_summarize(&result->samples[way]);
    check(rondo_compiled_destroy(compiled[way]));
  }
}

static int measure(void *bench) {
  conv_bench *b = bench;
  for (size_t i = 0; i < CASES * PASSES; i++) {
    if (!is_taken(b, i / PASSES)) continue;
    tool_show_progress("%s of '%s'", pass_names[i % PASSES], cases[i / PASSES].name);
    measure_pass(b, &cases[i / PASSES], i % PASSES, &b->results[i / PASSES][i % PASSES]);
  }
  return TOOL_OK;
}

/* Results --------------------------------------------------------------------------------------------------------- */

static void write_pass(const conv_result *result, const char *name, json *out) {
  json_begin_object(out, name);
  json_boolean(out, "by_cudnn", result->is_librarys);
  json_summary(out, "cudnn_us", result->us[CUDNN]);
  json_summary(out, "own_us", result->us[OWN]);
  json_real(out, "ratio", bench_ratio(result->us[OWN].median, result->us[CUDNN].median));
  json_end(out);
}

static void write_case(const conv_bench *b, size_t index, json *out) {
  const conv_case *of = &cases[index];
  json_begin_object(out, NULL);
  json_text(out, "name", of->name);
  json_integer(out, "images", images_of(b, of));
  json_integer(out, "channels", of->in);
  json_integer(out, "out_channels", of->out);
  json_integer(out, "edge", of->edge);
  json_integer(out, "kernel", of->kernel);
  json_integer(out, "stride", of->stride);
  json_integer(out, "groups", of->groups);
  json_real(out, "multiplications", multiplications(b, of));
  for (size_t pass = 0; pass < PASSES; pass++) write_pass(&b->results[index][pass], pass_names[pass], out);
  json_end(out);
}

static void report(void *bench, json *out) {
  const conv_bench *b = bench;
  json_text(out, "type", b->type_name);
  json_boolean(out, "tf32", b->tf32);
  json_begin_array(out, "cases");
  for (size_t i = 0; i < CASES; i++)
    if (is_taken(b, i)) write_case(b, i, out);
  json_end(out);
}

static int check_settings(void *bench) {
  conv_bench *b = bench;
  return bench_find_type(b->type_name, &b->type);
}

static const conv_bench defaults = {
    .base = {.device_name = "cuda:0", .seconds = 10}, .type_name = "f32", .batch = 32, .most = 1000000};

#define OFFSET(member) offsetof(conv_bench, member)

static const option_row rows[] = {
    {"type", "TYPE", OPTION_TEXT, OFFSET(type_name), 0, 0, "type of the numbers: f32, bf16 or f16"},
    {"tf32", NULL, OPTION_FLAG, OFFSET(tf32), 0, 0, "let cuDNN use TF32 for f32"},
    {"batch", "N", OPTION_COUNT, OFFSET(batch), 1, 4096, "images in the large cases"},
    {"most", "N", OPTION_COUNT, OFFSET(most), 1, 1e9, "millions of multiplications in the largest case"},
};

const benchmark bench_conv = {
    .name = "conv",
    .summary = "convolutions on CUDA: by cuDNN and by own kernels",
    .description =
        "Measures convolutions, and their gradients of the input and of the weights, computed by cuDNN and by\n"
        "Rondo's own kernels, in alternation. The cases are those of a ResNet-50, one with a group for each\n"
        "channel, and small ones. Each is a recorded program; a gradient adds one kernel, for the function that\n"
        "is differentiated. Times are microseconds of one of several runs in a row, medians; ratio is the time of\n"
        "Rondo's kernels divided by the time of cuDNN. by_cudnn is false if cuDNN does not support a case, or if\n"
        "it is smaller than RONDO_CUDNN_LEAST.",
    .why_cuda = "cuDNN requires one",
    BENCH_STATE(defaults),
    BENCH_OPTIONS(rows),
    .check = check_settings,
    .measure = measure,
    .report = report,
};
