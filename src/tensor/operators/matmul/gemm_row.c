/* SPDX-License-Identifier: MIT
 * The product of a row and a matrix. It reads each element of the matrix once, so memory limits it, and a library would
 * not be faster; but a process in which all products have one row needs no library. Elements of b are read in the order
 * in which they are stored, some rows at a time. Threads: any.
 */
#include <assert.h>
#include <string.h>

#include "tensor/operators/common/kernel_support.h"
#include "tensor/operators/common/operator_rows.h"
#include "tensor/operators/common/vectors.h"
#include "tensor/operators/matmul/gemm_few_rows.h"

#define TOGETHER 4 /* rows of b: the row of c is loaded and stored once for all of them */

/* c += a · b for 4 rows of b, `stride` elements apart. */
RONDO_VECTORISED(add_four_rows,
                 (const float *restrict a, const float *restrict b, size_t stride, float *restrict c, size_t count),
                 (a, b, stride, c, count)) {
  const float *const second = b + stride, *const third = second + stride, *const fourth = third + stride;
  RONDO_EACH_LANE(i, lane, count, c[i] += (a[0] * b[i] + a[1] * second[i]) + (a[2] * third[i] + a[3] * fourth[i]));
}

static void add_rows(const rondo_gemm *g) {
  const float *const a = g->a.at;
  size_t p = 0;
  for (; p + TOGETHER <= g->k; p += TOGETHER)
    add_four_rows(a + p, g->b.at + p * g->b.stride, g->b.stride, g->c.at, g->n);
  for (; p < g->k; p++) rondo_add_scaled(g->b.at + p * g->b.stride, a[p], g->c.at, g->n);
}

/* sums[j] += the sum of a · row j of b, for 4 rows. */
RONDO_VECTORISED(add_four_dots, (const float *a, const float *b, size_t stride, size_t count, float *sums),
                 (a, b, stride, count, sums)) {
  float parts[TOGETHER][RONDO_LANES] = {{0}};
  RONDO_EACH_LANE(i, lane, count, parts[0][lane] += a[i] * b[i]; parts[1][lane] += a[i] * b[stride + i];
                  parts[2][lane] += a[i] * b[2 * stride + i]; parts[3][lane] += a[i] * b[3 * stride + i]);
  for (size_t j = 0; j < TOGETHER; j++) sums[j] += rondo_join_lanes(parts[j]);
}

RONDO_VECTORISED(add_dot, (const float *a, const float *b, size_t count, float *sum), (a, b, count, sum)) {
  *sum += rondo_row_dot(a, b, count);
}

static void add_dots(const rondo_gemm *g) {
  size_t j = 0;
  for (; j + TOGETHER <= g->n; j += TOGETHER)
    add_four_dots(g->a.at, g->b.at + j * g->b.stride, g->b.stride, g->k, g->c.at + j);
  for (; j < g->n; j++) add_dot(g->a.at, g->b.at + j * g->b.stride, g->k, g->c.at + j);
}

void rondo_gemm_row(const rondo_gemm *gemm) {
  assert(rondo_gemm_is_row(gemm));
  if (!gemm->c.accumulates) memset(gemm->c.at, 0, gemm->n * sizeof *gemm->c.at);
  if (gemm->b.is_transposed)
    add_dots(gemm);
  else
    add_rows(gemm);
}
