/* SPDX-License-Identifier: MIT
 * The CUDA form of max.c.
 */
#include "tensor/operators/reduction/reduction.cuh"

/* Not-a-number is larger than all. */
struct maximizing {
  static __device__ float of(float a, float b) { return a > b || a != a ? a : b; }
  static __device__ float none() { return __int_as_float(0xff800000); }
};

extern "C" __global__ void max_rows_TYPE(reduction shape, const element *x, void *to, float factor) {
  reduce_rows<maximizing>(shape, x, to, factor);
}

extern "C" __global__ void max_columns_TYPE(reduction shape, const element *x, void *to, float factor) {
  reduce_columns<maximizing>(shape, x, to, factor);
}

extern "C" __global__ void max_parts_TYPE(reduction shape, const float *from, element *y, float factor) {
  reduce_parts<maximizing>(shape, from, y, factor);
}
