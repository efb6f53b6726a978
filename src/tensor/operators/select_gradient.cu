/* SPDX-License-Identifier: MIT
 * The CUDA form of the gradients in select.c.
 */
#include "tensor/operators/broadcast.cuh"

extern "C" __global__ void select_gradient_a_TYPE(broadcast shape, const int *condition, const element *dy,
                                                  element *dx) {
  broadcast_2(shape, condition, dy, dx, [](int is_set, element d) { return is_set != 0 ? d : to_element(0.0f); });
}

extern "C" __global__ void select_gradient_b_TYPE(broadcast shape, const int *condition, const element *dy,
                                                  element *dx) {
  broadcast_2(shape, condition, dy, dx, [](int is_set, element d) { return is_set != 0 ? to_element(0.0f) : d; });
}
