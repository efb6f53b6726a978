/* SPDX-License-Identifier: MIT
 * The inner loops of products of 8-bit integers on a CPU, for factors of which each run makes 16-bit integers without
 * their zeros. Two products of these are added by one instruction, exactly; bytes would saturate (<rondo/quantized.h>).
 * Each loop has an AVX2 and a plain form, which give the same bits. Sums are modulo 2^32. Threads: any.
 */
#ifndef RONDO_TENSOR_OPERATORS_QUANTIZED_INTEGER_LANES_H
#define RONDO_TENSOR_OPERATORS_QUANTIZED_INTEGER_LANES_H

#include "tensor/operators/common/operator_tools.h"

/* What becomes of a byte: that of U8, or of I8 with its highest bit turned, less an offset. */
typedef struct rondo_byte_form {
  uint8_t turned;
  int16_t offset;
} rondo_byte_form;
static inline rondo_byte_form rondo_byte_form_of(uint32_t is_unsigned, int32_t zero) {
  const rondo_byte_form of_signed = {0x80, (int16_t)(zero + 128)}, of_unsigned = {0, (int16_t)zero};
  return is_unsigned != 0 ? of_unsigned : of_signed;
}

void rondo_integer_widen(const uint8_t *from, size_t count, rondo_byte_form form, int16_t *to);

/* Pairs of an element of each array; second NULL: of an element and 0. */
void rondo_integer_interleave(const uint8_t *first, const uint8_t *second, size_t count, rondo_byte_form form,
                              int16_t *to);

/* Products of rows and columns of pairs:
 * sums[i * pitch + j] += the sum over k < pairs of both products of pair k of row i and pair offsets[k] + j of the
 * image. Rows begin 2 * RONDO_LANE_PAIRS numbers after each other. There are up to RONDO_LANE_ROWS of them. Columns up
 * to a multiple of RONDO_LANE_COLUMNS are computed. */
#define RONDO_LANE_ROWS 6
#define RONDO_LANE_PAIRS 256
#define RONDO_LANE_COLUMNS 8
void rondo_integer_add_lanes(const int16_t *rows, size_t row_count, const int16_t *image, const uint32_t *offsets,
                             size_t pairs, size_t columns, int32_t *sums, size_t pitch);

/* Products of rows and rows: sums[i * pitch + j] = the sum over k < depth of a[i * a_pitch + k] and byte j * depth + k
 * of b, of which a signed one is I8. */
void rondo_integer_find_dots(const int16_t *a, size_t a_rows, size_t a_pitch, const uint8_t *b, size_t b_rows,
                             bool b_unsigned, size_t depth, int32_t *sums, size_t pitch);

#endif
