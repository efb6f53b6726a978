/* SPDX-License-Identifier: MIT
 * Which kernel computes a product on CUDA, and in which tiles: by the shapes alone, or as RONDO_CUDA_TILE says. Tiles
 * of BF16 on a CPU, also without memory for the library.
 */
#define _GNU_SOURCE
#include <stdlib.h>

#include "base/environment.h"
#include "base/numbers/half_float.h"
#include "support/rondo_test.h"
#include "tensor/operators/matmul/gemm.h"
#include "tensor/operators/matmul/matmul_problem.h"
#include "tensor/vendor/onednn.h"

static rondo_matmul_problem problem_of(size_t batches, size_t m, size_t k, size_t n, bool transpose_a) {
  const rondo_shape a = {RONDO_F32, 3, {batches, transpose_a ? k : m, transpose_a ? m : k}};
  const rondo_shape b = {RONDO_F32, 3, {batches, k, n}};
  return rondo_matmul_problem_of(&a, &b, transpose_a, false);
}

static const struct {
  size_t batches, m, k, n;
  rondo_matmul_form form;
  size_t rows;
} rows[] = {
    {400, 27, 16, 27, RONDO_MATMUL_SMALL, 32},     /* no tile is larger than a matrix wants */
    {400, 27, 33, 27, RONDO_MATMUL_TILES, 32},     /* deep */
    {1, 400, 745, 512, RONDO_MATMUL_TILES, 32},    /* 208 tiles */
    {1, 400, 512, 256, RONDO_MATMUL_TILES, 32},    /* 104 */
    {1, 400, 256, 64, RONDO_MATMUL_SMALL, 16},     /* too few of 32 */
    {1, 400, 256, 1, RONDO_MATMUL_THIN, 8},        /* a row a warp */
    {1, 1024, 256, 512, RONDO_MATMUL_TILES, 64},   /* 128 */
    {1, 4096, 256, 1024, RONDO_MATMUL_TILES, 128}, /* 256 */
    {1, 100000, 64, 16, RONDO_MATMUL_SMALL, 16},   /* narrow */
};

DEVICE_TEST(test_cuda_cut) {
  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
    rondo_matmul_problem p = problem_of(rows[i].batches, rows[i].m, rows[i].k, rows[i].n, false);
    const rondo_matmul_work work = rondo_matmul_cut(&p, RONDO_F32, true);
    assert_int_equal(work.form, rows[i].form);
    assert_int_equal(p.tiles.rows, rows[i].rows);
    assert_int_equal(work.blocks, p.batches * p.tiles.down * p.tiles.across);
    assert_true(p.tiles.down * p.tiles.rows >= p.m && p.tiles.across * p.tiles.columns >= p.n);
  }
}

/* Columns of a transposed a are not rows of memory, which a warp could take. */
DEVICE_TEST(test_thin_rows_lie_in_memory) {
  rondo_matmul_problem p = problem_of(1, 400, 256, 1, true);
  assert_int_equal(rondo_matmul_cut(&p, RONDO_F32, true).form, RONDO_MATMUL_SMALL);
  assert_int_equal(rondo_matmul_cut(&p, RONDO_F32, false).form, RONDO_MATMUL_TILES);
}

DEVICE_TEST(test_tiles_that_are_asked_for) {
  static const char *const asked[] = {"16", "32", "64", "128"};
  for (size_t i = 0; i < sizeof asked / sizeof asked[0]; i++) {
    rondo_matmul_problem p = problem_of(3, 40, 50, 4, false);
    assert_int_equal(setenv("RONDO_CUDA_TILE", asked[i], 1), 0);
    rondo_options_reload();
    const rondo_matmul_form form = rondo_matmul_cut(&p, RONDO_F32, true).form;
    unsetenv("RONDO_CUDA_TILE");
    rondo_options_reload();
    assert_int_equal(form, i == 0 ? RONDO_MATMUL_SMALL : RONDO_MATMUL_TILES);
    assert_int_equal(p.tiles.rows, strtoul(asked[i], NULL, 10));
  }
}

/* BF16 on a CPU ---------------------------------------------------------------------------------------------------- */

enum { M = 301, N = 290, K = 170 };

static int have_no_memory(char transpose_a, char transpose_b, int64_t m, int64_t n, int64_t k, float alpha,
                          const uint16_t *a, int64_t a_stride, const uint16_t *b, int64_t b_stride, float beta,
                          float *c, int64_t c_stride) {
  (void)transpose_a, (void)transpose_b, (void)m, (void)n, (void)k, (void)alpha, (void)a, (void)a_stride, (void)b;
  (void)b_stride, (void)beta, (void)c, (void)c_stride;
  return ONEDNN_NO_MEMORY;
}

/* Whole numbers, whose sums are exact: every way has the same bits. */
static void multiply(bool transpose_a, bool is_for_bf16, uint16_t *y) {
  static uint16_t a[M * K], b[K * N], bias[N];
  const rondo_shape a_shape = {RONDO_BF16, 2, {transpose_a ? K : M, transpose_a ? M : K}};
  const rondo_shape b_shape = {RONDO_BF16, 2, {K, N}};
  rondo_matmul_problem p = rondo_matmul_problem_of(&a_shape, &b_shape, transpose_a, false);
  void *arrays[] = {a, b, bias, y, NULL}, *args[6] = {&p};
  for (size_t i = 0; i < M * K; i++) a[i] = rondo_to_bf16((float)(i % 11) - 5);
  for (size_t i = 0; i < K * N; i++) b[i] = rondo_to_bf16((float)(i % 7) - 3);
  for (size_t i = 0; i < N; i++) bias[i] = rondo_to_bf16((float)(i % 5));
  for (size_t i = 0; i < 5; i++) args[1 + i] = &arrays[i];
  p.is_for_bf16 = is_for_bf16;
  const rondo_grid grid = {.x = rondo_matmul_cut(&p, RONDO_BF16, false).blocks};
  rondo_matmul_cpu(RONDO_BF16, (rondo_blocks){.first = 0, .last = grid.x, .grid = grid}, args);
}

DEVICE_TEST(test_tiles_of_bf16) {
  static uint16_t converted[M * N], as_it_is[M * N], without_memory[M * N];
  rondo_gemm_prepare();
  if (!rondo_gemm_is_for_bf16(M, N, K)) {
    print_message("the processor or oneDNN has no products of BF16\n");
    skip();
  }
  for (int transpose_a = 0; transpose_a < 2; transpose_a++) {
    multiply(transpose_a != 0, false, converted);
    multiply(transpose_a != 0, true, as_it_is);
    assert_memory_equal(converted, as_it_is, sizeof converted);
    onednn_products_api *api = &rondo_onednn_product_api;
    const onednn_products_api kept = *api;
    api->gemm_bf16 = have_no_memory;
    multiply(transpose_a != 0, true, without_memory);
    *api = kept;
    assert_memory_equal(converted, without_memory, sizeof converted);
  }
}
