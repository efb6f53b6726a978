/* SPDX-License-Identifier: MIT
 * The CUDA form of column_sum in op_matmul.c: a block owns 32 columns; each of its warps adds every 8th row, then the
 * warps' sums are added in their order.
 */
#include "tensor/kernel_support.cuh"

extern "C" __global__ void column_sum(const float *__restrict__ x, float *__restrict__ y, size_t m, size_t n) {
  __shared__ float sums[WARPS][WARP];
  const unsigned lane = threadIdx.x % WARP, warp = threadIdx.x / WARP;
  for (size_t first = (size_t)blockIdx.x * WARP; first < n; first += (size_t)gridDim.x * WARP) {
    const size_t column = first + lane;
    float sum = 0;
#pragma unroll 8
    for (size_t row = warp; row < (column < n ? m : 0); row += WARPS) sum += x[row * n + column];
    sums[warp][lane] = sum;
    __syncthreads();
    if (warp == 0 && column < n) {
      for (unsigned other = 1; other < WARPS; other++) sum += sums[other][lane];
      y[column] = sum;
    }
    __syncthreads(); /* the sums have been read */
  }
}
