/* SPDX-License-Identifier: MIT
 * The CUDA form of dropout.c: the same numbers.
 */
#include "exec/random.cuh"
#include "tensor/operators/element.cuh"

#define GROUP 4

extern "C" __global__ void dropout_TYPE(const element *__restrict__ x, const float *__restrict__ probability,
                                        const u64 *__restrict__ state, element *__restrict__ y, size_t count,
                                        size_t first_group) {
  const float p = *probability;
  const unsigned bound = !(p > 0) ? 0u : p < 1 ? (unsigned)(p * 16777216.0f + 0.5f) : 1u << 24;
  const float scale = bound == 0 ? 1.0f : 1.0f / (1.0f - p);
  for (size_t group = first_element(); group * GROUP < count; group += element_stride()) {
    const rondo_random4 drawn = rondo_philox(state[0], first_group + group, state[1]);
#pragma unroll
    for (unsigned k = 0; k < GROUP; k++) {
      const size_t i = group * GROUP + k;
      if (i < count) y[i] = to_element(drawn.x[k] >> 8 < bound ? 0.0f : to_float(x[i]) * scale);
    }
  }
}
