/* SPDX-License-Identifier: MIT
 * The types of float in memory, for kernels whose arithmetic is done with floats. Rounding is to the nearest, ties to
 * even, as element.h does it on a CPU.
 */
#include "tensor/operators/common/kernel_support.cuh"

struct f16 {
  unsigned short bits;
};

struct bf16 {
  unsigned short bits;
};

__device__ inline float to_float(float x) { return x; }

__device__ inline float to_float(f16 x) {
  float y;
  asm("cvt.f32.f16 %0, %1;" : "=f"(y) : "h"(x.bits));
  return y;
}

__device__ inline float to_float(bf16 x) { return __uint_as_float((unsigned)x.bits << 16); }

template <class T>
__device__ inline T from_float(float x);

template <>
__device__ inline float from_float<float>(float x) {
  return x;
}

template <>
__device__ inline f16 from_float<f16>(float x) {
  f16 y;
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(y.bits) : "f"(x));
  return y;
}

template <>
__device__ inline bf16 from_float<bf16>(float x) {
  const unsigned bits = __float_as_uint(x);
  const unsigned rounded = bits + 0x7fffu + (bits >> 16 & 1u);
  bf16 y;
  y.bits = (unsigned short)((bits & 0x7fffffffu) > 0x7f800000u ? bits >> 16 | 0x40u : rounded >> 16);
  return y;
}

/* So many elements are read and written together; values start at multiples of 256 bytes. */
#define PACK 4

template <class T>
struct alignas(PACK * sizeof(T)) pack {
  T at[PACK];
};
