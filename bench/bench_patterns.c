/* SPDX-License-Identifier: MIT
 * rondo_bench patterns: what exporters spell out, as it is written and with its patterns replaced, in alternation. Each
 * way is a recorded program.
 */
#define _GNU_SOURCE
#include <math.h>

#include "program_ways.h"
#include "rondo_bench.h"

enum { ROWS = 128, WIDTH = 768, HEADS = 12, SIZE = WIDTH / HEADS, INNER = 4 * WIDTH };
enum { AS_WRITTEN, REPLACED, WAYS };
static const char *const way_names[WAYS] = {"as_written", "replaced"};

/* Building --------------------------------------------------------------------------------------------------------- */

typedef struct scene {
  rondo_program *program;
  uint32_t states;
} scene;

#define DIMS(...) (const size_t[]){__VA_ARGS__}, sizeof((const size_t[]){__VA_ARGS__}) / sizeof(size_t)

static rondo_value input(scene *s, const size_t *dims, size_t rank) {
  rondo_value value;
  check(rondo_program_input(s->program, "x", RONDO_F32, dims, rank, &value));
  return value;
}

static rondo_value state(scene *s, const size_t *dims, size_t rank) {
  char name[16];
  rondo_value value;
  (void)snprintf(name, sizeof name, "w%u", s->states++);
  check(rondo_program_state(s->program, name, RONDO_F32, dims, rank, &value));
  return value;
}

static rondo_value number(scene *s, double x) {
  rondo_value value;
  check(rondo_op_full(s->program, RONDO_F32, NULL, 0, x, &value));
  return value;
}

typedef rondo_status (*binary)(rondo_program *program, rondo_value a, rondo_value b, rondo_value *out);

static rondo_value of_two(scene *s, binary op, rondo_value a, rondo_value b) {
  check(op(s->program, a, b, &a));
  return a;
}

static rondo_value mean(scene *s, rondo_value x, size_t dimension) {
  check(rondo_op_mean(s->program, x, &dimension, 1, true, &x));
  return x;
}

/* The last of three dimensions. */
static rondo_value layer_norm(scene *s, rondo_value x) {
  const rondo_value c = of_two(s, rondo_op_sub, x, mean(s, x, 2));
  const rondo_value squares = of_two(s, rondo_op_pow, c, number(s, 2));
  rondo_value root = of_two(s, rondo_op_add, mean(s, squares, 2), number(s, 1e-5));
  check(rondo_op_sqrt(s->program, root, &root));
  const rondo_value y = of_two(s, rondo_op_mul, of_two(s, rondo_op_div, c, root), state(s, DIMS(WIDTH)));
  return of_two(s, rondo_op_add, y, state(s, DIMS(WIDTH)));
}

static rondo_value gelu(scene *s, rondo_value x) {
  rondo_value erf = of_two(s, rondo_op_div, x, number(s, sqrt(2)));
  check(rondo_op_erf(s->program, erf, &erf));
  const rondo_value gate = of_two(s, rondo_op_add, erf, number(s, 1));
  return of_two(s, rondo_op_mul, of_two(s, rondo_op_mul, x, gate), number(s, 0.5));
}

static rondo_value linear(scene *s, rondo_value x, size_t in, size_t out) {
  rondo_value y;
  check(rondo_op_matmul(s->program, x, state(s, DIMS(in, out)), (rondo_value){0}, &y));
  return of_two(s, rondo_op_add, y, state(s, DIMS(out)));
}

static rondo_value heads(scene *s, rondo_value x, const size_t *order) {
  check(rondo_op_reshape(s->program, x, DIMS(1, ROWS, HEADS, SIZE), &x));
  check(rondo_op_permute(s->program, x, order, &x));
  return x;
}

static rondo_value attention(scene *s, rondo_value q, rondo_value k, rondo_value v) {
  static const size_t by_heads[] = {0, 2, 1, 3}, transposed[] = {0, 2, 3, 1};
  rondo_value scores;
  check(rondo_op_matmul(s->program, heads(s, q, by_heads), heads(s, k, transposed), (rondo_value){0}, &scores));
  scores = of_two(s, rondo_op_div, scores, number(s, 8));
  scores = of_two(s, rondo_op_add, scores, state(s, DIMS(1, 1, 1, ROWS)));
  check(rondo_op_softmax(s->program, scores, &scores));
  check(rondo_op_matmul(s->program, scores, heads(s, v, by_heads), (rondo_value){0}, &scores));
  check(rondo_op_permute(s->program, scores, by_heads, &scores));
  check(rondo_op_reshape(s->program, scores, DIMS(1, ROWS, WIDTH), &scores));
  return scores;
}

/* Cases ------------------------------------------------------------------------------------------------------------ */

static rondo_value build_layer_norm(scene *s) { return layer_norm(s, input(s, DIMS(1, ROWS, WIDTH))); }
static rondo_value build_gelu(scene *s) { return gelu(s, input(s, DIMS(1, ROWS, INNER))); }
static rondo_value build_bias_gelu(scene *s) {
  return gelu(s, linear(s, input(s, DIMS(1, ROWS, WIDTH)), WIDTH, INNER));
}

static rondo_value build_attention(scene *s) {
  const rondo_value x = input(s, DIMS(1, ROWS, WIDTH));
  return attention(s, x, x, x);
}

