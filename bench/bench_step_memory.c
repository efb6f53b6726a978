/* SPDX-License-Identifier: MIT
 * rondo_bench step_memory: the memory of training steps with Adam: a character model, a GPT, an image classifier and a
 * recommender, planned as one chain and with branches. No step is timed.
 */
#define _GNU_SOURCE
#include "bench_check.h"
#include "measure.h"
#include "models/model.h"
#include "rondo_bench.h"

/* Parts ------------------------------------------------------------------------------------------------------------ */

typedef struct network {
  rondo_program *program;
  int states; /* so far; names the next parameter */
} network;

/* Sizes of 0 after the first are omitted. */
static rondo_value add_state(network *n, size_t a, size_t b, size_t c, size_t d) {
  const size_t shape[] = {a, b, c, d};
  char name[16];
  rondo_value state;
  snprintf(name, sizeof name, "state.%d", n->states++);
  check(rondo_program_state(n->program, name, RONDO_F32, shape, d > 0 ? 4 : b > 0 ? 2 : 1, &state));
  return state;
}

static rondo_value add_input(network *n, const char *name, rondo_type type, const size_t *shape, size_t rank) {
  rondo_value input;
  check(rondo_program_input(n->program, name, type, shape, rank, &input));
  return input;
}

static rondo_value add_layer(network *n, rondo_value x, size_t from, size_t to, rondo_activation activation) {
  const rondo_value weight = add_state(n, from, to, 0, 0);
  const rondo_matmul_options options = {RONDO_MATMUL_OPTIONS_INIT, .bias = add_state(n, to, 0, 0, 0),
                                        .activation = activation};
  check(rondo_op_matmul_with(n->program, x, weight, &options, &x));
  return x;
}

/* Networks, to their loss ------------------------------------------------------------------------------------------ */

/* Convolution, batch normalization, the sum with `before` unless it is none, relu. */
static rondo_value add_convolution(network *n, rondo_value x, size_t from, size_t to, size_t kernel, size_t groups,
                                   rondo_value before) {
  const rondo_conv_options options = {RONDO_CONV_OPTIONS_INIT, .groups = (uint32_t)groups,
                                      .padding = {kernel / 2, kernel / 2}};
  const rondo_batch_norm_options norm = {RONDO_BATCH_NORM_OPTIONS_INIT,
                                         .scale = add_state(n, to, 0, 0, 0),
                                         .shift = add_state(n, to, 0, 0, 0),
                                         .running_mean = add_state(n, to, 0, 0, 0),
                                         .running_variance = add_state(n, to, 0, 0, 0),
                                         .momentum = 0.1f};
  check(rondo_op_conv(n->program, x, add_state(n, to, from / groups, kernel, kernel), &options, &x));
  check(rondo_op_batch_norm(n->program, x, &norm, &x));
  if (before.id != 0) check(rondo_op_add(n->program, x, before, &x));
  check(rondo_op_relu(n->program, x, &x));
  return x;
}

static rondo_value build_classifier(network *n) {
  enum { BATCH = 32, EDGE = 12, CLASSES = 4 };
  const size_t images[] = {BATCH, 1, EDGE, EDGE};
  const rondo_pooling_options halves = {RONDO_POOLING_OPTIONS_INIT, .kernel = {2, 2}};
  const rondo_value none = {0}, labels = add_input(n, "labels", RONDO_I32, images, 1);
  const rondo_value before = add_convolution(n, add_input(n, "images", RONDO_F32, images, 4), 1, 16, 3, 1, none);
  rondo_value x = add_convolution(n, before, 16, 16, 3, 1, none);
  x = add_convolution(n, x, 16, 16, 3, 1, before);
  check(rondo_op_max_pool(n->program, x, &halves, &x, NULL));
  x = add_convolution(n, x, 16, 16, 3, 16, none);
  x = add_convolution(n, x, 16, 32, 1, 1, none);
  check(rondo_op_mean(n->program, x, (const size_t[]){2, 3}, 2, false, &x));
  x = add_layer(n, x, 32, CLASSES, RONDO_ACTIVATION_NONE);
  check(rondo_op_cross_entropy(n->program, x, labels, &x));
  return x;
}

static rondo_value build_recommender(network *n) {
  enum { BATCH = 128, DENSE = 13, TABLES = 8, ROWS = 50, WIDTH = 16, BAG = 2, PARTS = TABLES + 1 };
  const size_t dense[] = {BATCH, DENSE}, rows[] = {BATCH, TABLES, BAG}, one[] = {BATCH, 1, WIDTH};
  const size_t flat[] = {BATCH, PARTS * PARTS}, count[] = {PARTS * TABLES / 2};
  const rondo_matmul_options transposed = {RONDO_MATMUL_OPTIONS_INIT, .transpose_b = true};
  const rondo_value none = {0}, pairs = add_input(n, "pairs", RONDO_I32, count, 1);
  const rondo_value clicks = add_input(n, "clicks", RONDO_F32, dense, 1);
  rondo_value x = add_layer(n, add_input(n, "dense", RONDO_F32, dense, 2), DENSE, 64, RONDO_ACTIVATION_RELU);
  x = add_layer(n, x, 64, WIDTH, RONDO_ACTIVATION_RELU);
  rondo_value bags, row, all;
  check(rondo_op_embedding_bag(n->program, add_state(n, TABLES * ROWS, WIDTH, 0, 0),
                               add_input(n, "rows", RONDO_I32, rows, 3), none, none, RONDO_COMBINE_SUM, &bags));
  check(rondo_op_reshape(n->program, x, one, 3, &row));
  check(rondo_op_concat(n->program, (rondo_value[]){row, bags}, 2, 1, &all));
  check(rondo_op_matmul_with(n->program, all, all, &transposed, &all));
  check(rondo_op_reshape(n->program, all, flat, 2, &all));
  check(rondo_op_index_select(n->program, all, pairs, 1, &all));
  check(rondo_op_concat(n->program, (rondo_value[]){x, all}, 2, 1, &x));
  x = add_layer(n, x, WIDTH + count[0], 64, RONDO_ACTIVATION_RELU);
  x = add_layer(n, x, 64, 1, RONDO_ACTIVATION_NONE);
  check(rondo_op_reshape(n->program, x, dense, 1, &x));
  check(rondo_op_bce_with_logits(n->program, x, clicks, RONDO_COMBINE_MEAN, &x));
  return x;
}

