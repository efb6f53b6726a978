/* SPDX-License-Identifier: MIT
 * Elements of a type of float on a CPU: memory holds F32, F16 or BF16, arithmetic is done with floats. A kernel walks
 * over its elements in chunks: those of an F32 are read and written where they lie, others are converted through a
 * little room on the stack. Rounding is to the nearest, ties to even.
 *
 * And kernels in three forms, one a type, or five: RONDO_TYPED_KERNEL, RONDO_NUMBER_KERNEL.
 */
#ifndef RONDO_TENSOR_OPERATORS_ELEMENTWISE_ELEMENT_H
#define RONDO_TENSOR_OPERATORS_ELEMENTWISE_ELEMENT_H

#include "tensor/operators/common/kernel_support.h"
#include "tensor/operators/common/vectors.h"
#include "tensor/operators/elementwise/elementary.h"

#define RONDO_CHUNK 256 /* elements of a chunk at most; a multiple of RONDO_LANES */

RONDO_INLINE float rondo_from_bf16(uint16_t bits) { return rondo_float_of((uint32_t)bits << 16); }

RONDO_INLINE uint16_t rondo_to_bf16(float x) {
  const uint32_t bits = rondo_float_bits(x);
  const uint32_t rounded = bits + 0x7fffu + (bits >> 16 & 1u);
  return (uint16_t)((bits & 0x7fffffffu) > 0x7f800000u ? bits >> 16 | 0x40u : rounded >> 16);
}

/* `condition ? a : b` without the branch that compilers make of that, so that loops are vectorised. */
RONDO_INLINE uint32_t rondo_choose_bits(bool condition, uint32_t a, uint32_t b) {
  const uint32_t mask = 0u - (uint32_t)condition;
  return (a & mask) | (b & ~mask);
}

/* IEEE 754 binary16. A subnormal is a multiple of 2^-24, so arithmetic of floats makes it exactly. */
RONDO_INLINE float rondo_from_f16(uint16_t bits) {
  const uint32_t sign = (uint32_t)(bits & 0x8000u) << 16;
  const uint32_t magnitude = bits & 0x7fffu;
  const uint32_t shifted = magnitude << 13;
  const uint32_t subnormal = rondo_float_bits((float)(int32_t)magnitude * 0x1p-24f);
  const uint32_t finite = rondo_choose_bits(magnitude >= 0x0400u, shifted + 0x38000000u, subnormal);
  return rondo_float_of(sign | rondo_choose_bits(magnitude >= 0x7c00u, shifted + 0x70000000u, finite));
}

RONDO_INLINE uint16_t rondo_to_f16(float x) {
  const uint32_t bits = rondo_float_bits(x);
  const uint32_t magnitude = bits & 0x7fffffffu;
  const uint32_t sign = bits >> 16 & 0x8000u;
  const uint32_t infinite = 0x7c00u | (uint32_t)(magnitude > 0x7f800000u) << 9;
  /* Below 2^-14: adding 1/2 leaves the multiple of 2^-24 in the low bits. */
  const uint32_t subnormal = rondo_float_bits(rondo_float_of(magnitude) + 0.5f) - 0x3f000000u;
  const uint32_t normal = (magnitude - 0x38000000u + 0xfffu + (magnitude >> 13 & 1u)) >> 13;
  const uint32_t finite = rondo_choose_bits(magnitude < 0x38800000u, subnormal, normal);
  return (uint16_t)(sign | rondo_choose_bits(magnitude >= 0x477ff000u, infinite, finite)); /* 65520 and more */
}

/* Of the chunk that begins at `at`, of `count` elements. */
RONDO_INLINE size_t rondo_chunk_length(size_t at, size_t count) {
  return count - at < RONDO_CHUNK ? count - at : RONDO_CHUNK;
}

