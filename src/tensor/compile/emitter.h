/* SPDX-License-Identifier: MIT
 * The emitter itself: where an operator's emit writes its steps. Lives while a program is compiled.
 */
#ifndef RONDO_TENSOR_COMPILE_EMITTER_H
#define RONDO_TENSOR_COMPILE_EMITTER_H

#include "tensor/compile/layout.h"
#include "tensor/run/compiled.h"

struct rondo_emitter {
  const rondo_program *program;
  const rondo_layout *layout;
  rondo_compiled *compiled; /* its blocks are allocated */
  uint32_t operation;       /* the one that is being emitted, or the first of them */
  const uint32_t *joined;   /* all of them */
  uint32_t joined_count;
  rondo_check_memory checks[RONDO_MAX_CHECKS]; /* of its index checks; NULL for those that it does not have */
  uint32_t check_count;
  bool has_next; /* a kernel sets the number of the next run */
};

/* Emits all operations of the layout's order. */
RONDO_MUST_USE rondo_status rondo_emit_all(const rondo_program *program, const rondo_layout *layout,
                                           rondo_compiled *compiled);

/* An address in the compiled program's blocks; NULL for NONE. */
void *rondo_location_address(const rondo_location *location, const rondo_compiled *compiled);

/* The address of a value in the compiled program's blocks; NULL: it is in none. */
void *rondo_layout_address(const rondo_layout *layout, const rondo_compiled *compiled, uint32_t value);

#endif