/* Figures ---------------------------------------------------------------------------------------------------------- */

/* The tool's models, with the default sizes of `rondo train` and rondo_bench training. */
static void add_model_step(rondo_program *program, const model_kind *kind, size_t batch, size_t symbols) {
  static const uint32_t sizes[MODEL_SIZES] = {
      [MODEL_CONTEXT] = 64, [MODEL_LAYERS] = 4, [MODEL_WIDTH] = 128, [MODEL_HEADS] = 4};
  unsigned char occurs[256] = {0};
  memset(occurs, 1, symbols);
  language_model model = {.kind = kind, .type = RONDO_F32, .vocabulary = vocabulary_create(occurs)};
  memcpy(model.sizes, kind == &model_gpt ? sizes : kind->sizes, sizeof model.sizes);
  check(model_build_step(&model, program, batch, NULL));
}

static const struct {
  const char *name;
  const model_kind *kind; /* NULL: `build` adds the network up to its loss */
  size_t batch, symbols;
  rondo_value (*build)(network *n);
} networks[] = {{"character", &model_character, 64, 90, NULL},
                {"gpt", &model_gpt, 8, 128, NULL},
                {"classifier", NULL, 0, 0, build_classifier},
                {"recommender", NULL, 0, 0, build_recommender}};

static void add_network_step(rondo_program *program, size_t which) {
  network n = {.program = program};
  rondo_value rate;
  const rondo_value loss = networks[which].build(&n);
  check(rondo_program_output(program, "loss", loss));
  check(rondo_program_cell(program, "rate", 0.001f, &rate));
  check(rondo_program_adam(program, loss, &(rondo_adam_options){RONDO_ADAM_OPTIONS_INIT, .learning_rate = rate}));
}

static rondo_compiled_info plan(rondo_device *device, size_t which, rondo_branch_policy branches) {
  rondo_program *program = bench_program("step");
  rondo_compiled_info info = {.struct_size = sizeof info};
  if (networks[which].kind)
    add_model_step(program, networks[which].kind, networks[which].batch, networks[which].symbols);
  else
    add_network_step(program, which);
  const rondo_compile_options options = {RONDO_COMPILE_OPTIONS_INIT, .branches = branches};
  rondo_compiled *compiled = bench_compile(program, device, &options);
  check(rondo_compiled_get_info(compiled, &info));
  check(rondo_compiled_destroy(compiled));
  return info;
}

static void report(size_t which, const char *what, uint64_t bytes) {
  char measure[64];
  snprintf(measure, sizeof measure, "%s_%s", networks[which].name, what);
  bench_report_one(measure, "B", (double)bytes);
}

static void report_network(rondo_device *device, size_t which) {
  static const struct {
    rondo_branch_policy branches;
    const char *name, *bound;
  } ways[] = {{RONDO_BRANCHES_NEVER, "line", "line_bound"},
              {RONDO_BRANCHES_ALWAYS, "branches", "branches_bound"},
              {RONDO_BRANCHES_AUTO, "chosen", "chosen_bound"}};
  rondo_compiled_info info;
  for (size_t way = 0; way < sizeof ways / sizeof ways[0]; way++) {
    info = plan(device, which, ways[way].branches);
    report(which, ways[way].name, info.arena_bytes);
    report(which, ways[way].bound, info.lower_bound);
  }
  report(which, "order", info.order_peak);
  report(which, "program", info.program_peak);
}

static int run(int argc, char **argv) {
  (void)argc;
  (void)argv;
  rondo_device *device = NULL;
  check(rondo_device_open(bench_device(), NULL, &device));
  bench_begin("rondo_bench step_memory", rondo_version());
  for (size_t i = 0; i < sizeof networks / sizeof networks[0]; i++) report_network(device, i);
  check(rondo_device_close(device));
  return bench_end();
}

const benchmark bench_step_memory = {
    .name = "step_memory",
    .summary = "the memory of training steps, sequentially and with branches",
    .description =
        "Plans the memory of training steps: a character model, a GPT, a classifier of images and a recommender,\n"
        "with Adam. No step is timed. Rows:\n\n"
        "NETWORK_line, NETWORK_branches, NETWORK_chosen: planned bytes between operators, in one line, with all\n"
        "branches, and as the library chooses\n\n"
        "..._bound: the maximum of live bytes, in that order or along the branches\n\n"
        "NETWORK_order, NETWORK_program: the maximum of live bytes of results and workspaces, in the\n"
        "chosen order and in the order in which the operators were added\n\n"
        "BENCH_DEVICE: the device; default cpu",
    .program = run,
};
