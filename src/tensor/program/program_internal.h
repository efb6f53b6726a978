/* SPDX-License-Identifier: MIT
 * A program's inside: values and operations, append only. An operation's inputs stand before it, so the order of adding
 * is an order of execution. A value's public tag carries the program's serial in its upper half and its index plus one
 * in the lower, so that a tag of another program is found out.
 *
 * A public call that fails half way rolls the program back to where it stood (rondo_program_mark), so that nothing of
 * it is left. Thread-compatible; serials come from a process-wide atomic.
 */
#ifndef RONDO_TENSOR_PROGRAM_PROGRAM_INTERNAL_H
#define RONDO_TENSOR_PROGRAM_PROGRAM_INTERNAL_H

#include <rondo/operators.h>

#include "base/array.h"
#include "base/error.h"
#include "tensor/program/operator.h"

typedef enum rondo_value_kind {
  RONDO_VALUE_INPUT,
  RONDO_VALUE_STATE,
  RONDO_VALUE_CELL,
  RONDO_VALUE_CONSTANT, /* a scalar that nobody changes: a cell without a name */
  RONDO_VALUE_RESULT
} rondo_value_kind;

/* As in rondo_compiled_value; 0 where it has none. */
static inline char rondo_value_letter(rondo_value_kind kind) {
  static const char letters[] = {
      [RONDO_VALUE_INPUT] = 'i', [RONDO_VALUE_STATE] = 's', [RONDO_VALUE_CELL] = 'c', [RONDO_VALUE_RESULT] = '\0'};
  return letters[kind];
}

typedef struct rondo_program_value {
  rondo_value_kind kind;
  rondo_shape shape;
  char *name;         /* inputs, states and cells; else NULL */
  float initial;      /* of cells, constants and states that are one F32; else 0 */
  bool trained;       /* a state that an optimizer updates */
  bool frozen;        /* a state that none may */
  uint32_t operation; /* results: the one that computes it */
  uint32_t view_of;   /* the value whose bytes it shows; RONDO_NO_VALUE: its own */
  uint32_t readers;   /* inputs of operations, and outputs, that it is */
  uint32_t place;     /* states: where it was placed, plus one; 0: nowhere (tensor/divide/operator_placement.h) */
} rondo_program_value;

typedef struct rondo_named_output {
  char *name;
  uint32_t value;
} rondo_named_output;

struct rondo_program {
  rondo_allocator allocator;
  char *name;
  char *label; /* for messages: "program 'mlp'", "the program" without a name */
  uint32_t serial;
  bool has_optimizer;
  RONDO_ARRAY(rondo_program_value) values;
  RONDO_ARRAY(rondo_operation) operations;
  RONDO_ARRAY(rondo_named_output) outputs;
};

/* The label of a program of that name; freed by rondo_release_text. */
RONDO_MUST_USE rondo_status rondo_program_make_label(const rondo_allocator *allocator, const char *name, char **out);

/* Values ----------------------------------------------------------------------------------------------------------- */

/* The index of a tag, checked; `call` and `what` start the message. */
RONDO_MUST_USE rondo_status rondo_program_resolve(const rondo_program *program, rondo_value value, const char *call,
                                                  const char *what, uint32_t *out_index);
rondo_value rondo_program_tag(const rondo_program *program, uint32_t index);
const rondo_shape *rondo_program_shape(const rondo_program *program, uint32_t index);

/* A scalar constant, F32. */
RONDO_MUST_USE rondo_status rondo_program_constant(rondo_program *program, float number, uint32_t *out_index);

/* Zeros of this type and shape: a result, made anew in each run. */
RONDO_MUST_USE rondo_status rondo_program_add_zeros(rondo_program *program, const rondo_shape *shape,
                                                    uint32_t *out_value);

/* A state, cell or input without the front's checks of the out-parameter; names and shapes are checked here. */
RONDO_MUST_USE rondo_status rondo_program_declare(rondo_program *program, rondo_value_kind kind, const char *name,
                                                  const rondo_shape *shape, float initial, uint32_t *out_index);

/* Operations ------------------------------------------------------------------------------------------------------- */

/* Adds an operator; inputs past `count` are left out. attributes may be NULL. out_results has room for the row's
 * results, or is NULL. */
RONDO_MUST_USE rondo_status rondo_program_add(rondo_program *program, const rondo_operator *row, const uint32_t *inputs,
                                              uint32_t count, const rondo_attributes *attributes,
                                              uint32_t *out_results);

/* Adds a row of one input and one result whose attributes are a shape, of which there is a copy: reshape, expand. */
RONDO_MUST_USE rondo_status rondo_program_add_shaped(rondo_program *program, const rondo_operator *row, uint32_t value,
                                                     rondo_shape shape, uint32_t *out_value);

/* The body of every public operator: resolves the tags (zero tags are inputs left out), adds, tags the first result. */
RONDO_MUST_USE rondo_status rondo_program_apply(rondo_program *program, const rondo_operator *row,
                                                const rondo_value *inputs, uint32_t count,
                                                const rondo_attributes *attributes, rondo_value *out_value);

/* INVALID_ARGUMENT: "matmul(a 'x' [64, 512], b 'w' [500, 256]): " and the message. */
rondo_status rondo_fail_operation(const rondo_program *program, const rondo_operation *operation, rondo_reason reason,
                                  const char *format, ...) RONDO_PRINTF(4, 5);

/* What messages call a value: "'x' [64, 512]", "result of tanh (operator 4) [64, 512] bf16", "constant 1". Returns the
 * buffer. */
#define RONDO_CALL_TEXT 512
const char *rondo_value_text(char buffer[RONDO_CALL_TEXT], const rondo_program *program, uint32_t index);

