/* SPDX-License-Identifier: MIT
 * Matrix products of a tile: plain C, libraries and the kernel for few rows compared with the definition in double
 * precision, for every storage order, sizes around the edges of blocks, rows that are longer than the tile, and
 * accumulation.
 */
#define _GNU_SOURCE
#include "tensor/operators/matmul/gemm_few_rows.h"
#include "tensor/vendor/compute_libraries.h"

#include <dlfcn.h>
#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/environment.h"
#include "base/numbers/half_float.h"

#include "support/rondo_test.h"
#include "tensor/operators/common/vectors.h"
#include "unit/tensor/reference.h"

enum { MOST = 40 * 300 };

static float a[MOST], b[MOST], c[MOST];
static double exact_a[MOST], exact_b[MOST], exact_c[MOST];

static void fill(float *values, uint64_t seed) {
  for (size_t i = 0; i < MOST; i++) values[i] = (float)test_random_below(&seed, 2001) / 1000.0f - 1.0f;
}

/* Stored rows to rows without what lies between them. */
static void pack(const float *from, size_t rows, size_t columns, size_t stride, double *to) {
  for (size_t i = 0; i < rows; i++) {
    for (size_t j = 0; j < columns; j++) to[i * columns + j] = (double)from[i * stride + j];
  }
}

static void check(const rondo_gemm *g, void (*multiply)(const rondo_gemm *)) {
  const size_t m = g->m, n = g->n, k = g->k;
  fill(c, 3);
  float before[MOST];
  memcpy(before, c, sizeof c);
  pack(g->a.at, g->a.is_transposed ? k : m, g->a.is_transposed ? m : k, g->a.stride, exact_a);
  pack(g->b.at, g->b.is_transposed ? n : k, g->b.is_transposed ? k : n, g->b.stride, exact_b);
  reference_matmul(exact_a, exact_b, NULL, m, n, k, g->a.is_transposed, g->b.is_transposed, exact_c);
  multiply(g);
  for (size_t i = 0; i < MOST; i++) {
    const size_t row = i / g->c.stride, column = i % g->c.stride;
    const bool inside = row < m && column < n;
    const double wanted =
        !inside ? (double)before[i] : exact_c[row * n + column] + (g->c.accumulates ? (double)before[i] : 0.0);
    if (fabs((double)c[i] - wanted) > 2e-5) {
      fail_msg("%zu x %zu x %zu, element %zu: %.9g, not %.9g", m, n, k, i, (double)c[i], wanted);
    }
  }
}

static void check_all(void (*multiply)(const rondo_gemm *)) {
  static const size_t sizes[][3] = {{1, 1, 1},    {4, 8, 1},     {3, 7, 5},     {5, 9, 17},
                                    {12, 16, 40}, {1, 33, 9},    {33, 1, 13},   {8, 8, 256},
                                    {6, 10, 257}, {37, 29, 100}, {64, 64, 128}, {90, 70, 101}};
  fill(a, 1);
  fill(b, 2);
  for (size_t s = 0; s < sizeof sizes / sizeof sizes[0]; s++) {
    for (unsigned way = 0; way < 16; way++) {
      const size_t m = sizes[s][0], n = sizes[s][1], k = sizes[s][2], wider = (way & 8) != 0 ? 3 : 0;
      const bool across_a = (way & 1) != 0, across_b = (way & 2) != 0;
      const rondo_gemm g = {m,
                            n,
                            k,
                            .a = {a, (across_a ? m : k) + wider, across_a},
                            .b = {b, (across_b ? k : n) + wider, across_b},
                            .c = {c, n + wider, (way & 4) != 0}};
      check(&g, multiply);
    }
  }
}

UNIT_TEST(test_plain_products) { check_all(rondo_gemm_plain); }

/* With the library that is in use here, which the message names; without one this is plain C again. */
UNIT_TEST(test_products_in_use) {
  rondo_gemm_prepare();
  rondo_gemm_prepare();
  print_message("products from '%s' and '%s'\n", rondo_onednn_products.file.path, rondo_cblas.file.path);
  check_all(rondo_gemm_run);
}

static void use_vectors(const char *widest) {
  assert_int_equal(widest == NULL ? unsetenv("RONDO_CPU_VECTORS") : setenv("RONDO_CPU_VECTORS", widest, 1), 0);
  rondo_options_reload();
  (void)rondo_vectors_choose();
}

/* The product of a row and a matrix, at every vector width. */
UNIT_TEST(test_products_of_a_row) {
  static const char *const widths[] = {"plain", "avx2", "avx512"};
  static const size_t sizes[][2] = {{1, 1}, {3, 5}, {70, 33}, {33, 70}, {100, 101}};
  fill(a, 1);
  fill(b, 2);
  for (size_t i = 0; i < sizeof widths / sizeof *widths; i++) {
    use_vectors(widths[i]);
    for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++) {
      for (unsigned way = 0; way < 8; way++) {
        const size_t n = sizes[s][0], k = sizes[s][1];
        const bool across_a = (way & 1) != 0, across_b = (way & 2) != 0;
        const rondo_gemm g = {1,
                              n,
                              k,
                              .a = {a, across_a ? 1 : k + 2, across_a},
                              .b = {b, (across_b ? k : n) + 3, across_b},
                              .c = {c, n, (way & 4) != 0}};
        assert_true(rondo_gemm_is_own(&g));
        check(&g, rondo_gemm_row);
      }
    }
  }
  use_vectors(NULL);
}

static size_t check_thin(size_t m, size_t n, size_t k, bool accumulates) {
  const rondo_gemm g = {m, n, k, .a = {a, k + 2, false}, .b = {b, k + 3, true}, .c = {c, n + 1, accumulates}};
  if (!rondo_gemm_is_thin(&g)) return 0;
  check(&g, rondo_gemm_thin);
  return 1;
}

