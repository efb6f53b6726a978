/* SPDX-License-Identifier: MIT
 * Tiles of attention on a CPU: the rows of a head as floats, which columns a row of q sees, and what is added to
 * scores. Functions of attention_tile.c, which the kernels in attention_tile_forward.c, attention_tile_gradient.c and
 * attention_decode_row.c share. Threads: any.
 */
#ifndef RONDO_TENSOR_OPERATORS_ATTENTION_ATTENTION_TILE_H
#define RONDO_TENSOR_OPERATORS_ATTENTION_ATTENTION_TILE_H

#include <math.h>

#include "tensor/operators/attention/attention.h"

#define TILE RONDO_ATTENTION_TILE

/* The arguments of a kernel. */
typedef struct attention_data {
  const rondo_attention_shape *shape;
  rondo_type type;
  const void *q, *k, *v, *k_cache, *v_cache, *mask;
  const int32_t *plan; /* NULL: all batches have all rows */
  const void *y, *dy;
  const float *sums; /* the logarithm of the sum of exponentials of each row */
} attention_data;

/* The first arguments of the kernels without a gradient. */
static inline attention_data forward_data(rondo_type type, void *const *args) {
  return (attention_data){.shape = args[0],
                          .type = type,
                          .q = RONDO_ARG(const void *, 1),
                          .k = RONDO_ARG(const void *, 2),
                          .v = RONDO_ARG(const void *, 3),
                          .k_cache = RONDO_ARG(const void *, 4),
                          .v_cache = RONDO_ARG(const void *, 5),
                          .mask = RONDO_ARG(const void *, 6),
                          .plan = RONDO_ARG(const int32_t *, 7)};
}

/* All rows of a head: the first element, the elements from one row to the next, and the number of rows. */
typedef struct head_rows {
  size_t begin, stride, count;
} head_rows;

static inline head_rows rows_in(const rondo_attention_place *place, size_t heads, size_t head, size_t count) {
  return (head_rows){head / heads * place->batch + head % heads * place->head, place->row, count};
}
static inline head_rows q_rows(const rondo_attention_shape *shape, size_t head) {
  return rows_in(&shape->q, shape->heads, head, shape->rows);
}
static inline head_rows y_rows(const rondo_attention_shape *shape, size_t head) {
  return rows_in(&shape->y, shape->heads, head, shape->rows);
}
static inline head_rows k_rows(const rondo_attention_shape *shape, size_t group) {
  return rows_in(&shape->k, shape->groups, group, shape->columns);
}

/* The group of a head; both are counted over all batches. */
static inline size_t group_of(const rondo_attention_shape *shape, size_t head) {
  return head / (shape->heads / shape->groups);
}

/* The rows and columns that a batch has. */
typedef struct batch_view {
  size_t rows;          /* of q */
  size_t cached;        /* columns in the caches; those of k follow */
  size_t columns;       /* of both */
  int64_t position;     /* of the first row of q, among the columns */
  const int32_t *table; /* of the caches' blocks; NULL: the caches have a block for each batch */
  size_t block;         /* without a table */
} batch_view;

batch_view rondo_attention_view(const attention_data *data, size_t head);

/* The columns first <= j < last are visible to a row of q, unless the mask hides them. */
static inline rondo_span visible_columns(const rondo_attention_shape *shape, const batch_view *view, size_t row) {
  const int64_t position = view->position + (int64_t)row, count = (int64_t)view->columns;
  const int64_t window = (int64_t)shape->window;
  int64_t last = shape->causal != 0 ? position + 1 : window > 0 ? position + window : count;
  int64_t first = window > 0 ? position - window + 1 : 0;
  last = last < 0 ? 0 : last > count ? count : last;
  first = first < 0 ? 0 : first > last ? last : first;
  return (rondo_span){(size_t)first, (size_t)last};
}

/* The columns that are visible to any of `count` rows; causality and windows move with the rows. */
static inline rondo_span visible_to_rows(const rondo_attention_shape *shape, const batch_view *view, size_t first,
                                         size_t count) {
  assert(count > 0);
  return (rondo_span){visible_columns(shape, view, first).first, visible_columns(shape, view, first + count - 1).last};
}

