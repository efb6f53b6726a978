/* SPDX-License-Identifier: MIT
 * The plain product, after Goto and van de Geijn ("Anatomy of High-Performance Matrix Multiplication", 2008): panels of
 * a and b are packed so that the inner loop reads both in order, and a block of c stays in registers. Every element is
 * summed in the same order wherever the tile's edges lie: panels at the edges are padded with zeros.
 */
#include <string.h>

#include "tensor/operators/matmul/gemm.h"

#define ROWS 4
#define COLUMNS 8
#define DEPTH 256

static size_t smaller(size_t a, size_t b) { return a < b ? a : b; }

/* panel[p][i] = a'(row + i, from + p), zeros past the last row. */
static void pack_a(const rondo_gemm *g, size_t row, size_t from, size_t depth, float (*restrict panel)[ROWS]) {
  const size_t rows = smaller(ROWS, g->m - row);
  for (size_t p = 0; p < depth; p++) {
    for (size_t i = 0; i < ROWS; i++) {
      const size_t at = g->transpose_a ? (from + p) * g->a_stride + row + i : (row + i) * g->a_stride + from + p;
      panel[p][i] = i < rows ? g->a[at] : 0.0f;
    }
  }
}

/* panel[p][j] = b'(from + p, column + j), zeros past the last column. */
static void pack_b(const rondo_gemm *g, size_t column, size_t from, size_t depth, float (*restrict panel)[COLUMNS]) {
  const size_t columns = smaller(COLUMNS, g->n - column);
  for (size_t p = 0; p < depth; p++) {
    for (size_t j = 0; j < COLUMNS; j++) {
      const size_t at = g->transpose_b ? (column + j) * g->b_stride + from + p : (from + p) * g->b_stride + column + j;
      panel[p][j] = j < columns ? g->b[at] : 0.0f;
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
  const size_t rows = smaller(ROWS, g->m - row);
  const size_t columns = smaller(COLUMNS, g->n - column);
  for (size_t i = 0; i < rows; i++) {
    float *c = g->c + (row + i) * g->c_stride + column;
    for (size_t j = 0; j < columns; j++) c[j] += sums[i][j];
  }
}

void rondo_gemm_plain(const rondo_gemm *gemm) {
  float a[DEPTH][ROWS];
  float b[DEPTH][COLUMNS];
  float sums[ROWS][COLUMNS];
  for (size_t row = 0; !gemm->accumulate && row < gemm->m; row++) {
    memset(gemm->c + row * gemm->c_stride, 0, gemm->n * sizeof *gemm->c);
  }
  for (size_t from = 0; from < gemm->k; from += DEPTH) {
    const size_t depth = smaller(DEPTH, gemm->k - from);
    for (size_t column = 0; column < gemm->n; column += COLUMNS) {
      pack_b(gemm, column, from, depth, b);
      for (size_t row = 0; row < gemm->m; row += ROWS) {
        pack_a(gemm, row, from, depth, a);
        multiply(depth, a, b, sums);
        add_block(gemm, row, column, sums);
      }
    }
  }
}
