/* SPDX-License-Identifier: MIT
 * Numbers, which arithmetic is done with: floats, or 64 bits where the elements are integers.
 */
#include "tensor/operators/common/floats.cuh"

typedef long long i64;

__device__ inline float to_number(float x) { return x; }
__device__ inline float to_number(f16 x) { return to_float(x); }
__device__ inline float to_number(bf16 x) { return to_float(x); }
__device__ inline i64 to_number(int x) { return x; }
__device__ inline i64 to_number(i64 x) { return x; }

/* An element of type T from a number: floats to integers towards zero, to the nearest there is, and what is not a
 * number to 0; an integer that an I32 does not hold keeps its lower half. */
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
