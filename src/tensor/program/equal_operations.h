/* SPDX-License-Identifier: MIT
 * A table of the operations of a program, by what they compute: the same operator, attributes, inputs' owners and
 * inputs' shapes. The schedule runs one operation for all that compute the same; differentiation passes gradients
 * through one. Each decides by `owners`, one a value, which values count as one.
 *
 * Thread-compatible.
 */
#ifndef RONDO_TENSOR_PROGRAM_EQUAL_OPERATIONS_H
#define RONDO_TENSOR_PROGRAM_EQUAL_OPERATIONS_H

#include "tensor/program/program_internal.h"

/* Open addressing: 0 is free, else one more than an operation's number. */
typedef struct rondo_repeats {
  uint32_t *slots;
  size_t count;      /* a power of two, more than twice the program's operations */
  bool keeps_places; /* operations that were placed differently do not stand for each other. Unset at first */
} rondo_repeats;

/* Has room for the operations that the program has now. Errors: OUT_OF_MEMORY. */
RONDO_MUST_USE rondo_status rondo_repeats_make(const rondo_program *program, rondo_repeats *out);
void rondo_repeats_free(const rondo_program *program, rondo_repeats *repeats);

/* Whether one operation of the row can stand for another: it changes nothing. Rows give the same results for the
 * same inputs and attributes; random ones too, which have different attributes. */
bool rondo_operator_may_repeat(const rondo_operator *row);

/* The number of an operation that was looked up before and computes all that this one does; or this one, which is then
 * in the table. */
uint32_t rondo_repeats_find(const rondo_program *program, const uint32_t *owners, rondo_repeats *repeats,
                            uint32_t number);

#endif
