/* SPDX-License-Identifier: MIT
 * The inputs of a call, inspected once: the address of each, and how the work gets it.
 */
#ifndef RONDO_TREE_CALL_INPUTS_H
#define RONDO_TREE_CALL_INPUTS_H

#include "tree/tree_internal.h"

/* call_inputs.c: resolves the given inputs. Errors name `call`, as in rondo_function_call. */
RONDO_MUST_USE rondo_status rondo_inputs_resolve(const char *call, const rondo_function *function,
                                                 const rondo_input *given, rondo_resolved_input *out);

/* Whether all are *raw*: addresses of memory that belong to no buffer. Raw inputs are valid, and are no outputs of a
 * path. */
bool rondo_inputs_are_raw(const rondo_function *function, const rondo_input *given);

/* Called when the path ends. Its outputs are no longer managed, and have new addresses if they were cloned. */
void rondo_inputs_leave_path(const rondo_function *function, rondo_resolved_input *inputs);

/* Whether two inputs share a byte. The second may have no memory. */
bool rondo_inputs_overlap(const rondo_resolved_input *a, const rondo_resolved_input *b);

/* Whether a moving input shares a byte with another one, and the body writes one of the two. A copied or patched input
 * would then see other data than without the tree. */
bool rondo_inputs_are_written_shared(const rondo_function *function, const rondo_resolved_input *inputs);

#endif
