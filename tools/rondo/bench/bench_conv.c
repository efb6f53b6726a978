/* SPDX-License-Identifier: MIT
 * rondo bench conv: convolutions and their gradients on a CUDA device, made by cuDNN and by own kernels, in turns in
 * one run. Each of them is a recorded program of its own.
 */
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/bare_driver.h"
#include "bench/bench_steps.h"
#include "commands/commands.h"
#include "common/json.h"
#include "common/options.h"
#include "common/random_numbers.h"
#include "common/timing.h"
#include "common/tool.h"

typedef struct conv_settings {
  const char *device, *type;
  uint64_t batch, most;
  double seconds;
  bool tf32, json;
} conv_settings;

static const conv_settings defaults = {.device = "cuda:0", .type = "f32", .batch = 32, .most = 1000000, .seconds = 10};

#define OFFSET(member) offsetof(conv_settings, member)

static const option_row rows[] = {
    OPTION_ROW_DEVICE(conv_settings),
    {"type", "TYPE", OPTION_TEXT, OFFSET(type), 0, 0, "type of the numbers: f32, bf16 or f16"},
    {"tf32", NULL, OPTION_FLAG, OFFSET(tf32), 0, 0, "let cuDNN use TF32 for f32"},
    {"batch", "N", OPTION_COUNT, OFFSET(batch), 1, 4096, "images in the large cases"},
    {"most", "N", OPTION_COUNT, OFFSET(most), 1, 1e9, "millions of multiplications in the largest case"},
    OPTION_ROW_SECONDS(conv_settings, "about how long to measure"),
    OPTION_ROW_JSON(conv_settings),
};

static const option_table table = {
    .command = "rondo bench conv",
    .description =
        "Measures convolutions, and their gradients of the input and of the weights, made by cuDNN and by Rondo's\n"
        "own kernels, in alternation: those of a ResNet-50, one with a group for each channel, and small ones.\n"
        "Each is a recorded program; with a gradient it has one more kernel, which computes what is\n"
        "differentiated. Times are microseconds of one of several runs in a row, medians. Cases that cuDNN cannot\n"
        "do, or that are too small for it (RONDO_CUDNN_LEAST), are marked.",
    .defaults = &defaults,
    .rows = rows,
    .count = sizeof rows / sizeof rows[0],
};

/* images: 0 is the batch. The window keeps the size of the image, but for its stride. */
typedef struct conv_case {
  const char *name;
  size_t images, in, out, edge, kernel, stride, groups;
} conv_case;

static const conv_case cases[] = {{"first", 0, 3, 64, 224, 7, 2, 1},       {"64, 3 x 3", 0, 64, 64, 56, 3, 1, 1},
                                  {"64 to 256", 0, 64, 256, 56, 1, 1, 1},  {"128, 3 x 3", 0, 128, 128, 28, 3, 1, 1},
                                  {"half size", 0, 256, 512, 56, 1, 2, 1}, {"256, 3 x 3", 0, 256, 256, 14, 3, 1, 1},
                                  {"512, 3 x 3", 0, 512, 512, 7, 3, 1, 1}, {"in groups", 0, 128, 128, 28, 3, 1, 128},
                                  {"small", 8, 32, 32, 16, 3, 1, 1},       {"smaller", 8, 16, 16, 8, 3, 1, 1},
                                  {"smallest", 1, 16, 16, 8, 3, 1, 1}};
#define CASES (sizeof cases / sizeof cases[0])

enum { FORWARD, INPUT_GRADIENT, WEIGHT_GRADIENT, PASSES };
static const char *const pass_names[PASSES] = {"forward", "input_gradient", "weight_gradient"};
enum { CUDNN, OWN, WAYS };

#define MOST_TURNS 200
#define FEWEST_TURNS 3
#define TURN_US 2000.0 /* of runs that are timed together, about */
#define MOST_RUNS 100

typedef struct conv_result {
  bool is_librarys;
  samples samples[WAYS];
  summary us[WAYS];
} conv_result;

typedef struct conv_bench {
  conv_settings settings;
  rondo_type type;
  rondo_device *device;
  rondo_device_info info;
  conv_result results[CASES][PASSES];
} conv_bench;

static size_t images_of(const conv_bench *b, const conv_case *of) {
  return of->images > 0 ? of->images : (size_t)b->settings.batch;
}

