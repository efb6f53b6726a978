/* SPDX-License-Identifier: MIT
 * Tiles of matrix products on a CPU, each by one thread. gemm.h computes F32 tiles in place, and reads BF16 as it is
 * where the processor has instructions for it. Else panels are converted to F32 on the stack, unless the whole factor
 * was converted before. Sums are F32 and rounded once.
 */
#include <assert.h>
#include <string.h>

#include "tensor/operators/elementwise/unary_operators.h"
#include "tensor/operators/matmul/gemm.h"
#include "tensor/operators/matmul/matmul_problem.h"

#define EDGE RONDO_MATMUL_CONVERTED_EDGE
#define DEPTH 128 /* of a panel */

typedef struct tile {
  const rondo_matmul_problem *problem;
  size_t row, column, rows, columns;
  size_t a, b, c; /* the first elements of this product's matrices */
} tile;

static tile tile_at(const rondo_matmul_problem *p, size_t number) {
  const size_t each = p->tiles.across * p->tiles.down;
  size_t product = number / each;
  number %= each;
  tile t = {.problem = p,
            .row = number / p->tiles.across * p->tiles.rows,
            .column = number % p->tiles.across * p->tiles.columns,
            .c = product * p->m * p->n};
  for (size_t i = RONDO_BATCH_DIMENSIONS; i > 0; i--) {
    t.a += product % p->batch[i - 1] * p->a_strides[i - 1];
    t.b += product % p->batch[i - 1] * p->b_strides[i - 1];
    product /= p->batch[i - 1];
  }
  assert(product == 0 && t.row < p->m && t.column < p->n);
  t.rows = rondo_smaller(p->m - t.row, p->tiles.rows);
  t.columns = rondo_smaller(p->n - t.column, p->tiles.columns);
  return t;
}

/* F32 -------------------------------------------------------------------------------------------------------------- */

static void multiply(const tile *t, const float *a, const float *b, const float *bias, float *corner) {
  const rondo_matmul_problem *p = t->problem;
  for (size_t i = 0; bias != NULL && i < t->rows; i++) {
    memcpy(corner + i * p->n, bias + t->column, t->columns * sizeof *bias);
  }
  const bool across_a = p->transpose_a != 0, across_b = p->transpose_b != 0;
  const rondo_gemm gemm = {
      t->rows,
      t->columns,
      p->k,
      .a = {a + t->a + (across_a ? t->row : t->row * p->k), across_a ? p->m : p->k, across_a},
      .b = {b + t->b + (across_b ? t->column * p->k : t->column), across_b ? p->k : p->n, across_b},
      .c = {corner, p->n, bias != NULL}};
  rondo_gemm_run(&gemm);
}

/* Computes the product in `unactivated` if that is kept, else in y. */
static void multiply_singles(const tile *t, const float *a, const float *b, const float *bias, float *y,
                             float *unactivated) {
  const rondo_activation activation = (rondo_activation)t->problem->activation;
  const size_t n = t->problem->n, first = t->c + t->row * n + t->column;
  float *made = activation != RONDO_ACTIVATION_NONE && unactivated != NULL ? unactivated : y;
  float buffer[RONDO_MATMUL_EDGE];
  multiply(t, a, b, bias, made + first);
  for (size_t i = 0; activation != RONDO_ACTIVATION_NONE && i < t->rows; i++) {
    const float *row = made + first + i * n;
    if (made == y) row = memcpy(buffer, row, t->columns * sizeof *buffer);
    rondo_activate(activation, row, y + first + i * n, t->columns);
  }
}

/* Other types ------------------------------------------------------------------------------------------------------ */

/* `rows` rows of `columns` elements as floats; the rows are `stride` apart in memory. */
RONDO_VECTORISED(load_panel,
                 (rondo_type type, const void *memory, size_t first, size_t stride, size_t rows, size_t columns,
                  float *panel),
                 (type, memory, first, stride, rows, columns, panel)) {
  for (size_t i = 0; i < rows; i++)
    (void)rondo_load_chunk(type, memory, first + i * stride, columns, panel + i * columns);
}

/* A part of a factor as floats: in place, or converted into the panel. */
static rondo_gemm_factor factor_of(rondo_type type, const void *memory, size_t first, size_t stride, size_t rows,
                                   size_t columns, float *panel) {
  if (type == RONDO_F32) return (rondo_gemm_factor){(const float *)memory + first, stride, false};
  load_panel(type, memory, first, stride, rows, columns, panel);
  return (rondo_gemm_factor){panel, columns, false};
}

static void add_panels(rondo_type type, const tile *t, const void *a, const void *b, size_t from, size_t depth,
                       float *sums) {
  const rondo_matmul_problem *p = t->problem;
  const rondo_type a_type = p->single_a != 0 ? RONDO_F32 : type, b_type = p->single_b != 0 ? RONDO_F32 : type;
  float left[EDGE * DEPTH], right[EDGE * DEPTH];
  rondo_gemm gemm = {t->rows, t->columns, depth, .c = {sums, t->columns, true}};
  gemm.a = p->transpose_a != 0 ? factor_of(a_type, a, t->a + from * p->m + t->row, p->m, depth, t->rows, left)
                               : factor_of(a_type, a, t->a + t->row * p->k + from, p->k, t->rows, depth, left);
  gemm.b = p->transpose_b != 0 ? factor_of(b_type, b, t->b + t->column * p->k + from, p->k, t->columns, depth, right)
                               : factor_of(b_type, b, t->b + from * p->n + t->column, p->n, depth, t->columns, right);
  gemm.a.is_transposed = p->transpose_a != 0;
  gemm.b.is_transposed = p->transpose_b != 0;
  rondo_gemm_run(&gemm);
}

