/* SPDX-License-Identifier: MIT
 * Tiles of products with a quantised matrix on a CPU, each by one thread. Some columns of 16 rows of the matrix become
 * a panel of floats (quantized_panel.h), which gemm_packed.h multiplies with all rows of the tile while it is in the
 * nearest cache. A library would pack the panel again. Threads: any.
 */
#include <string.h>

#include "tensor/operators/quantized/matmul_quantized.h"
#include "tensor/operators/quantized/quantized_panel.h"

#define EDGE RONDO_MATMUL_CONVERTED_EDGE
#define DEPTH 256 /* of a panel: a multiple of RONDO_QUANTIZED_STEP */

typedef struct tile_factors {
  rondo_type type;
  const void *x;
  rondo_quantized_scheme rows_scheme; /* of rows as integers */
  rondo_quantized_matrix rows;        /* values NULL: x is used */
  const rondo_quantized_scheme *scheme;
  rondo_quantized_matrix matrix;
} tile_factors;

typedef struct tile {
  size_t row, rows, column, columns;
} tile;

/* x[row ..][from ..] as floats, in the panel, whose rows lie side by side: in x, they may share a set of the cache. */
static void load_left(const tile_factors *f, const tile *t, size_t from, size_t depth, float *panel) {
  for (size_t i = 0; i < t->rows; i++) {
    float *to = panel + i * depth;
    if (f->rows.values != NULL) {
      rondo_dequantize_row(&f->rows_scheme, &f->rows, t->row + i, from, depth, to);
      continue;
    }
    const float *row = rondo_load_chunk(f->type, f->x, (t->row + i) * f->scheme->columns + from, depth, to);
    if (row != to) memcpy(to, row, depth * sizeof *to);
  }
}

static void add_panels(const tile_factors *f, const tile *t, size_t from, float *sums) {
  float left[EDGE * DEPTH], panel[RONDO_PANEL * DEPTH];
  const size_t depth = rondo_smaller(DEPTH, f->scheme->columns - from);
  load_left(f, t, from, depth, left);
  for (size_t j = 0; j < t->columns; j += RONDO_PANEL) {
    const size_t columns = rondo_smaller(RONDO_PANEL, t->columns - j);
    rondo_quantized_panel(f->scheme, &f->matrix, t->column + j, from, depth, panel);
    rondo_gemm_run_packed(&(rondo_gemm_packed){.m = t->rows,
                                               .n = columns,
                                               .k = depth,
                                               .a = {left, depth, false},
                                               .packed = panel,
                                               .c = {sums + j, t->columns, true}});
  }
}

static void multiply_tile(const tile_factors *f, const tile *t, const void *bias, void *y) {
  float sums[EDGE * EDGE];
  assert(t->rows <= EDGE && t->columns <= EDGE);
  for (size_t i = 0; i < t->rows; i++) {
    float *row = sums + i * t->columns;
    if (bias == NULL) {
      memset(row, 0, t->columns * sizeof *row);
    } else {
      const float *from = rondo_load_chunk(f->type, bias, t->column, t->columns, row);
      if (from != row) memcpy(row, from, t->columns * sizeof *row);
    }
  }
  for (size_t from = 0; from < f->scheme->columns; from += DEPTH) add_panels(f, t, from, sums);
  for (size_t i = 0; i < t->rows; i++) {
    const size_t first = (t->row + i) * f->scheme->rows + t->column;
    rondo_store_floats(f->type, y, first, t->columns, sums + i * t->columns);
  }
}

void rondo_matmul_quantized_cpu(rondo_type type, rondo_blocks blocks, void *const *args) {
  const rondo_matmul_problem *problem = args[0];
  const rondo_quantized_scheme *scheme = args[1];
  const void *bias = RONDO_ARG(const void *, 8);
  void *y = RONDO_ARG(void *, 9);
  const tile_factors factors = {
      .type = type,
      .x = RONDO_ARG(const void *, 2),
      .rows_scheme = rondo_quantized_rows_scheme(problem->m, scheme->columns),
      .rows = {RONDO_ARG(const uint8_t *, 3), RONDO_ARG(const float *, 4), NULL},
      .scheme = scheme,
      .matrix = {RONDO_ARG(const uint8_t *, 5), RONDO_ARG(const float *, 6), RONDO_ARG(const uint8_t *, 7)}};
  RONDO_EACH_TILE(number, blocks, problem->tiles.down * problem->tiles.across) {
    tile t = {.row = number / problem->tiles.across * problem->tiles.rows,
              .column = number % problem->tiles.across * problem->tiles.columns};
    t.rows = rondo_smaller(problem->m - t.row, problem->tiles.rows);
    t.columns = rondo_smaller(problem->n - t.column, problem->tiles.columns);
    multiply_tile(&factors, &t, bias, y);
  }
}
