/* SPDX-License-Identifier: MIT
 * The kernels of the reductions. The build makes a source for each row of the table and each type, in which the row's
 * name replaces REDUCTION.
 */
#include "tensor/operators/reduction/reduction.cuh"

#define INFINITY __int_as_float(0x7f800000)
#define INT64_MAX 0x7fffffffffffffffll
#define INT64_MIN (-INT64_MAX - 1)
#define WRAP(a, operator, b) (i64)((u64)(a) operator(u64)(b))

#ifdef ELEMENT_IS_FLOAT
#define REDUCTION(name, formula, none_value, integers_formula, no_integer) JOINING(name, formula, none_value)
#else
#define REDUCTION(name, formula, none_value, integers_formula, no_integer) JOINING(name, integers_formula, no_integer)
#endif
#define JOINING(name, formula, none_value)                                   \
  struct name##_joining {                                                    \
    static __device__ number of(number joined, number x) { return formula; } \
    static __device__ number none() { return none_value; }                   \
  };
#include "tensor/operators/reduction/reductions.inc"

extern "C" __global__ void REDUCTION_rows_NUMBER(reduction shape, const element *x, void *to, float factor) {
  reduce_rows<REDUCTION_joining>(shape, x, to, factor);
}

extern "C" __global__ void REDUCTION_columns_NUMBER(reduction shape, const element *x, void *to, float factor) {
  reduce_columns<REDUCTION_joining>(shape, x, to, factor);
}

extern "C" __global__ void REDUCTION_parts_NUMBER(reduction shape, const number *from, element *y, float factor) {
  reduce_parts<REDUCTION_joining>(shape, from, y, factor);
}
