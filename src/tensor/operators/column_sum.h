/* SPDX-License-Identifier: MIT
 * Sums over what a value was repeated for: the gradient of broadcasting.
 */
#ifndef RONDO_TENSOR_OPERATORS_COLUMN_SUM_H
#define RONDO_TENSOR_OPERATORS_COLUMN_SUM_H

#include "tensor/program_internal.h"

/* Adds what makes a value of the shape of `like` of one that it was broadcast to: sums over the dimensions that were
 * repeated. Of one shape they are one value. */
RONDO_MUST_USE rondo_status rondo_program_add_sum_like(rondo_program *program, uint32_t value, uint32_t like,
                                                       uint32_t *out_value);

#endif
