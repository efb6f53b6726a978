/* SPDX-License-Identifier: MIT
 * Memory of an operation of the user on a device that guards allocations (cpu:check). Programs keep all values in one
 * arena, where an access past the end of one of them hits another and is not found. So each input and result of such
 * an operation gets an allocation of its own, named by operator and value: inputs are copied there before its kernel
 * runs, and results back after it. Results are filled before it, differently in eager and in recorded runs, so that
 * what the kernel does not write differs between the two. Those of an element-wise operator are F32: otherwise its
 * function would work on a buffer of a chunk, and an access past a value of F16 or BF16 would stay in the buffer.
 *
 * On other devices there are none. Threads: as tensor/program/operator.h says.
 */
#ifndef RONDO_TENSOR_OPERATORS_USER_ISOLATED_VALUES_H
#define RONDO_TENSOR_OPERATORS_USER_ISOLATED_VALUES_H

#include "tensor/compile/emit.h"
#include "tensor/program/program_internal.h"

typedef struct rondo_isolated_values {
  rondo_allocator allocator;
  rondo_device *device;
  const rondo_operator *row; /* which the resources keep */
  bool is_wide;              /* the values are F32, and those of the program F16 or BF16 */
  void *inputs[RONDO_MAX_OPERANDS], *results[RONDO_MAX_RESULTS];
} rondo_isolated_values;

/* Makes the values of an operation an object of it. Errors: OUT_OF_MEMORY. */
RONDO_MUST_USE rondo_status rondo_isolate_values(rondo_resources *resources, const rondo_program *program,
                                                 uint32_t operation);

/* Those of the first operation of an operator; NULL: there are none. */
const rondo_isolated_values *rondo_isolated_values_of(const rondo_resources *resources, const rondo_operator *row);

/* Adds the copies of inputs and the fills of results, and the copies of results. Nothing if the values have no memory
 * of their own. */
RONDO_MUST_USE rondo_status rondo_emit_isolating(rondo_emitter *emitter, const rondo_operation *operation);
RONDO_MUST_USE rondo_status rondo_emit_returning(rondo_emitter *emitter, const rondo_operation *operation);

#endif
