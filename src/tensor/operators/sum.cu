/* SPDX-License-Identifier: MIT
 * The CUDA form of sum.c.
 */
#include "tensor/operators/reduce.cuh"

struct summing {
  static __device__ float of(float a, float b) { return a + b; }
  static __device__ float none() { return 0.0f; }
};

extern "C" __global__ void sum_rows_TYPE(reduction shape, const element *x, void *to, float factor) {
  reduce_rows<summing>(shape, x, to, factor);
}

extern "C" __global__ void sum_columns_TYPE(reduction shape, const element *x, void *to, float factor) {
  reduce_columns<summing>(shape, x, to, factor);
}

extern "C" __global__ void sum_parts_TYPE(reduction shape, const float *from, element *y, float factor) {
  reduce_parts<summing>(shape, from, y, factor);
}
