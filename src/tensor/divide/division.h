/* SPDX-License-Identifier: MIT
 * A program divided into parts, each a program of its own for one place, and what is handed over between them. A part
 * declares the inputs and cells that it reads, the states that it reads or changes and that lie at its place, and an
 * input for each value that comes from elsewhere; these are outputs of the part that computes them. Pure.
 *
 * The parts' operations keep their order. What changes a state stands behind all that reads it as it was, in the same
 * part or a later one; so running the parts one after the other means what running the program does.
 */
#ifndef RONDO_TENSOR_DIVIDE_DIVISION_H
#define RONDO_TENSOR_DIVIDE_DIVISION_H

#include "tensor/divide/operator_placement.h"

#define RONDO_CROSSING_NAME 40

/* A value that one part reads and another one has. */
typedef struct rondo_crossing {
  uint32_t value;                 /* of the program */
  uint32_t from, to;              /* parts */
  bool at_beginning;              /* a state as it was before the run, read from where `from` has it */
  uint32_t input;                 /* value of the part that it goes to */
  char name[RONDO_CROSSING_NAME]; /* of the output and the input, no name of the program's */
} rondo_crossing;

typedef struct rondo_division_part {
  uint32_t place, operators;
  rondo_program *program;
} rondo_division_part;

/* A named value of the program: in one part that has it (states, outputs), or in others too. */
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

/* Errors: those of rondo_compile_divided about places; LIMIT_EXCEEDED, OUT_OF_MEMORY. Freed by rondo_division_free,
 * also after a failure. */
RONDO_MUST_USE rondo_status rondo_division_make(const rondo_program *program, const rondo_place_list *list,
                                                rondo_division *out);
void rondo_division_free(rondo_division *division);

#endif
