/* SPDX-License-Identifier: MIT
 * The float types in memory, for kernels whose arithmetic uses float. Rounding is to nearest, ties to even, as in
 * element.h on a CPU. 8-bit floats are converted as in float8.h, on GPUs without instructions for that, too.
 */
#include "tensor/operators/common/kernel_support.cuh"

struct f16 {
  unsigned short bits;
};

struct bf16 {
  unsigned short bits;
};

struct f8_e4m3 {
  unsigned char bits;
};

struct f8_e5m2 {
  unsigned char bits;
};

__device__ inline float to_float(float x) { return x; }

__device__ inline float to_float(f16 x) {
  float y;
  asm("cvt.f32.f16 %0, %1;" : "=f"(y) : "h"(x.bits));
  return y;
}

__device__ inline float to_float(bf16 x) { return __uint_as_float((unsigned)x.bits << 16); }

__device__ inline float to_float(f8_e4m3 x) {
  const unsigned sign = (x.bits & 0x80u) << 24, magnitude = x.bits & 0x7fu;
  if (magnitude == 0x7fu) return __uint_as_float(sign | 0x7fc00000u);
  const unsigned normal = (magnitude << 20) + 0x3c000000u;
  return __uint_as_float(sign | (magnitude >= 8 ? normal : __float_as_uint((float)magnitude * 0x1p-9f)));
}

__device__ inline float to_float(f8_e5m2 x) {
  const f16 wide = {(unsigned short)(x.bits << 8)};
  return to_float(wide);
}

/* As rondo_to_f8 in float8.h. */
__device__ inline unsigned char to_f8(float x, unsigned dropped, unsigned largest, unsigned least, float even) {
  const unsigned magnitude = __float_as_uint(x) & 0x7fffffffu, sign = __float_as_uint(x) >> 24 & 0x80u;
  if (magnitude > 0x7f800000u) return (unsigned char)(sign | 0x7fu);
  const unsigned within = magnitude > largest ? largest : magnitude;
  const unsigned subnormal = __float_as_uint(__uint_as_float(within) + even) - __float_as_uint(even);
  const unsigned half = (1u << (dropped - 1)) - 1u;
  const unsigned normal = ((within - least + half + (within >> dropped & 1u)) >> dropped) + (1u << (23 - dropped));
  return (unsigned char)(sign | (within < least ? subnormal : normal));
}

template <class T>
__device__ inline T from_float(float x);

template <>
__device__ inline f8_e4m3 from_float<f8_e4m3>(float x) {
  return {to_f8(x, 20, 0x43e00000u, 0x3c800000u, 16384.0f)};
}

template <>
__device__ inline f8_e5m2 from_float<f8_e5m2>(float x) {
  return {to_f8(x, 21, 0x47600000u, 0x38800000u, 128.0f)};
}

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
