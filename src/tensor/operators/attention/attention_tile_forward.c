/* SPDX-License-Identifier: MIT
 * Attention on a CPU, after FlashAttention-2 (Dao 2023, algorithm 1): a tile of rows times tiles of columns, so that
 * the scores are never all in memory. The scores of a tile are stored transposed, a row for each column of the keys:
 * the maxima and sums of the rows are then those of lanes, and q is packed once for all tiles of columns
 * (gemm_packed.h). One thread computes a tile of rows in a fixed order. Threads: any.
 */
#include <assert.h>
#include <math.h>
#include <string.h>

#include "tensor/operators/attention/attention_cpu.h"
#include "tensor/operators/attention/attention_tile.h"
#include "tensor/operators/common/operator_rows.h"
#include "tensor/operators/common/strided_lanes.h"
#include "tensor/operators/matmul/gemm_packed.h"

_Static_assert(TILE % RONDO_PANEL == 0 && TILE % RONDO_LANES == 0, "a tile has whole panels and lanes");

/* A tile of rows of one head. */
typedef struct row_tile {
  const attention_data *data;
  const batch_view *view;
  size_t head, first, count;
  float largest[TILE], sum[TILE];      /* of each row so far: the maximum, and the sum of exponentials */
  float packed[TILE * RONDO_HEAD_MAX]; /* q */
  float scores[TILE * TILE];           /* of tile column j and row i at j TILE + i */
  float y[TILE * RONDO_HEAD_MAX];      /* relative to `largest` */
} row_tile;

static size_t padded_rows(const row_tile *t) { return whole_lanes(t->count); }

/* Scores ----------------------------------------------------------------------------------------------------------- */

/* to[j, i] = from[i, j] for a multiple of four rows and columns; rows of both are TILE long. */
RONDO_VECTORISED(transpose, (const float *restrict from, size_t rows, size_t columns, float *restrict to),
                 (from, rows, columns, to)) {
  for (size_t i = 0; i < rows; i += 4) {
    for (size_t j = 0; j < columns; j += 4) {
      rondo_four a[4], b[4];
      for (size_t k = 0; k < 4; k++) memcpy(&a[k], from + (i + k) * TILE + j, sizeof a[k]);
      for (size_t k = 0; k < 2; k++) {
        b[k] = __builtin_shufflevector(a[k], a[k + 2], 0, 4, 1, 5);
        b[k + 2] = __builtin_shufflevector(a[k], a[k + 2], 2, 6, 3, 7);
      }
      for (size_t k = 0; k < 2; k++) {
        a[2 * k] = __builtin_shufflevector(b[2 * k], b[2 * k + 1], 0, 4, 1, 5);
        a[2 * k + 1] = __builtin_shufflevector(b[2 * k], b[2 * k + 1], 2, 6, 3, 7);
      }
      for (size_t k = 0; k < 4; k++) memcpy(to + (j + k) * TILE + i, &a[k], sizeof a[k]);
    }
  }
}

/* Masks and slopes are added to rows of scores. */
static void adjust(row_tile *t, const panel *columns) {
  float rows[TILE * TILE];
  transpose(t->scores, whole_lanes(columns->count), padded_rows(t), rows);
  rondo_attention_adjust(t->data, t->view, t->head, t->first, t->count, columns->first, columns->count, rows);
  transpose(rows, padded_rows(t), whole_lanes(columns->count), t->scores);
}

/* Scales the scores, and hides those of columns from seen[i] on. */
RONDO_VECTORISED(hide_columns, (const int32_t *seen, float scale, size_t rows, size_t columns, float *scores),
                 (seen, scale, rows, columns, scores)) {
  for (size_t j = 0; j < columns; j++) {
    float *x = scores + j * TILE;
    const int32_t column = (int32_t)j;
    RONDO_EACH_LANE(i, lane, rows, x[i] = column < seen[i] ? scale * x[i] : -INFINITY);
  }
}

/* Returns the scale that is left to do. */
static float hide(row_tile *t, const panel *columns) {
  const rondo_attention_shape *shape = t->data->shape;
  int32_t seen[TILE] = {0};
  bool sees_all = true;
  if (is_adjusted(shape)) return 1.0f;
  for (size_t i = 0; i < t->count; i++) {
    seen[i] = (int32_t)seen_of(shape, t->view, t->first + i, columns);
    sees_all = sees_all && (size_t)seen[i] == columns->count;
  }
  if (sees_all) return shape->scale;
  hide_columns(seen, shape->scale, padded_rows(t), columns->count, t->scores);
  return 1.0f;
}

/* Softmax ---------------------------------------------------------------------------------------------------------- */

/* The maxima of RONDO_LANES rows of scores. NaN may be ignored if another score is above -infinity: the sum of
 * exponentials is NaN then. */
RONDO_INLINE void find_maxima(const float *scores, size_t columns, float *largest) {
  float here[RONDO_LANES], sums[RONDO_LANES] = {0};
  for (size_t lane = 0; lane < RONDO_LANES; lane++) here[lane] = -INFINITY;
  for (size_t j = 0; j < columns; j++) {
    const float *x = scores + j * TILE;
    for (size_t lane = 0; lane < RONDO_LANES; lane++) {
      here[lane] = x[lane] > here[lane] ? x[lane] : here[lane];
      sums[lane] += x[lane];
    }
  }
  for (size_t lane = 0; lane < RONDO_LANES; lane++) largest[lane] = here[lane] == -INFINITY ? sums[lane] : here[lane];
}

/* Turns the scores of RONDO_LANES rows into exponentials, and returns what y has to be multiplied by. A maximum of
 * -infinity means that the row has seen nothing. */
