/* SPDX-License-Identifier: MIT
 * The inputs of a call, resolved once: the address of each, and how the work uses it.
 */
#ifndef RONDO_TREE_CALL_INPUTS_H
#define RONDO_TREE_CALL_INPUTS_H

#include "tree/tree_internal.h"

/* Resolves the given inputs. Errors name `call`; they are those of rondo_function_call. */
RONDO_MUST_USE rondo_status rondo_inputs_resolve(const char *call, const rondo_function *function,
                                                 const rondo_input *given, rondo_resolved_input *out);

/* Returns the inputs if all are *raw*, which is addresses of memory that belongs to no buffer, and the function takes
 * raw ones (takes_raw); otherwise NULL. Raw inputs are always valid, and are never outputs of a path. */
const rondo_input *rondo_inputs_find_raw(const rondo_function *function, const rondo_input *given);

/* Called when the path ends. Its outputs become moving inputs, with new addresses if they were cloned. */
void rondo_inputs_leave_path(const rondo_function *function, rondo_resolved_input *inputs);

/* Whether two inputs share a byte. The second may have no memory. */
bool rondo_inputs_overlap(const rondo_resolved_input *a, const rondo_resolved_input *b);

/* Whether a moving input shares a byte with another input, and the body writes one of the two. The body would then read
 * different data from a copy than it reads eagerly. */
bool rondo_inputs_are_written_shared(const rondo_function *function, const rondo_resolved_input *inputs);

#endif
