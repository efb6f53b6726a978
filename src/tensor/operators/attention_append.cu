/* SPDX-License-Identifier: MIT
 * The CUDA form of append in attention_decode.c: a warp copies a row, in pieces of two bytes.
 */
#include "tensor/operators/kernel_support.cuh"

struct append_shape {
  size_t count, columns, size, bytes, groups, apart;
};

extern "C" __global__ void attention_append(append_shape shape, const unsigned short *__restrict__ k,
                                            const unsigned short *__restrict__ v, const int *__restrict__ at,
                                            unsigned short *__restrict__ k_cache, unsigned short *__restrict__ v_cache,
                                            u64 *cell) {
  const size_t each = shape.bytes / sizeof *k, pieces = shape.size * each;
  if (!check_index(cell, 0, *at, shape.columns)) return;
  for (size_t i = (size_t)blockIdx.x * WARPS + threadIdx.x / WARP; i < 2 * shape.count;
       i += (size_t)gridDim.x * WARPS) {
    const size_t row = i % shape.count, from = row / shape.groups * shape.apart * each + row % shape.groups * pieces;
    const unsigned short *const rows = (i < shape.count ? k : v) + from;
    unsigned short *const cache = (i < shape.count ? k_cache : v_cache) + (row * shape.columns + (size_t)*at) * pieces;
    for (size_t j = threadIdx.x % WARP; j < pieces; j += WARP) cache[j] = rows[j];
  }
}
