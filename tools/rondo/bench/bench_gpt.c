/* SPDX-License-Identifier: MIT
 * rondo bench gpt (FW-4, FW-9): what a training step of a gpt costs, recorded and kernel by kernel, in turns on the
 * same memory, what memory it takes and of which kernels it consists.
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
#include "common/timed_runs.h"
#include "common/timing.h"
#include "common/tool.h"
#include "models/model.h"

typedef struct gpt_settings {
  const char *device, *type;
  uint64_t context, layers, width, heads, vocabulary, batch, workers;
  double seconds;
  bool tf32, json;
} gpt_settings;

static const gpt_settings defaults = {.device = "cpu",
                                      .type = "f32",
                                      .context = 64,
                                      .layers = 4,
                                      .width = 128,
                                      .heads = 4,
                                      .vocabulary = 128,
                                      .batch = 8,
                                      .seconds = 3};

#define OFFSET(member) offsetof(gpt_settings, member)

static const option_row rows[] = {
    OPTION_ROW_DEVICE(gpt_settings),
    {"type", "TYPE", OPTION_TEXT, OFFSET(type), 0, 0, "type to compute in: f32, bf16 or f16; parameters are f32"},
    {"tf32", NULL, OPTION_FLAG, OFFSET(tf32), 0, 0, "let cuBLASLt use TF32 for products of f32"},
    {"context", "N", OPTION_COUNT, OFFSET(context), 1, MODEL_MAX_CONTEXT, "tokens that the model sees"},
    {"layers", "N", OPTION_COUNT, OFFSET(layers), 1, 64, "number of blocks"},
    {"width", "N", OPTION_COUNT, OFFSET(width), 1, 4096, "size of the vector that stands for a token"},
    {"heads", "N", OPTION_COUNT, OFFSET(heads), 1, 64, "attention heads in a block"},
    {"vocabulary", "N", OPTION_COUNT, OFFSET(vocabulary), 2, 256, "number of different tokens"},
    {"batch", "N", OPTION_COUNT, OFFSET(batch), 1, 1 << 16, "rows of tokens in a step"},
    {"workers", "N", OPTION_COUNT, OFFSET(workers), 0, 1024, "worker threads of a CPU device; 0 chooses"},
    OPTION_ROW_SECONDS(gpt_settings, "about how long to measure"),
    OPTION_ROW_JSON(gpt_settings),
};

static const option_table table = {
    .command = "rondo bench gpt",
    .description =
        "Measures a training step (forward, loss, backward, AdamW) of a gpt on random tokens: replayed as one\n"
        "graph, and kernel by kernel, in alternation on the same memory. It gives the time that the host spends on\n"
        "a step and the time until it is done, in microseconds: medians, with minimum and maximum; the memory that\n"
        "it takes, beside what it needs at least; its kernels by name; and whether both ways gave the same losses\n"
        "bit for bit.",
    .defaults = &defaults,
    .rows = rows,
    .count = sizeof rows / sizeof rows[0],
};

#define MOST_ROUNDS 20000
#define FEWEST_ROUNDS 3
#define TURN 20
#define TURN_NS 100000000u
#define COMPARED 3

enum { RECORDED, UNRECORDED, WAYS };
static const char *const way_names[WAYS] = {"recorded", "unrecorded"};
static const run_function way_runs[WAYS] = {rondo_compiled_run, rondo_compiled_run_unrecorded};

typedef struct kernel_count {
  const char *name; /* the graph's */
  size_t count;
} kernel_count;

typedef struct gpt_bench {
  gpt_settings settings;
  language_model model;
  rondo_device *device;
  rondo_device_info device_info;
  rondo_compiled *compiled;
  rondo_compiled_info info;
  run_times times[WAYS];
  float losses[WAYS][COMPARED];
  kernel_count *kernels; /* by name, those that there are most of first */
  size_t kernel_names;
} gpt_bench;

/* Making ready ---------------------------------------------------------------------------------------------------- */

static int choose_model(gpt_bench *b) {
  const gpt_settings *s = &b->settings;
  unsigned char occurs[256] = {0};
  memset(occurs, 1, s->vocabulary);
  b->model = (language_model){.kind = &model_gpt,
                              .type = RONDO_F32,
                              .sizes = {[MODEL_CONTEXT] = (uint32_t)s->context,
                                        [MODEL_LAYERS] = (uint32_t)s->layers,
                                        [MODEL_WIDTH] = (uint32_t)s->width,
                                        [MODEL_HEADS] = (uint32_t)s->heads},
                              .vocabulary = vocabulary_create(occurs)};
  static const rondo_type types[] = {RONDO_F32, RONDO_BF16, RONDO_F16};
  char why[MODEL_WHY_BYTES];
  if (!model_sizes_fit(&b->model, why)) return tool_fail_usage("%s", why);
  for (size_t i = 0; i < sizeof types / sizeof types[0]; i++) {
    b->model.type = types[i];
    if (strcmp(rondo_type_name(types[i]), s->type) == 0) return TOOL_OK;
  }
  return tool_fail_usage("--type takes f32, bf16 or f16, not '%s'", s->type);
}

