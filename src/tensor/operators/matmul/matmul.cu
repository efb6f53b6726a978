/* SPDX-License-Identifier: MIT
 * The CUDA kernel of matmul.c for large and medium tiles.
 */
#include "tensor/operators/matmul/gemm.cuh"

typedef tile<128, 8, 16> large_tile;
typedef tile<64, 32, 8> medium_tile;
typedef tile<32, 64, 4> deep_tile;

#define SHARED_FLOATS deep_tile::FLOATS

extern "C" __global__ void __launch_bounds__(BLOCK_THREADS, 2)
    matmul_TYPE(matmul_problem problem, const element *__restrict__ a, const element *__restrict__ b,
                const element *__restrict__ bias, element *__restrict__ y, element *__restrict__ unactivated) {
  static_assert(SHARED_FLOATS >= large_tile::FLOATS && SHARED_FLOATS >= medium_tile::FLOATS, "all have room");
  __shared__ __align__(16) float panels[SHARED_FLOATS];
  const matmul_memory memory = {a, b, bias, y, unactivated};
  if (problem.tiles.rows == large_tile::EDGE)
    multiply_tiles<large_tile>(problem, memory, panels);
  else if (problem.tiles.rows == medium_tile::EDGE)
    multiply_tiles<medium_tile>(problem, memory, panels);
  else
    multiply_tiles<deep_tile>(problem, memory, panels);
}
