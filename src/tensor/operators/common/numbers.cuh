/* SPDX-License-Identifier: MIT
 * The numbers of arithmetic: float, or 64-bit integers if the elements are integers.
 */
#include "tensor/operators/common/floats.cuh"

typedef long long i64;
typedef signed char i8;
typedef unsigned char u8;

/* A byte that is not 0 is true; results are 0 or 1. */
struct boolean {
  u8 byte;
};

__device__ inline float to_number(float x) { return x; }
__device__ inline float to_number(f16 x) { return to_float(x); }
__device__ inline float to_number(bf16 x) { return to_float(x); }
__device__ inline float to_number(f8_e4m3 x) { return to_float(x); }
__device__ inline float to_number(f8_e5m2 x) { return to_float(x); }
__device__ inline i64 to_number(int x) { return x; }
__device__ inline i64 to_number(i64 x) { return x; }
__device__ inline i64 to_number(i8 x) { return x; }
__device__ inline i64 to_number(u8 x) { return x; }
__device__ inline i64 to_number(boolean x) { return x.byte != 0; }

/* Converts a number to an element of type T. Floats are truncated to integers and clamped; NaN becomes 0. An integer
 * that does not fit the type keeps its lower bits. A BOOL is whether the number is not 0; NaN is not 0. */
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

__device__ inline int clamped(float x, float low, float high) { return x == x ? (int)fminf(fmaxf(x, low), high) : 0; }

template <>
struct rounded<i8> {
  static __device__ i8 of(float x) { return (i8)clamped(x, -128.0f, 127.0f); }
  static __device__ i8 of(i64 x) { return (i8)x; }
};

template <>
struct rounded<u8> {
  static __device__ u8 of(float x) { return (u8)clamped(x, 0.0f, 255.0f); }
  static __device__ u8 of(i64 x) { return (u8)x; }
};

template <>
struct rounded<boolean> {
  static __device__ boolean of(float x) { return {(u8)(x != 0)}; }
  static __device__ boolean of(i64 x) { return {(u8)(x != 0)}; }
};

template <>
struct rounded<i64> {
  static __device__ i64 of(float x) { return x == x ? __float2ll_rz(x) : 0; }
  static __device__ i64 of(i64 x) { return x; }
};
