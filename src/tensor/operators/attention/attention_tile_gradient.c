/* SPDX-License-Identifier: MIT
 * The gradient of attention on a CPU, after FlashAttention-2 (Dao 2023, algorithm 2). One thread computes a tile in a
 * fixed order: for dq a tile of rows; for dk and dv a tile of columns, which visits the rows of all heads of its group;
 * for the mask a tile of its elements, which visits all batches, heads, rows and columns that share them. Threads: any.
 */
#include <assert.h>
#include <math.h>
#include <string.h>

#include "tensor/operators/attention/attention_cpu.h"
#include "tensor/operators/attention/attention_tile.h"
#include "tensor/operators/common/operator_rows.h"

/* A tile of rows of q and dy, and dy · y of each row. */
typedef struct row_panel {
  panel q, dy;
  float shares[TILE];
} row_panel;

static void load_rows(const attention_data *data, size_t head, size_t first, row_panel *out) {
  const rondo_attention_shape *shape = data->shape;
  const head_rows of_q = q_rows(shape, head), of_y = y_rows(shape, head);
  float buffer[RONDO_HEAD_MAX];
  rondo_attention_load(data, data->q, &of_q, first, shape->rows, &out->q);
  rondo_attention_load(data, data->dy, &of_y, first, shape->rows, &out->dy);
  for (size_t i = 0; i < out->dy.count; i++) {
    const size_t at = of_y.begin + (first + i) * of_y.stride;
    out->shares[i] = rondo_row_dot(rondo_load_chunk(data->type, data->y, at, shape->size, buffer),
                                   out->dy.at + i * out->dy.stride, shape->size);
  }
}

/* A tile of rows of k and v. */
typedef struct column_panel {
  panel k, v;
} column_panel;

static void load_columns(const attention_data *data, const batch_view *view, size_t group, size_t first,
                         column_panel *out) {
  rondo_attention_load_columns(data, KEYS, view, group, first, &out->k);
  rondo_attention_load_columns(data, VALUES, view, group, first, &out->v);
}

/* For a tile: exponentials over their sums, and the gradients of the scores. */
typedef struct slopes {
  float weights[TILE * TILE], gradients[TILE * TILE];
} slopes;

RONDO_INLINE void find_row_slopes(float scale, size_t seen, size_t count, float sum, float share,
                                  float *restrict weights, float *restrict gradients) {
  exponentiate_row(scale, sum, weights, seen, count);
  RONDO_EACH_LANE(i, lane, seen, gradients[i] = weights[i] * (gradients[i] - share));
  memset(gradients + seen, 0, (count - seen) * sizeof *gradients);
}

/* The same for the rows of a tile. */
RONDO_VECTORISED(find_rows_slopes,
                 (const rondo_attention_shape *shape, const batch_view *view, const row_panel *rows,
                  const panel *columns, const float *sums, slopes *of),
                 (shape, view, rows, columns, sums, of)) {
  for (size_t i = 0; i < rows->q.count; i++)
    find_row_slopes(scale_left(shape), seen_of(shape, view, rows->q.first + i, columns), columns->count, sums[i],
                    rows->shares[i], of->weights + i * TILE, of->gradients + i * TILE);
}

static void find_slopes(const attention_data *data, const batch_view *view, size_t head, const row_panel *rows,
                        const column_panel *columns, slopes *out) {
  const rondo_attention_shape *shape = data->shape;
  const float *sums = data->sums + head * shape->rows + rows->q.first;
  rondo_attention_score(data, &rows->q, &columns->k, out->weights);
  rondo_attention_score(data, &rows->dy, &columns->v, out->gradients);
  if (is_adjusted(shape))
    rondo_attention_adjust(data, view, head, rows->q.first, rows->q.count, columns->k.first, columns->k.count,
                           out->weights);
  find_rows_slopes(shape, view, rows, &columns->k, sums, out);
}

/* q and k get the gradients of scores times the scale. */
RONDO_VECTORISED(scale_rows, (float factor, float *x, size_t count), (factor, x, count)) {
  scale_row(factor, x, count);
}

