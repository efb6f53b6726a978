/* SPDX-License-Identifier: MIT
 * The CUDA kernel of rotary_angles in rotary.c: a thread for each pair of a row.
 */
#include "tensor/operators/common/kernel_support.cuh"

#define TURN 6.283185307179586477

struct angles_shape {
  size_t rows, pairs;
  double step, position_scale;
};

extern "C" __global__ void rotary_angles(angles_shape shape, const int *__restrict__ positions,
                                         const float *__restrict__ given, float *__restrict__ to) {
  for (size_t i = first_element(); i < shape.rows * shape.pairs; i += element_stride()) {
    const size_t row = i / shape.pairs, pair = i % shape.pairs;
    const double frequency = given != 0 ? (double)given[pair] : exp2(-(double)pair * shape.step);
    const double angle = (double)positions[row] * shape.position_scale * frequency;
    const float rest = (float)(angle - TURN * rint(angle / TURN));
    to[2 * row * shape.pairs + pair] = cosf(rest);
    to[(2 * row + 1) * shape.pairs + pair] = sinf(rest);
  }
}
