/* SPDX-License-Identifier: MIT
 * The float types in memory, for kernels whose arithmetic uses float. Rounding is to nearest, ties to even, as in
 * element.h on a CPU.
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

/* So many elements are read and written together. Values start at multiples of 256 bytes. */
#define PACK 4

template <class T>
struct alignas(PACK * sizeof(T)) pack {
  T at[PACK];
};

template <class U, class F, class... P>
__device__ inline void map_pack(U *y, size_t number, F of, const P... in) {
  pack<U> out;
#pragma unroll
  for (unsigned k = 0; k < PACK; k++) out.at[k] = of(number * PACK + k, in.at[k]...);
  ((pack<U> *)y)[number] = out;
}

/* y[i] = of(i, x[i] ...) for i < count, a pack at a time. */
template <class U, class F, class... T>
__device__ inline void map_from(size_t first, size_t count, size_t stride, U *__restrict__ y, F of,
                                const T *__restrict__... x) {
  const size_t packs = count / PACK;
  for (size_t i = first; i < packs; i += stride) map_pack(y, i, of, ((const pack<T> *)x)[i]...);
  for (size_t i = packs * PACK + first; i < count; i += stride) y[i] = of(i, x[i]...);
}
