/* SPDX-License-Identifier: MIT
 * The CUDA kernel of route_indices.c.
 */
#include "tensor/operators/common/kernel_support.cuh"

struct route_shape {
  size_t count, ranks, slots, part, rows;
  u64 is_wide;
};

/* How many threads before this one pass true, and in *total how many of the block do. */
__device__ inline unsigned count_before(bool mine, unsigned *total) {
  __shared__ unsigned counts[WARPS];
  const unsigned lane = threadIdx.x % WARP, warp = threadIdx.x / WARP, all = __ballot_sync(ALL_LANES, mine);
  unsigned before = __popc(all & ((1u << lane) - 1));
  if (lane == 0) counts[warp] = __popc(all);
  __syncthreads();
  *total = 0;
  for (unsigned w = 0; w < WARPS; w++) {
    if (w < warp) before += counts[w];
    *total += counts[w];
  }
  __syncthreads(); /* the next call writes the counts */
  return before;
}

extern "C" __global__ void route_indices(route_shape shape, const void *__restrict__ indices, int *__restrict__ slots,
                                         int *__restrict__ places, CHECK) {
  const index_cell to = begin_check(TO_CHECK);
  for (size_t owner = blockIdx.x; owner < shape.ranks; owner += gridDim.x) {
    const size_t first = owner * shape.slots;
    size_t taken = 0;
    for (size_t base = 0; base < shape.count; base += BLOCK_THREADS) {
      const size_t i = base + threadIdx.x;
      const long long index = i < shape.count ? index_at(indices, (unsigned)shape.is_wide, i) : 0;
      const bool is_right = is_index(index, shape.rows);
      const bool mine = i < shape.count && (is_right ? (size_t)index / shape.part : 0) == owner;
      unsigned total;
      const size_t slot = taken + count_before(mine && is_right, &total);
      taken += total;
      if (!mine) continue; /* the loop is the same for all threads */
      const bool fits = check_index(to, i, index, is_right && slot < shape.slots ? shape.rows : 0);
      if (fits) slots[first + slot] = (int)((size_t)index % shape.part);
      places[i] = (int)(first + (fits ? slot : 0));
    }
    for (size_t slot = taken + threadIdx.x; slot < shape.slots; slot += BLOCK_THREADS)
      slots[first + slot] = (int)(slot % shape.part);
  }
}
