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

/* Values ----------------------------------------------------------------------------------------------------------- */

/* Operations ------------------------------------------------------------------------------------------------------- */

/* What messages call a value: "'x' [64, 512]", "result of tanh (operator 4) [64, 512] bf16", "constant 1". Returns the
 * buffer. */
#define RONDO_CALL_TEXT 512

/* TYPE or SHAPE unless input `input` has this type, and this rank (RONDO_ANY_RANK: any). */
#define RONDO_ANY_RANK UINT32_MAX

/* Undoing ---------------------------------------------------------------------------------------------------------- */

typedef struct rondo_program_mark {
  size_t values, operations, outputs;
} rondo_program_mark;

/* Differentiation -------------------------------------------------------------------------------------------------- */

#endif
