/* SPDX-License-Identifier: MIT
 * The kernels of the losses of two values. The build makes a source for each row of the table and each float type, in
 * which the row's name replaces LOSS.
 */
#include "tensor/operators/elementwise/elementary.cuh"
#include "tensor/operators/loss/pair_loss.cuh"

#define PAIR_LOSS(name, input, formula, slope_in_a, slope_in_b)              \
  struct name##_functions {                                                  \
    static __device__ float loss(float a, float b) { return formula; }       \
    static __device__ float slope_a(float a, float b) { return slope_in_a; } \
    static __device__ float slope_b(float a, float b) { return slope_in_b; } \
  };
#include "tensor/operators/loss/pair_losses.inc"

extern "C" __global__ void LOSS_parts_TYPE(pair_shape shape, const element *__restrict__ a,
                                           const element *__restrict__ b, double *__restrict__ parts) {
  add_parts<LOSS_functions>(shape, a, b, parts);
}

extern "C" __global__ void LOSS_gradient_TYPE(pair_shape shape, float factor, const element *__restrict__ a,
                                              const element *__restrict__ b, const float *__restrict__ dloss,
                                              element *__restrict__ d) {
  take_slopes<LOSS_functions>(shape, factor, a, b, dloss, d);
}
