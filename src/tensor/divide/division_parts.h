/* SPDX-License-Identifier: MIT
 * Which operations of a program make a part together, by their places alone.
 */
#ifndef RONDO_TENSOR_DIVIDE_DIVISION_PARTS_H
#define RONDO_TENSOR_DIVIDE_DIVISION_PARTS_H

#include "tensor/divide/operator_placement.h"

/* of_operation: one an operation, filled: its part, RONDO_NO_VALUE for what does not run. *out_count parts, each with
 * an operation; part p is before part p + 1. Errors: OUT_OF_MEMORY. */
RONDO_MUST_USE rondo_status rondo_parts_find(const rondo_program *program, const rondo_places *places,
                                             uint32_t *of_operation, uint32_t *out_count);

#endif
