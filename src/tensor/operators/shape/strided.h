/* SPDX-License-Identifier: MIT
 * Copies of elements of any type from places that lie evenly spread along each dimension: what permute and slice are.
 * Dimensions that lie behind one another in memory are made one first, and elements that are always copied together
 * are copied as one unit of up to 16 bytes.
 */
#ifndef RONDO_TENSOR_OPERATORS_SHAPE_STRIDED_H
#define RONDO_TENSOR_OPERATORS_SHAPE_STRIDED_H

#include "tensor/compile/emit.h"

/* What the kernels get as one scalar; without padding. Element (i, j, ...) of the result is the source's at offset + i
 * strides[0] + j strides[1] + ..., all in units. Dimensions are the last ones of the arrays; those before are 1. */
typedef struct rondo_strided {
  size_t count, offset;
  size_t unit_bytes; /* 2, 4, 8 or 16 */
  size_t dims[RONDO_MAX_DIMENSIONS], strides[RONDO_MAX_DIMENSIONS];
} rondo_strided;

/* Of a value: the distance of neighbours along each of its dimensions, in elements. */
void rondo_strides_of(const rondo_shape *shape, size_t *strides);

/* The copy that makes `result` of a source, in units of elements; strides: one a dimension of the result. */
rondo_strided rondo_strided_make(const rondo_shape *result, size_t offset, const size_t *strides);

/* Where the source has the first unit of the `number`-th group of the dimensions before `end`. */
size_t rondo_strided_place(const rondo_strided *copy, size_t number, uint32_t end);

/* Adds the copy between two values. */
RONDO_MUST_USE rondo_status rondo_emit_strided(rondo_emitter *emitter, const rondo_strided *copy, uint32_t from,
                                               uint32_t to);

/* For rows that add to a sum in place (rondo_operator.is_in_place): copies the sum so far to the result, unless both
 * have the same bytes. */
RONDO_MUST_USE rondo_status rondo_emit_sum_so_far(rondo_emitter *emitter, uint32_t sum, uint32_t result);

/* slice.c: adds to the gradient of `value` that of the elements that a slice with these starts and steps, one a
 * dimension, takes. *inout_sum is the sum so far, or RONDO_NO_VALUE. */
RONDO_MUST_USE rondo_status rondo_program_add_part_gradient(rondo_program *program, uint32_t value,
                                                            const size_t *starts, const size_t *steps,
                                                            uint32_t gradient, uint32_t *inout_sum);

#endif
