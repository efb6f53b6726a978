/* SPDX-License-Identifier: MIT
 * The CUDA form of column_sum in matmul.c: a block owns 32 columns; each of its warps adds every 8th row, then the
 * warps' sums are added in their order.
 */
#include "tensor/operators/kernel_support.cuh"

/* Rows that are read before the first is added: so many reads are under way at once. */
#define BATCH 8

/* The sum of every WARPS-th row's element, from `row` on. */
__device__ inline float add_rows(const float *__restrict__ x, size_t row, size_t m, size_t n, size_t column) {
  float sum = 0;
  for (; row < m; row += BATCH * WARPS) {
    float values[BATCH];
#pragma unroll
    for (unsigned i = 0; i < BATCH; i++) values[i] = row + i * WARPS < m ? x[(row + i * WARPS) * n + column] : 0.0f;
#pragma unroll
    for (unsigned i = 0; i < BATCH; i++) sum += values[i];
  }
  return sum;
}

extern "C" __global__ void column_sum(const float *__restrict__ x, float *__restrict__ y, size_t m, size_t n) {
  __shared__ float sums[WARPS][WARP];
  const unsigned lane = threadIdx.x % WARP, warp = threadIdx.x / WARP;
  for (size_t first = (size_t)blockIdx.x * WARP; first < n; first += (size_t)gridDim.x * WARP) {
    const size_t column = first + lane;
    float sum = column < n ? add_rows(x, warp, m, n, column) : 0.0f;
    sums[warp][lane] = sum;
    __syncthreads();
    if (warp == 0 && column < n) {
      for (unsigned other = 1; other < WARPS; other++) sum += sums[other][lane];
      y[column] = sum;
    }
    __syncthreads(); /* the sums have been read */
  }
}
