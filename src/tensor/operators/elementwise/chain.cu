/* SPDX-License-Identifier: MIT
 * The common part of the kernels of chains (chain_source.c). The functions of the operators follow it, and a kernel
 * that processes the elements in packs.
 */
#include "exec/random.cuh"
#include "tensor/operators/common/numbers.cuh"
#include "tensor/operators/elementwise/elementary.cuh"

/* The same as in tensor/compile/chain_plan.h. */
#define MAX_DIMENSIONS 6
#define MAX_LAYOUTS 4
#define MAX_STEPS 12

struct chain_layout {
  size_t rank;
  size_t dims[MAX_DIMENSIONS], strides[MAX_DIMENSIONS];
};

struct chain_numbers {
  float numbers[2];
  size_t size;
};

struct chain_form {
  size_t count, packs;
  chain_layout layouts[MAX_LAYOUTS];
  chain_numbers steps[MAX_STEPS];
  unsigned zero;
  unsigned char of_a_cpu[92];
};

/* The result of a step as the next step reads it. If the compiler saw the product of one step and the sum of the next,
 * it would contract them and round once, where separate operators round twice. Unknown bits prevent that. */
__device__ inline float settled(float x, unsigned zero) { return __uint_as_float(__float_as_uint(x) | zero); }
template <class T>
__device__ inline T settled(T x, unsigned) {
  return x;
}

template <class index>
__device__ inline size_t offset_in(const chain_layout &layout, index position) {
  size_t offset = 0;
  for (unsigned d = (unsigned)layout.rank - 1; d > 0; d--) {
    const index rest = position / (index)layout.dims[d];
    offset += (position - rest * (index)layout.dims[d]) * layout.strides[d];
    position = rest;
  }
  return offset + position * layout.strides[0];
}

/* 32-bit division is much faster. */
__device__ inline size_t offset_at(const chain_layout &layout, size_t position) {
  return position < 0x7fffffffu ? offset_in(layout, (unsigned)position) : offset_in(layout, position);
}

template <class T>
__device__ inline pack<T> pack_at(const T *x, size_t number) {
  return ((const pack<T> *)x)[number];
}

template <class T>
__device__ inline pack<T> pack_at(const chain_layout &layout, const T *x, size_t number) {
  const T *first = x + offset_at(layout, number * PACK);
  if (layout.strides[layout.rank - 1] != 0) return *(const pack<T> *)first;
  pack<T> all;
#pragma unroll
  for (unsigned k = 0; k < PACK; k++) all.at[k] = *first;
  return all;
}
