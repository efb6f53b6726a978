/* SPDX-License-Identifier: MIT
 * What public operators that are made of others share: they add operations by the public functions, and all of them or
 * none (rondo_program_get_mark, then rondo_compose_end). Threads: as tensor/program/operator.h says.
 */
#ifndef RONDO_TENSOR_OPERATORS_COMMON_COMPOSITION_H
#define RONDO_TENSOR_OPERATORS_COMMON_COMPOSITION_H

#include "tensor/operators/common/operator_tools.h"

/* The end of `call`: *out_value becomes `made`, or what was added since the mark is removed. The message then
 * begins with the call, also if it is that of another operator, which the caller does not know. */
RONDO_MUST_USE rondo_status rondo_compose_end(rondo_program *program, const char *call, rondo_program_mark mark,
                                              rondo_status status, rondo_value made, rondo_value *out_value);

/* The shape of a value of the program. */
rondo_shape rondo_shape_at(const rondo_program *program, rondo_value value);

/* The shape of a value that the caller gave. */
RONDO_MUST_USE rondo_status rondo_given_shape(const rondo_program *program, rondo_value value, const char *call,
                                              const char *what, rondo_shape *out);

/* Adds a scalar. The type represents the number. */
RONDO_MUST_USE rondo_status rondo_compose_number(rondo_program *program, rondo_type type, double number,
                                                 rondo_value *out_value);

/* Adds I64 numbers first, first + 1, .. that are broadcast along `dimension` of values of this rank. */
RONDO_MUST_USE rondo_status rondo_compose_positions(rondo_program *program, size_t count, double first,
                                                    size_t dimension, size_t rank, rondo_value *out_value);

/* A reshape to a shape; its type is not looked at. */
RONDO_MUST_USE rondo_status rondo_compose_reshape(rondo_program *program, rondo_value value, const rondo_shape *shape,
                                                  rondo_value *out_value);

#endif
