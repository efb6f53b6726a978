/* SPDX-License-Identifier: MIT
 * Gradients of any float type, for kernels that compute in F32. Such kernels write fmaf where a product and a sum are
 * one operation; the compiler would decide that for each type separately.
 */
#include "tensor/operators/common/floats.cuh"

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
