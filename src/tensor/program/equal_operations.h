/* SPDX-License-Identifier: MIT
 * A table of the operations of a program, by what they compute: the same operator, attributes, owners of inputs and
 * shapes of inputs. The schedule runs one operation for all that compute the same; differentiation passes gradients
 * through one. Each caller provides `owners`, one for each value, which says which values count as one.
 *
 * Thread-compatible.
 */
#ifndef RONDO_TENSOR_PROGRAM_EQUAL_OPERATIONS_H
#define RONDO_TENSOR_PROGRAM_EQUAL_OPERATIONS_H

#include "tensor/program/program_internal.h"

/* A hash table with open addressing. 0: a free entry; else the number of an operation, plus one. */
typedef struct rondo_repeats {
  uint32_t *slots;
  size_t count;      /* a power of two, more than twice the program's operations */
  bool keeps_places; /* operations with different placement are not equal. Unset at first */
} rondo_repeats;

/* Allocates a table for the operations that the program has now. Errors: OUT_OF_MEMORY. */
RONDO_MUST_USE rondo_status rondo_repeats_make(const rondo_program *program, rondo_repeats *out);
void rondo_repeats_free(const rondo_program *program, rondo_repeats *repeats);

/* Whether an operation of the row can replace an equal one: it must change nothing. Rows give the same results for the
 * same inputs and attributes. So do random ones: each has its own attributes. */
bool rondo_operator_may_repeat(const rondo_operator *row);

/* The number of an earlier operation that computes all that this one does. If there is none, adds this one and returns
 * its number. */
uint32_t rondo_repeats_find(const rondo_program *program, const uint32_t *owners, rondo_repeats *repeats,
                            uint32_t number);

#endif