/* For each chunk of the elements first .. last - 1, in their order: it begins at `at` and has `length`. */
#define RONDO_EACH_CHUNK(at, length, first, last) \
  for (size_t at = (first), length; at < (last) && (length = rondo_chunk_length(at, last)) > 0; at += length)

/* `count` (at most RONDO_CHUNK) elements from `first` on, as floats: where they lie, or converted into room. */
RONDO_INLINE const float *rondo_load_chunk(rondo_type type, const void *memory, size_t first, size_t count,
                                           float *room) {
  if (type == RONDO_F32) return (const float *)memory + first;
  const uint16_t *from = (const uint16_t *)memory + first;
  if (type == RONDO_BF16) {
    RONDO_EACH_LANE(i, lane, count, room[i] = rondo_from_bf16(from[i]));
  } else {
    RONDO_EACH_LANE(i, lane, count, room[i] = rondo_from_f16(from[i]));
  }
  return room;
}

/* Where to put floats that rondo_store_chunk then makes elements of: where these lie, or in room. */
RONDO_INLINE float *rondo_chunk_of(rondo_type type, void *memory, size_t first, float *room) {
  return type == RONDO_F32 ? (float *)memory + first : room;
}

RONDO_INLINE void rondo_store_chunk(rondo_type type, void *memory, size_t first, size_t count, const float *chunk) {
  uint16_t *to = (uint16_t *)memory + first;
  if (type == RONDO_BF16) {
    RONDO_EACH_LANE(i, lane, count, to[i] = rondo_to_bf16(chunk[i]));
  } else if (type == RONDO_F16) {
    RONDO_EACH_LANE(i, lane, count, to[i] = rondo_to_f16(chunk[i]));
  }
}

/* The same for I32 and I64, by way of int64_t: a result that an I32 does not hold keeps its lower half. */
RONDO_INLINE const int64_t *rondo_load_integers(rondo_type type, const void *memory, size_t first, size_t count,
                                                int64_t *room) {
  if (type == RONDO_I64) return (const int64_t *)memory + first;
  const int32_t *from = (const int32_t *)memory + first;
  for (size_t i = 0; i < count; i++) room[i] = from[i];
  return room;
}

RONDO_INLINE void rondo_store_integers(rondo_type type, void *memory, size_t first, size_t count,
                                       const int64_t *chunk) {
  if (type == RONDO_I64) {
    memcpy((int64_t *)memory + first, chunk, count * sizeof *chunk);
    return;
  }
  uint32_t *to = (uint32_t *)memory + first;
  for (size_t i = 0; i < count; i++) to[i] = (uint32_t)chunk[i];
}

RONDO_VECTORISED(rondo_add_floats, (const float *restrict from, float *restrict to, size_t count), (from, to, count)) {
  RONDO_EACH_LANE(i, lane, count, to[i] += from[i]);
}

/* Adds `count` (at most RONDO_CHUNK) elements to others, each rounded once. */
RONDO_INLINE void rondo_add_chunk(rondo_type type, const void *from, size_t first, void *to, size_t to_first,
                                  size_t count) {
  float room[RONDO_CHUNK], sums[RONDO_CHUNK];
  float *chunk = rondo_chunk_of(type, to, to_first, sums);
  if (chunk == sums) (void)rondo_load_chunk(type, to, to_first, count, sums);
  rondo_add_floats(rondo_load_chunk(type, from, first, count, room), chunk, count);
  rondo_store_chunk(type, to, to_first, count, chunk);
}

