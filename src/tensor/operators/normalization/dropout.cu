/* SPDX-License-Identifier: MIT
 * The CUDA kernel of dropout.c, with the same random numbers.
 */
#include "exec/random.cuh"
#include "tensor/operators/common/element.cuh"

/* Numbers of one draw: as many as a pack has elements, so that the compiler merges the draws of a pack. */
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
  const auto drop = [&](size_t position, element in) {
    return to_element(dropout_of(to_float(in), position, first_group, probability, state));
  };
  map_from(first_element(), count, element_stride(), y, drop, x);
}
