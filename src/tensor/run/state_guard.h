/* SPDX-License-Identifier: MIT
 * Restoring the states that a program shares after its warm-up: those that a run updates are copied to host memory
 * before, and back after it.
 */
#ifndef RONDO_TENSOR_RUN_STATE_GUARD_H
#define RONDO_TENSOR_RUN_STATE_GUARD_H

#include "tensor/compile/layout.h"
#include "tensor/run/compiled.h"

typedef struct rondo_guarded_state {
  void *address;
  void *copy;
  size_t bytes;
} rondo_guarded_state;

typedef struct rondo_state_guard {
  RONDO_ARRAY(rondo_guarded_state) items;
} rondo_state_guard;

/* Waits for the copies. Errors: OUT_OF_MEMORY, and what copying returns; nothing is kept then. */
RONDO_MUST_USE rondo_status rondo_state_guard_begin(const rondo_program *program, const rondo_layout *layout,
                                                    const rondo_compiled *compiled, rondo_state_guard *out);

/* Puts them back, waits, and frees the copies in any case. */
RONDO_MUST_USE rondo_status rondo_state_guard_end(const rondo_compiled *compiled, rondo_state_guard *guard);

#endif
