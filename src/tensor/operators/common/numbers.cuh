/* SPDX-License-Identifier: MIT
 * The numbers of arithmetic: float, or 64-bit integers if the elements are integers.
 */
#include "tensor/operators/common/floats.cuh"

typedef long long i64;

__device__ inline float to_number(float x) { return x; }
__device__ inline float to_number(f16 x) { return to_float(x); }
__device__ inline float to_number(bf16 x) { return to_float(x); }
__device__ inline i64 to_number(int x) { return x; }
__device__ inline i64 to_number(i64 x) { return x; }

/* Converts a number to an element of type T. Floats are truncated to integers and clamped; NaN becomes 0. An integer
 * that does not fit an I32 keeps its lower 32 bits. */
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
