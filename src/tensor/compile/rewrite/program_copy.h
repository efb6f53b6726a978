/* SPDX-License-Identifier: MIT
 * Copying a program operation by operation, so that some of them can be replaced on the way. The copy has the inputs,
 * states, cells and constants of the program, in their order, and its outputs. Operations keep the numbers and places
 * that they have in the program. Threads: any number, for different programs.
 */
#ifndef RONDO_TENSOR_COMPILE_REWRITE_PROGRAM_COPY_H
#define RONDO_TENSOR_COMPILE_REWRITE_PROGRAM_COPY_H

#include "base/allocation.h"
#include "tensor/program/program_internal.h"

typedef struct rondo_program_copier {
  const rondo_program *from;
  rondo_program *to; /* the caller destroys it, also after a failure */
  uint32_t *values;  /* by value of `from`: that of `to`; RONDO_NO_VALUE: it has none yet */
} rondo_program_copier;

/* Creates `to` with all named values and constants. Errors, of all functions here: OUT_OF_MEMORY. */
RONDO_MUST_USE rondo_status rondo_program_copy_begin(rondo_program_copier *copier, rondo_scratch *scratch);

/* Copies an operation whose inputs are copied. */
RONDO_MUST_USE rondo_status rondo_program_copy_operation(rondo_program_copier *copier, uint32_t number);

/* Gives the operations of `to` from `first` on the number and place of an operation of `from`, which they replace. */
void rondo_program_copy_origin(const rondo_program_copier *copier, size_t first, uint32_t number);

/* Copies the outputs, whose values are copied. */
RONDO_MUST_USE rondo_status rondo_program_copy_outputs(rondo_program_copier *copier);

#endif
