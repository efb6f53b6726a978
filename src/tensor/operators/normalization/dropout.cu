/* SPDX-License-Identifier: MIT
 * The CUDA form of dropout.c: the same numbers.
 */
#include "exec/random.cuh"
#include "tensor/operators/common/element.cuh"

/* Numbers of one draw: as many as a pack has elements, whose draws the compiler makes one. */
#define GROUP PACK

/* The element at `position`. */
__device__ inline float dropout_of(float x, size_t position, size_t first_group, const float *probability,
                                   const i64 *state) {
  const float p = *probability;
  const unsigned bound = !(p > 0) ? 0u : p < 1 ? (unsigned)(p * 16777216.0f + 0.5f) : 1u << 24;
  const float scale = bound == 0 ? 1.0f : 1.0f / (1.0f - p);
  const rondo_random4 drawn = rondo_philox((u64)state[0], first_group + position / GROUP, (u64)state[1]);
  return drawn.x[position % GROUP] >> 8 < bound ? 0.0f : x * scale;
}

extern "C" __global__ void dropout_TYPE(const element *__restrict__ x, const float *__restrict__ probability,
                                        const i64 *__restrict__ state, element *__restrict__ y, size_t count,
                                        size_t first_group) {
  const size_t packs = count / PACK;
  for (size_t i = first_element(); i < packs; i += element_stride()) {
    const pack<element> in = ((const pack<element> *)x)[i];
    pack<element> out;
#pragma unroll
    for (unsigned k = 0; k < PACK; k++)
      out.at[k] = to_element(dropout_of(to_float(in.at[k]), i * PACK + k, first_group, probability, state));
    ((pack<element> *)y)[i] = out;
  }
  for (size_t i = packs * PACK + first_element(); i < count; i += element_stride())
    y[i] = to_element(dropout_of(to_float(x[i]), i, first_group, probability, state));
}
