/* SPDX-License-Identifier: MIT
 * Elements of tensors on a CPU, and the macros that define kernels for each type. Memory holds any type but F64;
 * arithmetic uses float or int64_t. A kernel processes its elements in chunks of at most
 * RONDO_CHUNK. Chunks of F32 (and I64) are read and written in place. Chunks of other types are converted through a
 * small buffer on the stack. Results are rounded to nearest, ties to even. Threads: any.
 */
#ifndef RONDO_TENSOR_OPERATORS_COMMON_ELEMENT_H
#define RONDO_TENSOR_OPERATORS_COMMON_ELEMENT_H

#include "base/numbers/float8.h"
#include "base/numbers/half_float.h"
#include "tensor/operators/common/kernel_support.h"
#include "tensor/operators/common/vectors.h"
#include "tensor/operators/elementwise/elementary.h"

#define RONDO_CHUNK 256 /* the maximum number of elements in a chunk; a multiple of RONDO_LANES */

/* The length of the chunk that begins at `at`, in an array of `count` elements. */
RONDO_INLINE size_t rondo_chunk_length(size_t at, size_t count) {
  return count - at < RONDO_CHUNK ? count - at : RONDO_CHUNK;
}

/* The loop over the chunks of elements first .. last - 1: each begins at `at` and has `length` elements. */
#define RONDO_EACH_CHUNK(at, length, first, last) \
  for (size_t at = (first), length; at < (last) && (length = rondo_chunk_length(at, last)) > 0; at += length)

/* `count` (at most RONDO_CHUNK) elements from `first` on, as floats: in place, or converted into `buffer`. */
RONDO_INLINE const float *rondo_load_chunk(rondo_type type, const void *memory, size_t first, size_t count,
                                           float *buffer) {
  if (type == RONDO_F32) return (const float *)memory + first;
  assert(!rondo_is_integer(type) && count <= RONDO_CHUNK);
  const uint16_t *from = (const uint16_t *)memory + first;
  const uint8_t *bytes = (const uint8_t *)memory + first;
  if (type == RONDO_BF16) {
    RONDO_EACH_LANE(i, lane, count, buffer[i] = rondo_from_bf16(from[i]));
  } else if (type == RONDO_F16) {
    RONDO_EACH_LANE(i, lane, count, buffer[i] = rondo_from_f16(from[i]));
  } else if (type == RONDO_F8_E4M3) {
    RONDO_EACH_LANE(i, lane, count, buffer[i] = rondo_from_f8_e4m3(bytes[i]));
  } else {
    RONDO_EACH_LANE(i, lane, count, buffer[i] = rondo_from_f8_e5m2(bytes[i]));
  }
  return buffer;
}

/* Where to write the floats that rondo_store_chunk then converts: in place, or `buffer`. */
RONDO_INLINE float *rondo_chunk_of(rondo_type type, void *memory, size_t first, float *buffer) {
  return type == RONDO_F32 ? (float *)memory + first : buffer;
}

RONDO_INLINE void rondo_store_chunk(rondo_type type, void *memory, size_t first, size_t count, const float *chunk) {
  uint16_t *to = (uint16_t *)memory + first;
  uint8_t *bytes = (uint8_t *)memory + first;
  if (type == RONDO_BF16) {
    RONDO_EACH_LANE(i, lane, count, to[i] = rondo_to_bf16(chunk[i]));
  } else if (type == RONDO_F16) {
    RONDO_EACH_LANE(i, lane, count, to[i] = rondo_to_f16(chunk[i]));
  } else if (type == RONDO_F8_E4M3) {
    RONDO_EACH_LANE(i, lane, count, bytes[i] = rondo_to_f8_e4m3(chunk[i]));
  } else if (type == RONDO_F8_E5M2) {
    RONDO_EACH_LANE(i, lane, count, bytes[i] = rondo_to_f8_e5m2(chunk[i]));
  }
}

/* Writes a chunk of floats that are not in place. */
RONDO_INLINE void rondo_store_floats(rondo_type type, void *memory, size_t first, size_t count, const float *from) {
  if (type == RONDO_F32) memcpy((float *)memory + first, from, count * sizeof *from);
  rondo_store_chunk(type, memory, first, count, from);
}

