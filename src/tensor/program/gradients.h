/* SPDX-License-Identifier: MIT
 * Reverse-mode differentiation: adds the operators that compute gradients of a loss.
 */
#ifndef RONDO_TENSOR_PROGRAM_GRADIENTS_H
#define RONDO_TENSOR_PROGRAM_GRADIENTS_H

#include "tensor/program/program_internal.h"

/* As rondo_program_gradients, on indices. gradients[i] becomes the gradient of values[i], times the scalar `seed`
 * unless that is RONDO_NO_VALUE; or RONDO_NO_VALUE if the loss does not depend on the value. Does not roll back on
 * failure. */
RONDO_MUST_USE rondo_status rondo_program_differentiate(rondo_program *program, uint32_t loss, uint32_t seed,
                                                        const uint32_t *values, size_t count, uint32_t *gradients);

/* For the differentiate functions of rows: adds a gradient to the sum so far, which is RONDO_NO_VALUE before the first.
 * */
RONDO_MUST_USE rondo_status rondo_program_add_gradient(rondo_program *program, uint32_t gradient, uint32_t *inout_sum);

/* Sets needed[v] for `value` and for every value that it is computed from. needed: by value, zeroed. */
void rondo_program_mark_sources(const rondo_program *program, uint32_t value, bool *needed);

/* Adds zeros of this type and shape, a result that each run computes again. Defined with the operator in
 * tensor/operators/shape/zeros.c. */
RONDO_MUST_USE rondo_status rondo_program_add_zeros(rondo_program *program, const rondo_shape *shape,
                                                    uint32_t *out_value);

/* Defined in gather.c: adds the gradient of a value with `size` elements along the dimension, of which some were
 * selected. Their gradient and the indices have one shape. */
RONDO_MUST_USE rondo_status rondo_program_add_gather_gradient(rondo_program *program, uint32_t gradient,
                                                              uint32_t indices, size_t dimension, size_t size,
                                                              uint32_t *out_value);

#endif
