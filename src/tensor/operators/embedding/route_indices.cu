/* SPDX-License-Identifier: MIT
 * The CUDA kernel of route_indices.c.
 */
#include "tensor/operators/common/count_before.cuh"
#include "tensor/operators/embedding/embedding_bags.cuh"

struct route_shape {
  size_t count, ranks, slots, part, rows;
  u64 is_wide;
};

extern "C" __global__ void route_indices(route_shape shape, const void *__restrict__ indices, const int *end,
                                         int *__restrict__ slots, int *__restrict__ places, CHECK) {
  const index_cell to = begin_check(TO_CHECK);
  const size_t count = end == 0 ? shape.count : clamp_offset(*end, shape.count);
  for (size_t owner = blockIdx.x; owner < shape.ranks; owner += gridDim.x) {
    const size_t first = owner * shape.slots;
    size_t taken = 0;
    for (size_t base = 0; base < count; base += BLOCK_THREADS) {
      const size_t i = base + threadIdx.x;
      const long long index = i < count ? index_at(indices, (unsigned)shape.is_wide, i) : 0;
      const bool is_right = is_index(index, shape.rows);
      const bool mine = i < count && (is_right ? (size_t)index / shape.part : 0) == owner;
      unsigned total;
      const size_t slot = taken + count_before(mine && is_right, &total);
      taken += total;
      if (!mine) continue; /* the loop is the same for all threads */
      const bool fits = check_index(to, i, index, is_right && slot < shape.slots ? shape.rows : 0);
      if (fits) slots[first + slot] = (int)((size_t)index % shape.part);
      places[i] = (int)(first + (fits ? slot : 0));
    }
    for (size_t i = count + threadIdx.x; owner == 0 && i < shape.count; i += BLOCK_THREADS) places[i] = 0;
    for (size_t slot = taken + threadIdx.x; slot < shape.slots; slot += BLOCK_THREADS)
      slots[first + slot] = (int)(slot % shape.part);
  }
}
