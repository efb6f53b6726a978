/* SPDX-License-Identifier: MIT
 * rondo_bench quantized: products with a quantised weight, in alternation with the product of F32. Every way is a
 * recorded program of one product, and each round runs all of them.
 */
#define _GNU_SOURCE
#include "program_ways.h"
#include "rondo_bench.h"

typedef struct product {
  size_t m, k, n;
} product;

/* Batch 1 of weights that do not fit in caches, and of smaller ones; few rows, and many. */
static const product products[] = {{1, 4096, 4096}, {1, 4096, 11008}, {1, 1024, 1024},  {4, 4096, 4096},
                                   {8, 4096, 4096}, {16, 4096, 4096}, {32, 4096, 4096}, {128, 4096, 4096}};
enum { PRODUCTS = sizeof products / sizeof products[0] };

/* bits 0: F32, with a weight stored as [k, n], or as [n, k]. */
static const struct {
  const char *name;
  uint32_t bits;
  size_t group;
  rondo_quantized_activations activations;
  bool transpose;
} ways[] = {{"f32", 0, 0, RONDO_QUANTIZED_FLOAT, false},          {"f32_transposed", 0, 0, RONDO_QUANTIZED_FLOAT, true},
            {"int8_row", 8, 0, RONDO_QUANTIZED_FLOAT, false},     {"int8_64", 8, 64, RONDO_QUANTIZED_FLOAT, false},
            {"int8_64_int8", 8, 64, RONDO_QUANTIZED_INT8, false}, {"int4_128", 4, 128, RONDO_QUANTIZED_FLOAT, false},
            {"int4_32", 4, 32, RONDO_QUANTIZED_FLOAT, false},     {"int4_32_int8", 4, 32, RONDO_QUANTIZED_INT8, false}};
enum { WAYS = sizeof ways / sizeof ways[0] };

static void write_state(rondo_compiled *compiled, const char *name) {
  for (size_t i = 0;; i++) {
    rondo_compiled_value value = {0};
    check(rondo_compiled_get_value(compiled, i, &value));
    if (strcmp(value.name, name) != 0) continue;
    uint8_t *bytes = bench_allocate(value.bytes, 1);
    uint64_t seed = value.bytes;
    for (size_t k = 0; k < value.bytes; k++) bytes[k] = (uint8_t)bench_random_below(&seed, 256);
    float *floats = (float *)(void *)bytes;
    for (size_t k = 0; value.type == RONDO_F32 && k < value.bytes / sizeof *floats; k++)
      floats[k] = (float)bench_random_below(&seed, 2001) / 1000.0f - 1.0f;
    check(rondo_compiled_write(compiled, name, bytes, value.bytes));
    free(bytes);
    return;
  }
}

static void add_quantized(rondo_program *program, const product *p, int way, rondo_value x, rondo_value *y) {
  const rondo_quantized_options options = {RONDO_QUANTIZED_OPTIONS_INIT, .bits = ways[way].bits,
                                           .group = ways[way].group, .activations = ways[way].activations};
  size_t row_bytes, groups;
  rondo_value weight, scales;
  check(rondo_quantized_sizes(&options, p->k, &row_bytes, &groups));
  check(rondo_program_state(program, "weight", ways[way].bits == 4 ? RONDO_U8 : RONDO_I8, (size_t[]){p->n, row_bytes},
                            2, &weight));
  check(rondo_program_state(program, "scales", RONDO_F32, (size_t[]){p->n, groups}, 2, &scales));
  check(rondo_op_matmul_quantized(program, x, weight, scales, (rondo_value){0}, &options, y));
}

static rondo_compiled *compile_way(rondo_device *device, const product *p, int way) {
  const bool transpose = ways[way].transpose;
  const size_t shape[] = {transpose ? p->n : p->k, transpose ? p->k : p->n};
  const rondo_matmul_options options = {RONDO_MATMUL_OPTIONS_INIT, .transpose_b = transpose};
  rondo_program *program = bench_program(ways[way].name);
  rondo_value x, weight, y;
  check(rondo_program_input(program, "x", RONDO_F32, (size_t[]){p->m, p->k}, 2, &x));
  if (ways[way].bits == 0) {
    check(rondo_program_state(program, "weight", RONDO_F32, shape, 2, &weight));
    check(rondo_op_matmul_with(program, x, weight, &options, &y));
  } else {
    add_quantized(program, p, way, x, &y);
  }
  check(rondo_program_output(program, "y", y));
  rondo_compiled *compiled = bench_compile(program, device, NULL);
  write_state(compiled, "x");
  write_state(compiled, "weight");
  if (ways[way].bits != 0) write_state(compiled, "scales");
  return compiled;
}

static void measure(const product *p) {
  const rondo_device_options options = {RONDO_DEVICE_OPTIONS_INIT};
  rondo_device *device = NULL;
  program_way measured[WAYS];
  check(rondo_device_open(bench_device(), &options, &device));
  for (int way = 0; way < WAYS; way++) {
    measured[way].compiled = compile_way(device, p, way);
    (void)snprintf(measured[way].name, WAY_NAME, "%zux%zux%zu_%s", p->m, p->k, p->n, ways[way].name);
  }
  bench_measure_ways(measured, WAYS);
  bench_child_end();
}

static int run(int argc, char **argv) {
  (void)argc;
  (void)argv;
  bench_begin("rondo_bench quantized", rondo_version());
  for (size_t i = 0; i < PRODUCTS; i++) {
    char name[64];
    snprintf(name, sizeof name, "%zux%zux%zu", products[i].m, products[i].k, products[i].n);
    if (bench_is_listed("BENCH_SHAPES", name) && bench_child()) measure(&products[i]);
  }
  return bench_end();
}

const benchmark bench_quantized = {
    .name = "quantized",
    .summary = "products with weights of 8 and 4 bits, and of F32",
    .description =
        "Measures products with quantised weights, in alternation with those of F32. Rows: MxKxN_f32 (a weight\n"
        "[k, n]), _f32_transposed ([n, k]), and _intBITS_GROUP, with _int8 at the end if the activations have 8 bits\n"
        "too; the group _row is the whole row. BENCH_SHAPES lists the shapes to measure, such as 1x4096x4096; by\n"
        "default all. RONDO_CPU_WORKERS=1 taskset -c 1 rondo_bench quantized measures one thread.\n\n"
        "BENCH_DEVICE: the device; default cpu",
    .program = run,
};
