/* SPDX-License-Identifier: MIT
 * Dot products of rows of a quantised matrix with rows of activations, for products with few rows. They read each byte
 * of the matrix once and unpack it in registers.
 *
 * Activations are prepared once for a product: they are floats, or 8-bit integers with a scale for each row. A row is
 * padded with zeros to a multiple of RONDO_QUANTIZED_STEP. For a matrix of 4 bits, the even columns of each unit of
 * columns come first, then the odd ones, because that is the order in which bytes are unpacked. Where zeros are not 0,
 * the sums of each group begin with what its zero takes off, because
 * sum(x (value - zero)) = -zero sum(x) + sum(x value).
 *
 * There is a form of each function for each instruction set, and all forms give the same bits: sums have
 * RONDO_DOT_LANES partial sums, which are added in one order. Sums of integers are exact. Threads: any.
 */
#ifndef RONDO_TENSOR_OPERATORS_QUANTIZED_QUANTIZED_DOT_H
#define RONDO_TENSOR_OPERATORS_QUANTIZED_QUANTIZED_DOT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define RONDO_DOT_LANES 8

/* Columns in which the even ones are separated from the odd ones. */
#define RONDO_FLOAT_UNIT 16
#define RONDO_INT8_UNIT 32

/* The sums of 8-bit integers fit in 32 bits for rows of at most this many columns. */
#define RONDO_INT8_COLUMNS ((size_t)1 << 19)

/* A row of the matrix. */
typedef struct rondo_dot_row {
  const uint8_t *values;
  const float *scales;  /* one for each group */
  const uint8_t *zeros; /* the same; NULL: rondo_quantized_middle */
  size_t columns, group;
} rondo_dot_row;

/* A prepared row of activations. */
typedef struct rondo_dot_factor {
  const void *values; /* float or int8_t */
  /* Float or int32_t, RONDO_DOT_LANES for each group: minus the sums of the group's values. Where 4 bits have no zeros,
   * they are multiplied by rondo_quantized_middle. NULL: 8 bits without zeros. */
  const void *starts;
} rondo_dot_factor;

/* Rows of activations that one unpacked step of the matrix is used for. */
#define RONDO_DOT_FACTORS 4

/* out[i] = row * factors[i] for i < count, at most RONDO_DOT_FACTORS, without the scales of the activations. A product
 * has the same bits with any others beside it. */
typedef void (*rondo_quantized_dots)(const rondo_dot_row *row, const rondo_dot_factor *factors, size_t count,
                                     float *out);

/* The form for this processor (RONDO_CPU_VECTORS). */
rondo_quantized_dots rondo_quantized_dots_for(uint32_t bits, bool is_int8);

#endif
