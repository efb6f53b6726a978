/* SPDX-License-Identifier: MIT
 * Which value is at which address of the arena during which steps of a run. The memory map of a report shows this.
 */
#ifndef RONDO_TENSOR_RUN_ARENA_VALUES_H
#define RONDO_TENSOR_RUN_ARENA_VALUES_H

#include "tensor/compile/layout.h"

/* A value or workspace in the arena, and the first and last step during which it is live. */
typedef struct rondo_held_value {
  char *name; /* of the value, or of the operator that computes it */
  const void *address;
  size_t bytes;
  uint32_t first_step, last_step;
} rondo_held_value;

/* Lists the arena's values and workspaces in compiled->held. The steps are emitted. Errors: OUT_OF_MEMORY. */
RONDO_MUST_USE rondo_status rondo_held_list(const rondo_program *program, const rondo_layout *layout,
                                            rondo_compiled *compiled);
void rondo_held_free(rondo_compiled *compiled);

#endif
