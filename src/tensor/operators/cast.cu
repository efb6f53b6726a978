/* SPDX-License-Identifier: MIT
 * The CUDA form of cast.c.
 */
#include "tensor/operators/numbers.cuh"

/* The number itself: what makes another element of it is its rounding. */
template <class N>
__device__ inline N cast_of(N x) {
  return x;
}

/* As rondo_type. */
enum { F32 = 1, I32 = 2, I64 = 4, F16 = 5, BF16 = 6 };

template <class T, class U>
__device__ inline void cast_all(const T *__restrict__ x, U *__restrict__ y, size_t count) {
  const size_t packs = count / PACK;
  for (size_t i = first_element(); i < packs; i += element_stride()) {
    const pack<T> in = ((const pack<T> *)x)[i];
    pack<U> out;
#pragma unroll
    for (unsigned k = 0; k < PACK; k++) out.at[k] = rounded<U>::of(cast_of(to_number(in.at[k])));
    ((pack<U> *)y)[i] = out;
  }
  for (size_t i = packs * PACK + first_element(); i < count; i += element_stride())
    y[i] = rounded<U>::of(cast_of(to_number(x[i])));
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