/* A layer of BERT-base. */
static rondo_value build_layer(scene *s) {
  const rondo_value x = input(s, DIMS(1, ROWS, WIDTH)), q = linear(s, x, WIDTH, WIDTH), k = linear(s, x, WIDTH, WIDTH);
  const rondo_value seen = linear(s, attention(s, q, k, linear(s, x, WIDTH, WIDTH)), WIDTH, WIDTH);
  const rondo_value y = layer_norm(s, of_two(s, rondo_op_add, seen, x));
  const rondo_value inner = gelu(s, linear(s, y, WIDTH, INNER));
  return layer_norm(s, of_two(s, rondo_op_add, linear(s, inner, INNER, WIDTH), y));
}

static rondo_value convolve(scene *s, size_t channels, size_t edge, size_t kernel) {
  const rondo_conv_options options = {RONDO_CONV_OPTIONS_INIT, .padding = {kernel / 2, kernel / 2}};
  const rondo_batch_norm_options norm = {RONDO_BATCH_NORM_OPTIONS_INIT,
                                         .inference = true,
                                         .scale = state(s, DIMS(channels)),
                                         .shift = state(s, DIMS(channels)),
                                         .running_mean = state(s, DIMS(channels)),
                                         .running_variance = state(s, DIMS(channels))};
  rondo_value y = input(s, DIMS(1, channels, edge, edge));
  check(rondo_op_conv(s->program, y, state(s, DIMS(channels, channels, kernel, kernel)), &options, &y));
  check(rondo_op_batch_norm(s->program, y, &norm, &y));
  check(rondo_op_relu(s->program, y, &y));
  return y;
}

/* Convolutions of ResNet-50, with their normalization and relu. */
static rondo_value build_conv_64(scene *s) { return convolve(s, 64, 56, 3); }
static rondo_value build_conv_128(scene *s) { return convolve(s, 128, 28, 3); }
static rondo_value build_pointwise(scene *s) { return convolve(s, 256, 56, 1); }

static const struct {
  const char *name;
  rondo_value (*build)(scene *s);
} cases[] = {{"layer_norm", build_layer_norm}, {"gelu", build_gelu},
             {"bias_gelu", build_bias_gelu},   {"attention", build_attention},
             {"bert_layer", build_layer},      {"conv_64", build_conv_64},
             {"conv_128", build_conv_128},     {"pointwise_256", build_pointwise}};
enum { CASES = sizeof cases / sizeof cases[0] };

/* Measuring -------------------------------------------------------------------------------------------------------- */

/* Small numbers; variances are at least 0. */
static void write_values(rondo_compiled *compiled) {
  rondo_compiled_value value = {.struct_size = sizeof value};
  uint64_t seed = 1;
  for (size_t i = 0; rondo_compiled_get_value(compiled, i, &value) == RONDO_OK; i++) {
    if (value.kind == 'o') continue;
    float *numbers = bench_allocate(value.bytes, 1);
    for (size_t k = 0; k < value.bytes / sizeof *numbers; k++)
      numbers[k] = (float)bench_random_below(&seed, 1000) / 10000.0f;
    check(rondo_compiled_write(compiled, value.name, numbers, value.bytes));
    free(numbers);
  }
}

static rondo_compiled *compile_way(rondo_device *device, size_t index, int way) {
  const rondo_compile_options options = {RONDO_COMPILE_OPTIONS_INIT,
                                         .without_patterns = way == AS_WRITTEN ? "all" : NULL};
  scene s = {.program = bench_program(cases[index].name)};
  check(rondo_program_output(s.program, "y", cases[index].build(&s)));
  rondo_compiled *compiled = bench_compile(s.program, device, &options);
  write_values(compiled);
  return compiled;
}

static void measure(size_t index) {
  const rondo_device_options options = {RONDO_DEVICE_OPTIONS_INIT};
  rondo_device *device = NULL;
  program_way measured[WAYS];
  check(rondo_device_open(bench_device(), &options, &device));
  for (int way = 0; way < WAYS; way++) {
    measured[way].compiled = compile_way(device, index, way);
    (void)snprintf(measured[way].name, WAY_NAME, "%s_%s", cases[index].name, way_names[way]);
  }
  bench_measure_ways(measured, WAYS);
  bench_child_end();
}

static int run(int argc, char **argv) {
  (void)argc;
  (void)argv;
  bench_begin("rondo_bench patterns", rondo_version());
  for (size_t i = 0; i < CASES; i++)
    if (bench_is_listed("BENCH_SHAPES", cases[i].name) && bench_child()) measure(i);
  return bench_end();
}

const benchmark bench_patterns = {
    .name = "patterns",
    .summary = "what exporters spell out, as written and replaced",
    .description =
        "Measures operators as exporters write them, in alternation with the same program whose patterns are replaced\n"
        "(rondo_compile_options.without_patterns). Rows: CASE_as_written and CASE_replaced. BENCH_SHAPES lists the\n"
        "cases to measure, such as bert_layer; by default all. RONDO_CPU_WORKERS=1 taskset -c 1 rondo_bench patterns\n"
        "measures one thread.\n\n"
        "BENCH_DEVICE: the device; default cpu",
    .program = run,
};
