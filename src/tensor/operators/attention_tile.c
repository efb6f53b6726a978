/* SPDX-License-Identifier: MIT
 * Attention on a CPU, after FlashAttention-2 (Dao 2023, algorithms 1 and 2): tiles of rows against tiles of columns, so
 * that the scores are never whole in memory. A block is a tile that one thread makes in a fixed order: forward and for
 * dq a tile of rows, for dk and dv a tile of columns, which goes through the rows of all heads of its group.
 */
#include "tensor/operators/attention.h"

#include <math.h>
#include <string.h>

#include "tensor/operators/gemm.h"
#include "tensor/operators/rows.h"

#define TILE RONDO_ATTENTION_TILE

/* Rows of a head from `first` on, as floats: where they lie, or converted into room. */
typedef struct panel {
  const float *at;
  size_t first, count;
  float room[TILE * RONDO_HEAD_MOST];
} panel;

/* What a row of the tile has seen so far. */
typedef struct row_state {
  float most[TILE], sum[TILE];
} row_state;

typedef struct attention_data {
  const rondo_attention_shape *shape;
  rondo_type type;
  const void *q, *k, *v, *dy;
  const float *sums, *shares; /* of each row the logarithm of its exponentials' sum; dy · y */
} attention_data;

static void load(const attention_data *data, const void *memory, size_t head_row, size_t first, size_t rows,
                 panel *out) {
  const size_t size = data->shape->size;
  out->first = first;
  out->count = rows - first < TILE ? rows - first : TILE;
  out->at = rondo_load_chunk(data->type, memory, (head_row + first) * size, out->count * size, out->room);
}

/* The first row of a head of q, and of the k and v that it sees. */
static size_t q_row(const rondo_attention_shape *shape, size_t head) { return head * shape->rows; }
static size_t k_row(const rondo_attention_shape *shape, size_t head) {
  const size_t batch = head / shape->heads, of_group = shape->heads / shape->groups;
  return (batch * shape->groups + head % shape->heads / of_group) * shape->columns;
}

/* scores = a bᵀ. */
static void score(const rondo_attention_shape *shape, const panel *a, const panel *b, float *scores) {
  const rondo_gemm gemm = {.transpose_b = true,
                           .m = a->count,
                           .n = b->count,
                           .k = shape->size,
                           .a = a->at,
                           .b = b->at,
                           .c = scores,
                           .a_stride = shape->size,
                           .b_stride = shape->size,
                           .c_stride = TILE};
  rondo_gemm_run(&gemm);
}

/* to += factors b, or factorsᵀ b. */
static void add_product(const rondo_attention_shape *shape, const float *factors, bool transpose, size_t rows,
                        const panel *b, float *to) {
  const rondo_gemm gemm = {.transpose_a = transpose,
                           .accumulate = true,
                           .m = rows,
                           .n = shape->size,
                           .k = b->count,
                           .a = factors,
                           .b = b->at,
                           .c = to,
                           .a_stride = TILE,
                           .b_stride = shape->size,
                           .c_stride = shape->size};
  rondo_gemm_run(&gemm);
}

/* How many of the panel's columns a row sees. */
static size_t seen_of(const rondo_attention_shape *shape, size_t row, const panel *columns) {
  const size_t sees = rondo_attention_sees(shape, row);
  const size_t left = sees > columns->first ? sees - columns->first : 0;
  return left < columns->count ? left : columns->count;
}

static void scale_row(float factor, float *x, size_t count) { RONDO_EACH_LANE(i, lane, count, x[i] *= factor); }

/* x[i] = exp(scale x[i] - most) */
static void exponentiate_row(float scale, float most, float *x, size_t count) {
  RONDO_EACH_LANE(i, lane, count, x[i] = rondo_exp_negative(scale * x[i] - most));
}

static void store_rows(const attention_data *data, void *memory, size_t first, size_t count, const float *rows) {
  const size_t size = data->shape->size;
  if (data->type == RONDO_F32) memcpy((float *)memory + first * size, rows, count * size * sizeof *rows);
  rondo_store_chunk(data->type, memory, first * size, count * size, rows);
}

/* Forward ---------------------------------------------------------------------------------------------------------- */

