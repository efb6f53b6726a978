/* SPDX-License-Identifier: MIT
 * Sparse gradients, as in sparse_rows.h. A team of threads has a slot:
 *
 *   each_row(slots, keys, team_of(slots.columns), [&](size_t row, size_t slot, unsigned lane, unsigned lanes) {
 *     for (size_t k = lane; k < slots.columns; k += lanes) ...
 *   });
 */
#include "tensor/operators/common/operator_rows.cuh"

struct row_slots {
  size_t count, rows, columns;
};

/* The row of a slot if it is the first of its row; otherwise `rows`. */
__device__ inline size_t slot_row(const long long *keys, size_t rows, size_t slot) {
  const long long row = keys[slot] >> 32;
  return slot > 0 && keys[slot - 1] >> 32 == row ? rows : (size_t)row;
}

template <class F>
__device__ inline void each_row(const row_slots &slots, const long long *keys, const row_team &team, F of) {
  for (size_t slot = team.first; slot < slots.count; slot += team.stride) {
    const size_t row = slot_row(keys, slots.rows, slot);
    if (row < slots.rows) of(row, slot, team.lane, team.lanes);
  }
}
