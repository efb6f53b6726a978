/* SPDX-License-Identifier: MIT
 * How a quantised matrix is stored (<rondo/quantized.h>), as the operators, their kernels and rondo_quantize see it:
 * sizes, checks of a program's values, and the elements of a row. Threads: any.
 */
#ifndef RONDO_TENSOR_OPERATORS_QUANTIZED_QUANTIZED_SCHEME_H
#define RONDO_TENSOR_OPERATORS_QUANTIZED_QUANTIZED_SCHEME_H

#include <rondo/quantized.h>

#include "tensor/operators/common/operator_tools.h"

/* Groups are a multiple of this, so a step of kernels has one scale. */
#define RONDO_QUANTIZED_STEP 32

/* A scalar argument of the kernels; without padding. */
typedef struct rondo_quantized_scheme {
  size_t rows, columns;
  size_t group, groups; /* columns of a group; groups of a row */
  size_t row_bytes;
  uint32_t bits, has_zeros;
} rondo_quantized_scheme;

/* A matrix in memory. */
typedef struct rondo_quantized_matrix {
  const uint8_t *values;
  const float *scales;
  const uint8_t *zeros; /* NULL: none. With 8 bits, the bytes of I8 */
} rondo_quantized_matrix;

/* The zero of a group without zeros. */
RONDO_INLINE int32_t rondo_quantized_middle(uint32_t bits) { return bits == 4 ? 8 : 0; }

/* The zero of a group; `at`: row * groups + group. */
RONDO_INLINE int32_t rondo_quantized_zero(uint32_t bits, const uint8_t *zeros, size_t at) {
  if (zeros == NULL) return rondo_quantized_middle(bits);
  return bits == 4 ? zeros[at] : (int32_t)(int8_t)zeros[at];
}

RONDO_INLINE size_t rondo_quantized_row_bytes(uint32_t bits, size_t columns) {
  return bits == 4 ? columns / 2 + columns % 2 : columns;
}

/* Sizes of a matrix; bits and group are those of options that were checked. */
rondo_quantized_scheme rondo_quantized_scheme_of(uint32_t bits, size_t group, size_t rows, size_t columns);

/* Reads and checks the options of a call. Errors: as rondo_quantized_sizes; OUT_OF_RANGE for activations and type. */
RONDO_MUST_USE rondo_status rondo_quantized_read(const char *call, const rondo_quantized_options *options,
                                                 rondo_quantized_options *out);

/* The attributes of an operation on a quantised matrix. */
enum { RONDO_QUANTIZED_BITS, RONDO_QUANTIZED_GROUP, RONDO_QUANTIZED_COLUMNS, RONDO_QUANTIZED_FREE }; /* sizes */
rondo_attributes rondo_quantized_attributes(const rondo_quantized_options *options, size_t columns);

/* The columns of a matrix with these values: those of the options, else as many as the bytes hold. */
size_t rondo_quantized_columns(const rondo_program *program, uint32_t values, const rondo_quantized_options *options);

/* For infer. The inputs from `first` on are values, scales and zeros. Errors: TYPE, SHAPE. */
RONDO_MUST_USE rondo_status rondo_quantized_require(const rondo_program *program, const rondo_operation *operation,
                                                    uint32_t first);

/* For prepare and emit, after infer. */
rondo_quantized_scheme rondo_quantized_scheme_at(const rondo_program *program, const rondo_operation *operation,
                                                 uint32_t first);

/* The addresses of the inputs from `first` on. */
rondo_quantized_matrix rondo_emit_quantized(const rondo_emitter *emitter, const rondo_operation *operation,
                                            uint32_t first);

/* Elements first .. first + count - 1 of a row; `first` is a multiple of RONDO_QUANTIZED_STEP. */
void rondo_dequantize_row(const rondo_quantized_scheme *scheme, const rondo_quantized_matrix *matrix, size_t row,
                          size_t first, size_t count, float *out);

#endif
