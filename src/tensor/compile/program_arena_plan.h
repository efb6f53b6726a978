/* SPDX-License-Identifier: MIT
 * Planning a program's arena: the live ranges of its values and workspaces, as intervals of the order or between nodes
 * of the dependencies, and a plan of each form. Plans are made without a time limit, so compiling the same program
 * twice gives the same addresses. A program of the same structure as an earlier one that it shares with is planned
 * alike.
 */
#ifndef RONDO_TENSOR_COMPILE_PROGRAM_ARENA_PLAN_H
#define RONDO_TENSOR_COMPILE_PROGRAM_ARENA_PLAN_H

#include "tensor/compile/layout.h"

/* Sets the locations and workspaces in the arena, users, arena_* and has_branches. workspaces: bytes by
 * operation. Errors: LIMIT_EXCEEDED, OUT_OF_MEMORY. */
RONDO_MUST_USE rondo_status rondo_arena_plan_make(const rondo_program *program, const size_t *workspaces,
                                                  const rondo_layout_options *options, rondo_layout *layout);

#endif
