/* SPDX-License-Identifier: MIT
 * The CUDA form of div.c.
 */
#include "tensor/operators/elementwise/broadcast.cuh"

__device__ inline float div_of(float a, float b) { return a / b; }
__device__ inline float div_gradient_of(float dy, float y, float b) { return -dy * y / b; }

extern "C" __global__ void div_TYPE(broadcast shape, const element *a, const element *b, element *y) {
  broadcast_2(shape, a, b, y, [](element p, element q) { return to_element(div_of(to_float(p), to_float(q))); });
}

extern "C" __global__ void div_gradient_TYPE(broadcast shape, const element *dy, const element *y, const element *b,
                                             element *db) {
  broadcast_3(shape, dy, y, b, db, [](element d, element p, element q) {
    return to_element(div_gradient_of(to_float(d), to_float(p), to_float(q)));
  });
}
