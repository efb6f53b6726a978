/* SPDX-License-Identifier: MIT
 * The CUDA form of append in attention_decode.c: a warp copies a row, in pieces of two bytes.
 */
#include "tensor/operators/kernel_support.cuh"

struct append_shape {
  size_t count, columns, size, bytes;
};

extern "C" __global__ void attention_append(append_shape shape, const unsigned short *__restrict__ rows,
                                            const int *__restrict__ at, unsigned short *__restrict__ cache, u64 *cell) {
  const size_t pieces = shape.size * shape.bytes / sizeof *rows;
  if (!check_index(cell, 0, *at, shape.columns)) return;
  for (size_t i = (size_t)blockIdx.x * WARPS + threadIdx.x / WARP; i < shape.count; i += (size_t)gridDim.x * WARPS) {
    for (size_t j = threadIdx.x % WARP; j < pieces; j += WARP)
      cache[(i * shape.columns + (size_t)*at) * pieces + j] = rows[i * pieces + j];
  }
}
