/* SPDX-License-Identifier: MIT
 * The CUDA kernel of matmul.c for results of few columns: a warp computes a row of the result. Each lane takes every
 * 32nd step of the depth; the lanes' sums are added pair by pair.
 */
#include "tensor/operators/matmul/matmul_problem.cuh"

#define MAX_COLUMNS 4 /* THIN_COLUMNS of matmul_problem.c */

/* The strides of b. */
struct thin_steps {
  size_t depth, column;
};

__device__ inline void add_products(const matmul_problem &problem, const element *__restrict__ row,
                                    const element *__restrict__ b, thin_steps steps, float *sums) {
#pragma unroll 4
  for (size_t depth = threadIdx.x % WARP; depth < problem.k; depth += WARP) {
    const float left = to_float(row[depth]);
#pragma unroll
    for (unsigned j = 0; j < MAX_COLUMNS; j++)
      if (j < problem.n) sums[j] += left * to_float(b[depth * steps.depth + j * steps.column]);
  }
}

__device__ inline void write_row(const matmul_problem &problem, const matmul_memory &memory, size_t row,
                                 const float *sums) {
#pragma unroll
  for (unsigned j = 0; j < MAX_COLUMNS; j++) {
    float sum = sums[j];
#pragma unroll
    for (unsigned apart = WARP / 2; apart > 0; apart /= 2) sum += __shfl_xor_sync(ALL_LANES, sum, apart);
    if (threadIdx.x % WARP == j && j < problem.n) write_result(problem, memory, row * problem.n + j, j, sum);
  }
}

extern "C" __global__ void __launch_bounds__(BLOCK_THREADS)
    matmul_thin_TYPE(matmul_problem problem, const element *__restrict__ a, const element *__restrict__ b,
                     const element *__restrict__ bias, element *__restrict__ y, element *__restrict__ unactivated) {
  const bool transposed = problem.transpose_b != 0;
  const thin_steps steps = {transposed ? 1 : problem.n, transposed ? problem.k : 1};
  const size_t tiles = problem.batches * problem.tiles.down;
  for (size_t tile = blockIdx.x; tile < tiles; tile += gridDim.x) {
    const size_t product = tile / problem.tiles.down, row = tile % problem.tiles.down * WARPS + threadIdx.x / WARP;
    const matmul_memory memory = memory_of(problem, {a, b, bias, y, unactivated}, product);
    float sums[MAX_COLUMNS] = {0};
    if (row >= problem.m) continue;
    add_products(problem, memory.a + row * problem.k, memory.b, steps, sums);
    write_row(problem, memory, row, sums);
  }
}
