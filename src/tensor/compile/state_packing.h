/* SPDX-License-Identifier: MIT
 * Which states of a program are packed (tensor/run/packed_state.h). A new state is, on a CPU device, if operators read
 * it that want the same order of its elements, and nothing else uses it: no other operator or view, no output, no
 * update; not in a program with an optimizer or of several ranks, nor with plain_states. A state that exists keeps its
 * form: operators that want the order of a packed state read it, and all others its plain rows.
 */
#ifndef RONDO_TENSOR_COMPILE_STATE_PACKING_H
#define RONDO_TENSOR_COMPILE_STATE_PACKING_H

#include "tensor/compile/layout.h"

/* Sets `packed` and `reads_rows` of the locations of states, and prepares the operators that read packed ones. What
 * runs has been chosen. The references are the layout's. Errors: OUT_OF_MEMORY, and what preparing returns. */
RONDO_MUST_USE rondo_status rondo_state_packing_choose(const rondo_program *program,
                                                       const rondo_layout_options *options, rondo_layout *layout);

#endif
