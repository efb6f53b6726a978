/* SPDX-License-Identifier: MIT
 * Programs: making them, their named values and outputs, and the values' tags.
 */
#ifndef RONDO_TENSOR_PROGRAM_PROGRAM_H
#define RONDO_TENSOR_PROGRAM_PROGRAM_H

#include "tensor/program/program_internal.h"

/* The label of a program of this name; freed by rondo_release_text. */
RONDO_MUST_USE rondo_status rondo_program_make_label(const rondo_allocator *allocator, const char *name, char **out);

/* The index of a tag, checked; `call` and `what` start the message. */
RONDO_MUST_USE rondo_status rondo_program_resolve(const rondo_program *program, rondo_value value, const char *call,
                                                  const char *what, uint32_t *out_index);
rondo_value rondo_program_tag(const rondo_program *program, uint32_t index);
const rondo_shape *rondo_program_shape(const rondo_program *program, uint32_t index);

/* A scalar constant, F32. */
RONDO_MUST_USE rondo_status rondo_program_constant(rondo_program *program, float number, uint32_t *out_index);

/* Adds a state, cell or input. Checks the name. */
RONDO_MUST_USE rondo_status rondo_program_declare(rondo_program *program, rondo_value_kind kind, const char *name,
                                                  const rondo_shape *shape, float initial, uint32_t *out_index);
rondo_program_mark rondo_program_get_mark(const rondo_program *program);
void rondo_program_roll_back(rondo_program *program, rondo_program_mark mark);

#endif
