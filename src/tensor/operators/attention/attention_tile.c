/* SPDX-License-Identifier: MIT
 * Attention on a CPU, after FlashAttention-2 (Dao 2023, algorithms 1 and 2): tiles of rows times tiles of columns, so
 * that the scores are never all in memory. One thread computes a tile in a fixed order: forward and for dq a tile of
 * rows, for dk and dv a tile of columns, which visits the rows of all heads of its group. Threads: any.
 */
#include "tensor/operators/attention/attention.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#include "tensor/operators/common/operator_rows.h"
#include "tensor/operators/matmul/gemm.h"

#define TILE RONDO_ATTENTION_TILE

/* Rows of a head from `first` on, as floats: in place, or converted into `buffer`. */
typedef struct panel {
  const float *at;
  size_t stride, first, count;
  float buffer[TILE * RONDO_HEAD_MAX];
} panel;

/* The running maximum and sum of exponentials of each row of a tile. */
typedef struct row_state {
  float largest[TILE], sum[TILE];
} row_state;

typedef struct attention_data {
  const rondo_attention_shape *shape;
  rondo_type type;
  const void *q, *k, *v, *y, *dy;
  const float *sums; /* the logarithm of the sum of exponentials of each row */
} attention_data;

/* All rows of a head: the first element, the elements from one row to the next, and the number of rows. */
typedef struct head_rows {
  size_t begin, stride, count;
} head_rows;

static head_rows rows_in(const rondo_attention_place *place, size_t heads, size_t head, size_t count) {
  return (head_rows){head / heads * place->batch + head % heads * place->head, place->row, count};
}
static head_rows q_rows(const rondo_attention_shape *shape, size_t head) {
  return rows_in(&shape->q, shape->heads, head, shape->rows);
}
static head_rows y_rows(const rondo_attention_shape *shape, size_t head) {
  return rows_in(&shape->y, shape->heads, head, shape->rows);
}
static head_rows k_rows(const rondo_attention_shape *shape, size_t group) {
  return rows_in(&shape->k, shape->groups, group, shape->columns);
}

/* The group of a head; both are counted over all batches. */
static size_t group_of(const rondo_attention_shape *shape, size_t head) {
  return head / (shape->heads / shape->groups);
}

static void load(const attention_data *data, const void *memory, const head_rows *rows, size_t first, panel *out) {
  const size_t size = data->shape->size, begin = rows->begin + first * rows->stride;
  out->first = first;
  assert(first < rows->count && size <= RONDO_HEAD_MAX);
  out->count = rondo_smaller(rows->count - first, TILE);
  out->at = data->type == RONDO_F32 ? (const float *)memory + begin : out->buffer;
  out->stride = data->type == RONDO_F32 ? rows->stride : size;
  if (data->type == RONDO_F32) return;
  for (size_t i = 0; i < out->count; i++)
    (void)rondo_load_chunk(data->type, memory, begin + i * rows->stride, size, out->buffer + i * size);
}

/* scores = a bᵀ. */
static void score(const rondo_attention_shape *shape, const panel *a, const panel *b, float *scores) {
  const rondo_gemm gemm = {a->count,
                           b->count,
                           shape->size,
                           .a = {a->at, a->stride, false},
                           .b = {b->at, b->stride, true},
                           .c = {scores, TILE, false}};
  rondo_gemm_run(&gemm);
}

/* to += factors b, or factorsᵀ b. */
static void add_product(const rondo_attention_shape *shape, const float *factors, bool transpose, size_t rows,
                        const panel *b, float *to) {
  const rondo_gemm gemm = {rows,
                           shape->size,
                           b->count,
                           .a = {factors, TILE, transpose},
                           .b = {b->at, b->stride, false},
                           .c = {to, shape->size, true}};
  rondo_gemm_run(&gemm);
}

/* How many of the panel's columns are visible to a row. */
RONDO_INLINE size_t seen_of(const rondo_attention_shape *shape, size_t row, const panel *columns) {
  const size_t sees = rondo_attention_sees(shape, row);
  return rondo_smaller(sees > columns->first ? sees - columns->first : 0, columns->count);
}

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

static void store_rows(const attention_data *data, void *memory, const head_rows *to, size_t first, size_t count,
                       const float *rows) {
  const size_t size = data->shape->size;
  for (size_t i = 0; i < count; i++) {
    rondo_store_floats(data->type, memory, to->begin + (first + i) * to->stride, size, rows + i * size);
  }
}

/* Forward ---------------------------------------------------------------------------------------------------------- */

