/* SPDX-License-Identifier: MIT
 * The CUDA form of bce_with_logits.c.
 */
#include "tensor/operators/loss/pair_loss.cuh"

struct binary_entropy {
  static __device__ float loss(float x, float t) {
    const float above = x < 0 ? 0 : x; /* NaN stays */
    return above - x * t + log1pf(expf(-fabsf(x)));
  }
  static __device__ float slope_a(float x, float t) {
    const float e = expf(-fabsf(x));
    return (x < 0 ? e : 1.0f) / (1.0f + e) - t;
  }
  static __device__ float slope_b(float x, float) { return -x; }
};

extern "C" __global__ void bce_with_logits_parts_TYPE(pair_shape shape, const element *__restrict__ a,
                                                      const element *__restrict__ b, double *__restrict__ parts) {
  add_parts<binary_entropy>(shape, a, b, parts);
}

extern "C" __global__ void bce_with_logits_gradient_TYPE(pair_shape shape, float factor, const element *__restrict__ a,
                                                         const element *__restrict__ b, const float *__restrict__ dloss,
                                                         element *__restrict__ d) {
  take_slopes<binary_entropy>(shape, factor, a, b, dloss, d);
}