/* Rounds the sums to y, through the activation if there is one, and to `unactivated`. */
RONDO_VECTORISED(store_sums, (rondo_type type, const tile *t, const float *sums, void *y, void *unactivated),
                 (type, t, sums, y, unactivated)) {
  const rondo_matmul_problem *p = t->problem;
  float buffer[RONDO_MATMUL_BF16_EDGE];
  for (size_t i = 0; i < t->rows; i++) {
    const float *row = sums + i * t->columns;
    const size_t first = t->c + (t->row + i) * p->n + t->column;
    if (unactivated != NULL) rondo_store_chunk(type, unactivated, first, t->columns, row);
    if (p->activation != RONDO_ACTIVATION_NONE) {
      rondo_activate((rondo_activation)p->activation, row, buffer, t->columns);
      row = buffer;
    }
    rondo_store_chunk(type, y, first, t->columns, row);
  }
}

/* Sums begin with the bias, or 0. */
static void begin_sums(rondo_type type, const tile *t, const void *bias, float *sums) {
  for (size_t i = 0; i < t->rows; i++) {
    float *row = sums + i * t->columns;
    if (bias == NULL) {
      memset(row, 0, t->columns * sizeof *row);
    } else {
      (void)rondo_load_chunk(type, bias, t->column, t->columns, row);
    }
  }
}

static void multiply_others(rondo_type type, const tile *t, const void *a, const void *b, const void *bias, void *y,
                            void *unactivated) {
  float sums[EDGE * EDGE];
  assert(t->rows <= EDGE && t->columns <= EDGE);
  begin_sums(type, t, bias, sums);
  const size_t k = t->problem->k, most = t->problem->single_a != 0 && t->problem->single_b != 0 ? k : DEPTH;
  for (size_t from = 0; from < k; from += most) add_panels(type, t, a, b, from, rondo_smaller(most, k - from), sums);
  store_sums(type, t, sums, y, unactivated);
}

/* BF16 as it is ---------------------------------------------------------------------------------------------------- */

static bool add_product(const tile *t, const uint16_t *a, const uint16_t *b, float *sums) {
  const rondo_matmul_problem *p = t->problem;
  const bool across_a = p->transpose_a != 0, across_b = p->transpose_b != 0;
  const rondo_gemm_bf16 gemm = {
      t->rows,
      t->columns,
      p->k,
      .a = {a + t->a + (across_a ? t->row : t->row * p->k), across_a ? p->m : p->k, across_a},
      .b = {b + t->b + (across_b ? t->column * p->k : t->column), across_b ? p->k : p->n, across_b},
      .c = {sums, t->columns, true}};
  return rondo_gemm_run_bf16(&gemm);
}

/* If the library has no memory, the tile is divided into those that panels are converted for. */
static void multiply_bf16(const tile *t, const void *a, const void *b, const void *bias, void *y, void *unactivated) {
  float sums[RONDO_MATMUL_BF16_EDGE * RONDO_MATMUL_BF16_EDGE];
  assert(t->rows <= RONDO_MATMUL_BF16_EDGE && t->columns <= RONDO_MATMUL_BF16_EDGE);
  begin_sums(RONDO_BF16, t, bias, sums);
  if (add_product(t, a, b, sums)) {
    store_sums(RONDO_BF16, t, sums, y, unactivated);
    return;
  }
  for (size_t row = 0; row < t->rows; row += EDGE) {
    for (size_t column = 0; column < t->columns; column += EDGE) {
      tile part = *t;
      part.row += row;
      part.column += column;
      part.rows = rondo_smaller(t->rows - row, EDGE);
      part.columns = rondo_smaller(t->columns - column, EDGE);
      multiply_others(RONDO_BF16, &part, a, b, bias, y, unactivated);
    }
  }
}

void rondo_matmul_cpu(rondo_type type, rondo_blocks blocks, void *const *args) {
  const rondo_matmul_problem *problem = args[0];
  const void *a = RONDO_ARG(const void *, 1);
  const void *b = RONDO_ARG(const void *, 2);
  const void *bias = RONDO_ARG(const void *, 3);
  void *y = RONDO_ARG(void *, 4);
  void *unactivated = RONDO_ARG(void *, 5);
  const size_t tiles = problem->batches * problem->tiles.down * problem->tiles.across;
  RONDO_EACH_TILE(number, blocks, tiles) {
    const tile t = tile_at(problem, number);
    if (type == RONDO_F32) {
      multiply_singles(&t, a, b, bias, y, unactivated);
    } else if (problem->is_for_bf16 != 0) {
      multiply_bf16(&t, a, b, bias, y, unactivated);
    } else {
      multiply_others(type, &t, a, b, bias, y, unactivated);
    }
  }
}