/* All numbers of rows of a tile, columns that make no whole tile, and depths that make no whole vector. */
UNIT_TEST(test_products_of_few_rows) {
  static const char *const widths[] = {"avx2", "avx512"};
  static const size_t columns[] = {1, 3, 4, 7, 12}, depths[] = {32, 39, 48, 300};
  size_t checked = 0;
  fill(a, 1);
  fill(b, 2);
  for (size_t i = 0; i < 2; i++) {
    use_vectors(widths[i]);
    for (size_t m = 1; m <= 33; m++)
      for (size_t j = 0; j < 5; j++) checked += check_thin(m, columns[j], depths[(m + j) % 4], (m + j) % 3 == 0);
  }
  use_vectors(NULL);
  if (checked == 0) print_message("the processor has neither AVX2 nor AVX-512\n");
}

/* Others are left to libraries, and so are all without vectors. */
UNIT_TEST(test_which_products_have_few_rows) {
  rondo_gemm g = {8, 16, 64, .a = {a, 64, false}, .b = {b, 64, true}, .c = {c, 16, false}};
  const bool has = rondo_gemm_is_thin(&g);
  g.m = 33;
  assert_false(rondo_gemm_is_thin(&g));
  g.m = 8;
  g.k = 31;
  assert_false(rondo_gemm_is_thin(&g));
  g.k = 64;
  g.b = (rondo_gemm_factor){b, 16, false};
  assert_false(rondo_gemm_is_thin(&g));
  g.b = (rondo_gemm_factor){b, 64, true};
  assert_int_equal(rondo_gemm_is_thin(&g), has);
  use_vectors("plain");
  const bool has_plain = rondo_gemm_is_thin(&g);
  use_vectors(NULL);
  assert_false(has_plain);
}

static uint16_t halves[2][MOST];

static void multiply_bf16(const rondo_gemm *g) {
  const rondo_gemm_bf16 product = {g->m,
                                   g->n,
                                   g->k,
                                   .a = {halves[0], g->a.stride, g->a.is_transposed},
                                   .b = {halves[1], g->b.stride, g->b.is_transposed},
                                   .c = g->c};
  for (size_t i = 0; i < MOST; i++) halves[0][i] = rondo_to_bf16(a[i]), halves[1][i] = rondo_to_bf16(b[i]);
  assert_true(rondo_gemm_run_bf16(&product));
}

/* Whole numbers are the same in BF16. */
UNIT_TEST(test_products_of_bf16) {
  rondo_gemm_prepare();
  if (!rondo_gemm_is_for_bf16(64, 64, 64)) {
    print_message("the processor or oneDNN has no products of BF16\n");
    skip();
  }
  for (unsigned way = 0; way < 8; way++) {
    const size_t m = 37, n = 83, k = 111;
    const bool across_a = (way & 1) != 0, across_b = (way & 2) != 0;
    for (size_t i = 0; i < MOST; i++) a[i] = (float)(i % 17) - 8, b[i] = (float)(i % 13) - 6;
    const rondo_gemm g = {m,
                          n,
                          k,
                          .a = {a, (across_a ? m : k) + 2, across_a},
                          .b = {b, (across_b ? k : n) + 2, across_b},
                          .c = {c, n + 3, (way & 4) != 0}};
    check(&g, multiply_bf16);
  }
}

UNIT_TEST(test_bf16_of_narrower_vectors_is_converted) {
  rondo_gemm_prepare();
  const bool has = rondo_gemm_is_for_bf16(64, 64, 64);
  use_vectors("avx2");
  const bool has_narrow = rondo_gemm_is_for_bf16(64, 64, 64);
  use_vectors(NULL);
  assert_false(has_narrow);
  assert_int_equal(rondo_gemm_is_for_bf16(64, 64, 64), has);
  assert_false(rondo_gemm_is_for_bf16(8, 8, 8)); /* too small */
}

/* Too large for a library that is asked for small ones alone. */
static rondo_gemm large_product(float *to) {
  return (rondo_gemm){100, 90, 100, .a = {a, 100, false}, .b = {b, 90, false}, .c = {to, 90, false}};
}

static void *multiply_once(void *to) {
  const rondo_gemm g = large_product(to);
  rondo_gemm_run(&g);
  return NULL;
}

UNIT_TEST(test_threads_give_the_same_bits) {
  static float others[100 * 90];
  pthread_t thread;
  rondo_gemm_prepare();
  fill(a, 1);
  fill(b, 2);
  assert_int_equal(pthread_create(&thread, NULL, multiply_once, others), 0);
  (void)multiply_once(c);
  assert_int_equal(pthread_join(thread, NULL), 0);
  assert_memory_equal(c, others, sizeof others);
}

/* A product uses its caller's thread alone and leaves the caller's number of OpenMP threads as it is. */
UNIT_TEST(test_openmp_threads_are_put_back) {
  void *openmp = dlopen("libgomp.so.1", RTLD_NOW | RTLD_LOCAL);
  if (openmp == NULL) skip();
  void *symbols[] = {dlsym(openmp, "omp_set_num_threads"), dlsym(openmp, "omp_get_max_threads")};
  void (*set_threads)(int);
  int (*get_threads)(void);
  memcpy(&set_threads, &symbols[0], sizeof set_threads);
  memcpy(&get_threads, &symbols[1], sizeof get_threads);
  rondo_gemm_prepare();
  set_threads(3);
  (void)multiply_once(c);
  assert_int_equal(get_threads(), 3);
}
