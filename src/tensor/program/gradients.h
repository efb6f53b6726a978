/* SPDX-License-Identifier: MIT
 * Reverse-mode differentiation: walks the operations from the loss backwards and adds, for each on the way, the
 * operators that turn gradients of results into gradients of inputs.
 */
#ifndef RONDO_TENSOR_PROGRAM_GRADIENTS_H
#define RONDO_TENSOR_PROGRAM_GRADIENTS_H

#include "tensor/program/program_internal.h"

/* As rondo_program_gradients, on indices: gradients[i] becomes the gradient of values[i], times the scalar `seed`, or 1
 * for RONDO_NO_VALUE; RONDO_NO_VALUE where no gradient comes to it. Does not roll back. */
RONDO_MUST_USE rondo_status rondo_program_differentiate(rondo_program *program, uint32_t loss, uint32_t seed,
                                                        const uint32_t *values, size_t count, uint32_t *gradients);

/* For rows' differentiate: adds a gradient to the sum so far, or begins the sum with it (RONDO_NO_VALUE). */
RONDO_MUST_USE rondo_status rondo_program_add_gradient(rondo_program *program, uint32_t gradient, uint32_t *inout_sum);

/* Sets needed[v] for every value that `value` is computed from, itself among them. One entry a value, zeroed. */
void rondo_program_mark_sources(const rondo_program *program, uint32_t value, bool *needed);

/* Defined with the operator in tensor/operators/shape/zeros.c. Zeros of this type and shape: a result, made again in
 * each run. */
RONDO_MUST_USE rondo_status rondo_program_add_zeros(rondo_program *program, const rondo_shape *shape,
                                                    uint32_t *out_value);

#endif
