/* SPDX-License-Identifier: MIT
 * Shapes of values: sizes, comparison, and text for messages.
 */
#ifndef RONDO_TENSOR_PROGRAM_SHAPE_H
#define RONDO_TENSOR_PROGRAM_SHAPE_H

#include "base/component.h"
#include "tensor/program/operator.h"

/* Sets *out. Errors: INVALID_ARGUMENT with TYPE or SHAPE; LIMIT_EXCEEDED if the size in bytes overflows. `what` starts
 * the message. */
RONDO_PRIVATE RONDO_MUST_USE rondo_status rondo_shape_make(const char *what, rondo_type type, const size_t *dims,
                                                           size_t rank, rondo_shape *out);

rondo_shape rondo_shape_scalar(rondo_type type);
rondo_shape rondo_shape_vector(rondo_type type, size_t n);
rondo_shape rondo_shape_matrix(rondo_type type, size_t m, size_t n);

/* For shapes from rondo_shape_make, which has ruled out overflow. */
size_t rondo_shape_elements(const rondo_shape *shape);
size_t rondo_shape_elements_of(const rondo_shape *shape, size_t first, size_t end); /* dimensions first .. end - 1 */
RONDO_PRIVATE size_t rondo_shape_bytes(const rondo_shape *shape);
size_t rondo_shape_last(const rondo_shape *shape); /* the last dimension; 1 for a scalar */

bool rondo_shape_is_float(const rondo_shape *shape);                                        /* F32, F16 or BF16 */
RONDO_PRIVATE bool rondo_shape_same(const rondo_shape *a, const rondo_shape *b);            /* type and dimensions */
bool rondo_shape_same_except(const rondo_shape *a, const rondo_shape *b, size_t dimension); /* other dimensions only */

/* "[64, 512]", "[64] i32", "[]" into buffer; returns it. F32 is omitted. */
#define RONDO_SHAPE_TEXT 152
RONDO_PRIVATE const char *rondo_shape_text(char buffer[RONDO_SHAPE_TEXT], const rondo_shape *shape);

/* The strides, in elements, of an input that is broadcast to `result`: one for each dimension of `result`, aligned at
 * the last. A stride is 0 where the input is repeated or has one element. */
void rondo_broadcast_strides(const rondo_shape *input, const rondo_shape *result, size_t *strides);

#endif