/* Turns scores, of which `seen` are visible, into exponentials. What the row has accumulated so far, if anything, is
 * scaled to the new maximum. */
RONDO_INLINE void soften_row(float scale, size_t seen, size_t count, float *scores, float *largest, float *sum,
                             float *y, size_t size) {
  if (seen == 0) {
    memset(scores, 0, count * sizeof *scores);
    return;
  }
  const float here = scale * rondo_row_max(scores, seen);
  const float next = here > *largest ? here : *largest;
  float sums[RONDO_LANES] = {0};
  if (*sum != 0) {
    const float correction = rondo_exp_negative(*largest - next);
    *sum *= correction;
    scale_row(correction, y, size);
  }
  exponentiate_row(scale, next, scores, seen, count);
  RONDO_EACH_LANE(i, lane, whole_lanes(seen), sums[lane] += scores[i]);
  *sum += rondo_join_lanes(sums);
  *largest = next;
}

/* The same for the rows of a tile. */
RONDO_VECTORISED(soften_rows,
                 (const rondo_attention_shape *shape, const panel *q, const panel *columns, float *scores,
                  row_state *state, float *y),
                 (shape, q, columns, scores, state, y)) {
  for (size_t i = 0; i < q->count; i++)
    soften_row(shape->scale, seen_of(shape, q->first + i, columns), columns->count, scores + i * TILE,
               &state->largest[i], &state->sum[i], y + i * shape->size, shape->size);
}

static void see_columns(const attention_data *data, const panel *q, size_t head, row_state *state, float *y) {
  const rondo_attention_shape *shape = data->shape;
  const size_t sees = rondo_attention_sees(shape, q->first + q->count - 1);
  const head_rows from = k_rows(shape, group_of(shape, head));
  float scores[TILE * TILE];
  panel columns;
  for (size_t first = 0; first < sees; first += TILE) {
    load(data, data->k, &from, first, &columns);
    score(shape, q, &columns, scores);
    soften_rows(shape, q, &columns, scores, state, y);
    load(data, data->v, &from, first, &columns);
    add_product(shape, scores, false, q->count, &columns, y);
  }
}

static void attend(const attention_data *data, size_t head, size_t first, void *y, float *sums) {
  const rondo_attention_shape *shape = data->shape;
  const head_rows from = q_rows(shape, head), to = y_rows(shape, head);
  float rows[TILE * RONDO_HEAD_MAX];
  row_state state;
  panel q;
  load(data, data->q, &from, first, &q);
  memset(rows, 0, q.count * shape->size * sizeof *rows);
  for (size_t i = 0; i < q.count; i++) {
    state.largest[i] = -INFINITY;
    state.sum[i] = 0;
  }
  see_columns(data, &q, head, &state, rows);
  for (size_t i = 0; i < q.count; i++) scale_row(1.0f / state.sum[i], rows + i * shape->size, shape->size);
  store_rows(data, y, &to, first, q.count, rows);
  for (size_t i = 0; sums != NULL && i < q.count; i++)
    sums[head * shape->rows + first + i] = state.largest[i] + logf(state.sum[i]);
}

void rondo_attention_cpu(rondo_type type, rondo_blocks blocks, void *const *args) {
  const attention_data data = {.shape = args[0],
                               .type = type,
                               .q = RONDO_ARG(const void *, 1),
                               .k = RONDO_ARG(const void *, 2),
                               .v = RONDO_ARG(const void *, 3)};
  const size_t each = rondo_attention_tiles(data.shape->rows), tiles = data.shape->batches * data.shape->heads * each;
  RONDO_EACH_TILE(tile, blocks, tiles)
    attend(&data, tile / each, tile % each * TILE, RONDO_ARG(void *, 4), RONDO_ARG(float *, 5));
}

/* Gradients -------------------------------------------------------------------------------------------------------- */

/* A tile of rows of q and dy, and dy · y of each row. */
typedef struct row_panel {
  panel q, dy;
  float shares[TILE];
} row_panel;

