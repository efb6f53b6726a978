/* SPDX-License-Identifier: MIT
 * Strided copies of elements of any type, for permute, slice and flip. Contiguous dimensions are merged first, and
 * elements that are always copied together are copied as one unit of up to 16 bytes. Threads: any.
 */
#ifndef RONDO_TENSOR_OPERATORS_SHAPE_STRIDED_H
#define RONDO_TENSOR_OPERATORS_SHAPE_STRIDED_H

#include "tensor/compile/emit.h"

/* A scalar argument of the kernels; without padding. Element (i, j, ...) of the result is the source's element at
 * offset + i strides[0] + j strides[1] + ..., all in units. The dimensions are at the end of the arrays; those before
 * are 1. */
typedef struct rondo_strided {
  size_t count, offset;
  size_t unit_bytes; /* 1, 2, 4, 8 or 16 */
  size_t dims[RONDO_MAX_DIMENSIONS], strides[RONDO_MAX_DIMENSIONS];
} rondo_strided;

/* The strides of a contiguous value, in elements. */
void rondo_strides_of(const rondo_shape *shape, size_t *strides);

/* The copy from a source to `result`, in units of elements; strides: of the source, for each dimension of the result.
 * They may be negative, wrapped around. */
rondo_strided rondo_strided_make(const rondo_shape *result, size_t offset, const size_t *strides);

/* The first unit, in the source, of group `number` of the dimensions before `end`. */
size_t rondo_strided_place(const rondo_strided *copy, size_t number, uint32_t end);

/* Adds the copy between two values, or between addresses. */
RONDO_MUST_USE rondo_status rondo_emit_strided(rondo_emitter *emitter, const rondo_strided *copy, uint32_t from,
                                               uint32_t to);
RONDO_MUST_USE rondo_status rondo_emit_strided_at(rondo_emitter *emitter, const rondo_strided *copy, const void *from,
                                                  void *to);

/* For rows that add to a sum in place (rondo_operator.is_in_place): copies the sum so far to the result, unless both
 * have one address. */
RONDO_MUST_USE rondo_status rondo_emit_sum_so_far(rondo_emitter *emitter, uint32_t sum, uint32_t result);

/* Defined in slice.c: adds the gradient of a slice of `value` to the gradient of `value`. Starts and steps of the
 * slice: one for each dimension. *inout_sum is the sum so far, or RONDO_NO_VALUE. */
RONDO_MUST_USE rondo_status rondo_program_add_part_gradient(rondo_program *program, uint32_t value,
                                                            const size_t *starts, const size_t *steps,
                                                            uint32_t gradient, uint32_t *inout_sum);

#endif
