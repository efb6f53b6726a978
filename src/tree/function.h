/* SPDX-License-Identifier: MIT
 * Functions and their forms (function.c).
 */
#ifndef RONDO_TREE_FUNCTION_H
#define RONDO_TREE_FUNCTION_H

#include "tree/tree_internal.h"

/* The form of these inputs, made at its first call. That also decides whether it may be recorded. */
RONDO_MUST_USE rondo_status rondo_form_find(rondo_function *function, const rondo_resolved_input *inputs,
                                            rondo_form **out);

/* Whether a call of the form with these inputs must not be recorded. */
bool rondo_form_is_skipped(const rondo_form *form, const rondo_resolved_input *inputs);

/* Removes the function's recordings and all recordings after them. */
void rondo_function_forget_recordings(rondo_function *function);
/* Frees a function, with its forms, that is in no list. Its recordings are already gone. */
void rondo_function_free(rondo_function *function);

/* On a device that watches accesses, the memory of moving inputs that are not declared mutated is read only while the
 * call's work runs. */
void rondo_memory_protect_inputs(rondo_tree *tree, rondo_stream *stream, const rondo_function *function, bool on);

/* Marks the form as permanently not recorded; and whether its calls may be recorded. */
void rondo_form_skip(rondo_form *form, rondo_skip skip, const char *message);

#endif
