/* SPDX-License-Identifier: MIT
 * What the CPU kernels of attention share: reading columns from caches, from blocks of caches and from k and v;
 * products of tiles; and masks and slopes. Threads: any.
 */
#include "tensor/operators/attention/attention_tile.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#include "tensor/operators/matmul/gemm.h"

/* Rows ------------------------------------------------------------------------------------------------------------- */

batch_view rondo_attention_view(const attention_data *data, size_t head) {
  const rondo_attention_shape *shape = data->shape;
  const size_t batch = head / shape->heads;
  batch_view view = {.rows = shape->rows,
                     .columns = shape->columns,
                     .position = (int64_t)shape->columns - (int64_t)shape->rows,
                     .block = batch};
  if (data->plan == NULL) return view;
  const size_t length = (size_t)data->plan[batch];
  if (shape->cache.row == 0) {
    view.columns = length;
    return view;
  }
  view.rows = (size_t)data->plan[shape->batches + batch];
  view.cached = length;
  view.columns = length + (shape->causal != 0 ? view.rows : 0);
  view.position = (int64_t)length;
  if (shape->table_blocks > 0) view.table = data->plan + 2 * shape->batches + batch * shape->table_blocks;
  assert(view.columns <= shape->columns && view.rows <= shape->rows);
  return view;
}

static void load_rows(const attention_data *data, const void *memory, size_t begin, size_t stride, size_t count,
                      panel *out) {
  const size_t size = data->shape->size;
  assert(size <= RONDO_HEAD_MAX && count <= TILE);
  out->count = count;
  out->at = data->type == RONDO_F32 ? (const float *)memory + begin : out->buffer;
  out->stride = data->type == RONDO_F32 ? stride : size;
  if (data->type == RONDO_F32) return;
  for (size_t i = 0; i < count; i++)
    (void)rondo_load_chunk(data->type, memory, begin + i * stride, size, out->buffer + i * size);
}

void rondo_attention_load(const attention_data *data, const void *memory, const head_rows *rows, size_t first,
                          size_t last, panel *out) {
  assert(first < last && last <= rows->count);
  out->first = first;
  load_rows(data, memory, rows->begin + first * rows->stride, rows->stride, rondo_smaller(last - first, TILE), out);
}

/* The element with which a row of the caches begins. */
static size_t cached_row(const rondo_attention_shape *shape, const batch_view *view, size_t group, size_t row) {
  const size_t block = view->table == NULL ? view->block : (size_t)view->table[row / shape->block_rows];
  return block * shape->cache.batch + group % shape->groups * shape->cache.head +
         row % shape->block_rows * shape->cache.row;
}

/* Columns that are not at one place are gathered in the buffer. */
static void gather_columns(const attention_data *data, const void *memory, const void *cache, const batch_view *view,
                           size_t group, size_t count, panel *out) {
  const size_t size = data->shape->size;
  const head_rows own = k_rows(data->shape, group);
  out->count = count;
  out->at = out->buffer;
  out->stride = size;
  for (size_t i = 0; i < count; i++) {
    const size_t column = out->first + i;
    const bool is_cached = column < view->cached;
    const size_t at =
        is_cached ? cached_row(data->shape, view, group, column) : own.begin + (column - view->cached) * own.stride;
    float *to = out->buffer + i * size;
    const float *from = rondo_load_chunk(data->type, is_cached ? cache : memory, at, size, to);
    if (from != to) memcpy(to, from, size * sizeof *to);
  }
}

void rondo_attention_load_columns(const attention_data *data, column_kind kind, const batch_view *view, size_t group,
                                  size_t first, panel *out) {
  const rondo_attention_shape *shape = data->shape;
  const void *memory = kind == KEYS ? data->k : data->v, *cache = kind == KEYS ? data->k_cache : data->v_cache;
  const size_t count = rondo_smaller(view->columns - first, TILE), last = first + count - 1;
  const head_rows own = k_rows(shape, group);
  assert(first < view->columns);
  out->first = first;
  if (first >= view->cached)
    load_rows(data, memory, own.begin + (first - view->cached) * own.stride, own.stride, count, out);
  else if (last < view->cached && first / shape->block_rows == last / shape->block_rows)
    load_rows(data, cache, cached_row(shape, view, group, first), shape->cache.row, count, out);
  else
    gather_columns(data, memory, cache, view, group, count, out);
}

void rondo_attention_store(const attention_data *data, void *memory, const head_rows *to, size_t first, size_t count,
                           const float *rows) {
  const size_t size = data->shape->size;
  for (size_t i = 0; i < count; i++)
    rondo_store_floats(data->type, memory, to->begin + (first + i) * to->stride, size, rows + i * size);
}

/* Products --------------------------------------------------------------------------------------------------------- */

