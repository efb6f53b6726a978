/* SPDX-License-Identifier: MIT
 * Memory of an operation of the user on a device that guards allocations (cpu:check). Programs keep all values in one
 * arena, where an access past the end of one of them hits another and is not found. So each input and result of such
 * an operation gets an allocation of its own, named by operator and value: inputs are copied there before its kernel
 * runs, and results back after it.
 *
 * On other devices the addresses are NULL, and only the operator is kept: the compiled program uses its functions and
 * names. Threads: as tensor/program/operator.h says.
 */
#ifndef RONDO_TENSOR_OPERATORS_USER_ISOLATED_VALUES_H
#define RONDO_TENSOR_OPERATORS_USER_ISOLATED_VALUES_H

#include "tensor/compile/emit.h"
#include "tensor/program/program_internal.h"

typedef struct rondo_isolated_values {
  rondo_allocator allocator;
  rondo_device *device;
  const rondo_operator *row; /* a reference */
  void *inputs[RONDO_MAX_OPERANDS], *results[RONDO_MAX_RESULTS];
} rondo_isolated_values;

/* Makes the values of an operation an object of it. Errors: OUT_OF_MEMORY. */
RONDO_MUST_USE rondo_status rondo_isolate_values(rondo_resources *resources, const rondo_program *program,
                                                 uint32_t operation, size_t *out_workspace_bytes);

/* Whether the values have memory of their own. */
bool rondo_are_isolated(const rondo_isolated_values *values);

/* Adds the copies of inputs, and those of results. Nothing if the values have no memory of their own. */
RONDO_MUST_USE rondo_status rondo_emit_isolating(rondo_emitter *emitter, const rondo_operation *operation);
RONDO_MUST_USE rondo_status rondo_emit_returning(rondo_emitter *emitter, const rondo_operation *operation);

#endif