static void load_rows(const attention_data *data, size_t head, size_t first, row_panel *out) {
  const rondo_attention_shape *shape = data->shape;
  const head_rows of_q = q_rows(shape, head), of_y = y_rows(shape, head);
  float buffer[RONDO_HEAD_MAX];
  load(data, data->q, &of_q, first, &out->q);
  load(data, data->dy, &of_y, first, &out->dy);
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

static void load_columns(const attention_data *data, size_t group, size_t first, column_panel *out) {
  const head_rows from = k_rows(data->shape, group);
  load(data, data->k, &from, first, &out->k);
  load(data, data->v, &from, first, &out->v);
}

/* For a tile: exponentials over their sums, and the gradients of the scores. */
typedef struct slopes {
  float weights[TILE * TILE], gradients[TILE * TILE];
} slopes;

RONDO_INLINE void find_row_slopes(const rondo_attention_shape *shape, size_t seen, size_t count, float sum, float share,
                                  float *restrict weights, float *restrict gradients) {
  exponentiate_row(shape->scale, sum, weights, seen, count);
  RONDO_EACH_LANE(i, lane, seen, gradients[i] = weights[i] * (gradients[i] - share) * shape->scale);
  memset(gradients + seen, 0, (count - seen) * sizeof *gradients);
}

/* The same for the rows of a tile. */
RONDO_VECTORISED(find_rows_slopes,
                 (const rondo_attention_shape *shape, const row_panel *rows, const panel *columns, const float *sums,
                  slopes *of),
                 (shape, rows, columns, sums, of)) {
  for (size_t i = 0; i < rows->q.count; i++)
    find_row_slopes(shape, seen_of(shape, rows->q.first + i, columns), columns->count, sums[i], rows->shares[i],
                    of->weights + i * TILE, of->gradients + i * TILE);
}

static void find_slopes(const attention_data *data, size_t head, const row_panel *rows, const column_panel *columns,
                        slopes *out) {
  const rondo_attention_shape *shape = data->shape;
  const float *sums = data->sums + head * shape->rows + rows->q.first;
  score(shape, &rows->q, &columns->k, out->weights);
  score(shape, &rows->dy, &columns->v, out->gradients);
  find_rows_slopes(shape, rows, &columns->k, sums, out);
}

static void make_q_gradient(const attention_data *data, size_t head, size_t first, void *dq) {
  const rondo_attention_shape *shape = data->shape;
  const head_rows to = q_rows(shape, head);
  float made[TILE * RONDO_HEAD_MAX];
  row_panel rows;
  column_panel columns;
  slopes s;
  load_rows(data, head, first, &rows);
  memset(made, 0, rows.q.count * shape->size * sizeof *made);
  for (size_t column = 0; column < rondo_attention_sees(shape, first + rows.q.count - 1); column += TILE) {
    load_columns(data, group_of(shape, head), column, &columns);
    find_slopes(data, head, &rows, &columns, &s);
    add_product(shape, s.gradients, false, rows.q.count, &columns.k, made);
  }
  store_rows(data, dq, &to, first, rows.q.count, made);
}

/* Adds the gradients from those rows of one head to which the columns are visible. */
static void add_head(const attention_data *data, size_t head, const column_panel *columns, float *dk, float *dv) {
  const rondo_attention_shape *shape = data->shape;
  row_panel rows;
  slopes s;
  for (size_t first = 0; first < shape->rows; first += TILE) {
    if (rondo_attention_sees(shape, rondo_smaller(first + TILE, shape->rows) - 1) <= columns->k.first) continue;
    load_rows(data, head, first, &rows);
    find_slopes(data, head, &rows, columns, &s);
    add_product(shape, s.weights, true, columns->k.count, &rows.dy, dv);
    add_product(shape, s.gradients, true, columns->k.count, &rows.q, dk);
  }
}

static void make_k_gradient(const attention_data *data, size_t group, size_t first, void *dk, void *dv) {
  const rondo_attention_shape *shape = data->shape;
  const size_t of_group = shape->heads / shape->groups;
  const head_rows to = k_rows(shape, group);
  float of_k[TILE * RONDO_HEAD_MAX], of_v[TILE * RONDO_HEAD_MAX];
  column_panel columns;
  load_columns(data, group, first, &columns);
  memset(of_k, 0, columns.k.count * shape->size * sizeof *of_k);
  memset(of_v, 0, columns.k.count * shape->size * sizeof *of_v);
  for (size_t i = 0; i < of_group; i++) add_head(data, group * of_group + i, &columns, of_k, of_v);
  if (dk != NULL) store_rows(data, dk, &to, first, columns.k.count, of_k);
  if (dv != NULL) store_rows(data, dv, &to, first, columns.k.count, of_v);
}

/* First the tiles of rows of all heads, for dq; then the tiles of columns of all groups, for dk and dv. */
void rondo_attention_gradient_cpu(rondo_type type, rondo_blocks blocks, void *const *args) {
  const attention_data data = {.shape = args[0],
                               .type = type,
                               .q = RONDO_ARG(const void *, 1),
                               .k = RONDO_ARG(const void *, 2),
                               .v = RONDO_ARG(const void *, 3),
                               .y = RONDO_ARG(const void *, 4),
                               .dy = RONDO_ARG(const void *, 5),
                               .sums = RONDO_ARG(const float *, 6)};
  void *dq = RONDO_ARG(void *, 7), *dk = RONDO_ARG(void *, 8), *dv = RONDO_ARG(void *, 9);
  const size_t down = rondo_attention_tiles(data.shape->rows), across = rondo_attention_tiles(data.shape->columns);
  const size_t of_q = dq == NULL ? 0 : data.shape->batches * data.shape->heads * down;
  const size_t of_k = dk == NULL && dv == NULL ? 0 : data.shape->batches * data.shape->groups * across;
  RONDO_EACH_TILE(tile, blocks, of_q + of_k) {
    const size_t left = tile - of_q; /* for a tile of columns */
    if (tile < of_q)
      make_q_gradient(&data, tile / down, tile % down * TILE, dq);
    else
      make_k_gradient(&data, left / across, left % across * TILE, dk, dv);
  }
}

/* Decoding --------------------------------------------------------------------------------------------------------- */

/* The rows that are visible to a token: the first `count` of the cache, then its own. */
typedef struct seen_rows {
  const void *cache, *own;
  head_rows in_cache;
  size_t own_begin, count; /* the first element of its own row; rows of the cache */
} seen_rows;

RONDO_INLINE const float *seen_row(rondo_type type, const seen_rows *rows, size_t row, size_t size, float *buffer) {
  return row < rows->count
             ? rondo_load_chunk(type, rows->cache, rows->in_cache.begin + row * rows->in_cache.stride, size, buffer)
             : rondo_load_chunk(type, rows->own, rows->own_begin, size, buffer);
}

/* One row of q, in one pass over the visible rows; y is scaled down whenever the maximum grows. */
RONDO_VECTORISED(decode_row,
                 (const rondo_attention_shape *shape, rondo_type type, const float *q, const seen_rows *keys,
                  const seen_rows *values, float *y),
                 (shape, type, q, keys, values, y)) {
  const size_t size = shape->size;
  float buffer[RONDO_HEAD_MAX], largest = -INFINITY, sum = 0;
  memset(y, 0, size * sizeof *y);
  for (size_t row = 0; row <= keys->count; row++) {
    const float score = shape->scale * rondo_row_dot(q, seen_row(type, keys, row, size, buffer), size);
    const float next = score > largest ? score : largest;
    const float correction = rondo_exp_negative(largest - next), weight = rondo_exp_negative(score - next);
    const float *value = seen_row(type, values, row, size, buffer);
    RONDO_EACH_LANE(i, lane, size, y[i] = y[i] * correction + weight * value[i]);
    sum = sum * correction + weight;
    largest = next;
  }
  scale_row(1.0f / sum, y, size);
}

/* Clamped to the cache; a wrong length makes the run fail. */
static size_t length_of(const rondo_attention_shape *shape, const int32_t *length) {
  return rondo_smaller(*length < 0 ? 0 : (size_t)*length, shape->columns);
}

void rondo_attention_decode_cpu(rondo_type type, rondo_blocks blocks, void *const *args) {
  const rondo_attention_shape *shape = args[0];
  const void *q = RONDO_ARG(const void *, 1);
  seen_rows keys = {.own = RONDO_ARG(const void *, 2), .cache = RONDO_ARG(const void *, 4)};
  seen_rows values = {.own = RONDO_ARG(const void *, 3), .cache = RONDO_ARG(const void *, 5)};
  void *y = RONDO_ARG(void *, 7);
  const rondo_index_cell cell = rondo_begin_check(blocks, args + 8);
  const size_t heads = shape->batches * shape->heads;
  float buffers[2][RONDO_HEAD_MAX];
  keys.count = values.count = length_of(shape, RONDO_ARG(const int32_t *, 6));
  if (blocks.first == 0) (void)rondo_check_index(cell, 0, *RONDO_ARG(const int32_t *, 6), shape->columns);
  RONDO_EACH_TILE(head, blocks, heads) {
    const size_t group = group_of(shape, head), at = y_rows(shape, head).begin;
    const float *from = rondo_load_chunk(type, q, q_rows(shape, head).begin, shape->size, buffers[0]);
    float *to = rondo_chunk_of(type, y, at, buffers[1]);
    keys.in_cache = values.in_cache = k_rows(shape, group);
    keys.own_begin = values.own_begin = rows_in(&shape->own, shape->groups, group, 1).begin;
    decode_row(shape, type, from, &keys, &values, to);
    rondo_store_chunk(type, y, at, shape->size, to);
  }
}
