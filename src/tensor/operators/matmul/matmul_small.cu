/* SPDX-License-Identifier: MIT
 * The CUDA kernel of matmul.c for tiles of a few thousand multiplications: 16 x 16 results, or shallow ones. A
 * multiprocessor runs more of them at once.
 */
#include "tensor/operators/matmul/gemm.cuh"

typedef tile<16, 128, 4> small_tile;
typedef tile<32, 32, 8> shallow_tile;

#define SHARED_FLOATS small_tile::FLOATS

extern "C" __global__ void __launch_bounds__(BLOCK_THREADS, 4)
    matmul_small_TYPE(matmul_problem problem, const element *__restrict__ a, const element *__restrict__ b,
                      const element *__restrict__ bias, element *__restrict__ y, element *__restrict__ unactivated) {
  static_assert(SHARED_FLOATS >= shallow_tile::FLOATS, "both have room");
  __shared__ __align__(16) float panels[SHARED_FLOATS];
  const matmul_memory memory = {a, b, bias, y, unactivated};
  if (problem.tiles.rows == small_tile::EDGE)
    multiply_tiles<small_tile>(problem, memory, panels);
  else
    multiply_tiles<shallow_tile>(problem, memory, panels);
}