static size_t out_edge(const conv_case *of) { return (of->edge + 2 * (of->kernel / 2) - of->kernel) / of->stride + 1; }

static double multiplications(const conv_bench *b, const conv_case *of) {
  const double results = (double)(images_of(b, of) * of->out) * (double)(out_edge(of) * out_edge(of));
  return results * (double)(of->in / of->groups * of->kernel * of->kernel);
}

static bool is_taken(const conv_bench *b, size_t index) {
  return multiplications(b, &cases[index]) <= (double)b->settings.most * 1e6;
}

/* Programs -------------------------------------------------------------------------------------------------------- */

/* What is differentiated is the sum of the result times given slopes, so that these are the result's gradient. */
static rondo_status add_gradient(rondo_program *program, rondo_value y, rondo_value slope, rondo_value of,
                                 rondo_value *out) {
  rondo_value loss;
  TOOL_TRY(rondo_op_mul(program, y, slope, &loss));
  TOOL_TRY(rondo_op_sum(program, loss, NULL, 0, false, &loss));
  TOOL_TRY(rondo_op_cast(program, loss, RONDO_F32, &loss));
  return rondo_program_gradients(program, loss, &of, 1, out);
}

static rondo_status build(const conv_bench *b, const conv_case *of, size_t pass, rondo_program *program) {
  const rondo_conv2d_options options = {RONDO_CONV2D_OPTIONS_INIT, .groups = (uint32_t)of->groups,
                                        .stride = {of->stride, of->stride},
                                        .padding = {of->kernel / 2, of->kernel / 2}};
  const size_t images = images_of(b, of), edge = out_edge(of);
  rondo_value x, weight, slope, result;
  TOOL_TRY(rondo_program_input(program, "x", b->type, (size_t[]){images, of->in, of->edge, of->edge}, 4, &x));
  TOOL_TRY(rondo_program_input(program, "weight", b->type,
                               (size_t[]){of->out, of->in / of->groups, of->kernel, of->kernel}, 4, &weight));
  TOOL_TRY(rondo_op_conv2d(program, x, weight, &options, &result));
  if (pass != FORWARD) {
    TOOL_TRY(rondo_program_input(program, "slope", b->type, (size_t[]){images, of->out, edge, edge}, 4, &slope));
    TOOL_TRY(add_gradient(program, result, slope, pass == INPUT_GRADIENT ? x : weight, &result));
  }
  return rondo_program_output(program, "result", result);
}

static rondo_status compile(const conv_bench *b, const conv_case *of, size_t pass, size_t way, rondo_compiled **out) {
  const rondo_compile_options options = {RONDO_COMPILE_OPTIONS_INIT, .record = RONDO_RECORD_ALWAYS,
                                         .allow_tf32 = b->settings.tf32, .own_kernels = way == OWN};
  rondo_program *program = NULL;
  *out = NULL;
  TOOL_TRY(rondo_program_create(&(rondo_program_options){RONDO_PROGRAM_OPTIONS_INIT, .name = "conv"}, &program));
  rondo_status status = build(b, of, pass, program);
  if (!status) status = rondo_compile(program, b->device, &options, out);
  rondo_program_destroy(program);
  return status;
}

/* Between -1 and 1: a processor that multiplies zeros would draw less power, and be quicker. */
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

#define DRAWN 65536 /* elements; then they repeat */

static void draw_elements(rondo_type type, unsigned char *to, size_t bytes) {
  const size_t each = rondo_type_bytes(type), first = bytes < DRAWN * each ? bytes : DRAWN * each;
  draw_source source = draw_create(1, DRAW_BATCHES);
  for (size_t at = 0; at < first; at += each) draw_element(type, &source, to + at);
  for (size_t at = first; at < bytes; at++) to[at] = to[at - first];
}

static int write_inputs(rondo_compiled *compiled) {
  rondo_compiled_value value = {.struct_size = sizeof value};
  for (size_t i = 0; rondo_compiled_get_value(compiled, i, &value) == RONDO_OK; i++) {
    if (value.kind != 'i') continue;
    unsigned char *elements = malloc(value.bytes);
    if (!elements) return tool_fail_memory("%zu bytes", value.bytes);
    draw_elements(value.type, elements, value.bytes);
    const rondo_status status = rondo_compiled_write(compiled, value.name, elements, value.bytes);
    free(elements);
    if (status) return tool_fail_status("writing %s", value.name);
  }
  return TOOL_OK;
}

