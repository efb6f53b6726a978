/* SPDX-License-Identifier: MIT
 * What the kernels of recurrent layers share.
 */
#include "tensor/operators/common/element.cuh"
#include "tensor/operators/elementwise/elementary.cuh"

#define GATES 4

enum { RNN, GRU, LSTM };

/* rondo_recurrent_shape */
struct recurrent_shape {
  size_t steps, batch, hidden, gates, rows, units, first, count;
  unsigned kind, is_reversed, is_relu, wide_lengths, is_packed, is_transposed, row_teams, parts;
};

__device__ inline size_t step_at(const recurrent_shape &s, size_t number) {
  return s.is_reversed != 0 ? s.steps - 1 - number : number;
}

/* Whether the sequence has the step. */
__device__ inline bool has_step(const recurrent_shape &s, const void *lengths, size_t sequence, size_t step) {
  return lengths == 0 || (long long)step < index_at(lengths, s.wide_lengths, sequence);
}
