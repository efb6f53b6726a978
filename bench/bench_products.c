/* SPDX-License-Identifier: MIT
 * rondo_bench products: matrix products on a CUDA device, by each way there is of making them: own kernels with the
 * tiles that the shape gives and with tiles of each size, and cuBLASLt. A product is timed in a recorded program that
 * makes it many times, one after the other, so that a row is its share of the graph's time.
 */
#define _GNU_SOURCE
#include "bench_check.h"
#include "measure.h"
#include "rondo_bench.h"

enum { COPIES = 32, MOST_SAMPLES = 1000 };

typedef struct product {
  size_t batches, m, k, n;
  bool transpose_b;
} product;

/* Of a recommender at several numbers of rows, of small language models, and of what lies between. */
static const product products[] = {
    {400, 27, 16, 27, true},   {64, 27, 16, 27, true},     {1, 400, 745, 512, false},  {1, 64, 745, 512, false},
    {1, 400, 512, 256, false}, {1, 400, 256, 64, false},   {1, 400, 64, 16, false},    {1, 400, 256, 1, false},
    {1, 400, 13, 512, false},  {1, 4096, 256, 4, false},   {1, 1, 768, 768, false},    {1, 8, 768, 3072, false},
    {1, 256, 256, 256, false}, {1, 512, 512, 512, false},  {1, 1024, 256, 256, false}, {1, 1024, 1024, 128, false},
    {48, 128, 64, 128, true},  {1, 1024, 768, 768, false},
};
enum { PRODUCTS = sizeof products / sizeof products[0] };

/* What the environment of a child says: the library's name or none, the least it makes, the tile. */
static const struct {
  const char *name, *library, *least, *tile;
} ways[] = {{"own", "none", "", ""},      {"tile16", "none", "", "16"},   {"tile32", "none", "", "32"},
            {"tile64", "none", "", "64"}, {"tile128", "none", "", "128"}, {"cublaslt", "", "1", ""}};
enum { WAYS = sizeof ways / sizeof ways[0] };

static void name_product(const product *p, char out[64]) {
  snprintf(out, 64, "%zux%zux%zux%zu", p->batches, p->m, p->k, p->n);
}

static void write_numbers(rondo_compiled *compiled, const char *name, size_t count) {
  uint64_t seed = count;
  float *numbers = bench_zeroed(count, sizeof *numbers);
  for (size_t i = 0; i < count; i++) numbers[i] = (float)bench_random_below(&seed, 2001) / 1000.0f - 1.0f;
  check(rondo_compiled_write(compiled, name, numbers, count * sizeof *numbers));
  free(numbers);
}

static rondo_compiled *compile_product(rondo_device *device, const product *p) {
  const size_t a_shape[] = {p->batches, p->m, p->k},
               b_shape[] = {p->batches, p->transpose_b ? p->n : p->k, p->transpose_b ? p->k : p->n};
  rondo_matmul_options options = {RONDO_MATMUL_OPTIONS_INIT, .transpose_b = p->transpose_b};
  const rondo_compile_options one_line = {RONDO_COMPILE_OPTIONS_INIT, .record = RONDO_RECORD_ALWAYS,
                                          .branches = RONDO_BRANCHES_NEVER};
  rondo_program *program = NULL;
  rondo_compiled *compiled = NULL;
  rondo_value a, b, c;
  check(rondo_program_create(NULL, &program));
  check(rondo_program_input(program, "a", RONDO_F32, a_shape, 3, &a));
  check(rondo_program_input(program, "b", RONDO_F32, b_shape, 3, &b));
  for (int i = 0; i < COPIES; i++) {
    char result[16], bias[16];
    snprintf(result, sizeof result, "c%d", i);
    snprintf(bias, sizeof bias, "bias%d", i);
    check(rondo_program_input(program, bias, RONDO_F32, &p->n, 1, &options.bias));
    check(rondo_op_matmul_with(program, a, b, &options, &c));
    check(rondo_program_output(program, result, c));
  }
  check(rondo_compile(program, device, &one_line, &compiled));
  rondo_program_destroy(program);
  write_numbers(compiled, "a", p->batches * p->m * p->k);
  write_numbers(compiled, "b", p->batches * p->k * p->n);
  return compiled;
}

static void time_product(rondo_device *device, const product *p, const char *measure) {
  samples times = bench_samples(MOST_SAMPLES);
  const uint64_t budget_ns = (uint64_t)bench_setting("BENCH_BUDGET_MS", 150) * 1000000u / 8;
  rondo_compiled *compiled = compile_product(device, p);
  for (int turn = 0; turn < 2; turn++) { /* the first warms up */
    const uint64_t end = clock_ns() + budget_ns;
    times.count = 0;
    do {
      const uint64_t start = clock_ns();
      check(rondo_compiled_run(compiled));
      check(rondo_compiled_synchronize(compiled));
      samples_add(&times, (double)(clock_ns() - start) / COPIES);
    } while (clock_ns() < end && !samples_are_full(&times));
  }
  bench_report_value(measure, "ns", &times);
  samples_destroy(&times);
  check(rondo_compiled_destroy(compiled));
}

static void set_way(int way) {
  setenv("RONDO_CUBLASLT_LIBRARY", ways[way].library, 1);
  setenv("RONDO_CUBLASLT_LEAST", ways[way].least, 1);
  setenv("RONDO_CUDA_TILE", ways[way].tile, 1);
}

static void measure_way(int way) {
  rondo_device *device = NULL;
  set_way(way);
  check(rondo_device_open(bench_device(), NULL, &device));
  for (int i = 0; i < PRODUCTS; i++) {
    char name[64], measure[80];
    name_product(&products[i], name);
    snprintf(measure, sizeof measure, "%s_%s", name, ways[way].name);
    if (bench_is_listed("BENCH_SHAPES", name)) time_product(device, &products[i], measure);
  }
  bench_child_end();
}

static int run(int argc, char **argv) {
  (void)argc;
  (void)argv;
  bench_begin("rondo_bench products", rondo_version());
  for (int way = 0; way < WAYS; way++) {
    if (bench_child()) measure_way(way);
  }
  return bench_end();
}

const benchmark bench_products = {
    .name = "products",
    .summary = "matrix products on CUDA: by own kernels and by cuBLASLt",
    .description =
        "Measures matrix products on a CUDA device, by each way there is of making them:\n"
        "own kernels with the tiles that the shape gives and with tiles of each size, and\n"
        "cuBLASLt. On other devices than CUDA's all ways are one. Rows:\n"
        "\n"
        "BxMxKxN_own, _tile16, _tile32, _tile64, _tile128, _cublaslt\n"
        "\n"
        "BENCH_DEVICE: the device; default cpu\n"
        "\n"
        "BENCH_SHAPES: the shapes to measure, as 1x400x745x512; all when not set",
    .program = run,
};
