/* SPDX-License-Identifier: MIT
 * The CUDA kernel of accumulate_rows.c. A team of threads has a slot.
 */
#include "tensor/operators/common/sparse_rows.cuh"

struct tile_shape {
  row_slots slots;
  size_t bound, tiles;
};

__device__ inline size_t tile_of(const tile_shape &shape, int runs) {
  if (runs < 0) return 0;
  return (size_t)runs < shape.tiles ? (size_t)runs : shape.tiles - 1;
}

extern "C" __global__ void accumulate_rows(tile_shape shape, GATE, const int *runs, const long long *keys,
                                           const float *values, long long *rows, float *sums) {
  if (!may_update(TO_GATE)) return;
  const row_slots &slots = shape.slots;
  const row_team team = team_of(slots.columns);
  const size_t tile = tile_of(shape, *runs);
  for (size_t slot = team.first; slot < shape.bound; slot += team.stride) {
    const size_t row = slot < slots.count ? slot_row(keys, slots.rows, slot) : slots.rows;
    const bool has_row = row < slots.rows;
    float *to = sums + (tile * shape.bound + slot) * slots.columns;
    for (size_t k = team.lane; has_row && k < slots.columns; k += team.lanes) to[k] = values[slot * slots.columns + k];
    if (team.lane > 0) continue;
    rows[tile * shape.bound + slot] = has_row ? (long long)row : -1;
    for (size_t later = 1; tile == 0 && later < shape.tiles; later++) rows[later * shape.bound + slot] = -1;
  }
}
