/* SPDX-License-Identifier: MIT
 * The element type of kernels called <name>_TYPE, whose source is compiled for each float type, or <name>_NUMBER, which
 * is compiled for integers and BOOL too. Memory holds `element`s; arithmetic uses `number`s.
 */
#include "tensor/operators/common/numbers.cuh"

#if defined(ELEMENT_IS_F32)
typedef float element;
#elif defined(ELEMENT_IS_F16)
typedef f16 element;
#elif defined(ELEMENT_IS_BF16)
typedef bf16 element;
#elif defined(ELEMENT_IS_I32)
typedef int element;
#elif defined(ELEMENT_IS_I8)
typedef i8 element;
#elif defined(ELEMENT_IS_U8)
typedef u8 element;
#elif defined(ELEMENT_IS_BOOL)
typedef boolean element;
#else
typedef i64 element;
#endif

#if defined(ELEMENT_IS_F32) || defined(ELEMENT_IS_F16) || defined(ELEMENT_IS_BF16)
#define ELEMENT_IS_FLOAT
typedef float number;
#else
typedef i64 number;
#endif

__device__ inline element to_element(number x) { return rounded<element>::of(x); }