/* Own kernels are called conv2d..., but for the one that fills a result with the bias, which there is none of here. */
static int find_maker(const rondo_compiled *compiled, bool *out_is_librarys) {
  const rondo_graph *graph = rondo_compiled_graph(compiled);
  size_t count = 0;
  *out_is_librarys = true;
  if (rondo_graph_nodes(graph, NULL, &count)) return tool_fail_status("the graph");
  rondo_node *nodes = calloc(count, sizeof *nodes);
  if (!nodes) return tool_fail_memory("%zu nodes", count);
  rondo_status status = rondo_graph_nodes(graph, nodes, &count);
  for (size_t i = 0; i < count && !status; i++) {
    rondo_node_params params;
    status = rondo_graph_get_params(graph, nodes[i], &params);
    if (!status && params.name && strncmp(params.name, "conv2d", 6) == 0) *out_is_librarys = false;
  }
  free(nodes);
  return status ? tool_fail_status("the graph") : TOOL_OK;
}

/* Measuring ------------------------------------------------------------------------------------------------------- */

static rondo_status time_runs(rondo_compiled *compiled, size_t runs, double *out_us) {
  const uint64_t begin = clock_ns();
  for (size_t i = 0; i < runs; i++) TOOL_TRY(rondo_compiled_run(compiled));
  TOOL_TRY(rondo_compiled_synchronize(compiled));
  *out_us = (double)(clock_ns() - begin) / 1e3 / (double)runs;
  return RONDO_OK;
}

static rondo_status take_turns(rondo_compiled *const *compiled, double seconds, conv_result *result) {
  const uint64_t end = clock_ns() + (uint64_t)(seconds * 1e9);
  size_t runs[WAYS] = {1, 1};
  double us = 0;
  for (size_t turn = 0; turn < MOST_TURNS && (turn <= FEWEST_TURNS || clock_ns() < end); turn++) {
    for (size_t way = 0; way < WAYS; way++) {
      TOOL_TRY(time_runs(compiled[way], runs[way], &us));
      if (turn > 0) samples_add(&result->samples[way], us); /* the first warms up, and says how many to time at once */
      const double fit = turn == 0 ? TURN_US / us : (double)runs[way];
      runs[way] = fit < 1 ? 1 : fit > MOST_RUNS ? MOST_RUNS : (size_t)fit;
    }
  }
  return RONDO_OK;
}

static int measure_compiled(conv_bench *b, rondo_compiled *const *compiled, conv_result *result) {
  for (size_t way = 0; way < WAYS; way++)
    if (write_inputs(compiled[way]) != TOOL_OK) return TOOL_FAILURE;
  if (find_maker(compiled[CUDNN], &result->is_librarys) != TOOL_OK) return TOOL_FAILURE;
  if (take_turns(compiled, b->settings.seconds / (double)(CASES * PASSES), result)) return tool_fail_status("a run");
  for (size_t way = 0; way < WAYS; way++) result->us[way] = samples_summarize(&result->samples[way]);
  return TOOL_OK;
}

static int measure_pass(conv_bench *b, const conv_case *of, size_t pass, conv_result *result) {
  rondo_compiled *compiled[WAYS] = {NULL};
  rondo_status status = RONDO_OK;
  for (size_t way = 0; way < WAYS && !status; way++) {
    if (!samples_create(&result->samples[way], MOST_TURNS)) return tool_fail_memory("the times");
    status = compile(b, of, pass, way, &compiled[way]);
  }
  int ended = status ? tool_fail_status("%s of '%s' could not be compiled", pass_names[pass], of->name) : TOOL_OK;
  if (ended == TOOL_OK) ended = measure_compiled(b, compiled, result);
  for (size_t way = 0; way < WAYS; way++)
    if (rondo_compiled_destroy(compiled[way])) ended = tool_fail_status("%s of '%s'", pass_names[pass], of->name);
  return ended;
}

static int measure(void *bench) {
  conv_bench *b = bench;
  for (size_t i = 0; i < CASES * PASSES; i++) {
    if (!is_taken(b, i / PASSES)) continue;
    tool_show_progress("%s of '%s'", pass_names[i % PASSES], cases[i / PASSES].name);
    if (measure_pass(b, &cases[i / PASSES], i % PASSES, &b->results[i / PASSES][i % PASSES]) != TOOL_OK)
      return TOOL_FAILURE;
  }
  tool_clear_progress();
  return TOOL_OK;
}