/* One element. */
RONDO_INLINE float rondo_load_one(rondo_type type, const void *memory, size_t at) {
  float buffer;
  return *rondo_load_chunk(type, memory, at, 1, &buffer);
}
RONDO_INLINE void rondo_store_one(rondo_type type, void *memory, size_t at, float x) {
  rondo_store_floats(type, memory, at, 1, &x);
}

/* The same for integers and BOOL, as int64_t. A result that does not fit the type keeps its lower bits; for BOOL, it
 * becomes 1 unless it is 0. */
RONDO_INLINE const int64_t *rondo_load_integers(rondo_type type, const void *memory, size_t first, size_t count,
                                                int64_t *buffer) {
  if (type == RONDO_I64) return (const int64_t *)memory + first;
  assert(rondo_is_integer(type) && count <= RONDO_CHUNK);
  const uint8_t *bytes = (const uint8_t *)memory + first;
  switch (type) {
    case RONDO_BOOL:
      RONDO_EACH_LANE(i, lane, count, buffer[i] = bytes[i] != 0);
      break;
    case RONDO_I8:
      RONDO_EACH_LANE(i, lane, count, buffer[i] = (int8_t)bytes[i]);
      break;
    case RONDO_U8:
      RONDO_EACH_LANE(i, lane, count, buffer[i] = bytes[i]);
      break;
    default:
      RONDO_EACH_LANE(i, lane, count, buffer[i] = ((const int32_t *)memory + first)[i]);
  }
  return buffer;
}

RONDO_INLINE void rondo_store_integers(rondo_type type, void *memory, size_t first, size_t count,
                                       const int64_t *chunk) {
  assert(rondo_is_integer(type));
  uint8_t *bytes = (uint8_t *)memory + first;
  switch (type) {
    case RONDO_I64:
      memcpy((int64_t *)memory + first, chunk, count * sizeof *chunk);
      break;
    case RONDO_BOOL:
      RONDO_EACH_LANE(i, lane, count, bytes[i] = chunk[i] != 0);
      break;
    case RONDO_I8:
    case RONDO_U8:
      RONDO_EACH_LANE(i, lane, count, bytes[i] = (uint8_t)chunk[i]);
      break;
    default:
      RONDO_EACH_LANE(i, lane, count, ((uint32_t *)memory + first)[i] = (uint32_t)chunk[i]);
  }
}

RONDO_VECTORISED(rondo_add_floats, (const float *restrict from, float *restrict to, size_t count), (from, to, count)) {
  RONDO_EACH_LANE(i, lane, count, to[i] += from[i]);
}

/* to += factor * from. */
RONDO_VECTORISED(rondo_add_scaled, (const float *restrict from, float factor, float *restrict to, size_t count),
                 (from, factor, to, count)) {
  RONDO_EACH_LANE(i, lane, count, to[i] += factor * from[i]);
}

/* Adds `count` (at most RONDO_CHUNK) elements of `from` to those of `to`. Each sum is rounded once. */
RONDO_INLINE void rondo_add_chunk(rondo_type type, const void *from, size_t first, void *to, size_t to_first,
                                  size_t count) {
  float buffer[RONDO_CHUNK], sums[RONDO_CHUNK];
  assert(count <= RONDO_CHUNK && from != to);
  float *chunk = rondo_chunk_of(type, to, to_first, sums);
  if (chunk == sums) (void)rondo_load_chunk(type, to, to_first, count, sums);
  rondo_add_floats(rondo_load_chunk(type, from, first, count, buffer), chunk, count);
  rondo_store_chunk(type, to, to_first, count, chunk);
}

/* ROW(suffix of the names, type, ...) for each float type, for integers and BOOL, and for all types. */
#define RONDO_EACH_FLOAT(ROW, ...)  \
  ROW(_f32, RONDO_F32, __VA_ARGS__) \
  ROW(_f16, RONDO_F16, __VA_ARGS__) \
  ROW(_bf16, RONDO_BF16, __VA_ARGS__)
