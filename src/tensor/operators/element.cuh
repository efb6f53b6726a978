/* SPDX-License-Identifier: MIT
 * Elements of a type of float, for kernels called <name>_TYPE, whose source is compiled once a type: memory holds
 * `element`s, arithmetic is done with floats.
 */
#include "tensor/operators/floats.cuh"

#if defined(ELEMENT_IS_F32)
typedef float element;
#elif defined(ELEMENT_IS_F16)
typedef f16 element;
#else
typedef bf16 element;
#endif

__device__ inline element to_element(float x) { return from_float<element>(x); }
