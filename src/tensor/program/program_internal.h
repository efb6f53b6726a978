/* SPDX-License-Identifier: MIT
 * The inside of a program: values and operations, append only. An operation comes after its inputs, so the order of
 * adding is an order of execution. A value's public tag has the program's serial number in its upper half and its index
 * plus one in the lower half, so that a tag of another program is detected.
 *
 * A public call that fails halfway rolls the program back to its state before the call (rondo_program_mark).
 * Thread-compatible; serial numbers come from a process-wide atomic counter.
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
  RONDO_VALUE_CONSTANT, /* a scalar that never changes and has no name */
  RONDO_VALUE_RESULT
} rondo_value_kind;

/* The kind in rondo_compiled_value; 0: it has none. */
static inline char rondo_value_letter(rondo_value_kind kind) {
  static const char letters[] = {
      [RONDO_VALUE_INPUT] = 'i', [RONDO_VALUE_STATE] = 's', [RONDO_VALUE_CELL] = 'c', [RONDO_VALUE_RESULT] = '\0'};
  return letters[kind];
}

typedef struct rondo_program_value {
  rondo_value_kind kind;
  rondo_shape shape;
  char *name;         /* inputs, states and cells; else NULL */
  float initial;      /* of cells, constants and scalar F32 states; else 0 */
  bool trained;       /* a state that an optimizer updates */
  bool frozen;        /* a state that no optimizer may update */
  uint32_t operation; /* results: the operation that computes it */
  uint32_t view_of;   /* the value whose bytes it views; RONDO_NO_VALUE: it has its own bytes */
  uint32_t readers;   /* how many inputs of operations, and outputs, refer to it */
  uint32_t place; /* states: index in the device list, plus one; 0: not placed (tensor/divide/operator_placement.h) */
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

/* The size of a buffer for the description of a value or an operation. */
#define RONDO_CALL_TEXT 512

/* For rondo_require_input and similar functions: any rank is accepted. */
#define RONDO_ANY_RANK UINT32_MAX

/* The size of a program at some time. */
typedef struct rondo_program_mark {
  size_t values, operations, outputs;
} rondo_program_mark;

#endif
