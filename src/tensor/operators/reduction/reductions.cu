/* SPDX-License-Identifier: MIT
 * The kernels of the reductions. The build makes a source for each row of the table and each float type, in which the
 * row's name replaces REDUCTION.
 */
#include "tensor/operators/reduction/reduction.cuh"

#define INFINITY __int_as_float(0x7f800000)
#define REDUCTION(name, formula, none_value)                              \
  struct name##_joining {                                                 \
    static __device__ float of(float joined, float x) { return formula; } \
    static __device__ float none() { return none_value; }                 \
  };
#include "tensor/operators/reduction/reductions.inc"

extern "C" __global__ void REDUCTION_rows_TYPE(reduction shape, const element *x, void *to, float factor) {
  reduce_rows<REDUCTION_joining>(shape, x, to, factor);
}

extern "C" __global__ void REDUCTION_columns_TYPE(reduction shape, const element *x, void *to, float factor) {
  reduce_columns<REDUCTION_joining>(shape, x, to, factor);
}

extern "C" __global__ void REDUCTION_parts_TYPE(reduction shape, const float *from, element *y, float factor) {
  reduce_parts<REDUCTION_joining>(shape, from, y, factor);
}