static rondo_status compile_step(gpt_bench *b) {
  const rondo_compile_options options = {RONDO_COMPILE_OPTIONS_INIT, .allow_tf32 = b->settings.tf32};
  rondo_program *program = NULL;
  TOOL_TRY(rondo_program_create(&(rondo_program_options){RONDO_PROGRAM_OPTIONS_INIT, .name = "gpt"}, &program));
  rondo_status status = model_build_step(&b->model, program, b->settings.batch, NULL);
  if (!status) status = rondo_compile(program, b->device, &options, &b->compiled);
  rondo_program_destroy(program);
  return status ? status : rondo_compiled_get_info(b->compiled, &b->info);
}

/* So that no number is special. */
static int write_batch(const gpt_bench *b) {
  const uint32_t count = (uint32_t)(b->settings.batch * b->settings.context);
  const float rate = 0.001f;
  draw_source source = draw_create(1, DRAW_BATCHES);
  int32_t *tokens = calloc(count, sizeof *tokens);
  if (!tokens) return tool_fail_memory("the tokens");
  for (uint32_t i = 0; i < count; i++) tokens[i] = (int32_t)draw_below(&source, (uint32_t)b->settings.vocabulary);
  rondo_status status = rondo_compiled_write(b->compiled, "tokens", tokens, count * sizeof *tokens);
  if (!status) status = rondo_compiled_write(b->compiled, "labels", tokens, count * sizeof *tokens);
  if (!status) status = rondo_compiled_write(b->compiled, "learning_rate", &rate, sizeof rate);
  free(tokens);
  return status ? tool_fail_status("the batch") : TOOL_OK;
}

static int prepare(void *bench) {
  gpt_bench *b = bench;
  const rondo_device_options options = {RONDO_DEVICE_OPTIONS_INIT, .workers = (uint32_t)b->settings.workers};
  if (rondo_device_open(b->settings.device, &options, &b->device)) return tool_fail_status("--device");
  if (rondo_device_get_info(b->device, &b->device_info)) return tool_fail_status("the device");
  if (compile_step(b)) return tool_fail_status("the training step could not be compiled");
  for (size_t i = 0; i < WAYS; i++) {
    if (run_times_create(&b->times[i], MOST_ROUNDS) != TOOL_OK) return TOOL_FAILURE;
  }
  return write_batch(b);
}

/* Kernels --------------------------------------------------------------------------------------------------------- */

static void count_kernel(gpt_bench *b, const char *name) {
  size_t i = 0;
  while (i < b->kernel_names && strcmp(b->kernels[i].name, name) != 0) i++;
  if (i == b->kernel_names) b->kernels[b->kernel_names++] = (kernel_count){name, 0};
  b->kernels[i].count++;
}

static int compare_counts(const void *a, const void *b) {
  const kernel_count *x = a, *y = b;
  if (x->count != y->count) return x->count < y->count ? 1 : -1;
  return strcmp(x->name, y->name);
}

static rondo_status count_nodes(gpt_bench *b, const rondo_node *nodes, size_t count) {
  for (size_t i = 0; i < count; i++) {
    rondo_node_params params;
    TOOL_TRY(rondo_graph_get_params(rondo_compiled_graph(b->compiled), nodes[i], &params));
    if (params.kind == RONDO_NODE_KERNEL) count_kernel(b, params.name ? params.name : "without a name");
  }
  qsort(b->kernels, b->kernel_names, sizeof *b->kernels, compare_counts);
  return RONDO_OK;
}

static int count_kernels(gpt_bench *b) {
  const rondo_graph *graph = rondo_compiled_graph(b->compiled);
  size_t count = 0;
  if (rondo_graph_nodes(graph, NULL, &count)) return tool_fail_status("the graph");
  rondo_node *nodes = calloc(count, sizeof *nodes);
  b->kernels = calloc(count, sizeof *b->kernels);
  int result = TOOL_OK;
  if (!nodes || !b->kernels) result = tool_fail_memory("%zu nodes", count);
  if (!result && (rondo_graph_nodes(graph, nodes, &count) || count_nodes(b, nodes, count)))
    result = tool_fail_status("the graph");
  free(nodes);
  return result;
}

/* Measuring ------------------------------------------------------------------------------------------------------- */

/* The first steps of each way, from the same parameters. */
static int compare_losses(gpt_bench *b) {
  for (size_t way = 0; way < WAYS; way++) {
    if (model_initialize(&b->model, b->compiled, 1) != TOOL_OK) return TOOL_FAILURE;
    for (size_t i = 0; i < COMPARED; i++) {
      float *loss = &b->losses[way][i];
      if (way_runs[way](b->compiled) || rondo_compiled_read(b->compiled, "loss", loss, sizeof *loss))
        return tool_fail_status("%s", way_names[way]);
    }
  }
  if (memcmp(b->losses[RECORDED], b->losses[UNRECORDED], sizeof b->losses[RECORDED]) == 0) return TOOL_OK;
  return tool_fail("the losses of the two ways differ");
}

