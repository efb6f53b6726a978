/* SPDX-License-Identifier: MIT
 * The CUDA kernels of non_zero.c: a block has a tile.
 */
#include "tensor/operators/common/count_before.cuh"
#include "tensor/operators/common/element.cuh"

#define TILE 2048

struct non_zero_shape {
  size_t elements, bound, rank;
  size_t dims[6]; /* RONDO_MAX_DIMENSIONS */
};

/* The sum of counts first .. end - 1, for all threads of the block, which must all call it. */
__device__ inline size_t sum_of(const i64 *counts, size_t first, size_t end) {
  __shared__ size_t sums[BLOCK_THREADS];
  size_t sum = 0;
  for (size_t i = first + threadIdx.x; i < end; i += BLOCK_THREADS) sum += (size_t)counts[i];
  __syncthreads(); /* the previous sum has been read */
  sums[threadIdx.x] = sum;
  add_halves(sums);
  __syncthreads();
  return sums[0];
}

extern "C" __global__ void non_zero_count_NUMBER(non_zero_shape shape, const element *__restrict__ x,
                                                 i64 *__restrict__ counts) {
  const size_t tiles = (shape.elements + TILE - 1) / TILE;
  for (size_t tile = blockIdx.x; tile < tiles; tile += gridDim.x) {
    unsigned count = 0;
    for (size_t first = tile * TILE; first < (tile + 1) * TILE; first += BLOCK_THREADS) {
      const size_t i = first + threadIdx.x;
      unsigned total;
      count_before(i < shape.elements && to_number(x[i]) != 0, &total);
      count += total;
    }
    if (threadIdx.x == 0) counts[tile] = count;
  }
}

/* The place of an element, one number for each dimension. */
__device__ inline void put_place(const non_zero_shape &shape, size_t element_number, i64 *places, size_t number) {
  for (size_t d = shape.rank; d > 0; d--) {
    places[(d - 1) * shape.bound + number] = (i64)(element_number % shape.dims[d - 1]);
    element_number /= shape.dims[d - 1];
  }
}

extern "C" __global__ void non_zero_NUMBER(non_zero_shape shape, const element *__restrict__ x,
                                           const i64 *__restrict__ counts, i64 *__restrict__ places,
                                           i64 *__restrict__ count) {
  const size_t tiles = (shape.elements + TILE - 1) / TILE, total = sum_of(counts, 0, tiles);
  for (size_t tile = blockIdx.x; tile < tiles; tile += gridDim.x) {
    size_t number = sum_of(counts, 0, tile);
    for (size_t first = tile * TILE; first < (tile + 1) * TILE; first += BLOCK_THREADS) {
      const size_t i = first + threadIdx.x;
      unsigned here;
      const bool is_set = i < shape.elements && to_number(x[i]) != 0;
      const size_t mine = number + count_before(is_set, &here);
      if (is_set && mine < shape.bound) put_place(shape, i, places, mine);
      number += here;
    }
  }
  if (first_element() == 0) *count = (i64)total;
  if (total >= shape.bound) return;
  const size_t rest = shape.bound - total;
  for (size_t i = first_element(); i < shape.rank * rest; i += element_stride())
    places[i / rest * shape.bound + total + i % rest] = 0;
}
