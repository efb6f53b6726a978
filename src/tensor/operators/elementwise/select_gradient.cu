/* SPDX-License-Identifier: MIT
 * The CUDA kernels of the gradients in select.c.
 */
#include "tensor/operators/elementwise/broadcast.cuh"

__device__ inline float select_gradient_a_of(i64 is_set, float dy) { return is_set != 0 ? dy : 0.0f; }
__device__ inline float select_gradient_b_of(i64 is_set, float dy) { return is_set != 0 ? 0.0f : dy; }

extern "C" __global__ void select_gradient_a_TYPE(broadcast shape, const boolean *condition, const element *dy,
                                                  element *dx) {
  broadcast_2(shape, condition, dy, dx, [](boolean is_set, element d) {
    return to_element(select_gradient_a_of(to_number(is_set), to_float(d)));
  });
}

extern "C" __global__ void select_gradient_b_TYPE(broadcast shape, const boolean *condition, const element *dy,
                                                  element *dx) {
  broadcast_2(shape, condition, dy, dx, [](boolean is_set, element d) {
    return to_element(select_gradient_b_of(to_number(is_set), to_float(d)));
  });
}