/* Scores become exponentials, of which `seen` count; what the row has so far is scaled to the new maximum. */
static void soften_row(float scale, size_t seen, size_t count, float *scores, float *most, float *sum, float *y,
                       size_t size) {
  memset(scores + seen, 0, (count - seen) * sizeof *scores);
  if (seen == 0) return;
  const float here = scale * rondo_row_max(scores, seen);
  const float next = here > *most ? here : *most;
  const float correction = rondo_exp_negative(*most - next);
  float sums[RONDO_LANES] = {0};
  exponentiate_row(scale, next, scores, seen);
  RONDO_EACH_LANE(i, lane, seen, sums[lane] += scores[i]);
  *sum = *sum * correction + rondo_join_lanes(sums);
  *most = next;
  scale_row(correction, y, size);
}

static void see_columns(const attention_data *data, const panel *q, size_t head, row_state *state, float *y) {
  const rondo_attention_shape *shape = data->shape;
  const size_t sees = rondo_attention_sees(shape, q->first + q->count - 1);
  float scores[TILE * TILE];
  panel columns;
  for (size_t first = 0; first < sees; first += TILE) {
    load(data, data->k, k_row(shape, head), first, shape->columns, &columns);
    score(shape, q, &columns, scores);
    for (size_t i = 0; i < q->count; i++)
      soften_row(shape->scale, seen_of(shape, q->first + i, &columns), columns.count, scores + i * TILE,
                 &state->most[i], &state->sum[i], y + i * shape->size, shape->size);
    load(data, data->v, k_row(shape, head), first, shape->columns, &columns);
    add_product(shape, scores, false, q->count, &columns, y);
  }
}

static void attend(const attention_data *data, size_t head, size_t first, void *y, float *sums) {
  const rondo_attention_shape *shape = data->shape;
  float rows[TILE * RONDO_HEAD_MOST];
  row_state state;
  panel q;
  load(data, data->q, q_row(shape, head), first, shape->rows, &q);
  memset(rows, 0, q.count * shape->size * sizeof *rows);
  for (size_t i = 0; i < q.count; i++) {
    state.most[i] = -INFINITY;
    state.sum[i] = 0;
  }
  see_columns(data, &q, head, &state, rows);
  for (size_t i = 0; i < q.count; i++) scale_row(1.0f / state.sum[i], rows + i * shape->size, shape->size);
  store_rows(data, y, q_row(shape, head) + first, q.count, rows);
  for (size_t i = 0; sums != NULL && i < q.count; i++)
    sums[q_row(shape, head) + first + i] = state.most[i] + logf(state.sum[i]);
}

void rondo_attention_cpu(rondo_type type, rondo_blocks blocks, void *const *args) {
  const attention_data data = {.shape = args[0],
                               .type = type,
                               .q = RONDO_ARG(const void *, 1),
                               .k = RONDO_ARG(const void *, 2),
                               .v = RONDO_ARG(const void *, 3)};
  const size_t each = rondo_attention_tiles(data.shape->rows), tiles = data.shape->batches * data.shape->heads * each;
  for (size_t block = blocks.first; block < blocks.last; block++) {
    for (size_t tile = block; tile < tiles; tile += blocks.grid.x)
      attend(&data, tile / each, tile % each * TILE, RONDO_ARG(void *, 4), RONDO_ARG(float *, 5));
  }
}

/* Gradients -------------------------------------------------------------------------------------------------------- */

static float dot_row(rondo_type type, const void *x, const void *y, size_t first, size_t count) {
  float rooms[2][RONDO_HEAD_MOST];
  return rondo_row_dot(rondo_load_chunk(type, x, first, count, rooms[0]),
                       rondo_load_chunk(type, y, first, count, rooms[1]), count);
}

void rondo_attention_share_cpu(rondo_type type, rondo_blocks blocks, void *const *args) {
  const rondo_attention_shape *shape = args[0];
  const void *y = RONDO_ARG(const void *, 1);
  const void *dy = RONDO_ARG(const void *, 2);
  float *shares = RONDO_ARG(float *, 3);
  for (size_t block = blocks.first; block < blocks.last; block++) {
    const rondo_span span = rondo_block_span(block, blocks, shape->batches * shape->heads * shape->rows, 1);
    for (size_t row = span.first; row < span.last; row++)
      shares[row] = dot_row(type, y, dy, row * shape->size, shape->size);
  }
}

/* Of a tile: exponentials over their sums, and the scores' gradients. */
typedef struct slopes {
  float weights[TILE * TILE], gradients[TILE * TILE];
} slopes;

