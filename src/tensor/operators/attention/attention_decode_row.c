/* SPDX-License-Identifier: MIT
 * Attention with caches of one row of q on a CPU: dot products with the rows that it sees, in one pass. One thread
 * computes a row in a fixed order, so it does not depend on the other batches. Threads: any.
 */
#include <assert.h>
#include <math.h>
#include <string.h>

#include "tensor/operators/attention/attention_cpu.h"
#include "tensor/operators/attention/attention_tile.h"
#include "tensor/operators/common/operator_rows.h"

/* At most TILE columns in one place: in a block of the caches, or the row's own. */
typedef struct column_segment {
  const void *keys, *values;
  size_t begin, stride, count; /* the first element; elements from one column to the next; columns */
} column_segment;

/* What a row has seen so far; y is relative to the largest score. */
typedef struct row_state {
  float largest, sum, *y;
} row_state;

static column_segment segment_at(const attention_data *data, const batch_view *view, size_t head, size_t column,
                                 size_t last) {
  const rondo_attention_shape *shape = data->shape;
  const size_t group = group_of(shape, head), in_block = column % shape->block_rows;
  if (column >= view->cached) {
    const head_rows own = rows_in(&shape->k, shape->groups, group, 1);
    return (column_segment){data->k, data->v, own.begin + (column - view->cached) * own.stride, own.stride,
                            last - column};
  }
  const size_t block = view->table == NULL ? view->block : (size_t)view->table[column / shape->block_rows];
  const size_t end = rondo_smaller(rondo_smaller(shape->block_rows - in_block, view->cached - column), TILE);
  return (column_segment){
      data->k_cache, data->v_cache,
      block * shape->cache.batch + group % shape->groups * shape->cache.head + in_block * shape->cache.row,
      shape->cache.row, end};
}

RONDO_VECTORISED(score_segment,
                 (rondo_type type, const float *q, const column_segment *segment, size_t size, float *scores),
                 (type, q, segment, size, scores)) {
  float buffer[RONDO_HEAD_MAX];
  for (size_t i = 0; i < segment->count; i++) {
    const size_t at = segment->begin + i * segment->stride;
    scores[i] = rondo_row_dot(q, rondo_load_chunk(type, segment->keys, at, size, buffer), size);
  }
}

RONDO_VECTORISED(see_segment,
                 (rondo_type type, const column_segment *segment, size_t size, float scale, float *scores,
                  row_state *state),
                 (type, segment, size, scale, scores, state)) {
  float buffer[RONDO_HEAD_MAX], *y = state->y;
  const float here = scale * rondo_row_max(scores, segment->count);
  const float largest = larger_score(state->largest, here);
  const float correction = state->sum == 0 ? 0 : rondo_exp_negative(state->largest - largest);
  if (largest == -INFINITY) return; /* all are hidden */
  RONDO_EACH_LANE(i, lane, size, y[i] *= correction);
  state->sum *= correction;
  state->largest = largest;
  for (size_t row = 0; row < segment->count; row++) {
    const float weight = rondo_exp_negative(scale * scores[row] - largest);
    const size_t at = segment->begin + row * segment->stride;
    const float *value = rondo_load_chunk(type, segment->values, at, size, buffer);
    RONDO_EACH_LANE(i, lane, size, y[i] += weight * value[i]);
    state->sum += weight;
  }
}

static void decode_row(const attention_data *data, const batch_view *view, size_t head, const float *q, float *y) {
  const rondo_attention_shape *shape = data->shape;
  row_state state = {-INFINITY, 0, y};
  float scores[TILE];
  memset(y, 0, shape->size * sizeof *y);
  if (view->rows == 0) return;
  const rondo_span visible = visible_columns(shape, view, 0);
  for (size_t column = visible.first, count; column < visible.last; column += count) {
    const column_segment segment = segment_at(data, view, head, column, visible.last);
    count = segment.count;
    score_segment(data->type, q, &segment, shape->size, scores);
    if (is_adjusted(shape)) rondo_attention_adjust(data, view, head, 0, 1, column, count, scores);
    see_segment(data->type, &segment, shape->size, scale_left(shape), scores, &state);
  }
  for (size_t i = 0; state.sum != 0 && i < shape->size; i++) y[i] /= state.sum;
}

void rondo_attention_decode_cpu(rondo_type type, rondo_blocks blocks, void *const *args) {
  const attention_data data = forward_data(type, args);
  const rondo_attention_shape *shape = data.shape;
  void *y = RONDO_ARG(void *, 8);
  float buffers[2][RONDO_HEAD_MAX];
  assert(shape->rows == 1 && data.plan != NULL);
  RONDO_EACH_TILE(head, blocks, shape->batches * shape->heads) {
    const batch_view view = rondo_attention_view(&data, head);
    const size_t at = y_rows(shape, head).begin;
    const float *from = rondo_load_chunk(type, data.q, q_rows(shape, head).begin, shape->size, buffers[0]);
    float *to = rondo_chunk_of(type, y, at, buffers[1]);
    decode_row(&data, &view, head, from, to);
    rondo_store_chunk(type, y, at, shape->size, to);
  }
}
