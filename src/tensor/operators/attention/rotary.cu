/* SPDX-License-Identifier: MIT
 * The CUDA kernel of rotary in rotary.c: a warp for each row of a head.
 */
#include "tensor/operators/common/element.cuh"

struct rotary_shape {
  size_t batches, heads, rows, size, rotated, pairs, angle_batch;
  unsigned packed, interleaved;
  u64 back;
};

__device__ inline void rotate_row(const rotary_shape &shape, const element *__restrict__ x,
                                  const float *__restrict__ angles, element *__restrict__ y) {
  const size_t apart = shape.interleaved != 0 ? 1 : shape.pairs, step = shape.interleaved != 0 ? 2 : 1;
  for (size_t i = threadIdx.x % WARP; i < shape.pairs; i += WARP) {
    const float a = to_float(x[i * step]), b = to_float(x[i * step + apart]);
    const float cosine = angles[i], sine = shape.back != 0 ? -angles[shape.pairs + i] : angles[shape.pairs + i];
    y[i * step] = to_element(a * cosine - b * sine);
    y[i * step + apart] = to_element(b * cosine + a * sine);
  }
}

extern "C" __global__ void rotary_TYPE(rotary_shape shape, const element *__restrict__ x,
                                       const float *__restrict__ angles, element *__restrict__ y) {
  const size_t count = shape.batches * shape.heads * shape.rows;
  for (size_t i = (size_t)blockIdx.x * WARPS + threadIdx.x / WARP; i < count; i += (size_t)gridDim.x * WARPS) {
    const size_t inner = shape.packed != 0 ? shape.heads : shape.rows;
    const size_t outer = i / inner % (shape.packed != 0 ? shape.rows : shape.heads);
    const size_t head = shape.packed != 0 ? i % inner : outer, row = shape.packed != 0 ? outer : i % inner;
    const size_t angle = i / (shape.heads * shape.rows) * shape.angle_batch + row, at = i * shape.size;
    const bool is_rotated = head < shape.rotated;
    if (is_rotated) rotate_row(shape, x + at, angles + 2 * angle * shape.pairs, y + at);
    for (size_t j = (is_rotated ? 2 * shape.pairs : 0) + threadIdx.x % WARP; j < shape.size; j += WARP)
      y[at + j] = x[at + j];
  }
}
