/* SPDX-License-Identifier: MIT
 * A program divided into parts, each a program for one place, and the values that pass between them. A part declares
 * the inputs and cells that it reads, the states at its place that it reads or changes, and an input for each value of
 * another part, where that value is an output. Pure.
 *
 * The operations keep their order, and the numbers that messages name (rondo_operation.number). What changes a state
 * comes after everything that reads its old value, in the same part or a later one. So running the parts one after
 * another has the meaning of running the program.
 */
#ifndef RONDO_TENSOR_DIVIDE_DIVISION_H
#define RONDO_TENSOR_DIVIDE_DIVISION_H

#include "base/component.h"
#include "tensor/divide/operator_placement.h"

#define RONDO_CROSSING_NAME 40

/* A value that one part has and another part reads. */
typedef struct rondo_crossing {
  uint32_t value;                 /* of the program */
  uint32_t from, to;              /* parts */
  bool at_beginning;              /* a state as it was before the run */
  uint32_t input;                 /* its value in the program of part `to` */
  char name[RONDO_CROSSING_NAME]; /* of the output and the input; no value of the program has it */
} rondo_crossing;

typedef struct rondo_division_part {
  uint32_t place, operators;
  rondo_program *program;
} rondo_division_part;

/* A named value of the program, and a part that has it. Inputs and cells can be in other parts too. */
typedef struct rondo_division_value {
  char kind; /* as rondo_compiled_value */
  const char *name;
  uint32_t part;
} rondo_division_value;

typedef struct rondo_division {
  const rondo_program *program;
  RONDO_ARRAY(rondo_division_part) parts;
  RONDO_ARRAY(rondo_crossing) crossings;
  RONDO_ARRAY(rondo_division_value) values; /* states, cells, inputs, outputs; names are the program's */
} rondo_division;

/* Sets the part of each operation, RONDO_NO_VALUE for one that does not run, and the number of parts. Part p comes
 * before part p + 1, and each has an operation. Errors: OUT_OF_MEMORY. */
RONDO_MUST_USE rondo_status rondo_parts_find(const rondo_program *program, const rondo_placements *places,
                                             rondo_scratch *scratch, uint32_t *of_operation, uint32_t *out_count);

/* Errors: those of rondo_compile_divided about places; LIMIT_EXCEEDED, OUT_OF_MEMORY. Freed by rondo_division_free,
 * also after a failure. */
RONDO_PRIVATE RONDO_MUST_USE rondo_status rondo_division_make(const rondo_program *program,
                                                              const rondo_placement_list *list, rondo_division *out);
RONDO_PRIVATE void rondo_division_free(rondo_division *division);

#endif