#define RONDO_EACH_INTEGER(ROW, ...) \
  ROW(_i32, RONDO_I32, __VA_ARGS__)  \
  ROW(_i64, RONDO_I64, __VA_ARGS__)  \
  ROW(_i8, RONDO_I8, __VA_ARGS__)    \
  ROW(_u8, RONDO_U8, __VA_ARGS__)    \
  ROW(_bool, RONDO_BOOL, __VA_ARGS__)
#define RONDO_EACH_NUMBER(ROW, ...)  \
  RONDO_EACH_FLOAT(ROW, __VA_ARGS__) \
  RONDO_EACH_INTEGER(ROW, __VA_ARGS__)

/* Members of rondo_kernel_options: the parameters, written out or as an array. */
#define RONDO_PARAMETERS(...) .params = {__VA_ARGS__}
#define RONDO_PARAMETER_LIST(list) .param_list = (list), .param_count = sizeof(list) / sizeof(list)[0]

#define RONDO_TYPED_FUNCTION(suffix, type, kernel, function, file) \
  RONDO_DECLARE_CUDA_SOURCE(file##suffix)                          \
  static void kernel##suffix(rondo_blocks blocks, void *const *args) { function(type, blocks, args); }
#define RONDO_TYPED_CODE(suffix, type, kernel, file, ...)                                                        \
  [type] = {RONDO_KERNEL_OPTIONS_INIT, .name = #kernel #suffix, .cpu = kernel##suffix, RONDO_CUDA(file##suffix), \
            __VA_ARGS__},
#define RONDO_KERNELS(EACH_TYPE, kernel, function, file, ...) \
  EACH_TYPE(RONDO_TYPED_FUNCTION, kernel, function, file)     \
  static const rondo_kernel_options kernel##_code[] = {EACH_TYPE(RONDO_TYPED_CODE, kernel, file, __VA_ARGS__)}

/* Defines `kernel`_code[type] for each float type, from the CPU function `kernel`_cpu(type, blocks, args) and the typed
 * CUDA source `file`, whose functions are called `kernel`_TYPE. The other arguments are the kernel's parameters. */
#define RONDO_TYPED_KERNEL(kernel, file, ...) RONDO_TYPED_KERNEL_OF(kernel, kernel##_cpu, file, __VA_ARGS__)
/* The same with another name for the CPU function; and with an array of parameters. */
#define RONDO_TYPED_KERNEL_OF(kernel, function, file, ...) \
  RONDO_KERNELS(RONDO_EACH_FLOAT, kernel, function, file, RONDO_PARAMETERS(__VA_ARGS__))
#define RONDO_TYPED_KERNEL_LIST(kernel, file, list) \
  RONDO_KERNELS(RONDO_EACH_FLOAT, kernel, kernel##_cpu, file, RONDO_PARAMETER_LIST(list))

/* The same for integers and BOOL too, and for these alone. The functions in the CUDA source are called
 * `kernel`_NUMBER. */
#define RONDO_NUMBER_KERNEL(kernel, file, ...) \
  RONDO_KERNELS(RONDO_EACH_NUMBER, kernel, kernel##_cpu, file, RONDO_PARAMETERS(__VA_ARGS__))
#define RONDO_INTEGER_KERNEL(kernel, file, ...) \
  RONDO_KERNELS(RONDO_EACH_INTEGER, kernel, kernel##_cpu, file, RONDO_PARAMETERS(__VA_ARGS__))

/* Defines `kernel`_code of a kernel that is not compiled for each type, from `kernel`_cpu(blocks, args) and the CUDA
 * source `file`. The other arguments are its parameters. */
#define RONDO_UNTYPED_KERNEL(kernel, file, ...) RONDO_UNTYPED_CODE(kernel, file, RONDO_PARAMETERS(__VA_ARGS__))
#define RONDO_UNTYPED_KERNEL_LIST(kernel, file, list) RONDO_UNTYPED_CODE(kernel, file, RONDO_PARAMETER_LIST(list))
#define RONDO_UNTYPED_CODE(kernel, file, ...)                                                                         \
  static const rondo_kernel_options kernel##_code = {RONDO_KERNEL_OPTIONS_INIT, .name = #kernel, .cpu = kernel##_cpu, \
                                                     RONDO_CUDA(file), __VA_ARGS__}

#endif
