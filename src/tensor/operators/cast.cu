/* SPDX-License-Identifier: MIT
 * The CUDA form of cast.c.
 */
#include "tensor/operators/floats.cuh"

typedef long long i64;

/* As rondo_type. */
enum { F32 = 1, I32 = 2, I64 = 4, F16 = 5, BF16 = 6 };

__device__ inline float to_number(float x) { return x; }
__device__ inline float to_number(f16 x) { return to_float(x); }
__device__ inline float to_number(bf16 x) { return to_float(x); }
__device__ inline i64 to_number(int x) { return x; }
__device__ inline i64 to_number(i64 x) { return x; }

/* Floats towards zero, to the nearest there is; not a number becomes 0. */
template <class T>
struct rounded {
  static __device__ T of(float x) { return from_float<T>(x); }
  static __device__ T of(i64 x) { return from_float<T>((float)x); }
};

template <>
struct rounded<int> {
  static __device__ int of(float x) { return x == x ? __float2int_rz(x) : 0; }
  static __device__ int of(i64 x) { return (int)x; }
};

template <>
struct rounded<i64> {
  static __device__ i64 of(float x) { return x == x ? __float2ll_rz(x) : 0; }
  static __device__ i64 of(i64 x) { return x; }
};

template <class T, class U>
__device__ inline void cast_all(const T *__restrict__ x, U *__restrict__ y, size_t count) {
  const size_t packs = count / PACK;
  for (size_t i = first_element(); i < packs; i += element_stride()) {
    const pack<T> in = ((const pack<T> *)x)[i];
    pack<U> out;
#pragma unroll
    for (unsigned k = 0; k < PACK; k++) out.at[k] = rounded<U>::of(to_number(in.at[k]));
    ((pack<U> *)y)[i] = out;
  }
  for (size_t i = packs * PACK + first_element(); i < count; i += element_stride())
    y[i] = rounded<U>::of(to_number(x[i]));
}

template <class T>
__device__ inline void cast_from(const T *x, void *y, unsigned to, size_t count) {
  switch (to) {
    case F32:
      return cast_all(x, (float *)y, count);
    case F16:
      return cast_all(x, (f16 *)y, count);
    case BF16:
      return cast_all(x, (bf16 *)y, count);
    case I32:
      return cast_all(x, (int *)y, count);
    case I64:
      return cast_all(x, (i64 *)y, count);
  }
}

extern "C" __global__ void cast(const void *x, void *y, unsigned from, unsigned to, size_t count) {
  switch (from) {
    case F32:
      return cast_from((const float *)x, y, to, count);
    case F16:
      return cast_from((const f16 *)x, y, to, count);
    case BF16:
      return cast_from((const bf16 *)x, y, to, count);
    case I32:
      return cast_from((const int *)x, y, to, count);
    case I64:
      return cast_from((const i64 *)x, y, to, count);
  }
}
