/* SPDX-License-Identifier: MIT
 * One kernel for several operations, as joined.h says. The number of the operation, which is the same for all threads
 * of a block, selects its pointers:
 *
 *   #define PARAMETERS(i) , float *p##i, const void *g##i
 *   #define PICK(i) case i: p = p##i, g = g##i; break;
 *   extern "C" __global__ void scale_joined(joined_table table, float factor EACH_JOINED(PARAMETERS)) {
 *     const joined_share share = share_of(table);
 *     float *p = 0; const void *g = 0;
 *     switch (share.operation) { EACH_JOINED(PICK) }
 *     each_gradient(share.type, g, share.first, share.elements, share.stride,
 *                   [&](size_t i, float gradient) { p[i] = factor * gradient; });
 *   }
 *
 * Gradients have any float type, and kernels compute in F32. They write fmaf where a product and a sum are one
 * operation, because the compiler would decide that for each type separately.
 */
#include "tensor/operators/common/floats.cuh"

#define MAX_JOINED 30 /* RONDO_MAX_JOINED */

#define EACH_OF_TEN(ROW, t) \
  ROW(t##0) ROW(t##1) ROW(t##2) ROW(t##3) ROW(t##4) ROW(t##5) ROW(t##6) ROW(t##7) ROW(t##8) ROW(t##9)
#define EACH_JOINED(ROW) EACH_OF_TEN(ROW, ) EACH_OF_TEN(ROW, 1) EACH_OF_TEN(ROW, 2)

#define FEWER_JOINED 20 /* RONDO_FEWER_JOINED */
#define EACH_OF_FEWER_JOINED(ROW) EACH_OF_TEN(ROW, ) EACH_OF_TEN(ROW, 1)

struct joined_table {
  size_t elements[MAX_JOINED];
  unsigned first_blocks[MAX_JOINED + 2];
  unsigned char types[MAX_JOINED + 2];
};

/* for (size_t i = share.first; i < share.elements; i += share.stride) */
struct joined_share {
  unsigned operation, type; /* as in joined.h */
  size_t first, elements, stride;
};

/* The operation of the calling block, and which of its blocks it is. */
struct joined_block {
  unsigned operation, block, blocks;
};

__device__ inline joined_block block_of(const joined_table &table) {
  joined_block own = {0, 0, 0};
#pragma unroll
  for (unsigned i = 1; i < MAX_JOINED; i++) own.operation += blockIdx.x >= table.first_blocks[i];
  const unsigned begin = table.first_blocks[own.operation];
  own.block = blockIdx.x - begin;
  own.blocks = table.first_blocks[own.operation + 1] - begin;
  return own;
}

/* The share of the calling thread. */
__device__ inline joined_share share_of(const joined_table &table) {
  const joined_block own = block_of(table);
  return {own.operation, table.types[own.operation], (size_t)own.block * BLOCK_THREADS + threadIdx.x,
          table.elements[own.operation], (size_t)own.blocks * BLOCK_THREADS};
}

/* As rondo_type. */
enum { GRADIENT_F16 = 5, GRADIENT_BF16 = 6 };

/* Calls of(i, g[i]) for i = first, first + stride, .. before count. The type is the same for all threads of a block. */
template <class F>
__device__ inline void each_gradient(unsigned type, const void *g, size_t first, size_t count, size_t stride, F of) {
  if (type == GRADIENT_F16) {
    for (size_t i = first; i < count; i += stride) of(i, to_float(((const f16 *)g)[i]));
  } else if (type == GRADIENT_BF16) {
    for (size_t i = first; i < count; i += stride) of(i, to_float(((const bf16 *)g)[i]));
  } else {
    for (size_t i = first; i < count; i += stride) of(i, ((const float *)g)[i]);
  }
}