static int prepare(void *bench) {
  conv_bench *b = bench;
  if (!bare_is_cuda(b->settings.device))
    return tool_fail("--device: '%s' is no CUDA device: on others there is no cuDNN", b->settings.device);
  if (rondo_device_open(b->settings.device, NULL, &b->device)) return tool_fail_status("--device");
  return rondo_device_get_info(b->device, &b->info) ? tool_fail_status("the device") : TOOL_OK;
}

/* Results --------------------------------------------------------------------------------------------------------- */

static double ratio_of(const conv_result *result) {
  return result->us[CUDNN].median > 0 ? result->us[OWN].median / result->us[CUDNN].median : 0;
}

static void write_pass(const conv_result *result, const char *name, json *out) {
  json_begin_object(out, name);
  json_boolean(out, "by_cudnn", result->is_librarys);
  json_summary(out, "cudnn_us", result->us[CUDNN]);
  json_summary(out, "own_us", result->us[OWN]);
  json_real(out, "ratio", ratio_of(result));
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

static int show_json(const void *bench) {
  const conv_bench *b = bench;
  json out;
  json_begin(&out);
  json_text(&out, "device", b->settings.device);
  json_text(&out, "device_description", b->info.description);
  json_text(&out, "type", b->settings.type);
  json_boolean(&out, "tf32", b->settings.tf32);
  json_begin_array(&out, "cases");
  for (size_t i = 0; i < CASES; i++)
    if (is_taken(b, i)) write_case(b, i, &out);
  json_end(&out);
  return json_print(&out);
}

static void print_case(const conv_bench *b, size_t index) {
  const conv_case *of = &cases[index];
  printf("%-12s %6zu %5zu %5zu %5zu %9.1f ", of->name, images_of(b, of), of->in, of->out, of->edge,
         multiplications(b, of) / 1e6);
  for (size_t pass = 0; pass < PASSES; pass++) {
    const conv_result *result = &b->results[index][pass];
    printf(" %8.1f%c/%8.1f (%5.2f)", result->us[CUDNN].median, result->is_librarys ? ' ' : '*', result->us[OWN].median,
           ratio_of(result));
  }
  putchar('\n');
}

static int show_text(const void *bench) {
  const conv_bench *b = bench;
  tool_print_device("device  ", b->settings.device, &b->info);
  printf("numbers %s%s; microseconds, by cuDNN / by own kernels (times as long); * is not made by cuDNN\n",
         b->settings.type, b->settings.tf32 ? ", tf32 allowed" : "");
  printf("%-12s %6s %5s %5s %5s %9s  %-26s %-26s %-26s\n", "case", "images", "in", "out", "edge", "10^6 mult",
         "forward", "gradient of the input", "gradient of the weights");
  for (size_t i = 0; i < CASES; i++)
    if (is_taken(b, i)) print_case(b, i);
  return tool_check_output();
}

static int take_down(void *bench) {
  conv_bench *b = bench;
  for (size_t i = 0; i < CASES * PASSES * WAYS; i++)
    samples_destroy(&b->results[i / (PASSES * WAYS)][i / WAYS % PASSES].samples[i % WAYS]);
  return rondo_device_close(b->device) ? tool_fail_status("the device") : TOOL_OK;
}

static const bench_steps steps = {
    .prepare = prepare, .measure = measure, .show_json = show_json, .show_text = show_text, .take_down = take_down};

static int choose_type(conv_bench *b) {
  static const rondo_type types[] = {RONDO_F32, RONDO_BF16, RONDO_F16};
  for (size_t i = 0; i < sizeof types / sizeof types[0]; i++) {
    b->type = types[i];
    if (strcmp(rondo_type_name(types[i]), b->settings.type) == 0) return TOOL_OK;
  }
  return tool_fail_usage("--type takes f32, bf16 or f16, not '%s'", b->settings.type);
}

int bench_conv(int argc, char **argv) {
  static conv_bench b;
  b = (conv_bench){.settings = defaults};
  const int parsed = options_parse(&table, argc, argv, &b.settings, NULL);
  if (parsed != OPTIONS_RUN) return parsed;
  if (choose_type(&b) != TOOL_OK) return TOOL_USAGE;
  return bench_steps_run(&steps, &b, b.settings.json);
}