static void find_row_slopes(const rondo_attention_shape *shape, size_t seen, size_t count, float sum, float share,
                            float *restrict weights, float *restrict gradients) {
  memset(weights + seen, 0, (count - seen) * sizeof *weights);
  memset(gradients + seen, 0, (count - seen) * sizeof *gradients);
  exponentiate_row(shape->scale, sum, weights, seen);
  RONDO_EACH_LANE(i, lane, seen, gradients[i] = weights[i] * (gradients[i] - share) * shape->scale);
}

static void find_slopes(const attention_data *data, size_t head, const panel *q, const panel *k, const panel *v,
                        const panel *dy, slopes *out) {
  const rondo_attention_shape *shape = data->shape;
  const size_t first = q_row(shape, head) + q->first;
  score(shape, q, k, out->weights);
  score(shape, dy, v, out->gradients);
  for (size_t i = 0; i < q->count; i++)
    find_row_slopes(shape, seen_of(shape, q->first + i, k), k->count, data->sums[first + i], data->shares[first + i],
                    out->weights + i * TILE, out->gradients + i * TILE);
}

static void make_q_gradient(const attention_data *data, size_t head, size_t first, void *dq) {
  const rondo_attention_shape *shape = data->shape;
  float rows[TILE * RONDO_HEAD_MOST];
  panel q, dy, k, v;
  slopes s;
  load(data, data->q, q_row(shape, head), first, shape->rows, &q);
  load(data, data->dy, q_row(shape, head), first, shape->rows, &dy);
  memset(rows, 0, q.count * shape->size * sizeof *rows);
  for (size_t column = 0; column < rondo_attention_sees(shape, first + q.count - 1); column += TILE) {
    load(data, data->k, k_row(shape, head), column, shape->columns, &k);
    load(data, data->v, k_row(shape, head), column, shape->columns, &v);
    find_slopes(data, head, &q, &k, &v, &dy, &s);
    add_product(shape, s.gradients, false, q.count, &k, rows);
  }
  store_rows(data, dq, q_row(shape, head) + first, q.count, rows);
}

/* The arguments that the gradients' kernels begin with. */
static attention_data gradient_data(rondo_type type, void *const *args) {
  return (attention_data){.shape = args[0],
                          .type = type,
                          .q = RONDO_ARG(const void *, 1),
                          .k = RONDO_ARG(const void *, 2),
                          .v = RONDO_ARG(const void *, 3),
                          .dy = RONDO_ARG(const void *, 4),
                          .sums = RONDO_ARG(const float *, 5),
                          .shares = RONDO_ARG(const float *, 6)};
}

void rondo_attention_q_gradient_cpu(rondo_type type, rondo_blocks blocks, void *const *args) {
  const attention_data data = gradient_data(type, args);
  const size_t each = rondo_attention_tiles(data.shape->rows), tiles = data.shape->batches * data.shape->heads * each;
  for (size_t block = blocks.first; block < blocks.last; block++) {
    for (size_t tile = block; tile < tiles; tile += blocks.grid.x)
      make_q_gradient(&data, tile / each, tile % each * TILE, RONDO_ARG(void *, 7));
  }
}

/* The rows of one head that see the columns. */
static void add_head(const attention_data *data, size_t head, const panel *k, const panel *v, float *dk, float *dv) {
  const rondo_attention_shape *shape = data->shape;
  panel q, dy;
  slopes s;
  for (size_t first = 0; first < shape->rows; first += TILE) {
    const size_t last = first + TILE < shape->rows ? first + TILE : shape->rows;
    if (rondo_attention_sees(shape, last - 1) <= k->first) continue;
    load(data, data->q, q_row(shape, head), first, shape->rows, &q);
    load(data, data->dy, q_row(shape, head), first, shape->rows, &dy);
    find_slopes(data, head, &q, k, v, &dy, &s);
    add_product(shape, s.weights, true, k->count, &dy, dv);
    add_product(shape, s.gradients, true, k->count, &q, dk);
  }
}

