/* SPDX-License-Identifier: MIT
 * The CUDA kernel of attention_append in attention_cache.c: a warp copies a row, in pieces of two bytes.
 */
#include "tensor/operators/common/kernel_support.cuh"

struct append_place {
  size_t batch, head, row; /* strides, in elements */
};

struct append_shape {
  size_t batches, groups, rows, size, bytes, block_rows, table_blocks;
  append_place from, cache;
};

extern "C" __global__ void attention_append(GATE, append_shape shape, const unsigned short *__restrict__ k,
                                            const unsigned short *__restrict__ v, const int *__restrict__ plan,
                                            unsigned short *__restrict__ k_cache,
                                            unsigned short *__restrict__ v_cache) {
  const size_t each = shape.bytes / sizeof *k, pieces = shape.size * each;
  const size_t rows = shape.batches * shape.groups * shape.rows;
  if (!may_update(TO_GATE)) return;
  for (size_t i = (size_t)blockIdx.x * WARPS + threadIdx.x / WARP; i < 2 * rows; i += (size_t)gridDim.x * WARPS) {
    const size_t row = i % shape.rows, group = i / shape.rows % shape.groups;
    const size_t batch = i % rows / shape.rows / shape.groups;
    const size_t at = (size_t)plan[batch] + row;
    if (row >= (size_t)plan[shape.batches + batch]) continue;
    const int *const table = plan + 2 * shape.batches + batch * shape.table_blocks;
    const size_t block = shape.table_blocks > 0 ? (size_t)table[at / shape.block_rows] : batch;
    const size_t from = batch * shape.from.batch + group * shape.from.head + row * shape.from.row;
    const size_t to = block * shape.cache.batch + group * shape.cache.head + at % shape.block_rows * shape.cache.row;
    const unsigned short *const source = (i < rows ? k : v) + from * each;
    unsigned short *const target = (i < rows ? k_cache : v_cache) + to * each;
    for (size_t j = threadIdx.x % WARP; j < pieces; j += WARP) target[j] = source[j];
  }
}