void rondo_attention_score(const attention_data *data, const panel *a, const panel *b, float *scores) {
  const rondo_gemm gemm = {a->count,
                           b->count,
                           data->shape->size,
                           .a = {a->at, a->stride, false},
                           .b = {b->at, b->stride, true},
                           .c = {scores, TILE, false}};
  rondo_gemm_run(&gemm);
}

void rondo_attention_add_product(const attention_data *data, const float *factors, bool transpose, size_t rows,
                                 const panel *b, float *to) {
  const rondo_gemm gemm = {rows,
                           data->shape->size,
                           b->count,
                           .a = {factors, TILE, transpose},
                           .b = {b->at, b->stride, false},
                           .c = {to, data->shape->size, true}};
  rondo_gemm_run(&gemm);
}

/* Masks and slopes ------------------------------------------------------------------------------------------------- */

/* What a row's scores get. */
typedef struct score_row {
  const void *mask;
  rondo_mask_kind kind;
  rondo_type type;              /* of a RONDO_MASK_TYPED */
  size_t mask_begin, mask_step; /* the first element; the elements from one column to the next */
  float slope, distance;        /* distance: from the row's position to the first column */
  rondo_span visible;           /* of the tile's columns */
} score_row;

RONDO_INLINE void load_mask(const score_row *row, size_t count, float *to) {
  const size_t at = row->mask_begin;
  if (row->kind == RONDO_MASK_NONE || row->mask_step == 0) {
    const float all = row->kind == RONDO_MASK_NONE ? 0.0f : mask_value(row->kind, row->type, row->mask, at);
    RONDO_EACH_LANE(i, lane, count, to[i] = all);
  } else if (row->kind == RONDO_MASK_BOOLEAN) {
    const uint8_t *from = (const uint8_t *)row->mask + at;
    RONDO_EACH_LANE(i, lane, count, to[i] = from[i] != 0 ? 0.0f : -INFINITY);
  } else {
    const float *from = rondo_load_chunk(row->kind == RONDO_MASK_F32 ? RONDO_F32 : row->type, row->mask, at, count, to);
    if (from != to) memcpy(to, from, count * sizeof *to);
  }
}

/* A hidden column's product may be anything, NaN too. */
RONDO_INLINE void adjust_row(const score_row *row, float scale, size_t count, float *x) {
  float added[TILE];
  load_mask(row, count, added);
  if (row->slope != 0) RONDO_EACH_LANE(i, lane, count, added[i] -= row->slope * fabsf(row->distance - (float)i));
  for (size_t i = 0; i < row->visible.first; i++) added[i] = -INFINITY;
  for (size_t i = row->visible.last; i < count; i++) added[i] = -INFINITY;
  RONDO_EACH_LANE(i, lane, count, x[i] = added[i] == -INFINITY ? -INFINITY : scale * x[i] + added[i]);
}

RONDO_VECTORISED(adjust_rows,
                 (const score_row *row, const rondo_span *visible, size_t mask_step, float scale, size_t rows,
                  size_t columns, float *scores),
                 (row, visible, mask_step, scale, rows, columns, scores)) {
  for (size_t i = 0; i < rows; i++) {
    score_row own = *row;
    own.mask_begin += i * mask_step;
    own.distance += (float)i;
    own.visible = visible[i];
    adjust_row(&own, scale, columns, scores + i * TILE);
  }
}

static size_t clamp_column(size_t column, size_t first, size_t count) {
  return column < first ? 0 : rondo_smaller(column - first, count);
}

static float slope_of(const attention_data *data, size_t head) {
  const rondo_attention_shape *shape = data->shape;
  float slope = 0;
  if (shape->has_slopes == 0) return slope;
  const int32_t *slopes = data->plan + shape->batches * (2 + shape->table_blocks);
  memcpy(&slope, slopes + head % shape->heads, sizeof slope);
  return slope;
}

void rondo_attention_adjust(const attention_data *data, const batch_view *view, size_t head, size_t first_row,
                            size_t rows, size_t first_column, size_t columns, float *scores) {
  const rondo_attention_shape *shape = data->shape;
  const rondo_attention_plane *mask = &shape->mask;
  const score_row row = {.mask = data->mask,
                         .kind = (rondo_mask_kind)shape->mask_kind,
                         .type = data->type,
                         .mask_begin = head / shape->heads * mask->batch + head % shape->heads * mask->head +
                                       first_row * mask->row + first_column * mask->column,
                         .mask_step = mask->column,
                         .slope = slope_of(data, head),
                         .distance = (float)(view->position + (int64_t)first_row - (int64_t)first_column)};
  rondo_span visible[TILE];
  assert(rows <= TILE && columns <= TILE);
  for (size_t i = 0; i < rows; i++) {
    const rondo_span span = visible_columns(shape, view, first_row + i);
    visible[i] =
        (rondo_span){clamp_column(span.first, first_column, columns), clamp_column(span.last, first_column, columns)};
  }
  adjust_rows(&row, visible, mask->row, shape->scale, rows, columns, scores);
}
