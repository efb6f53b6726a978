/* SPDX-License-Identifier: MIT
 * The batch of a matmul and the tiles of its results. The tiles depend on the shape, and on a CPU on the library and
 * the machine. They never depend on the number of workers, and so neither do results. Threads: any.
 */
#include "tensor/operators/matmul/matmul_problem.h"

#include <assert.h>

#include "base/environment.h"
#include "tensor/operators/common/kernel_support.h"
#include "tensor/operators/matmul/gemm.h"

/* Batch ------------------------------------------------------------------------------------------------------------ */

/* Adds a dimension before the others, or merges it with the slowest of them if both factors' strides allow that. */
static void put_dimension(rondo_matmul_problem *p, size_t *used, size_t size, size_t a_stride, size_t b_stride) {
  if (size == 1) return;
  const size_t first = RONDO_BATCH_DIMENSIONS - *used;
  if (*used > 0 && a_stride == p->batch[first] * p->a_strides[first] &&
      b_stride == p->batch[first] * p->b_strides[first]) {
    p->batch[first] *= size;
    return;
  }
  assert(*used < RONDO_BATCH_DIMENSIONS);
  p->batch[first - 1] = size;
  p->a_strides[first - 1] = a_stride;
  p->b_strides[first - 1] = b_stride;
  (*used)++;
}

/* Dimension `back` of the batch, counted from the last; 1 if the shape has none. */
static size_t batch_dimension(const rondo_shape *shape, uint32_t back) {
  return back + 2 < shape->rank ? shape->dims[shape->rank - 3 - back] : 1;
}

static void set_batch(rondo_matmul_problem *p, const rondo_shape *a, const rondo_shape *b) {
  size_t used = 0, a_stride = p->m * p->k, b_stride = p->k * p->n;
  p->batches = 1;
  for (uint32_t i = 0; i < RONDO_BATCH_DIMENSIONS; i++) p->batch[i] = 1;
  for (uint32_t back = 0; back < RONDO_BATCH_DIMENSIONS; back++) {
    const size_t in_a = batch_dimension(a, back), in_b = batch_dimension(b, back);
    const size_t size = in_a > in_b ? in_a : in_b;
    put_dimension(p, &used, size, in_a == 1 ? 0 : a_stride, in_b == 1 ? 0 : b_stride);
    p->batches *= size;
    a_stride *= in_a;
    b_stride *= in_b;
  }
}

/* Merges the rows of all matrices a, which are contiguous, if there is one b. */
static void fold_rows(rondo_matmul_problem *p) {
  const size_t last = RONDO_BATCH_DIMENSIONS - 1;
  if (p->transpose_a != 0 || !rondo_matmul_is_strided(p) || p->b_strides[last] != 0 || p->a_strides[last] == 0) return;
  p->m *= p->batches;
  p->batches = p->batch[last] = 1;
  p->a_strides[last] = 0;
}

bool rondo_matmul_is_strided(const rondo_matmul_problem *problem) {
  return problem->batch[RONDO_BATCH_DIMENSIONS - 1] == problem->batches;
}

rondo_matmul_problem rondo_matmul_problem_of(const rondo_shape *a, const rondo_shape *b, bool transpose_a,
                                             bool transpose_b) {
  rondo_matmul_problem p = {.m = a->dims[a->rank - (transpose_a ? 1 : 2)],
                            .n = b->dims[b->rank - (transpose_b ? 2 : 1)],
                            .k = a->dims[a->rank - (transpose_a ? 2 : 1)],
                            .transpose_a = transpose_a,
                            .transpose_b = transpose_b};
  set_batch(&p, a, b);
  fold_rows(&p);
  return p;
}

/* Tiles ------------------------------------------------------------------------------------------------------------ */

/* The larger a tile, the less often the library packs the same panels again: tiles of 128 took up to a third longer
 * than one call for the whole product. If there are few tiles they are halved, until there are rondo_gemm_tiles of them
 * or they have too little work for a worker. */
#define ENOUGH_PRODUCTS 4194304.0 /* multiplications in a tile: some 50 microseconds */
#define READING 4.0               /* multiplications that take as long as reading an element of b, once a tile */

/* Tile sizes on CUDA, largest first. The first size is taken of which there are enough tiles to keep a large GPU's
 * multiprocessors busy, unless the next smaller size would cover the matrix too. */
static const struct { size_t edge, enough; } cuda_tiles[] = {{128, 128}, {64, 128}, {32, 96}, {16, 0}};

#define SHALLOW_EDGE 32 /* another kernel computes tiles of this edge with a depth of at most ... */
#define SHALLOW 32