/* Whether the value is an input of an operation, or an output. */
bool rondo_program_reads(const rondo_program *program, uint32_t value);

/* Whether there is memory for it: not for a spare result that nothing reads. */
bool rondo_value_is_made(const rondo_program *program, uint32_t value);

/* The shapes of an operation's inputs; NULL for one left out. */
const rondo_shape *rondo_operation_input(const rondo_program *program, const rondo_operation *operation,
                                         uint32_t input);

/* TYPE or SHAPE unless input `input` has this type, and this rank (RONDO_ANY_RANK: any). */
#define RONDO_ANY_RANK UINT32_MAX
RONDO_MUST_USE rondo_status rondo_require_input(const rondo_program *program, const rondo_operation *operation,
                                                uint32_t input, rondo_type type, uint32_t rank);
/* The same for any type of float: F32, F16 or BF16. */
RONDO_MUST_USE rondo_status rondo_require_float(const rondo_program *program, const rondo_operation *operation,
                                                uint32_t input, uint32_t rank);
/* The same for indices: I32 or I64. */
RONDO_MUST_USE rondo_status rondo_require_indices(const rondo_program *program, const rondo_operation *operation,
                                                  uint32_t input, uint32_t rank);
/* SHAPE unless both inputs have the same shape. */
RONDO_MUST_USE rondo_status rondo_require_same_shape(const rondo_program *program, const rondo_operation *operation,
                                                     uint32_t a, uint32_t b);

/* SHAPE unless the input has this dimension. */
RONDO_MUST_USE rondo_status rondo_require_dimension(const rondo_program *program, const rondo_operation *operation,
                                                    uint32_t input, size_t dimension);

/* What a caller of a public operator tells beside values; `call` starts the message. A shape becomes the attributes'
 * sizes: NULL_ARGUMENT, SHAPE (too many dimensions). OUT_OF_RANGE unless it is a way to combine. */
RONDO_MUST_USE rondo_status rondo_read_dimensions(const char *call, const size_t *dims, size_t count,
                                                  rondo_attributes *out);
RONDO_MUST_USE rondo_status rondo_require_combine(const char *call, rondo_combine combine);

/* Undoing ---------------------------------------------------------------------------------------------------------- */

typedef struct rondo_program_mark {
  size_t values, operations, outputs;
} rondo_program_mark;

rondo_program_mark rondo_program_get_mark(const rondo_program *program);
void rondo_program_roll_back(rondo_program *program, rondo_program_mark mark);

/* Differentiation -------------------------------------------------------------------------------------------------- */

/* As rondo_program_gradients, on indices: gradients[i] becomes the gradient of values[i], times the scalar `seed`, or 1
 * for RONDO_NO_VALUE; RONDO_NO_VALUE where no gradient comes to it. Does not roll back. */
RONDO_MUST_USE rondo_status rondo_program_differentiate(rondo_program *program, uint32_t loss, uint32_t seed,
                                                        const uint32_t *values, size_t count, uint32_t *gradients);

/* For rows' differentiate: adds a gradient to the sum so far, or begins the sum with it (RONDO_NO_VALUE). */
RONDO_MUST_USE rondo_status rondo_program_add_gradient(rondo_program *program, uint32_t gradient, uint32_t *inout_sum);

/* The same with the gradient of elements of `value` alone, those that rondo_op_slice takes (operators/slice.c). starts
 * and steps: one a dimension. */
RONDO_MUST_USE rondo_status rondo_program_add_part_gradient(rondo_program *program, uint32_t value,
                                                            const size_t *starts, const size_t *steps,
                                                            uint32_t gradient, uint32_t *inout_sum);

/* The same of elements that were picked along a dimension by indices, of the gradient's shape or, where they are
 * shared, one list for all (operators/gather.c). Only where there is a sum and the picks are few: else it adds nothing,
 * and out_is_added is false. */
RONDO_MUST_USE rondo_status rondo_program_add_picked_gradient(rondo_program *program,
                                                              const uint32_t *gradient_and_indices, size_t dimension,
                                                              bool shares, uint32_t *inout_sum, bool *out_is_added);

/* Sets needed[v] for every value that `value` is computed from, itself among them. One entry a value, zeroed. */
void rondo_program_mark_sources(const rondo_program *program, uint32_t value, bool *needed);

/* arena_use.c: before copies in the order of the program's stream write all of its inputs at their addresses: makes the
 * program the one that holds the arena; no input of it is lost. */
void rondo_compiled_claim_inputs(rondo_compiled *compiled);

/* Named values, in the order of rondo_compiled_get_value. */
size_t rondo_compiled_count_values(const rondo_compiled *compiled);
rondo_compiled_value rondo_compiled_value_at(const rondo_compiled *compiled, size_t index);

/* arena_use.c: bytes of the arenas of all that share with it, and of the largest. */
uint64_t rondo_compiled_arenas(const rondo_compiled *compiled, uint64_t *out_largest);

/* compile.c: what rondo_compile would find of a program before it has memory, code or a recording: sizes, as info says
 * them. Errors as rondo_compile. */
RONDO_MUST_USE rondo_status rondo_compile_plan(rondo_program *program, rondo_device *device,
                                               const rondo_compile_options *options, rondo_compiled_info *out_info);

/* program_record.c: captures a run into the capture that the program's stream is part of, behind its frontier, with
 * branches where it is laid out for them; what comes next there comes behind all of them. Of a program that is not
 * recorded itself and has no staged values. Errors: INVALID_STATE/UNPREPARED as rondo_compile. */
RONDO_MUST_USE rondo_status rondo_compiled_record_into(rondo_compiled *compiled);

#endif