/* Rows of a head from `first` on, as floats: in place, or converted into `buffer`. */
typedef struct panel {
  const float *at;
  size_t stride, first, count;
  float buffer[TILE * RONDO_HEAD_MAX];
} panel;

/* Rows of q, y or dy, or of k and v without caches; at most `last` - `first`. */
void rondo_attention_load(const attention_data *data, const void *memory, const head_rows *rows, size_t first,
                          size_t last, panel *out);

/* Columns of k, or of v: those in the caches, then the others. */
typedef enum column_kind { KEYS, VALUES } column_kind;
void rondo_attention_load_columns(const attention_data *data, column_kind kind, const batch_view *view, size_t group,
                                  size_t first, panel *out);

/* Writes rows of floats, `size` of the shape each. */
void rondo_attention_store(const attention_data *data, void *memory, const head_rows *to, size_t first, size_t count,
                           const float *rows);

/* scores = a bᵀ, in rows of TILE. */
void rondo_attention_score(const attention_data *data, const panel *a, const panel *b, float *scores);

/* to += factors b, or factorsᵀ b, for `rows` rows; the factors are in rows of TILE. */
void rondo_attention_add_product(const attention_data *data, const float *factors, bool transpose, size_t rows,
                                 const panel *b, float *to);

/* Whether scores are more than products times the scale, or columns in between are hidden. */
static inline bool is_adjusted(const rondo_attention_shape *shape) {
  return shape->window > 0 || shape->mask_kind != RONDO_MASK_NONE || shape->has_slopes != 0;
}

/* Turns products into final scores, scaled and with the mask and the slope; -infinity for hidden columns. */
void rondo_attention_adjust(const attention_data *data, const batch_view *view, size_t head, size_t first_row,
                            size_t rows, size_t first_column, size_t columns, float *scores);

/* An element of the mask as it is added to a score. type: of a RONDO_MASK_TYPED. */
RONDO_INLINE float mask_value(rondo_mask_kind kind, rondo_type type, const void *mask, size_t at) {
  if (kind == RONDO_MASK_BOOLEAN) return ((const uint8_t *)mask)[at] != 0 ? 0.0f : -INFINITY;
  return rondo_load_one(kind == RONDO_MASK_F32 ? RONDO_F32 : type, mask, at);
}

/* For the bodies of vectorised functions --------------------------------------------------------------------------- */

RONDO_INLINE void scale_row(float factor, float *x, size_t count) { RONDO_EACH_LANE(i, lane, count, x[i] *= factor); }

/* Rounded up to a multiple of the lanes; a row of the tile has space for them. */
RONDO_INLINE size_t whole_lanes(size_t count) { return rondo_divide_up(count, RONDO_LANES) * RONDO_LANES; }

/* x[i] = exp(scale x[i] - largest) for visible columns; 0 for the others and for the padding of the last lanes. */
RONDO_INLINE void exponentiate_row(float scale, float largest, float *x, size_t seen, size_t count) {
  const size_t whole = whole_lanes(seen);
  memset(x + seen, 0, (whole - seen) * sizeof *x);
  RONDO_EACH_LANE(i, lane, whole, x[i] = rondo_exp_negative(scale * x[i] - largest));
  memset(x + seen, 0, (whole_lanes(count) - seen) * sizeof *x);
}

/* How many of the first columns of a tile have scores of a row. Adjusted scores say themselves which are hidden. */
RONDO_INLINE size_t seen_of(const rondo_attention_shape *shape, const batch_view *view, size_t row,
                            const panel *columns) {
  if (is_adjusted(shape)) return columns->count;
  const size_t last = visible_columns(shape, view, row).last;
  return rondo_smaller(last > columns->first ? last - columns->first : 0, columns->count);
}

/* The largest score of a row, of those so far and those here. NaN stays, so that the whole row becomes NaN. */
RONDO_INLINE float larger_score(float so_far, float here) { return here > so_far || here != here ? here : so_far; }

/* What is left to do to scores: adjusted ones are scaled. */
RONDO_INLINE float scale_left(const rondo_attention_shape *shape) { return is_adjusted(shape) ? 1.0f : shape->scale; }

#endif
