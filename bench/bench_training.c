/* SPDX-License-Identifier: MIT
 * rondo_bench training (FW-4, FW-9): the cost of a training step of one of the tool's models, recorded and eager, in
 * alternation on the same memory; the memory that it needs and the kernels that it consists of.
 */
#include <stdlib.h>
#include <string.h>

#include "bench_check.h"
#include "common/timed_runs.h"
#include "models/model.h"
#include "rondo_bench.h"

enum { MOST_ROUNDS = 20000, FEWEST_TURNS = 3, TURN = 20, COMPARED = 3 };
#define TURN_NS 100000000u

enum { RECORDED, EAGER, WAYS };
static const char *const way_names[WAYS] = {"recorded", "eager"};
static const run_function way_runs[WAYS] = {rondo_compiled_run, rondo_compiled_run_eager};

typedef struct kernel_count {
  const char *name; /* the graph's */
  size_t count;
} kernel_count;

typedef struct training_bench {
  bench_base base;
  const char *kind, *type_name;
  uint64_t sizes[MODEL_SIZES], vocabulary, batch;
  bool tf32;
  language_model model;
  rondo_compiled *compiled;
  rondo_compiled_info info;
  run_times times[WAYS];
  kernel_count *kernels; /* by name, the most frequent first */
  size_t kernel_names;
} training_bench;

/* Preparing ------------------------------------------------------------------------------------------------------- */

static int choose_model(void *bench) {
  training_bench *b = bench;
  unsigned char occurs[256] = {0};
  char why[MODEL_WHY_BYTES];
  memset(occurs, 1, b->vocabulary);
  b->model =
      (language_model){.kind = model_kind_named(b->kind), .type = RONDO_F32, .vocabulary = vocabulary_create(occurs)};
  if (!b->model.kind) return tool_fail_usage("there is no model '%s'; there are %s", b->kind, model_kind_names());
  for (size_t i = 0; i < MODEL_SIZES; i++)
    if (b->model.kind->sizes[i] > 0) b->model.sizes[i] = (uint32_t)b->sizes[i];
  if (!model_sizes_fit(&b->model, why)) return tool_fail_usage("%s", why);
  return bench_find_type(b->type_name, &b->model.type);
}

static void compile_step(training_bench *b) {
  const rondo_compile_options options = {RONDO_COMPILE_OPTIONS_INIT, .allow_tf32 = b->tf32};
  rondo_program *program = bench_program(b->kind);
  check(model_build_step(&b->model, program, b->batch, NULL));
  b->compiled = bench_compile(program, b->base.device, &options);
  check(rondo_compiled_get_info(b->compiled, &b->info));
}

/* Random tokens, so that none is special. */
static void write_batch(const training_bench *b) {
  const size_t count = (size_t)(b->batch * b->sizes[MODEL_CONTEXT]), labels = b->batch * model_labels(&b->model);
  const float rate = 0.001f;
  draw_source source = draw_create(1, DRAW_BATCHES);
  int32_t *tokens = bench_allocate(count, sizeof *tokens);
  for (size_t i = 0; i < count; i++) tokens[i] = (int32_t)draw_below(&source, (uint32_t)b->vocabulary);
  check(rondo_compiled_write(b->compiled, "tokens", tokens, count * sizeof *tokens));
  check(rondo_compiled_write(b->compiled, "labels", tokens, labels * sizeof *tokens));
  check(rondo_compiled_write(b->compiled, "learning_rate", &rate, sizeof rate));
  free(tokens);
}

/* Kernels --------------------------------------------------------------------------------------------------------- */

