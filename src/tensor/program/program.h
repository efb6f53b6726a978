/* SPDX-License-Identifier: MIT
 * Programs: creation, named values and outputs, and the tags of values.
 */
#ifndef RONDO_TENSOR_PROGRAM_PROGRAM_H
#define RONDO_TENSOR_PROGRAM_PROGRAM_H

#include "base/component.h"
#include "tensor/program/program_internal.h"

/* Makes the label of a program with this name. The caller frees it with rondo_release_text. */
RONDO_MUST_USE rondo_status rondo_program_make_label(const rondo_allocator *allocator, const char *name, char **out);

/* Checks a tag and returns its index; `call` and `what` start the message. */
RONDO_MUST_USE rondo_status rondo_program_resolve(const rondo_program *program, rondo_value value, const char *call,
                                                  const char *what, uint32_t *out_index);
rondo_value rondo_program_tag(const rondo_program *program, uint32_t index);
RONDO_PRIVATE const rondo_shape *rondo_program_shape(const rondo_program *program, uint32_t index);

/* Whether the type represents the number exactly; floats may round it. A double represents integers up to 2^53. */
bool rondo_program_number_fits(rondo_type type, double number);

/* Adds a scalar F32 constant. */
RONDO_MUST_USE rondo_status rondo_program_constant(rondo_program *program, float number, uint32_t *out_index);

/* The same for other components. */
RONDO_PRIVATE RONDO_MUST_USE rondo_status rondo_program_add_number(rondo_program *program, float number,
                                                                   rondo_value *out_value);

/* Adds a constant with these elements, which are copied. Every compiled program has a copy of its own, in memory that
 * is counted as that of states. */
RONDO_MUST_USE rondo_status rondo_program_constant_tensor(rondo_program *program, const rondo_shape *shape,
                                                          const void *elements, uint32_t *out_index);
RONDO_PRIVATE RONDO_MUST_USE rondo_status rondo_program_add_tensor(rondo_program *program, rondo_type type,
                                                                   const size_t *dims, size_t rank,
                                                                   const void *elements, rondo_value *out_value);

/* The same with elements that stay where they are, and do not change as long as the program and what is compiled from
 * it exist. They are aligned to their type. Programs that are compiled for a CPU without checks read them there. */
RONDO_MUST_USE rondo_status rondo_program_constant_borrowed(rondo_program *program, const rondo_shape *shape,
                                                            const void *elements, uint32_t *out_index);
RONDO_PRIVATE RONDO_MUST_USE rondo_status rondo_program_add_borrowed(rondo_program *program, rondo_type type,
                                                                     const size_t *dims, size_t rank,
                                                                     const void *elements, rondo_value *out_value);

/* Whether an input, state, cell or output has this name. */
RONDO_PRIVATE bool rondo_program_has_name(const rondo_program *program, const char *name);

/* Says that the elements of a state are at this offset of a file, so that the state is placed where they can be mapped
 * (rondo_device_ops.map_file). */
RONDO_PRIVATE void rondo_program_expect_file(rondo_program *program, rondo_value state, size_t offset);

/* Adds a copy of a value, which keeps what the run computes with. */
RONDO_MUST_USE rondo_status rondo_program_copy(rondo_program *program, uint32_t *inout_value);

/* Adds a state, cell or input. Checks the name. */
RONDO_MUST_USE rondo_status rondo_program_declare(rondo_program *program, rondo_value_kind kind, const char *name,
                                                  const rondo_shape *shape, float initial, uint32_t *out_index);
RONDO_PRIVATE rondo_program_mark rondo_program_get_mark(const rondo_program *program);
RONDO_PRIVATE void rondo_program_roll_back(rondo_program *program, rondo_program_mark mark);

#endif
