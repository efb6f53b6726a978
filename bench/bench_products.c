/* SPDX-License-Identifier: MIT
 * rondo_bench products: matrix products in each available implementation, in alternation. On a CUDA device: Rondo's
 * kernels with the tiles that the shape selects, and with tiles of each size, and cuBLASLt. On a CPU: a program that is
 * one product, and CBLAS on the calling thread.
 */
#define _GNU_SOURCE
#include <dlfcn.h>

#include "program_ways.h"
#include "rondo_bench.h"

/* A product of a CUDA device is timed in a program that makes it many times, so that a row is its share of the graph.
 */
enum { COPIES = 32, MOST_SAMPLES = 4000 };

typedef struct product {
  size_t batches, m, k, n;
  bool transpose_b;
} product;

/* Products of a recommender at several numbers of rows, of small language models, and sizes in between. */
static const product products[] = {
    {400, 27, 16, 27, true},   {64, 27, 16, 27, true},     {1, 400, 745, 512, false},  {1, 64, 745, 512, false},
    {1, 400, 512, 256, false}, {1, 400, 256, 64, false},   {1, 400, 64, 16, false},    {1, 400, 256, 1, false},
    {1, 400, 13, 512, false},  {1, 4096, 256, 4, false},   {1, 1, 768, 768, false},    {1, 8, 768, 3072, false},
    {1, 256, 256, 256, false}, {1, 512, 512, 512, false},  {1, 1024, 256, 256, false}, {1, 1024, 1024, 128, false},
    {48, 128, 64, 128, true},  {1, 1024, 768, 768, false},
};
enum { PRODUCTS = sizeof products / sizeof products[0] };

/* The environment of a child: the library's name or none, the smallest product it computes, the tile. */
static const struct {
  const char *name, *library, *least, *tile;
} ways[] = {{"own", "none", "", ""},      {"tile16", "none", "", "16"},   {"tile32", "none", "", "32"},
            {"tile64", "none", "", "64"}, {"tile128", "none", "", "128"}, {"cublaslt", "", "1", ""}};
enum { WAYS = sizeof ways / sizeof ways[0] };

static void name_product(const product *p, char out[64]) {
  snprintf(out, 64, "%zux%zux%zux%zu", p->batches, p->m, p->k, p->n);
}

/* To be freed. */
static float *make_numbers(size_t count) {
  uint64_t seed = count;
  float *numbers = bench_zeroed(count, sizeof *numbers);
  for (size_t i = 0; i < count; i++) numbers[i] = (float)bench_random_below(&seed, 2001) / 1000.0f - 1.0f;
  return numbers;
}

static void write_numbers(rondo_compiled *compiled, const char *name, size_t count) {
  float *numbers = make_numbers(count);
  check(rondo_compiled_write(compiled, name, numbers, count * sizeof *numbers));
  free(numbers);
}

/* The same product this many times; several products have a bias each. */
static rondo_compiled *compile_product(rondo_device *device, const product *p, int copies) {
  const size_t a_shape[] = {p->batches, p->m, p->k},
               b_shape[] = {p->batches, p->transpose_b ? p->n : p->k, p->transpose_b ? p->k : p->n};
  const size_t skipped = p->batches == 1 && copies == 1; /* the product alone is one of matrices */
  rondo_matmul_options options = {RONDO_MATMUL_OPTIONS_INIT, .transpose_b = p->transpose_b};
  const rondo_compile_options one_line = {RONDO_COMPILE_OPTIONS_INIT, .record = RONDO_RECORD_ALWAYS,
                                          .branches = RONDO_BRANCHES_NEVER};
  rondo_program *program = bench_program("product");
  rondo_value a, b, c;
  check(rondo_program_input(program, "a", RONDO_F32, a_shape + skipped, 3 - skipped, &a));
  check(rondo_program_input(program, "b", RONDO_F32, b_shape + skipped, 3 - skipped, &b));
  for (int i = 0; i < copies; i++) {
    char result[16], bias[16];
    snprintf(result, sizeof result, "c%d", i);
    snprintf(bias, sizeof bias, "bias%d", i);
    if (copies > 1) check(rondo_program_input(program, bias, RONDO_F32, &p->n, 1, &options.bias));
    check(rondo_op_matmul_with(program, a, b, &options, &c));
    check(rondo_program_output(program, result, c));
  }
  rondo_compiled *compiled = bench_compile(program, device, copies > 1 ? &one_line : NULL);
  write_numbers(compiled, "a", p->batches * p->m * p->k);
  write_numbers(compiled, "b", p->batches * p->k * p->n);
  return compiled;
}

/* CUDA ------------------------------------------------------------------------------------------------------------ */

