/* SPDX-License-Identifier: MIT
 * Numbers that are known when a program is compiled. Threads: any.
 */
#ifndef RONDO_TENSOR_OPERATORS_SHAPE_ZEROS_H
#define RONDO_TENSOR_OPERATORS_SHAPE_ZEROS_H

#include "tensor/program/program_internal.h"

/* Whether all elements of the value are one number that the program says: a constant, full or zeros, also reshaped,
 * expanded or cast, before rounding to its type. */
bool rondo_program_number(const rondo_program *program, uint32_t value, double *out);

#endif
