/* SPDX-License-Identifier: MIT
 * Inner loops of products of 8-bit integers on a CPU, for integers that stay bytes: quads of unsigned ones and quads of
 * signed ones are multiplied and added by one instruction (AVX-512 with VNNI) or three (AVX2). Sums are exact, modulo
 * 2^32, and the same in all forms. Zeros are no part of this: who calls takes them off by the sums of the rows. Bytes
 * of the other sign than a loop needs have their highest bit turned, which moves them by 128. Threads: any.
 */
#ifndef RONDO_TENSOR_OPERATORS_INTEGER_INTEGER_LANES_H
#define RONDO_TENSOR_OPERATORS_INTEGER_INTEGER_LANES_H

#include "tensor/operators/common/operator_tools.h"

#if defined(__x86_64__) && defined(__GNUC__)
#define RONDO_HAS_X86 /* the compiler; the processor is asked */
#include <immintrin.h>
#define RONDO_FOR_VNNI __attribute__((target("avx2,avx512f,avx512bw,avx512vl,avx512vnni")))
static inline bool rondo_uses_vnni(void) {
  return rondo_vectors_used() == RONDO_VECTORS_AVX512 && __builtin_cpu_supports("avx512vnni");
}
#endif

#define RONDO_QUAD 4 /* bytes */

/* The bits of a byte to turn so that it is unsigned, or signed. */
static inline uint8_t rondo_to_unsigned(uint32_t is_unsigned) { return is_unsigned != 0 ? 0 : 0x80; }
static inline uint8_t rondo_to_signed(uint32_t is_unsigned) { return is_unsigned != 0 ? 0x80 : 0; }

static inline int32_t rondo_signed_byte(uint8_t byte, uint8_t turned) { return (int8_t)(byte ^ turned); }

/* Quads of an element of each of four arrays, with the bits `turned`. An array that is NULL gives zeros. */
void rondo_integer_interleave(const uint8_t *const *arrays, size_t count, uint8_t turned, uint8_t *to);

/* The sum of bytes with the bits `turned`, as signed ones. */
int32_t rondo_integer_total(const uint8_t *bytes, size_t count, uint8_t turned);

/* The same as unsigned ones: each is 128 more than the signed one with its highest bit turned. */
static inline int32_t rondo_unsigned_total(const uint8_t *bytes, size_t count, uint8_t turned) {
  return (int32_t)((uint32_t)rondo_integer_total(bytes, count, turned ^ 0x80) + 128 * (uint32_t)count);
}

/* Products of rows of signed quads and columns of unsigned ones:
 * sums[i * pitch + j] += the sum over k < quads of the products of quad k of row i and quad offsets[k] + j of the
 * image. Rows begin `row_pitch` bytes after each other. There are up to RONDO_LANE_ROWS of them. Columns up to a
 * multiple of RONDO_LANE_COLUMNS are computed. */
#define RONDO_LANE_ROWS 6
#define RONDO_LANE_COLUMNS 16
typedef struct rondo_lane_rows {
  const int8_t *first;
  size_t pitch, count;
} rondo_lane_rows;
void rondo_integer_add_lanes(const rondo_lane_rows *rows, const uint8_t *image, const uint32_t *offsets, size_t quads,
                             size_t columns, int32_t *sums, size_t pitch);

/* Products of rows and rows, of which up to RONDO_DOT_ROWS are of a. Those are copied, in the order that
 * the form for this processor reads, which takes rondo_integer_dot_bytes(depth) bytes for each. */
#define RONDO_DOT_ROWS 32
static inline size_t rondo_integer_dot_bytes(size_t depth) { return rondo_divide_up(depth, 64) * 64 * sizeof(int16_t); }
void rondo_integer_copy_dot_row(const uint8_t *from, size_t depth, uint8_t turned, unsigned char *to);

/* sums[i * pitch + j] = the sum over k < depth of element k of row i of a and byte j * depth + k of b, with the bits
 * `turned`, as a signed one. */
void rondo_integer_find_dots(const unsigned char *a, size_t a_rows, const uint8_t *b, size_t b_rows, uint8_t turned,
                             size_t depth, int32_t *sums, size_t pitch);

#endif