static void make_q_gradient(const attention_data *data, size_t head, size_t first, void *dq) {
  const rondo_attention_shape *shape = data->shape;
  const batch_view view = rondo_attention_view(data, head);
  const head_rows to = q_rows(shape, head);
  float made[TILE * RONDO_HEAD_MAX];
  row_panel rows;
  column_panel columns;
  slopes s;
  load_rows(data, head, first, &rows);
  memset(made, 0, rows.q.count * shape->size * sizeof *made);
  const rondo_span visible = visible_to_rows(shape, &view, first, rows.q.count);
  for (size_t column = visible.first / TILE * TILE; column < visible.last; column += TILE) {
    load_columns(data, &view, group_of(shape, head), column, &columns);
    find_slopes(data, &view, head, &rows, &columns, &s);
    rondo_attention_add_product(data, s.gradients, false, rows.q.count, &columns.k, made);
  }
  scale_rows(shape->scale, made, rows.q.count * shape->size);
  rondo_attention_store(data, dq, &to, first, rows.q.count, made);
}

/* Whether any column of a tile is visible to any row of a tile. */
static bool see_each_other(const rondo_attention_shape *shape, const batch_view *view, size_t row, size_t column) {
  const rondo_span visible = visible_to_rows(shape, view, row, rondo_smaller(shape->rows - row, TILE));
  return visible.last > column && visible.first < column + TILE && column < view->columns;
}

/* Adds the gradients from those rows of one head to which the columns are visible. */
static void add_head(const attention_data *data, const batch_view *view, size_t head, const column_panel *columns,
                     float *dk, float *dv) {
  row_panel rows;
  slopes s;
  for (size_t first = 0; first < data->shape->rows; first += TILE) {
    if (!see_each_other(data->shape, view, first, columns->k.first)) continue;
    load_rows(data, head, first, &rows);
    find_slopes(data, view, head, &rows, columns, &s);
    rondo_attention_add_product(data, s.weights, true, columns->k.count, &rows.dy, dv);
    rondo_attention_add_product(data, s.gradients, true, columns->k.count, &rows.q, dk);
  }
}

/* Columns that a batch does not have get zeros. */
static void make_k_gradient(const attention_data *data, size_t group, size_t first, void *dk, void *dv) {
  const rondo_attention_shape *shape = data->shape;
  const size_t of_group = shape->heads / shape->groups, count = rondo_smaller(shape->columns - first, TILE);
  const batch_view view = rondo_attention_view(data, group * of_group);
  const head_rows to = k_rows(shape, group);
  float of_k[TILE * RONDO_HEAD_MAX], of_v[TILE * RONDO_HEAD_MAX];
  column_panel columns;
  memset(of_k, 0, count * shape->size * sizeof *of_k);
  memset(of_v, 0, count * shape->size * sizeof *of_v);
  if (first < view.columns) {
    load_columns(data, &view, group, first, &columns);
    for (size_t i = 0; i < of_group; i++) add_head(data, &view, group * of_group + i, &columns, of_k, of_v);
    scale_rows(shape->scale, of_k, count * shape->size);
  }
  if (dk != NULL) rondo_attention_store(data, dk, &to, first, count, of_k);
  if (dv != NULL) rondo_attention_store(data, dv, &to, first, count, of_v);
}

/* Masks ------------------------------------------------------------------------------------------------------------ */

/* A part of what shares elements of the mask: `count` batches, heads, or tiles from `first` on. */
typedef struct shared_part {
  size_t first, last;
} shared_part;

/* Takes the next digit of a tile's number: one of `count` if the mask has an element for each, else all of them. */
static shared_part part_of(size_t *number, size_t stride, size_t count) {
  if (stride == 0) return (shared_part){0, count};
  const size_t one = *number % count;
  *number /= count;
  return (shared_part){one, one + 1};
}

typedef struct mask_tile {
  shared_part batches, heads, rows, columns; /* rows and columns: tiles of them */
} mask_tile;

static mask_tile mask_tile_of(const rondo_attention_shape *shape, size_t number) {
  const rondo_attention_plane *mask = &shape->mask;
  mask_tile tile;
  tile.columns = part_of(&number, mask->column, rondo_attention_tiles(shape->columns));
  tile.rows = part_of(&number, mask->row, rondo_attention_tiles(shape->rows));
  tile.heads = part_of(&number, mask->head, shape->heads);
  tile.batches = part_of(&number, mask->batch, shape->batches);
  return tile;
}

static size_t mask_tiles(const rondo_attention_shape *shape) {
  const rondo_attention_plane *mask = &shape->mask;
  return (mask->column == 0 ? 1 : rondo_attention_tiles(shape->columns)) *
         (mask->row == 0 ? 1 : rondo_attention_tiles(shape->rows)) * (mask->head == 0 ? 1 : shape->heads) *
         (mask->batch == 0 ? 1 : shape->batches);
}

