/* SPDX-License-Identifier: MIT
 * The CUDA form of mse.c.
 */
#include "tensor/operators/loss/pair_loss.cuh"

struct squares {
  static __device__ float loss(float a, float b) { return (a - b) * (a - b); }
  static __device__ float slope_a(float a, float b) { return 2.0f * (a - b); }
  static __device__ float slope_b(float a, float b) { return 2.0f * (b - a); }
};

extern "C" __global__ void mse_parts_TYPE(pair_shape shape, const element *__restrict__ a,
                                          const element *__restrict__ b, double *__restrict__ parts) {
  add_parts<squares>(shape, a, b, parts);
}

extern "C" __global__ void mse_gradient_TYPE(pair_shape shape, float factor, const element *__restrict__ a,
                                             const element *__restrict__ b, const float *__restrict__ dloss,
                                             element *__restrict__ d) {
  take_slopes<squares>(shape, factor, a, b, dloss, d);
}