/* The same as in matmul_thin.cu. */
#define THIN_COLUMNS 4
#define THIN_ROWS 8

static size_t count_tiles(const rondo_matmul_problem *p, size_t rows, size_t columns) {
  return p->batches * rondo_divide_up(p->m, rows) * rondo_divide_up(p->n, columns);
}

static size_t enough_tiles(const rondo_matmul_problem *p) {
  const bool across_a = p->transpose_a != 0, across_b = p->transpose_b != 0;
  if (p->is_for_bf16 != 0) return RONDO_GEMM_TILES;
  return rondo_gemm_tiles(&(rondo_gemm){p->m, p->n, p->k, .a = {NULL, across_a ? p->m : p->k, across_a},
                                        .b = {NULL, across_b ? p->k : p->n, across_b}});
}

/* In multiplications. With few rows, reading b takes most of the time. */
static double work_of_tile(const rondo_tiling *t, size_t k) {
  return ((double)t->rows + READING) * (double)t->columns * (double)k;
}

static void cut_for_cpu(const rondo_matmul_problem *p, size_t largest, rondo_tiling *t) {
  const size_t enough = enough_tiles(p);
  t->rows = rondo_smaller(p->m, largest);
  t->columns = rondo_smaller(p->n, largest);
  while (count_tiles(p, t->rows, t->columns) < enough && work_of_tile(t, p->k) > ENOUGH_PRODUCTS &&
         (t->rows > 16 || t->columns > 16)) {
    if (t->columns > t->rows) { /* libraries lose less if rows are split */
      t->columns = (t->columns + 1) / 2;
    } else {
      t->rows = (t->rows + 1) / 2;
    }
  }
}

static size_t cpu_edge(const rondo_matmul_problem *p, rondo_type type) {
  if (p->is_for_bf16 != 0) return RONDO_MATMUL_BF16_EDGE;
  return type == RONDO_F32 ? RONDO_MATMUL_EDGE : RONDO_MATMUL_CONVERTED_EDGE;
}

static size_t cuda_edge(const rondo_matmul_problem *p) {
  const size_t requested = (size_t)rondo_option_number(RONDO_OPTION_CUDA_TILE), shorter = p->m < p->n ? p->m : p->n;
  size_t i = 0;
  while (cuda_tiles[i].enough > 0 && cuda_tiles[i].edge != requested &&
         (requested > 0 || cuda_tiles[i].edge / 2 >= shorter ||
          count_tiles(p, cuda_tiles[i].edge, cuda_tiles[i].edge) < cuda_tiles[i].enough))
    i++;
  return cuda_tiles[i].edge;
}

static rondo_matmul_form cut_for_cuda(const rondo_matmul_problem *p, rondo_tiling *t) {
  if (p->n <= THIN_COLUMNS && p->transpose_a == 0 && rondo_option_number(RONDO_OPTION_CUDA_TILE) == 0) {
    t->rows = THIN_ROWS;
    t->columns = p->n;
    return RONDO_MATMUL_THIN;
  }
  t->rows = t->columns = cuda_edge(p);
  if (t->rows < SHALLOW_EDGE || (t->rows == SHALLOW_EDGE && p->k <= SHALLOW)) return RONDO_MATMUL_SMALL;
  return RONDO_MATMUL_TILES;
}

rondo_matmul_work rondo_matmul_cut(rondo_matmul_problem *problem, rondo_type type, bool is_cuda) {
  rondo_tiling *t = &problem->tiles;
  rondo_matmul_form form = RONDO_MATMUL_TILES;
  if (is_cuda) {
    form = cut_for_cuda(problem, t);
  } else {
    cut_for_cpu(problem, cpu_edge(problem, type), t);
  }
  assert(t->rows > 0 && t->columns > 0 && form < RONDO_MATMUL_FORMS);
  t->down = rondo_divide_up(problem->m, t->rows);
  t->across = rondo_divide_up(problem->n, t->columns);
  return (rondo_matmul_work){form, rondo_tile_grid(problem->batches * t->down * t->across).x};
}

size_t rondo_matmul_cut_squares(rondo_matmul_problem *problem) {
  const rondo_matmul_work work = rondo_matmul_cut(problem, RONDO_F32, true);
  if (work.form == RONDO_MATMUL_TILES) return work.blocks;
  const size_t down = rondo_divide_up(problem->m, SHALLOW_EDGE), across = rondo_divide_up(problem->n, SHALLOW_EDGE);
  problem->tiles = (rondo_tiling){SHALLOW_EDGE, SHALLOW_EDGE, down, across};
  return problem->batches * down * across;
}
