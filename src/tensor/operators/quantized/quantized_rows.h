/* SPDX-License-Identifier: MIT
 * The activations of a product with a quantised matrix, prepared in the product's workspace: as 8-bit integers with a
 * scale for each row, or as floats in the order of quantized_dot.h. Threads: any.
 */
#ifndef RONDO_TENSOR_OPERATORS_QUANTIZED_QUANTIZED_ROWS_H
#define RONDO_TENSOR_OPERATORS_QUANTIZED_QUANTIZED_ROWS_H

#include "tensor/operators/quantized/quantized_dot.h"
#include "tensor/operators/quantized/quantized_scheme.h"

/* A scalar argument of the kernel; without padding. */
typedef struct rondo_quantized_rows {
  size_t rows, columns;
  size_t padded;        /* columns of a prepared row */
  size_t group, groups; /* of the matrix, for starts */
  int64_t start_factor; /* of the sums of a group (quantized_dot.h); 0: there are no starts */
  uint32_t unit;        /* columns in which the even ones come first; 0: their order is kept */
  uint32_t is_int8;     /* otherwise floats */
} rondo_quantized_rows;

/* Where the parts begin, in bytes, each at a multiple of 256. */
typedef struct rondo_quantized_rows_layout {
  size_t values; /* [rows, padded] */
  size_t starts; /* [rows, groups, RONDO_DOT_LANES] */
  size_t scales; /* [rows], of integers */
  size_t end;
} rondo_quantized_rows_layout;

/* For dots: rows in their order. For other kernels: integers in the order of the columns. */
rondo_quantized_rows rondo_quantized_rows_of(const rondo_quantized_scheme *scheme, size_t rows, bool is_int8,
                                             bool for_dots);

/* How rows of integers that kept their order are stored: a matrix of 8 bits with one group in each row. */
rondo_quantized_scheme rondo_quantized_rows_scheme(size_t rows, size_t columns);

/* The layout from `begin` on. False if the sizes do not fit a size_t. */
bool rondo_quantized_rows_place(const rondo_quantized_rows *rows, size_t begin, rondo_quantized_rows_layout *out);

/* Prepared rows in memory. */
typedef struct rondo_quantized_rows_memory {
  void *values, *starts; /* starts: NULL: none */
  float *scales;         /* NULL: floats */
} rondo_quantized_rows_memory;

/* Emits the kernel that prepares x. */
RONDO_MUST_USE rondo_status rondo_emit_quantized_rows(rondo_emitter *emitter, rondo_type type,
                                                      const rondo_quantized_rows *rows, const void *x,
                                                      const rondo_quantized_rows_memory *memory);

#endif
