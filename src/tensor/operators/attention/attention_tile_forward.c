/* SPDX-License-Identifier: MIT
 * Attention on a CPU, after FlashAttention-2 (Dao 2023, algorithm 1): a tile of rows times tiles of columns, so that
 * the scores are never all in memory. One thread computes a tile of rows in a fixed order. Threads: any.
 */
#include <assert.h>
#include <math.h>
#include <string.h>

#include "tensor/operators/attention/attention_cpu.h"
#include "tensor/operators/attention/attention_tile.h"
#include "tensor/operators/common/operator_rows.h"

/* The running maximum and sum of exponentials of each row of a tile. */
typedef struct row_state {
  float largest[TILE], sum[TILE];
} row_state;

/* Turns scores, of which `seen` are visible, into exponentials. What the row has accumulated so far, if anything, is
 * scaled to the new maximum. A maximum of -infinity means that the row has seen nothing. */
RONDO_INLINE void soften_row(float scale, size_t seen, size_t count, float *scores, float *largest, float *sum,
                             float *y, size_t size) {
  const float here = seen == 0 ? -INFINITY : scale * rondo_row_max(scores, seen);
  const float next = larger_score(*largest, here);
  float sums[RONDO_LANES] = {0};
  if (seen == 0 || next == -INFINITY) {
    memset(scores, 0, count * sizeof *scores);
    return;
  }
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
                 (const rondo_attention_shape *shape, const batch_view *view, const panel *q, const panel *columns,
                  float *scores, row_state *state, float *y),
                 (shape, view, q, columns, scores, state, y)) {
  for (size_t i = 0; i < q->count; i++)
    soften_row(scale_left(shape), seen_of(shape, view, q->first + i, columns), columns->count, scores + i * TILE,
               &state->largest[i], &state->sum[i], y + i * shape->size, shape->size);
}

static void see_columns(const attention_data *data, const batch_view *view, const panel *q, size_t head,
                        row_state *state, float *y) {
  const rondo_attention_shape *shape = data->shape;
  const rondo_span visible = visible_to_rows(shape, view, q->first, q->count);
  const size_t group = group_of(shape, head);
  float scores[TILE * TILE];
  panel columns;
  for (size_t first = visible.first / TILE * TILE; first < visible.last; first += TILE) {
    rondo_attention_load_columns(data, KEYS, view, group, first, &columns);
    rondo_attention_score(data, q, &columns, scores);
    if (is_adjusted(shape)) rondo_attention_adjust(data, view, head, q->first, q->count, first, columns.count, scores);
    soften_rows(shape, view, q, &columns, scores, state, y);
    rondo_attention_load_columns(data, VALUES, view, group, first, &columns);
    rondo_attention_add_product(data, scores, false, q->count, &columns, y);
  }
}

/* A row that sees nothing is zeros. Its sum is infinite, so that the gradient finds weights of 0. */
static void finish_rows(const rondo_attention_shape *shape, const row_state *state, size_t count, float *rows,
                        float *sums) {
  for (size_t i = 0; i < count; i++) {
    const bool is_empty = state->sum[i] == 0;
    scale_row(is_empty ? 0 : 1.0f / state->sum[i], rows + i * shape->size, shape->size);
    if (sums != NULL) sums[i] = is_empty ? INFINITY : state->largest[i] + logf(state->sum[i]);
  }
}

/* Rows that a batch does not have are zeros. */
static void attend(const attention_data *data, size_t head, size_t first, void *y, float *sums) {
  const rondo_attention_shape *shape = data->shape;
  const batch_view view = rondo_attention_view(data, head);
  const head_rows from = q_rows(shape, head), to = y_rows(shape, head);
  const size_t count = rondo_smaller(shape->rows - first, TILE);
  float rows[TILE * RONDO_HEAD_MAX];
  row_state state;
  panel q;
  memset(rows, 0, count * shape->size * sizeof *rows);
  for (size_t i = 0; i < count; i++) {
    state.largest[i] = -INFINITY;
    state.sum[i] = 0;
  }
  if (first < view.rows) {
    rondo_attention_load(data, data->q, &from, first, view.rows, &q);
    see_columns(data, &view, &q, head, &state, rows);
  }
  finish_rows(shape, &state, count, rows, sums == NULL ? NULL : sums + head * shape->rows + first);
  rondo_attention_store(data, y, &to, first, count, rows);
}

void rondo_attention_cpu(rondo_type type, rondo_blocks blocks, void *const *args) {
  const attention_data data = forward_data(type, args);
  const size_t each = rondo_attention_tiles(data.shape->rows), tiles = data.shape->batches * data.shape->heads * each;
  RONDO_EACH_TILE(tile, blocks, tiles)
    attend(&data, tile / each, tile % each * TILE, RONDO_ARG(void *, 8), RONDO_ARG(float *, 9));
}