/* Adds a tile's gradients of scores to those of the mask: one row, or one column, where these share elements. */
static void add_to_mask(const rondo_attention_shape *shape, const float *gradients, size_t rows, size_t columns,
                        float *made) {
  const size_t down = shape->mask.row == 0 ? 0 : TILE, across = shape->mask.column == 0 ? 0 : 1;
  for (size_t i = 0; i < rows; i++)
    for (size_t j = 0; j < columns; j++) made[i * down + j * across] += gradients[i * TILE + j];
}

static void add_head_to_mask(const attention_data *data, size_t head, const mask_tile *tile, float *made) {
  const batch_view view = rondo_attention_view(data, head);
  row_panel rows;
  column_panel columns;
  slopes s;
  for (size_t i = tile->rows.first; i < tile->rows.last; i++) {
    load_rows(data, head, i * TILE, &rows);
    for (size_t j = tile->columns.first; j < tile->columns.last; j++) {
      if (!see_each_other(data->shape, &view, i * TILE, j * TILE)) continue;
      load_columns(data, &view, group_of(data->shape, head), j * TILE, &columns);
      find_slopes(data, &view, head, &rows, &columns, &s);
      add_to_mask(data->shape, s.gradients, rows.q.count, columns.k.count, made);
    }
  }
}

static void store_mask(const attention_data *data, const mask_tile *tile, const float *made, void *dmask) {
  const rondo_attention_shape *shape = data->shape;
  const rondo_attention_plane *mask = &shape->mask;
  const rondo_type type = shape->mask_kind == RONDO_MASK_F32 ? RONDO_F32 : data->type;
  const size_t row = tile->rows.first * TILE, column = tile->columns.first * TILE;
  const size_t rows = mask->row == 0 ? 1 : rondo_smaller(shape->rows - row, TILE);
  const size_t columns = mask->column == 0 ? 1 : rondo_smaller(shape->columns - column, TILE);
  const size_t begin = tile->batches.first * mask->batch + tile->heads.first * mask->head;
  for (size_t i = 0; i < rows; i++)
    rondo_store_floats(type, dmask, begin + (row + i) * mask->row + column * mask->column, columns, made + i * TILE);
}

static void make_mask_gradient(const attention_data *data, size_t number, void *dmask) {
  const mask_tile tile = mask_tile_of(data->shape, number);
  float made[TILE * TILE] = {0};
  for (size_t batch = tile.batches.first; batch < tile.batches.last; batch++)
    for (size_t head = tile.heads.first; head < tile.heads.last; head++)
      add_head_to_mask(data, batch * data->shape->heads + head, &tile, made);
  store_mask(data, &tile, made, dmask);
}

/* The kernel ------------------------------------------------------------------------------------------------------- */

/* First the tiles of rows of all heads, for dq; then the tiles of columns of all groups, for dk and dv; then those of
 * the mask. */
void rondo_attention_gradient_cpu(rondo_type type, rondo_blocks blocks, void *const *args) {
  const attention_data data = {.shape = args[0],
                               .type = type,
                               .q = RONDO_ARG(const void *, 1),
                               .k = RONDO_ARG(const void *, 2),
                               .v = RONDO_ARG(const void *, 3),
                               .mask = RONDO_ARG(const void *, 4),
                               .plan = RONDO_ARG(const int32_t *, 5),
                               .y = RONDO_ARG(const void *, 6),
                               .dy = RONDO_ARG(const void *, 7),
                               .sums = RONDO_ARG(const float *, 8)};
  void *dq = RONDO_ARG(void *, 9), *dk = RONDO_ARG(void *, 10), *dv = RONDO_ARG(void *, 11);
  void *dmask = RONDO_ARG(void *, 12);
  const size_t down = rondo_attention_tiles(data.shape->rows), across = rondo_attention_tiles(data.shape->columns);
  const size_t of_q = dq == NULL ? 0 : data.shape->batches * data.shape->heads * down;
  const size_t of_k = dk == NULL && dv == NULL ? 0 : data.shape->batches * data.shape->groups * across;
  const size_t of_mask = dmask == NULL ? 0 : mask_tiles(data.shape);
  RONDO_EACH_TILE(tile, blocks, of_q + of_k + of_mask) {
    const size_t left = tile - of_q; /* for a tile of columns */
    if (tile < of_q)
      make_q_gradient(&data, tile / down, tile % down * TILE, dq);
    else if (left < of_k)
      make_k_gradient(&data, left / across, left % across * TILE, dk, dv);
    else
      make_mask_gradient(&data, left - of_k, dmask);
  }
}
