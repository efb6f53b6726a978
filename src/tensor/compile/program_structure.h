/* SPDX-License-Identifier: MIT
 * The structure of a program: all that decides its order and its plan, except sizes. Two programs have the same
 * structure exactly if these words are the same. So what was planned for one of them can be used for the other
 * (tensor/compile/earlier_plans.h). The words are compared, and not a hash of them, because two structures can have
 * one hash. Plain data; the caller frees it.
 */
#ifndef RONDO_TENSOR_COMPILE_PROGRAM_STRUCTURE_H
#define RONDO_TENSOR_COMPILE_PROGRAM_STRUCTURE_H

#include "tensor/compile/layout.h"

/* Lists the words of a program whose schedule has its chains. `out` is empty, and stays so on failure. Errors:
 * OUT_OF_MEMORY. */
RONDO_MUST_USE rondo_status rondo_structure_make(const rondo_program *program, const rondo_layout_options *options,
                                                 const rondo_schedule *schedule, const size_t *workspaces,
                                                 rondo_structure *out);

#endif
