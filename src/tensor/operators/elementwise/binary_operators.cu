/* SPDX-License-Identifier: MIT
 * The kernels of the element-wise operators with two inputs. The build makes a source for each row of the table and
 * each type, in which the row's name replaces BINARY.
 */
#include "tensor/operators/elementwise/broadcast.cuh"
#include "tensor/operators/elementwise/elementary.cuh"

#define BINARY(name, floats, integers)                                   \
  __device__ inline float name##_of(float a, float b) { return floats; } \
  __device__ inline i64 name##_of(i64 a, i64 b) { return integers; }
#define INTEGER_BINARY(name, integers) \
  __device__ inline i64 name##_of(i64 a, i64 b) { return integers; }
#define STEP(name, floats, integers)                            \
  __device__ inline float name##_of(float a) { return floats; } \
  __device__ inline i64 name##_of(i64 a) { return integers; }
#define COMPARISON(name, formula)                                       \
  __device__ inline i64 name##_of(float a, float b) { return formula; } \
  __device__ inline i64 name##_of(i64 a, i64 b) { return formula; }
#define PREDICATE(name, floats, integers)                     \
  __device__ inline i64 name##_of(float a) { return floats; } \
  __device__ inline i64 name##_of(i64 a) { return integers; }
#define TERNARY(name, inputs, formula) \
  __device__ inline float name##_of(float a, float b, float c) { return formula; }
#include "tensor/operators/elementwise/binary_operators.inc"

extern "C" __global__ void BINARY_NUMBER(broadcast shape, const element *a, const element *b, element *y) {
  broadcast_2(shape, a, b, y, [](element p, element q) { return to_element(BINARY_of(to_number(p), to_number(q))); });
}