static int take_turn(gpt_bench *b, size_t way) {
  const uint64_t end = clock_ns() + TURN_NS;
  for (int i = 0; i < TURN && (i == 0 || clock_ns() < end); i++) {
    if (run_timed(b->compiled, way_runs[way], &b->times[way])) return tool_fail_status("%s", way_names[way]);
  }
  return TOOL_OK;
}

static int measure(void *bench) {
  gpt_bench *b = bench;
  int result = count_kernels(b);
  if (result == TOOL_OK) result = compare_losses(b);
  const uint64_t begin = clock_ns(), end = begin + (uint64_t)(b->settings.seconds * 1e9);
  for (size_t turn = 0; result == TOOL_OK && (turn < FEWEST_ROUNDS || clock_ns() < end); turn++) {
    if (samples_are_full(&b->times[RECORDED].step)) break;
    for (size_t way = 0; result == TOOL_OK && way < WAYS; way++) result = take_turn(b, way);
  }
  for (size_t way = 0; way < WAYS; way++) b->times[way].seconds = (double)(clock_ns() - begin) / 1e9;
  return result;
}

/* Results --------------------------------------------------------------------------------------------------------- */

static int show_json(const void *bench) {
  gpt_bench b = *(const gpt_bench *)bench;
  json out;
  json_begin(&out);
  json_text(&out, "device", b.settings.device);
  json_text(&out, "device_description", b.device_info.description);
  json_text(&out, "type", b.settings.type);
  json_boolean(&out, "tf32", b.settings.tf32);
  for (size_t i = 0; i < MODEL_SIZES; i++) {
    if (b.model.sizes[i] > 0) json_integer(&out, model_size_rows[i].name, b.model.sizes[i]);
  }
  json_integer(&out, "vocabulary", b.settings.vocabulary);
  json_integer(&out, "batch", b.settings.batch);
  json_integer(&out, "parameters", b.info.parameters);
  json_boolean(&out, "identical", true); /* else it had failed */
  json_integer(&out, "kernels", b.info.kernels);
  json_begin_object(&out, "kernel_names");
  for (size_t i = 0; i < b.kernel_names; i++) json_integer(&out, b.kernels[i].name, b.kernels[i].count);
  json_end(&out);
  for (size_t way = 0; way < WAYS; way++) run_times_to_json(&b.times[way], &out, way_names[way]);
  memory_to_json(&b.info, &out);
  return json_print(&out);
}

static int show_text(const void *bench) {
  gpt_bench b = *(const gpt_bench *)bench;
  tool_print_device("device  ", b.settings.device, &b.device_info);
  printf("model   %" PRIu64 " parameters, %s%s: context %" PRIu64 ", layers %" PRIu64 ", width %" PRIu64
         ", heads %" PRIu64 ", vocabulary %" PRIu64 ", batch %" PRIu64 "\n",
         b.info.parameters, b.settings.type, b.settings.tf32 ? ", tf32 allowed" : "", b.settings.context,
         b.settings.layers, b.settings.width, b.settings.heads, b.settings.vocabulary, b.settings.batch);
  printf("losses  identical: both ways gave the same, bit for bit\nkernels %" PRIu32 " a step:", b.info.kernels);
  for (size_t i = 0; i < b.kernel_names; i++) printf("%s %zu %s", i ? "," : "", b.kernels[i].count, b.kernels[i].name);
  putchar('\n');
  run_times_print_head("a step until done, us");
  for (size_t way = 0; way < WAYS; way++) run_times_print(&b.times[way], way_names[way]);
  memory_print(&b.info);
  return TOOL_OK;
}

static int take_down(void *bench) {
  gpt_bench *b = bench;
  int result = TOOL_OK;
  free(b->kernels);
  for (size_t i = 0; i < WAYS; i++) run_times_destroy(&b->times[i]);
  if (rondo_compiled_destroy(b->compiled)) result = tool_fail_status("the training step");
  if (rondo_device_close(b->device)) result = tool_fail_status("the device");
  return result;
}

static const bench_steps steps = {
    .prepare = prepare, .measure = measure, .show_json = show_json, .show_text = show_text, .take_down = take_down};

int bench_gpt(int argc, char **argv) {
  static gpt_bench b;
  b = (gpt_bench){.settings = defaults};
  const int parsed = options_parse(&table, argc, argv, &b.settings, NULL);
  if (parsed != OPTIONS_RUN) return parsed;
  if (choose_model(&b) != TOOL_OK) return TOOL_USAGE;
  return bench_steps_run(&steps, &b, b.settings.json);
}