static void count_kernel(training_bench *b, const char *name) {
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

static void count_kernels(training_bench *b) {
  const rondo_graph *graph = rondo_compiled_graph(b->compiled);
  size_t count = 0;
  rondo_node *nodes = bench_list_nodes(graph, &count);
  b->kernels = bench_allocate(count, sizeof *b->kernels);
  for (size_t i = 0; i < count; i++) {
    rondo_node_params params;
    check(rondo_graph_get_params(graph, nodes[i], &params));
    if (params.kind == RONDO_NODE_KERNEL) count_kernel(b, params.name ? params.name : "without a name");
  }
  qsort(b->kernels, b->kernel_names, sizeof *b->kernels, compare_counts);
  free(nodes);
}

/* Measuring ------------------------------------------------------------------------------------------------------- */

/* The first steps in each mode, from the same parameters. */
static int compare_losses(training_bench *b) {
  float losses[WAYS][COMPARED];
  for (size_t way = 0; way < WAYS; way++) {
    check_tool(model_initialize(&b->model, b->compiled, 1));
    for (size_t i = 0; i < COMPARED; i++) {
      check(way_runs[way](b->compiled));
      check(rondo_compiled_read(b->compiled, "loss", &losses[way][i], sizeof losses[way][i]));
    }
  }
  return memcmp(losses[0], losses[1], sizeof losses[0]) == 0 ? TOOL_OK
                                                             : tool_fail("the losses of the two modes differ");
}

static void take_turn(training_bench *b, size_t way) {
  const uint64_t end = clock_ns() + TURN_NS;
  for (int i = 0; i < TURN && (i == 0 || clock_ns() < end); i++)
    check(run_timed(b->compiled, way_runs[way], &b->times[way].cost));
}

static int measure(void *bench) {
  training_bench *b = bench;
  b->info.struct_size = sizeof b->info;
  compile_step(b);
  write_batch(b);
  count_kernels(b);
  check_tool(compare_losses(b));
  for (size_t way = 0; way < WAYS; way++) check_tool(costs_create(&b->times[way].cost, 1, MOST_ROUNDS));
  const uint64_t begin = clock_ns();
  for (rounds r = rounds_begin(b->base.seconds, FEWEST_TURNS, MOST_ROUNDS / TURN); rounds_next(&r);)
    for (size_t way = 0; way < WAYS; way++) take_turn(b, way);
  for (size_t way = 0; way < WAYS; way++) b->times[way].seconds = (double)(clock_ns() - begin) / 1e9;
  return TOOL_OK;
}

static void report(void *bench, json *out) {
  training_bench *b = bench;
  json_text(out, "model", b->kind);
  json_text(out, "type", b->type_name);
  json_boolean(out, "tf32", b->tf32);
  for (size_t i = 0; i < MODEL_SIZES; i++)
    if (b->model.sizes[i] > 0) json_integer(out, model_size_rows[i].name, b->model.sizes[i]);
  json_integer(out, "vocabulary", b->vocabulary);
  json_integer(out, "batch", b->batch);
  json_integer(out, "parameters", b->info.parameters);
  json_boolean(out, "identical", true); /* otherwise it had failed */
  json_integer(out, "kernels", b->info.kernels);
  json_begin_object(out, "kernel_names");
  for (size_t i = 0; i < b->kernel_names; i++) json_integer(out, b->kernels[i].name, b->kernels[i].count);
  json_end(out);
  for (size_t way = 0; way < WAYS; way++) run_times_to_json(&b->times[way], out, way_names[way]);
  memory_to_json(&b->info, out);
}

static const training_bench defaults = {.base = {.device_name = "cpu", .seconds = 3},
                                        .kind = "gpt",
                                        .type_name = "f32",
                                        .sizes = {[MODEL_CONTEXT] = 64,
                                                  [MODEL_EMBEDDING] = 24,
                                                  [MODEL_HIDDEN] = 256,
                                                  [MODEL_LAYERS] = 4,
                                                  [MODEL_WIDTH] = 128,
                                                  [MODEL_HEADS] = 4},
                                        .vocabulary = 128,
                                        .batch = 8};

#define OFFSET(member) offsetof(training_bench, member)

static const option_row rows[] = {
    {"model", "NAME", OPTION_TEXT, OFFSET(kind), 0, 0, "model: character or gpt"},
    {"type", "TYPE", OPTION_TEXT, OFFSET(type_name), 0, 0, "type to compute in: f32, bf16 or f16; parameters are f32"},
    {"tf32", NULL, OPTION_FLAG, OFFSET(tf32), 0, 0, "let cuBLASLt use TF32 for products of f32"},
    {"context", "N", OPTION_COUNT, OFFSET(sizes[MODEL_CONTEXT]), 1, MODEL_MAX_CONTEXT, "tokens that the model sees"},
    {"embedding", "N", OPTION_COUNT, OFFSET(sizes[MODEL_EMBEDDING]), 1, 1024, "of character: numbers for a token"},
    {"hidden", "N", OPTION_COUNT, OFFSET(sizes[MODEL_HIDDEN]), 1, 16384, "of character: units in the hidden layer"},
    {"layers", "N", OPTION_COUNT, OFFSET(sizes[MODEL_LAYERS]), 1, 64, "of gpt: number of blocks"},
    {"width", "N", OPTION_COUNT, OFFSET(sizes[MODEL_WIDTH]), 1, 4096, "of gpt: size of the vector of a token"},
    {"heads", "N", OPTION_COUNT, OFFSET(sizes[MODEL_HEADS]), 1, 64, "of gpt: attention heads in a block"},
    {"vocabulary", "N", OPTION_COUNT, OFFSET(vocabulary), 2, 256, "number of different tokens"},
    {"batch", "N", OPTION_COUNT, OFFSET(batch), 1, 1 << 16, "rows of tokens in a step"},
    BENCH_WORKERS(training_bench),
};

const benchmark bench_training = {
    .name = "training",
    .summary = "a training step of a language model, recorded and eager",
    .description =
        "Measures a training step (forward, loss, backward, AdamW) of a language model on random tokens: replayed\n"
        "as one graph, and eager, in alternation on the same memory. Gives the time of the host and the total\n"
        "time of a step, in microseconds: medians, with minimum and maximum; the memory that it uses and needs at\n"
        "least; and its kernels by name. Fails if the losses of the two modes differ.",
    BENCH_STATE(defaults),
    BENCH_OPTIONS(rows),
    .check = choose_model,
    .measure = measure,
    .report = report,
};
