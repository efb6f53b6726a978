/* SPDX-License-Identifier: MIT
 * The inputs of a call, inspected once: where each is, and how it comes to the work.
 */
#ifndef RONDO_TREE_CALL_INPUTS_H
#define RONDO_TREE_CALL_INPUTS_H

#include "tree/tree_internal.h"

/* call_inputs.c: what the given inputs are. Errors for `call`, as rondo_function_call. */
RONDO_MUST_USE rondo_status rondo_inputs_resolve(const char *call, const rondo_function *function,
                                                 const rondo_input *given, rondo_resolved_input *out);

/* Whether all are *raw*: memory at an address, of no buffer. Nothing is wrong with such inputs, and no path has them.
 */
bool rondo_inputs_are_raw(const rondo_function *function, const rondo_input *given);

/* Outputs of the path that ends are no longer of a path, nor where they were if they were cloned. */
void rondo_inputs_leave_path(const rondo_function *function, rondo_resolved_input *inputs);

/* Whether two have a byte in common, of which the second may be no memory. */
bool rondo_inputs_overlap(const rondo_resolved_input *a, const rondo_resolved_input *b);

/* Whether a moving input has a byte in common with another one, and the body writes to one of the two: copied or
 * patched, the other would or would not see what is written. */
bool rondo_inputs_are_written_shared(const rondo_function *function, const rondo_resolved_input *inputs);

#endif
