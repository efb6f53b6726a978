/* SPDX-License-Identifier: MIT
 * Operators of the user (<rondo/user_operator.h>): their memory and their numbers. Each has a number past those of the
 * table of operators for as long as it exists, so that the argument of a chain's kernel can refer to it. It exists
 * until the caller, all programs and all compiled programs have released it. No other public operator has its name.
 *
 * Threads: any. Finding an operator by its number takes no lock.
 */
#ifndef RONDO_TENSOR_PROGRAM_OPERATOR_REGISTRY_H
#define RONDO_TENSOR_PROGRAM_OPERATOR_REGISTRY_H

#include <stdatomic.h>

#include <rondo/operators.h>

#include "base/error.h"
#include "tensor/program/operator.h"

#define RONDO_MAX_USER_OPERATORS 1024

typedef struct rondo_user_operator {
  rondo_operator row; /* first, so that a row leads to it */
  atomic_size_t references;
  uint64_t serial; /* of rondo_operator_define; never used again, unlike the number */
  uint32_t number;
  rondo_allocator allocator;
  rondo_operator_definition definition; /* names and kernels are those below; `element` is NULL or the next */
  rondo_operator_element element;       /* its cuda_source is row.element.source */
  char *name, *inputs[RONDO_MAX_OPERANDS];
  char *function, *source;                              /* of the element */
  rondo_kernel_options kernels[RONDO_OPERATOR_KERNELS]; /* with param_list, not params */
} rondo_user_operator;

static inline const rondo_user_operator *rondo_user_operator_of(const rondo_operator *row) {
  return row->is_user ? (const rondo_user_operator *)row : NULL;
}

/* Gives the operator, which is complete but for this, a number and its first reference. Errors:
 * INVALID_ARGUMENT/DUPLICATE_NAME, LIMIT_EXCEEDED. */
RONDO_MUST_USE rondo_status rondo_operator_register(rondo_user_operator *user);

/* Frees an operator that has no number. NULL is fine. */
void rondo_user_operator_free(rondo_user_operator *user);

/* Do nothing for a row of the table. */
void rondo_operator_retain(const rondo_operator *row);
void rondo_operator_release(const rondo_operator *row);

/* The number of a row of the table or of the user, and the row with a number. */
uint16_t rondo_operator_number(const rondo_operator *row);
const rondo_operator *rondo_operator_at(uint16_t number);

/* What rondo_operator_enumerate says of the operators of the user, by their index; false: there are no more. */
bool rondo_user_operator_info(size_t index, rondo_operator_info *out);

#endif
