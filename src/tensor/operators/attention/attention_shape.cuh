/* SPDX-License-Identifier: MIT
 * The shape argument of attention kernels, the strides of heads, what a batch has and sees, and what is added to
 * scores; as in attention.h and attention_tile.h.
 */
#include "tensor/operators/common/element.cuh"

#define HEAD_MAX 256 /* elements of a row of a head */

struct attention_place {
  size_t batch, head, row;
};

struct attention_plane {
  size_t batch, head, row, column;
};

enum mask_kind { MASK_NONE, MASK_BOOLEAN, MASK_F32, MASK_TYPED };

struct attention_shape {
  size_t batches, heads, groups, rows, columns, size;
  attention_place q, k, y, cache;
  size_t block_rows, table_blocks;
  attention_plane mask;
  size_t window;
  float scale;
  unsigned causal, mask_kind, has_slopes;
};

struct attention_memory {
  const element *q, *k, *v, *k_cache, *v_cache;
  const void *mask;
  const int *plan;
  const element *y, *dy;
  const float *sums;
};

/* All rows of a head: the first element, the elements from one row to the next, and the number of rows. */
struct head_rows {
  size_t begin, stride, count;
};

__device__ inline head_rows rows_in(const attention_place &place, size_t heads, size_t head, size_t count) {
  const head_rows rows = {head / heads * place.batch + head % heads * place.head, place.row, count};
  return rows;
}

/* The group of a head; both are counted over all batches. */
__device__ inline size_t group_of(const attention_shape &shape, size_t head) {
  return head / (shape.heads / shape.groups);
}

/* The rows and columns that a batch has. */
struct batch_view {
  size_t rows, cached, columns; /* of q; in the caches; in the caches and in k */
  i64 position;                 /* of the first row of q, among the columns */
  const int *table;             /* of the caches' blocks; NULL: a block for each batch */
  size_t block;                 /* without a table */
};

__device__ inline batch_view view_of(const attention_shape &shape, const int *plan, size_t head) {
  const size_t batch = head / shape.heads;
  batch_view view = {shape.rows, 0, shape.columns, (i64)shape.columns - (i64)shape.rows, NULL, batch};
  if (plan == NULL) return view;
  const size_t length = plan[batch];
  if (shape.cache.row == 0) {
    view.columns = length;
    return view;
  }
  view.rows = plan[shape.batches + batch];
  view.cached = length;
  view.columns = length + (shape.causal != 0 ? view.rows : 0);
  view.position = (i64)length;
  if (shape.table_blocks > 0) view.table = plan + 2 * shape.batches + batch * shape.table_blocks;
  return view;
}

/* The columns first <= j < last. */
struct column_span {
  size_t first, last;
};

__device__ inline column_span visible_columns(const attention_shape &shape, const batch_view &view, size_t row) {
  const i64 position = view.position + (i64)row, count = (i64)view.columns, window = (i64)shape.window;
  i64 last = shape.causal != 0 ? position + 1 : window > 0 ? position + window : count;
  i64 first = window > 0 ? position - window + 1 : 0;
  last = last < 0 ? 0 : last > count ? count : last;
  first = first < 0 ? 0 : first > last ? last : first;
  const column_span span = {(size_t)first, (size_t)last};
  return span;
}

/* The columns that are visible to any row of a tile whose first row the batch has. */
__device__ inline column_span visible_to_tile(const attention_shape &shape, const batch_view &view, size_t first,
                                              unsigned tile) {
  const size_t last = first + tile < view.rows ? first + tile : view.rows;
  const column_span span = {visible_columns(shape, view, first).first, visible_columns(shape, view, last - 1).last};
  return span;
}

/* The row of k or v with this number among the columns. */
__device__ inline const element *column_row(const attention_shape &shape, const batch_view &view, size_t group,
                                            size_t column, const element *own, const element *cache) {
  if (column >= view.cached)
    return own + rows_in(shape.k, shape.groups, group, 0).begin + (column - view.cached) * shape.k.row;
  const size_t block = view.table == NULL ? view.block : (size_t)view.table[column / shape.block_rows];
  return cache + block * shape.cache.batch + group % shape.groups * shape.cache.head +
         column % shape.block_rows * shape.cache.row;
}

__device__ inline float minus_infinity() { return __int_as_float(0xff800000); }

/* An element of the mask as it is added to a score. */
__device__ inline float mask_value(const attention_shape &shape, const void *mask, size_t at) {
  if (shape.mask_kind == MASK_BOOLEAN) return ((const unsigned char *)mask)[at] != 0 ? 0.0f : minus_infinity();
  return shape.mask_kind == MASK_F32 ? ((const float *)mask)[at] : to_float(((const element *)mask)[at]);
}

/* What the scores of a head get. */
struct score_terms {
  const void *mask;
  size_t begin; /* the mask's first element of the head */
  float slope;
};

__device__ inline score_terms terms_of(const attention_shape &shape, const attention_memory &memory, size_t head) {
  score_terms terms = {memory.mask, head / shape.heads * shape.mask.batch + head % shape.heads * shape.mask.head, 0.0f};
  if (shape.has_slopes != 0)
    terms.slope = __int_as_float(memory.plan[shape.batches * (2 + shape.table_blocks) + head % shape.heads]);
  return terms;
}

/* The score of a product; -infinity if the column is hidden. The product of a hidden column may be anything. */
__device__ inline float score_of(const attention_shape &shape, const batch_view &view, const score_terms &terms,
                                 const column_span &visible, size_t row, size_t column, float product) {
  if (column < visible.first || column >= visible.last) return minus_infinity();
  float added = 0;
  if (shape.mask_kind != MASK_NONE)
    added = mask_value(shape, terms.mask, terms.begin + row * shape.mask.row + column * shape.mask.column);
  if (terms.slope != 0.0f) added -= terms.slope * fabsf((float)(view.position + (i64)row - (i64)column));
  return added == minus_infinity() ? added : shape.scale * product + added;
}
