/* SPDX-License-Identifier: MIT
 * Elements of a type of float, for kernels called <name>_TYPE, whose source is compiled once a type: memory holds
 * `element`s, arithmetic is done with floats. Rounding is to the nearest, ties to even, as element.h does it on a CPU.
 */
#include "tensor/operators/kernel_support.cuh"

#if defined(ELEMENT_IS_F32)
typedef float element;

__device__ inline float to_float(element x) { return x; }
__device__ inline element to_element(float x) { return x; }
#elif defined(ELEMENT_IS_F16)
struct element {
  unsigned short bits;
};

__device__ inline float to_float(element x) {
  float y;
  asm("cvt.f32.f16 %0, %1;" : "=f"(y) : "h"(x.bits));
  return y;
}

__device__ inline element to_element(float x) {
  element y;
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(y.bits) : "f"(x));
  return y;
}
#else
struct element {
  unsigned short bits;
};

__device__ inline float to_float(element x) { return __uint_as_float((unsigned)x.bits << 16); }

__device__ inline element to_element(float x) {
  const unsigned bits = __float_as_uint(x);
  const unsigned rounded = bits + 0x7fffu + (bits >> 16 & 1u);
  element y;
  y.bits = (unsigned short)((bits & 0x7fffffffu) > 0x7f800000u ? bits >> 16 | 0x40u : rounded >> 16);
  return y;
}
#endif
