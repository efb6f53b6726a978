/* SPDX-License-Identifier: MIT
 * The CUDA kernel of attention_append in attention_decode.c: a warp copies a row, in pieces of two bytes.
 */
#include "tensor/operators/common/kernel_support.cuh"

struct append_shape {
  size_t heads, columns, size, bytes, count, groups;
  size_t batch, head, row; /* strides, in elements */
};

extern "C" __global__ void attention_append(GATE, append_shape shape, const unsigned short *__restrict__ k,
                                            const unsigned short *__restrict__ v, const int *__restrict__ given,
                                            unsigned short *__restrict__ k_cache,
                                            unsigned short *__restrict__ v_cache) {
  const size_t each = shape.bytes / sizeof *k, pieces = shape.size * each, rows = shape.heads * shape.count;
  if (!may_update(TO_GATE) || (given != NULL && !is_index(*given, shape.columns))) return;
  const size_t at = given != NULL ? (size_t)*given : 0;
  for (size_t i = (size_t)blockIdx.x * WARPS + threadIdx.x / WARP; i < 2 * rows; i += (size_t)gridDim.x * WARPS) {
    const size_t head = i % rows / shape.count, row = i % shape.count;
    const size_t from = head / shape.groups * shape.batch + head % shape.groups * shape.head + row * shape.row;
    const unsigned short *const source = (i < rows ? k : v) + from * each;
    unsigned short *const to = (i < rows ? k_cache : v_cache) + (head * shape.columns + at + row) * pieces;
    for (size_t j = threadIdx.x % WARP; j < pieces; j += WARP) to[j] = source[j];
  }
}