static void make_k_gradient(const attention_data *data, size_t group, size_t first, void *dk, void *dv) {
  const rondo_attention_shape *shape = data->shape;
  const size_t of_group = shape->heads / shape->groups;
  float of_k[TILE * RONDO_HEAD_MOST], of_v[TILE * RONDO_HEAD_MOST];
  panel k, v;
  load(data, data->k, group * shape->columns, first, shape->columns, &k);
  load(data, data->v, group * shape->columns, first, shape->columns, &v);
  memset(of_k, 0, k.count * shape->size * sizeof *of_k);
  memset(of_v, 0, k.count * shape->size * sizeof *of_v);
  for (size_t i = 0; i < of_group; i++) add_head(data, group * of_group + i, &k, &v, of_k, of_v);
  store_rows(data, dk, group * shape->columns + first, k.count, of_k);
  store_rows(data, dv, group * shape->columns + first, k.count, of_v);
}

void rondo_attention_k_gradient_cpu(rondo_type type, rondo_blocks blocks, void *const *args) {
  const attention_data data = gradient_data(type, args);
  const size_t each = rondo_attention_tiles(data.shape->columns);
  const size_t tiles = data.shape->batches * data.shape->groups * each;
  for (size_t block = blocks.first; block < blocks.last; block++) {
    for (size_t tile = block; tile < tiles; tile += blocks.grid.x)
      make_k_gradient(&data, tile / each, tile % each * TILE, RONDO_ARG(void *, 7), RONDO_ARG(void *, 8));
  }
}

/* Decoding --------------------------------------------------------------------------------------------------------- */

/* The rows that a token sees: so many of a cache, then its own. */
typedef struct seen_rows {
  const void *cache, *own;
  size_t first, own_row, count; /* row of the cache where the head begins; of its own; in the cache */
} seen_rows;

static const float *seen_row(rondo_type type, const seen_rows *rows, size_t row, size_t size, float *room) {
  return row < rows->count ? rondo_load_chunk(type, rows->cache, (rows->first + row) * size, size, room)
                           : rondo_load_chunk(type, rows->own, rows->own_row * size, size, room);
}

/* One row of q, in one pass over what it sees; y is scaled down whenever the maximum grows. */
static void decode_row(const rondo_attention_shape *shape, rondo_type type, const float *q, const seen_rows *keys,
                       const seen_rows *values, float *y) {
  const size_t size = shape->size;
  float room[RONDO_HEAD_MOST], most = -INFINITY, sum = 0;
  memset(y, 0, size * sizeof *y);
  for (size_t row = 0; row <= keys->count; row++) {
    const float score = shape->scale * rondo_row_dot(q, seen_row(type, keys, row, size, room), size);
    const float next = score > most ? score : most;
    const float correction = rondo_exp_negative(most - next), weight = rondo_exp_negative(score - next);
    const float *value = seen_row(type, values, row, size, room);
    RONDO_EACH_LANE(i, lane, size, y[i] = y[i] * correction + weight * value[i]);
    sum = sum * correction + weight;
    most = next;
  }
  scale_row(1.0f / sum, y, size);
}

/* Of the cache, whatever the cell holds; a wrong length is told where rows are appended. */
static size_t length_of(const rondo_attention_shape *shape, const int32_t *length) {
  const size_t given = *length < 0 ? 0 : (size_t)*length;
  return given < shape->columns ? given : shape->columns;
}

void rondo_attention_decode_cpu(rondo_type type, rondo_blocks blocks, void *const *args) {
  const rondo_attention_shape *shape = args[0];
  const void *q = RONDO_ARG(const void *, 1);
  seen_rows keys = {.own = RONDO_ARG(const void *, 2), .cache = RONDO_ARG(const void *, 4)};
  seen_rows values = {.own = RONDO_ARG(const void *, 3), .cache = RONDO_ARG(const void *, 5)};
  void *y = RONDO_ARG(void *, 7);
  const size_t heads = shape->batches * shape->heads;
  float rooms[2][RONDO_HEAD_MOST];
  keys.count = values.count = length_of(shape, RONDO_ARG(const int32_t *, 6));
  for (size_t block = blocks.first; block < blocks.last; block++) {
    for (size_t head = block; head < heads; head += blocks.grid.x) {
      keys.first = values.first = k_row(shape, head);
      keys.own_row = values.own_row = k_row(shape, head) / shape->columns;
      float *to = rondo_chunk_of(type, y, head * shape->size, rooms[1]);
      decode_row(shape, type, rondo_load_chunk(type, q, head * shape->size, shape->size, rooms[0]), &keys, &values, to);
      rondo_store_chunk(type, y, head * shape->size, shape->size, to);
    }
  }
}
