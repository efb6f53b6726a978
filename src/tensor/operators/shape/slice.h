/* SPDX-License-Identifier: MIT
 * slice: every step-th of some elements along each dimension.
 */
#ifndef RONDO_TENSOR_OPERATORS_SHAPE_SLICE_H
#define RONDO_TENSOR_OPERATORS_SHAPE_SLICE_H

#include "tensor/program/program_internal.h"

/* The same with the gradient of elements of `value` alone, those that rondo_op_slice takes (operators/slice.c). starts
 * and steps: one a dimension. */
RONDO_MUST_USE rondo_status rondo_program_add_part_gradient(rondo_program *program, uint32_t value,
                                                            const size_t *starts, const size_t *steps,
                                                            uint32_t gradient, uint32_t *inout_sum);

#endif
