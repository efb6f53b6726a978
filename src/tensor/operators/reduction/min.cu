/* SPDX-License-Identifier: MIT
 * The CUDA form of min.c.
 */
#include "tensor/operators/reduction/reduction.cuh"

/* Not-a-number is smaller than all. */
struct minimizing {
  static __device__ float of(float a, float b) { return a < b || a != a ? a : b; }
  static __device__ float none() { return __int_as_float(0x7f800000); }
};

extern "C" __global__ void min_rows_TYPE(reduction shape, const element *x, void *to, float factor) {
  reduce_rows<minimizing>(shape, x, to, factor);
}

extern "C" __global__ void min_columns_TYPE(reduction shape, const element *x, void *to, float factor) {
  reduce_columns<minimizing>(shape, x, to, factor);
}

extern "C" __global__ void min_parts_TYPE(reduction shape, const float *from, element *y, float factor) {
  reduce_parts<minimizing>(shape, from, y, factor);
}
