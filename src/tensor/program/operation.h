/* SPDX-License-Identifier: MIT
 * Adds operators to a program: checks inputs, infers shapes, adds results. Also makes the messages about them.
 */
#ifndef RONDO_TENSOR_PROGRAM_OPERATION_H
#define RONDO_TENSOR_PROGRAM_OPERATION_H

#include "tensor/program/program_internal.h"

/* Adds an operator. Inputs from index `count` on are omitted. attributes may be NULL. out_results receives the
 * row's results, or is NULL. */
RONDO_MUST_USE rondo_status rondo_program_add(rondo_program *program, const rondo_operator *row, const uint32_t *inputs,
                                              uint32_t count, const rondo_attributes *attributes,
                                              uint32_t *out_results);

/* Adds a collective of a data-parallel program, which comes after those that it has. */
RONDO_MUST_USE rondo_status rondo_program_add_collective(rondo_program *program, const rondo_operator *row,
                                                         uint32_t value, uint32_t *out_value);

/* Adds an operator with one input and one result whose attributes are a shape: reshape, expand. */
RONDO_MUST_USE rondo_status rondo_program_add_shaped(rondo_program *program, const rondo_operator *row, uint32_t value,
                                                     rondo_shape shape, uint32_t *out_value);

/* Casts a value, unless it has the type. */
RONDO_MUST_USE rondo_status rondo_program_add_cast(rondo_program *program, rondo_type type, uint32_t *inout_value);

/* The beginning of a public operator: sets *out_value to no value. NULL_ARGUMENT if that or the program is NULL. */
RONDO_MUST_USE rondo_status rondo_program_begin(const rondo_program *program, const char *call, rondo_value *out_value);

/* The same, and finds the index of `value`, which messages call `what`. */
RONDO_MUST_USE rondo_status rondo_program_begin_of(const rondo_program *program, const char *call, rondo_value value,
                                                   const char *what, rondo_value *out_value, uint32_t *out_index);

/* The end of a public operator that added several operations since the mark: all are added, or none. */
RONDO_MUST_USE rondo_status rondo_program_finish(rondo_program *program, rondo_program_mark mark, rondo_status status,
                                                 uint32_t result, rondo_value *out_value);

/* The indices of a row's inputs. Optional inputs with a zero tag become RONDO_NO_VALUE. */
RONDO_MUST_USE rondo_status rondo_program_resolve_inputs(const rondo_program *program, const rondo_operator *row,
                                                         const rondo_value *inputs, uint32_t count,
                                                         uint32_t *out_indices);

/* The body of most public operators: resolves the tags (a zero tag leaves an input out), adds the operator, and returns
 * the tag of the first result. */
RONDO_MUST_USE rondo_status rondo_program_apply(rondo_program *program, const rondo_operator *row,
                                                const rondo_value *inputs, uint32_t count,
                                                const rondo_attributes *attributes, rondo_value *out_value);

/* INVALID_ARGUMENT: "matmul(a 'x' [64, 512], b 'w' [500, 256]): " and the message. */
rondo_status rondo_fail_operation(const rondo_program *program, const rondo_operation *operation, rondo_reason reason,
                                  const char *format, ...) RONDO_PRINTF(4, 5);

/* The description of a value: "'x' [64, 512]", "result of tanh (operator 4) [64, 512] bf16", "constant 1". Returns the
 * buffer. */
const char *rondo_value_text(char buffer[RONDO_CALL_TEXT], const rondo_program *program, uint32_t index);

/* Whether the value is an input of an operation, or an output. */
bool rondo_program_reads(const rondo_program *program, uint32_t value);

/* Whether the value has memory. Only spare results that nothing reads have none. */
bool rondo_value_is_made(const rondo_program *program, uint32_t value);

/* The shape of an operation's input; NULL if the input is omitted. */
const rondo_shape *rondo_operation_input(const rondo_program *program, const rondo_operation *operation,
                                         uint32_t input);

/* TYPE or SHAPE unless input `input` has this type and this rank (RONDO_ANY_RANK: any). OK if the input is omitted. */
RONDO_MUST_USE rondo_status rondo_require_input(const rondo_program *program, const rondo_operation *operation,
                                                uint32_t input, rondo_type type, uint32_t rank);

/* The same for any floating-point type: F32, F16 or BF16. */
RONDO_MUST_USE rondo_status rondo_require_float(const rondo_program *program, const rondo_operation *operation,
                                                uint32_t input, uint32_t rank);

/* The same for indices: I32 or I64. */
RONDO_MUST_USE rondo_status rondo_require_indices(const rondo_program *program, const rondo_operation *operation,
                                                  uint32_t input, uint32_t rank);

/* rondo_operator.infer of a row whose result has the type and shape of input 0. */
RONDO_MUST_USE rondo_status rondo_infer_same(const rondo_program *program, const rondo_operation *operation,
                                             rondo_shape *results);

/* SHAPE unless both inputs have the same shape. */
RONDO_MUST_USE rondo_status rondo_require_same_shape(const rondo_program *program, const rondo_operation *operation,
                                                     uint32_t a, uint32_t b);

/* SHAPE unless the input has this dimension. */
RONDO_MUST_USE rondo_status rondo_require_dimension(const rondo_program *program, const rondo_operation *operation,
                                                    uint32_t input, size_t dimension);

/* Parameters of public operators; `call` starts the message. A shape becomes the attributes' sizes: NULL_ARGUMENT,
 * SHAPE (too many dimensions). OUT_OF_RANGE unless it is a rondo_combine. */
RONDO_MUST_USE rondo_status rondo_read_dimensions(const char *call, const size_t *dims, size_t count,
                                                  rondo_attributes *out);
RONDO_MUST_USE rondo_status rondo_require_combine(const char *call, rondo_combine combine);

#endif