/* The functions of a kernel for each type, and the declarations of the CUDA texts with that kernel. */
#define RONDO_TYPED_FUNCTION(kernel, function, file, suffix, type) \
  RONDO_DECLARE_CUDA_SOURCE(file##suffix)                          \
  static void kernel##suffix(rondo_blocks blocks, void *const *args) { function(type, blocks, args); }
#define RONDO_FLOAT_FUNCTIONS(kernel, function, file)           \
  RONDO_TYPED_FUNCTION(kernel, function, file, _f32, RONDO_F32) \
  RONDO_TYPED_FUNCTION(kernel, function, file, _f16, RONDO_F16) \
  RONDO_TYPED_FUNCTION(kernel, function, file, _bf16, RONDO_BF16)

/* A kernel in three forms, `kernel`_code[type], from one CPU function `kernel`_cpu(type, blocks, args) and the typed
 * CUDA source `file`, with functions `kernel`_TYPE. The rest are its parameters. */
#define RONDO_TYPED_KERNEL(kernel, file, ...) RONDO_TYPED_KERNEL_OF(kernel, kernel##_cpu, file, __VA_ARGS__)

/* The same with a CPU function of another name. */
#define RONDO_TYPED_KERNEL_OF(kernel, function, file, ...)                   \
  RONDO_FLOAT_FUNCTIONS(kernel, function, file)                              \
  static const rondo_kernel_options kernel##_code[] = {                      \
      [RONDO_F32] = RONDO_TYPED_CODE(kernel##_f32, file##_f32, __VA_ARGS__), \
      [RONDO_F16] = RONDO_TYPED_CODE(kernel##_f16, file##_f16, __VA_ARGS__), \
      [RONDO_BF16] = RONDO_TYPED_CODE(kernel##_bf16, file##_bf16, __VA_ARGS__)}

/* The same in five forms, with I32 and I64; the functions of its CUDA source are called `kernel`_NUMBER. */
#define RONDO_NUMBER_KERNEL(kernel, file, ...)                                  \
  RONDO_FLOAT_FUNCTIONS(kernel, kernel##_cpu, file)                             \
  RONDO_TYPED_FUNCTION(kernel, kernel##_cpu, file, _i32, RONDO_I32)             \
  RONDO_TYPED_FUNCTION(kernel, kernel##_cpu, file, _i64, RONDO_I64)             \
  static const rondo_kernel_options kernel##_code[] = {                         \
      [RONDO_F32] = RONDO_TYPED_CODE(kernel##_f32, file##_f32, __VA_ARGS__),    \
      [RONDO_F16] = RONDO_TYPED_CODE(kernel##_f16, file##_f16, __VA_ARGS__),    \
      [RONDO_BF16] = RONDO_TYPED_CODE(kernel##_bf16, file##_bf16, __VA_ARGS__), \
      [RONDO_I32] = RONDO_TYPED_CODE(kernel##_i32, file##_i32, __VA_ARGS__),    \
      [RONDO_I64] = RONDO_TYPED_CODE(kernel##_i64, file##_i64, __VA_ARGS__)}

/* The first again, with the parameters in a list. */
#define RONDO_TYPED_KERNEL_LIST(kernel, file, list)                        \
  RONDO_FLOAT_FUNCTIONS(kernel, kernel##_cpu, file)                        \
  static const rondo_kernel_options kernel##_code[] = {                    \
      [RONDO_F32] = RONDO_TYPED_LIST_CODE(kernel##_f32, file##_f32, list), \
      [RONDO_F16] = RONDO_TYPED_LIST_CODE(kernel##_f16, file##_f16, list), \
      [RONDO_BF16] = RONDO_TYPED_LIST_CODE(kernel##_bf16, file##_bf16, list)}

#define RONDO_TYPED_LIST_CODE(function, source, list)                                                        \
  {                                                                                                          \
    RONDO_KERNEL_OPTIONS_INIT, .name = #function, .cpu = function, RONDO_CUDA(source), .param_list = (list), \
                               .param_count = sizeof(list) / sizeof(list)[0]                                 \
  }

#define RONDO_TYPED_CODE(function, source, ...)                                                                  \
  {                                                                                                              \
    RONDO_KERNEL_OPTIONS_INIT, .name = #function, .cpu = function, RONDO_CUDA(source), .params = { __VA_ARGS__ } \
  }

#endif
