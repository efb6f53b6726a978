/* SPDX-License-Identifier: MIT
 * The product in plain C, after Goto and van de Geijn ("Anatomy of High-Performance Matrix Multiplication", 2008):
 * panels of a and b are packed so that the inner loop reads both in order, and a block of c stays in registers. Panels
 * at the edges are padded with zeros, so every element is summed in the same order wherever the edges of the tile are.
 * Threads: any.
 */
#include <string.h>

#include "tensor/operators/common/kernel_support.h"
#include "tensor/operators/common/vectors.h"
#include "tensor/operators/matmul/gemm.h"

#define ROWS 4
#define COLUMNS 8
#define DEPTH 256

/* panel[p * width + i] = the factor's element at depth from + p and row (of a') or column (of b') first + i, of which
 * there are `count`; zeros past the last. `runs_along`: whether elements of one depth are neighbours in memory. */
RONDO_INLINE void pack(const rondo_gemm_factor *factor, bool runs_along, size_t first, size_t count, size_t from,
                       size_t depth, size_t width, float *restrict panel) {
  for (size_t p = 0; p < depth; p++) {
    for (size_t i = 0; i < width; i++) {
      const size_t x = first + i, k = from + p;
      panel[p * width + i] =
          x < count ? factor->at[runs_along ? k * factor->stride + x : x * factor->stride + k] : 0.0f;
    }
  }
}

static void multiply(size_t depth, const float (*restrict a)[ROWS], const float (*restrict b)[COLUMNS],
                     float (*restrict sums)[COLUMNS]) {
  float block[ROWS][COLUMNS] = {{0}};
  for (size_t p = 0; p < depth; p++) {
    for (size_t i = 0; i < ROWS; i++) {
      for (size_t j = 0; j < COLUMNS; j++) block[i][j] += a[p][i] * b[p][j];
    }
  }
  memcpy(sums, block, sizeof block);
}

static void add_block(const rondo_gemm *g, size_t row, size_t column, const float (*sums)[COLUMNS]) {
  const size_t rows = rondo_smaller(ROWS, g->m - row);
  const size_t columns = rondo_smaller(COLUMNS, g->n - column);
  for (size_t i = 0; i < rows; i++) {
    float *c = g->c.at + (row + i) * g->c.stride + column;
    for (size_t j = 0; j < columns; j++) c[j] += sums[i][j];
  }
}

void rondo_gemm_plain(const rondo_gemm *gemm) {
  float a[DEPTH][ROWS];
  float b[DEPTH][COLUMNS];
  float sums[ROWS][COLUMNS];
  for (size_t row = 0; !gemm->c.accumulates && row < gemm->m; row++) {
    memset(gemm->c.at + row * gemm->c.stride, 0, gemm->n * sizeof *gemm->c.at);
  }
  for (size_t from = 0; from < gemm->k; from += DEPTH) {
    const size_t depth = rondo_smaller(DEPTH, gemm->k - from);
    for (size_t column = 0; column < gemm->n; column += COLUMNS) {
      pack(&gemm->b, !gemm->b.is_transposed, column, gemm->n, from, depth, COLUMNS, b[0]);
      for (size_t row = 0; row < gemm->m; row += ROWS) {
        pack(&gemm->a, gemm->a.is_transposed, row, gemm->m, from, depth, ROWS, a[0]);
        multiply(depth, a, b, sums);
        add_block(gemm, row, column, sums);
      }
    }
  }
}