RONDO_INLINE void soften_lanes(float scale, size_t columns, float *scores, float *largest, float *sum,
                               float *correction) {
  float next[RONDO_LANES], sums[RONDO_LANES];
  find_maxima(scores, columns, next);
  for (size_t lane = 0; lane < RONDO_LANES; lane++) {
    const float before = largest[lane], after = larger_score(before, scale * next[lane]);
    largest[lane] = after;
    next[lane] = after == -INFINITY ? 0 : after;
    correction[lane] = sum[lane] == 0 ? 1.0f : rondo_exp_negative(before - after);
    sums[lane] = sum[lane] * correction[lane];
  }
  for (size_t j = 0; j < columns; j++) {
    float *x = scores + j * TILE;
    for (size_t lane = 0; lane < RONDO_LANES; lane++) {
      x[lane] = rondo_exp_negative(scale * x[lane] - next[lane]);
      sums[lane] += x[lane];
    }
  }
  memcpy(sum, sums, sizeof sums);
}

RONDO_VECTORISED(soften, (row_tile * t, float scale, size_t columns), (t, scale, columns)) {
  const size_t size = t->data->shape->size;
  float correction[TILE];
  for (size_t i = 0; i < t->count; i += RONDO_LANES)
    soften_lanes(scale, columns, t->scores + i, t->largest + i, t->sum + i, correction + i);
  for (size_t i = 0; i < t->count; i++)
    if (correction[i] != 1.0f) scale_row(correction[i], t->y + i * size, size);
}

/* Tiles ------------------------------------------------------------------------------------------------------------ */

static void pack_rows(row_tile *t, const panel *q) {
  const size_t size = t->data->shape->size;
  const rondo_gemm_factor factor = {q->at, q->stride, true};
  for (size_t i = 0; i < rondo_gemm_panels(t->count); i++) rondo_gemm_pack(&factor, size, t->count, i, t->packed);
}

/* keys · qᵀ; rows past the last of the tile are 0. */
static void score(row_tile *t, const panel *keys) {
  rondo_gemm_run_packed(&(rondo_gemm_packed){.m = keys->count,
                                             .n = padded_rows(t),
                                             .k = t->data->shape->size,
                                             .a = {keys->at, keys->stride, false},
                                             .packed = t->packed,
                                             .c = {t->scores, TILE, false}});
}

static void add_values(row_tile *t, const panel *values) {
  const size_t size = t->data->shape->size;
  rondo_gemm_run_small(&(rondo_gemm_small){.m = t->count,
                                           .n = size,
                                           .k = values->count,
                                           .a = {t->scores, TILE, true},
                                           .b = {values->at, values->stride, false},
                                           .c = {t->y, size, true}});
}

static void see_columns(row_tile *t) {
  const attention_data *data = t->data;
  const rondo_span visible = visible_to_rows(data->shape, t->view, t->first, t->count);
  const size_t group = group_of(data->shape, t->head);
  panel columns;
  for (size_t first = visible.first / TILE * TILE; first < visible.last; first += TILE) {
    rondo_attention_load_columns(data, KEYS, t->view, group, first, &columns);
    score(t, &columns);
    if (is_adjusted(data->shape)) adjust(t, &columns);
    soften(t, hide(t, &columns), columns.count);
    rondo_attention_load_columns(data, VALUES, t->view, group, first, &columns);
    add_values(t, &columns);
  }
}

/* A row that sees nothing is zeros. Its sum is infinite, so that the gradient finds weights of 0. */
static void finish_rows(row_tile *t, size_t rows, float *sums) {
  const size_t size = t->data->shape->size;
  for (size_t i = 0; i < rows; i++) {
    const bool is_empty = t->sum[i] == 0;
    scale_row(is_empty ? 0 : 1.0f / t->sum[i], t->y + i * size, size);
    if (sums != NULL) sums[i] = is_empty ? INFINITY : t->largest[i] + logf(t->sum[i]);
  }
}

/* Rows that a batch does not have are zeros. */
static void attend(const attention_data *data, size_t head, size_t first, void *y, float *sums) {
  const rondo_attention_shape *shape = data->shape;
  const batch_view view = rondo_attention_view(data, head);
  const head_rows from = q_rows(shape, head), to = y_rows(shape, head);
  const size_t rows = rondo_smaller(shape->rows - first, TILE);
  row_tile tile; /* most of it is written before it is read */
  panel q;
  tile.data = data;
  tile.view = &view;
  tile.head = head;
  tile.first = first;
  memset(tile.y, 0, rows * shape->size * sizeof *tile.y);
  for (size_t i = 0; i < TILE; i++) {
    tile.largest[i] = -INFINITY;
    tile.sum[i] = 0;
  }
  if (first < view.rows) {
    rondo_attention_load(data, data->q, &from, first, view.rows, &q);
    tile.count = q.count;
    pack_rows(&tile, &q);
    see_columns(&tile);
  }
  finish_rows(&tile, rows, sums == NULL ? NULL : sums + head * shape->rows + first);
  rondo_attention_store(data, y, &to, first, rows, tile.y);
}

void rondo_attention_cpu(rondo_type type, rondo_blocks blocks, void *const *args) {
  const attention_data data = forward_data(type, args);
  const size_t each = rondo_attention_tiles(data.shape->rows), tiles = data.shape->batches * data.shape->heads * each;
  RONDO_EACH_TILE(tile, blocks, tiles)
    attend(&data, tile / each, tile % each * TILE, RONDO_ARG(void *, 8), RONDO_ARG(float *, 9));
}