static void time_product(rondo_device *device, const product *p, const char *measure) {
  samples times = bench_samples(MOST_SAMPLES);
  const double seconds = 1e-3 / 8 * (double)bench_setting("BENCH_BUDGET_MS", 150);
  rondo_compiled *compiled = compile_product(device, p, COPIES);
  for (int turn = 0; turn < 2; turn++) { /* the first warms up */
    times.count = 0;
    for (rounds r = rounds_begin(seconds, 1, MOST_SAMPLES); rounds_next(&r);)
      samples_add(&times, bench_time_run(compiled) / COPIES);
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

/* CPU ------------------------------------------------------------------------------------------------------------- */

static const product cpu_products[] = {{1, 64, 64, 64, false},     {1, 256, 256, 256, false},
                                       {1, 512, 512, 512, false},  {1, 1024, 1024, 1024, false},
                                       {1, 1024, 128, 512, false}, {1, 2048, 512, 64, false}};

typedef void (*sgemm_function)(int order, int transpose_a, int transpose_b, int m, int n, int k, float alpha,
                               const float *a, int a_stride, const float *b, int b_stride, float beta, float *c,
                               int c_stride);

/* After the program was compiled, which limits the library to one thread. NULL: the library is not installed. This file
 * calls dlopen itself because the loader in src/vendor is internal, and because a baseline must not depend on what it
 * is compared with. */
static sgemm_function find_sgemm(void) {
  void *library = dlopen("libopenblas.so.0", RTLD_NOW | RTLD_LOCAL);
  void *symbol = library == NULL ? NULL : dlsym(library, "cblas_sgemm");
  sgemm_function sgemm;
  memcpy(&sgemm, &symbol, sizeof sgemm);
  return sgemm;
}

static void measure_cpu(const product *p) {
  const double budget = 4e-3 * (double)bench_setting("BENCH_BUDGET_MS", 150);
  const int m = (int)p->m, n = (int)p->n, k = (int)p->k;
  samples rondo = bench_samples(MOST_SAMPLES), cblas = bench_samples(MOST_SAMPLES);
  char measure[64];
  rondo_device *device = NULL;
  check(rondo_device_open("cpu", NULL, &device));
  rondo_compiled *compiled = compile_product(device, p, 1);
  const sgemm_function sgemm = find_sgemm();
  float *a = make_numbers(p->m * p->k), *b = make_numbers(p->k * p->n), *c = bench_zeroed(p->m * p->n, sizeof *c);
  if (!sgemm) check_tool(tool_fail("there is no libopenblas.so.0 to compare with"));
  for (int turn = 0; turn < 2; turn++) { /* the first warms up */
    rondo.count = cblas.count = 0;
    for (rounds r = rounds_begin(turn == 0 ? budget / 10 : budget, 1, MOST_SAMPLES); rounds_next(&r);) {
      samples_add(&rondo, bench_time_run(compiled));
      const uint64_t start = clock_ns();
      sgemm(101, 111, 111, m, n, k, 1, a, k, b, n, 0, c, n);
      samples_add(&cblas, (double)(clock_ns() - start));
    }
  }
  snprintf(measure, sizeof measure, "matmul_%dx%dx%d_rondo", m, n, k);
  bench_report_value(measure, "ns", &rondo);
  snprintf(measure, sizeof measure, "matmul_%dx%dx%d_cblas", m, n, k);
  bench_report_value(measure, "ns", &cblas);
  bench_child_end();
}

static int run(int argc, char **argv) {
  const size_t cpu_count = sizeof cpu_products / sizeof cpu_products[0];
  (void)argc;
  (void)argv;
  bench_begin("rondo_bench products", rondo_version());
  if (strcmp(bench_device(), "cpu") == 0) {
    for (size_t i = 0; i < cpu_count; i++)
      if (bench_child()) measure_cpu(&cpu_products[i]);
  } else {
    for (int way = 0; way < WAYS; way++)
      if (bench_child()) measure_way(way);
  }
  return bench_end();
}

const benchmark bench_products = {
    .name = "products",
    .summary = "matrix products: by cuBLASLt, by CBLAS and by own kernels",
    .description =
        "Measures matrix products.\n\n"
        "On a CUDA device: Rondo's own kernels, with tiles chosen by shape and with each tile size, and cuBLASLt.\n"
        "Rows: BxMxKxN_own, _tile16, _tile32, _tile64, _tile128, _cublaslt. BENCH_SHAPES lists the shapes to\n"
        "measure, such as 1x400x745x512; by default all.\n\n"
        "On a CPU, in alternation: matmul_MxNxK_rondo is a recorded program with one product, until it is\n"
        "complete; matmul_MxNxK_cblas is cblas_sgemm of libopenblas.so.0 on one thread. On one processor\n"
        "(RONDO_CPU_WORKERS=1 taskset -c 1 rondo_bench products), both do the same arithmetic, and the difference\n"
        "is the cost of tiling.\n\n"
        "BENCH_DEVICE: the device; default cpu",
    .program = run,
};
