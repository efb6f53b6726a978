/* SPDX-License-Identifier: MIT
 * rondo_bench matmul: matrix products on a CPU: a program that is one matmul, and the call of CBLAS alone on the
 * calling thread, in alternation on the same numbers.
 */
#define _GNU_SOURCE
#include <dlfcn.h>

#include "bench_check.h"
#include "measure.h"
#include "rondo_bench.h"

enum { MOST_SAMPLES = 4000 };

static const size_t sizes[][3] = {{64, 64, 64},       {256, 256, 256},  {512, 512, 512},
                                  {1024, 1024, 1024}, {1024, 512, 128}, {2048, 64, 512}};

typedef void (*sgemm_function)(int order, int transpose_a, int transpose_b, int m, int n, int k, float alpha,
                               const float *a, int a_stride, const float *b, int b_stride, float beta, float *c,
                               int c_stride);

typedef struct product {
  size_t m, n, k;
  float *a, *b, *c;
  sgemm_function sgemm;
  rondo_compiled *compiled;
} product;

/* After the program was compiled, which has told the library to use one thread. */
static sgemm_function find_sgemm(void) {
  void *library = dlopen("libopenblas.so.0", RTLD_NOW | RTLD_LOCAL);
  void *symbol = library == NULL ? NULL : dlsym(library, "cblas_sgemm");
  sgemm_function sgemm;
  if (symbol == NULL) check_tool(tool_fail("there is no libopenblas.so.0 to compare with"));
  memcpy(&sgemm, &symbol, sizeof sgemm);
  return sgemm;
}

static float *make_numbers(size_t count, uint64_t seed) {
  float *numbers = bench_zeroed(count, sizeof *numbers);
  for (size_t i = 0; i < count; i++) numbers[i] = (float)bench_random_below(&seed, 2001) / 1000.0f - 1.0f;
  return numbers;
}

static product make_product(const size_t size[3]) {
  product p = {.m = size[0], .n = size[1], .k = size[2]};
  rondo_device *device = NULL;
  rondo_program *program = NULL;
  rondo_value a, b, c;
  p.a = make_numbers(p.m * p.k, 1);
  p.b = make_numbers(p.k * p.n, 2);
  p.c = bench_zeroed(p.m * p.n, sizeof *p.c);
  check(rondo_device_open("cpu", NULL, &device));
  check(rondo_program_create(NULL, &program));
  check(rondo_program_input(program, "a", RONDO_F32, (const size_t[]){p.m, p.k}, 2, &a));
  check(rondo_program_input(program, "b", RONDO_F32, (const size_t[]){p.k, p.n}, 2, &b));
  check(rondo_op_matmul(program, a, b, (rondo_value){0}, &c));
  check(rondo_program_output(program, "c", c));
  check(rondo_compile(program, device, NULL, &p.compiled));
  check(rondo_compiled_write(p.compiled, "a", p.a, p.m * p.k * sizeof *p.a));
  check(rondo_compiled_write(p.compiled, "b", p.b, p.k * p.n * sizeof *p.b));
  rondo_program_destroy(program);
  p.sgemm = find_sgemm();
  return p;
}

static double time_rondo(const product *p) {
  const uint64_t start = clock_ns();
  check(rondo_compiled_run(p->compiled));
  check(rondo_compiled_synchronize(p->compiled));
  return (double)(clock_ns() - start);
}

static double time_cblas(const product *p) {
  const uint64_t start = clock_ns();
  p->sgemm(101, 111, 111, (int)p->m, (int)p->n, (int)p->k, 1, p->a, (int)p->k, p->b, (int)p->n, 0, p->c, (int)p->n);
  return (double)(clock_ns() - start);
}

static void measure_product(const size_t size[3]) {
  const uint64_t budget_ns = 4 * (uint64_t)bench_setting("BENCH_BUDGET_MS", 150) * 1000000u;
  const product p = make_product(size);
  samples rondo = bench_samples(MOST_SAMPLES), cblas = bench_samples(MOST_SAMPLES);
  char measure[64];
  for (int turn = 0; turn < 2; turn++) { /* the first warms up */
    const uint64_t end = clock_ns() + (turn == 0 ? budget_ns / 10 : budget_ns);
    rondo.count = cblas.count = 0;
    do {
      samples_add(&rondo, time_rondo(&p));
      samples_add(&cblas, time_cblas(&p));
    } while (clock_ns() < end && !samples_are_full(&rondo));
  }
  snprintf(measure, sizeof measure, "matmul_%zux%zux%zu_rondo", p.m, p.n, p.k);
  bench_report_value(measure, "ns", &rondo);
  snprintf(measure, sizeof measure, "matmul_%zux%zux%zu_cblas", p.m, p.n, p.k);
  bench_report_value(measure, "ns", &cblas);
  bench_child_end();
}

static int run(int argc, char **argv) {
  (void)argc;
  (void)argv;
  bench_begin("rondo_bench matmul", rondo_version());
  for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
    if (bench_child()) measure_product(sizes[i]);
  }
  return bench_end();
}

const benchmark bench_matmul = {
    .name = "matmul",
    .summary = "matrix products on a CPU: by a program, and by CBLAS alone",
    .description =
        "Measures matrix products on a CPU, in alternation on the same numbers. Rows:\n"
        "\n"
        "matmul_MxNxK_rondo: a recorded program that is one matmul, until it is complete\n"
        "\n"
        "matmul_MxNxK_cblas: cblas_sgemm of libopenblas.so.0, told to use one thread\n"
        "\n"
        "On one processor (RONDO_CPU_WORKERS=1 taskset -c 1 rondo_bench matmul) both have\n"
        "the same for the arithmetic, and what is left is what tiles cost.",
    .program = run,
};
