/* SPDX-License-Identifier: MIT
 * The CUDA kernels of cast.c.
 */
#include "tensor/operators/common/joined.cuh"
#include "tensor/operators/common/numbers.cuh"

/* The number itself: the conversion to the result's type does the cast. */
template <class N>
__device__ inline N cast_of(N x) {
  return x;
}

/* As rondo_type. */
enum { F32 = 1, I32 = 2, I64 = 4, F16 = 5, BF16 = 6, BOOL = 7, I8 = 8, U8 = 9, F8_E4M3 = 10, F8_E5M2 = 11 };

template <class T, class U>
__device__ inline void cast_all(const T *x, U *y, size_t first, size_t count, size_t stride) {
  map_from(
      first, count, stride, y, [](size_t, T in) { return rounded<U>::of(cast_of(to_number(in))); }, x);
}

template <class T>
__device__ inline void cast_from(const T *x, void *y, unsigned to, size_t first, size_t count, size_t stride) {
  switch (to) {
    case F32:
      return cast_all(x, (float *)y, first, count, stride);
    case F16:
      return cast_all(x, (f16 *)y, first, count, stride);
    case BF16:
      return cast_all(x, (bf16 *)y, first, count, stride);
    case I32:
      return cast_all(x, (int *)y, first, count, stride);
    case I64:
      return cast_all(x, (i64 *)y, first, count, stride);
    case BOOL:
      return cast_all(x, (boolean *)y, first, count, stride);
    case I8:
      return cast_all(x, (i8 *)y, first, count, stride);
    case U8:
      return cast_all(x, (u8 *)y, first, count, stride);
    case F8_E4M3:
      return cast_all(x, (f8_e4m3 *)y, first, count, stride);
    case F8_E5M2:
      return cast_all(x, (f8_e5m2 *)y, first, count, stride);
  }
}

__device__ inline void cast_any(const void *x, void *y, unsigned from, unsigned to, size_t first, size_t count,
                                size_t stride) {
  switch (from) {
    case F32:
      return cast_from((const float *)x, y, to, first, count, stride);
    case F16:
      return cast_from((const f16 *)x, y, to, first, count, stride);
    case BF16:
      return cast_from((const bf16 *)x, y, to, first, count, stride);
    case I32:
      return cast_from((const int *)x, y, to, first, count, stride);
    case I64:
      return cast_from((const i64 *)x, y, to, first, count, stride);
    case BOOL:
      return cast_from((const boolean *)x, y, to, first, count, stride);
    case I8:
      return cast_from((const i8 *)x, y, to, first, count, stride);
    case U8:
      return cast_from((const u8 *)x, y, to, first, count, stride);
    case F8_E4M3:
      return cast_from((const f8_e4m3 *)x, y, to, first, count, stride);
    case F8_E5M2:
      return cast_from((const f8_e5m2 *)x, y, to, first, count, stride);
  }
}

extern "C" __global__ void cast(const void *x, void *y, unsigned from, unsigned to, size_t count) {
  cast_any(x, y, from, to, first_element(), count, element_stride());
}

#define POINTERS(i) , const void *x##i, void *y##i
#define PICK(i)         \
  case i:               \
    x = x##i, y = y##i; \
    break;

extern "C" __global__ void cast_joined(joined_table table, unsigned to EACH_JOINED(POINTERS)) {
  const joined_share share = share_of(table);
  const void *x = 0;
  void *y = 0;
  switch (share.operation) { EACH_JOINED(PICK) }
  cast_any(x, y, share.type, to, share.first, share.elements, share.stride);
}
