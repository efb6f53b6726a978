/* SPDX-License-Identifier: MIT
 * Products of 8-bit integers on a CPU: tiles of sums of (a - a_zero) (b - b_zero), exact, modulo 2^32, and what becomes
 * of the sums. `a` is packed as 16-bit integers without its zero, `b` stays bytes; the zero of b is taken off by the
 * sums of a. integer_product.c has an AVX2 and a plain form, which give the same bits. Threads: any.
 */
#ifndef RONDO_TENSOR_OPERATORS_INTEGER_INTEGER_PRODUCT_H
#define RONDO_TENSOR_OPERATORS_INTEGER_INTEGER_PRODUCT_H

#include <rondo/quantized.h>

#include "tensor/operators/common/operator_tools.h"

#define RONDO_INTEGER_ROWS 64    /* of a tile, at most */
#define RONDO_INTEGER_COLUMNS 64 /* likewise; a multiple of RONDO_INTEGER_STEP */
#define RONDO_INTEGER_STEP 16    /* columns of panels of b are a multiple of it */
#define RONDO_INTEGER_DEPTH 512  /* of a panel, even */

/* What becomes of the sums; part of a scalar argument of the kernels, without padding. */
typedef struct rondo_integer_ending {
  uint32_t a_unsigned, b_unsigned; /* 0: I8, 1: U8 */
  uint32_t zeros_b;                /* elements of b_zero: 1, or one for each column, or row if by_row */
  uint32_t scales, biases;         /* elements likewise; 0: none */
  uint32_t has_scale;              /* 0: the result is I32 */
  uint32_t result_unsigned, by_row;
  uint32_t result_float, bias_float, relu, b_transposed;
  float a_scale, result_scale; /* 1: none */
} rondo_integer_ending;

/* The arrays of the ending. NULL: none. */
typedef struct rondo_integer_arrays {
  const void *a_zero, *b_zero, *result_zero;
  const void *bias; /* I32 or F32 */
  const float *scale;
  void *result;
} rondo_integer_arrays;

static inline int32_t rondo_byte_at(const void *bytes, uint32_t is_unsigned, size_t at) {
  return is_unsigned != 0 ? ((const uint8_t *)bytes)[at] : ((const int8_t *)bytes)[at];
}

/* A tile of sums, and the panels for a part of its depth. */
typedef struct rondo_integer_tile {
  size_t rows, columns;
  int32_t sums[RONDO_INTEGER_ROWS * RONDO_INTEGER_COLUMNS]; /* rows of RONDO_INTEGER_COLUMNS */
  int16_t a[RONDO_INTEGER_ROWS * RONDO_INTEGER_DEPTH];      /* rows of RONDO_INTEGER_DEPTH, zeros after an odd depth */
  uint8_t b[RONDO_INTEGER_DEPTH * RONDO_INTEGER_COLUMNS];   /* rows of RONDO_INTEGER_COLUMNS */
} rondo_integer_tile;

/* sums += a b for this depth. Bytes after the columns, up to a multiple of the step, are read and not used, and so is a
 * row after an odd depth. */
void rondo_integer_multiply(rondo_integer_tile *tile, size_t depth, bool b_unsigned);

/* Takes the zeros of the columns of b off the sums, for this depth. */
void rondo_integer_subtract(rondo_integer_tile *tile, size_t depth, const int32_t *zeros);

/* How sums of some channels, which are rows if by_row and else columns, become results: (sum + added) factor + offset,
 * then the activation, rounding and the result's zero. */
typedef struct rondo_integer_channels {
  uint32_t added[RONDO_INTEGER_COLUMNS];
  float factor[RONDO_INTEGER_COLUMNS], offset[RONDO_INTEGER_COLUMNS];
  float zero;
} rondo_integer_channels;

/* Finds them for channels first .. first + count - 1. Without a scale, there is nothing to find. */
void rondo_integer_find_channels(const rondo_integer_ending *ending, const rondo_integer_arrays *arrays, size_t first,
                                 size_t count, rondo_integer_channels *out);

/* Stores rows of sums of consecutive channels, rows of RONDO_INTEGER_COLUMNS, as elements at .. of the result, and for
 * each further row `step` elements later. */
void rondo_integer_store_columns(const rondo_integer_ending *ending, const rondo_integer_channels *channels,
                                 const int32_t *sums, size_t rows, size_t columns, void *result, size_t at,
                                 size_t step);

/* Stores sums of the one channel `index` as elements at .. of the result. */
void rondo_integer_store_row(const rondo_integer_ending *ending, const rondo_integer_channels *channels, size_t index,
                             const int32_t *sums, size_t count, void *result, size_t at);

static inline size_t rondo_integer_result_bytes(const rondo_integer_ending *ending) {
  return ending->has_scale == 0 || ending->result_float != 0 ? sizeof(int32_t) : 1;
}

/* Rows: the inputs after the two factors. */
enum {
  RONDO_INTEGER_A_ZERO = 2,
  RONDO_INTEGER_B_ZERO,
  RONDO_INTEGER_BIAS,
  RONDO_INTEGER_SCALE,
  RONDO_INTEGER_RESULT_ZERO,
  RONDO_INTEGER_INPUTS
};

/* Attributes: sizes, after those of windows and the groups, a flag, and numbers. */
enum { RONDO_INTEGER_TYPE = 16, RONDO_INTEGER_ACTIVATION, RONDO_INTEGER_SIZES };
enum { RONDO_INTEGER_TRANSPOSE_B = 3 };
enum { RONDO_INTEGER_A_SCALE, RONDO_INTEGER_RESULT_SCALE };

/* Checks the inputs after the factors for results with this many channels; returns the result's type. Errors: TYPE,
 * SHAPE. */
RONDO_MUST_USE rondo_status rondo_integer_require(const rondo_program *program, const rondo_operation *operation,
                                                  size_t channels, rondo_type *out_type);
rondo_integer_ending rondo_integer_ending_of(const rondo_emitter *emitter, const rondo_operation *operation,
                                             bool by_row);

/* Reads the options of a call; the inputs after the factors. */
RONDO_MUST_USE rondo_status rondo_integer_read(const char *call, const rondo_integer_product_options *options,
                                               rondo_value *out_inputs, rondo_attributes *out_attributes);

/* Takes a note that the operation reads packed weights: `prepare` and `emit` find an object that says no more. Releases
 * the order if there is no memory for that. */
RONDO_MUST_USE rondo_status rondo_integer_keep_order(rondo_resources *resources, uint32_t number,
                                                     rondo_packed_state **inout_packed);

/* Whether conv_integer_blocked computes the convolution of x, with its channels first, and these weights. */
bool rondo_conv_integer_takes_blocks(const rondo_shape *x, const rondo_shape *weight,
                                     const rondo_attributes *attributes);

/* conv_integer with the window and the groups of the attributes of a conv. */
RONDO_MUST_USE rondo_status rondo_add_conv_integer(rondo_program *program, rondo_value x, rondo_value weight,
                                                   const rondo_attributes *conv,
                                                   const rondo_integer_product_options *products,
                                                   rondo_value *out_value);

#endif
