/* SPDX-License-Identifier: MIT
 * Planning a program's arena: the lives of its values and workspaces, as intervals of the order or between nodes of the
 * dependencies, and the plan of each form. Plans are made without a clock, so compiling the same program twice gives
 * the same addresses.
 */
#ifndef RONDO_TENSOR_COMPILE_PROGRAM_ARENA_PLAN_H
#define RONDO_TENSOR_COMPILE_PROGRAM_ARENA_PLAN_H

#include "tensor/compile/layout.h"

/* Sets places and workspaces that lie in the arena, arena_*, has_branches. workspaces: bytes, one an operation. Errors:
 * LIMIT_EXCEEDED, OUT_OF_MEMORY. */
RONDO_MUST_USE rondo_status rondo_arena_plan_make(const rondo_program *program, const size_t *workspaces,
                                                  const rondo_layout_options *options, rondo_layout *layout);

#endif
