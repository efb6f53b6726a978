/* SPDX-License-Identifier: MIT
 * Functions and their forms (function.c).
 */
#ifndef RONDO_TREE_FUNCTION_H
#define RONDO_TREE_FUNCTION_H

#include "tree/tree_internal.h"

/* Makes a function, for the public call of this name. Its keys have so many words of the caller. */
RONDO_MUST_USE rondo_status rondo_function_make(const char *call, rondo_tree *tree,
                                                const rondo_function_options *options, size_t caller_words,
                                                rondo_function **out);

/* Finds the form of these inputs. Makes it at the first call, which also decides whether it may be recorded. */
RONDO_MUST_USE rondo_status rondo_form_find(rondo_function *function, const rondo_resolved_input *inputs,
                                            rondo_form **out);

/* Whether a call of the form with these inputs must not be recorded. */
bool rondo_form_is_skipped(const rondo_form *form, const rondo_resolved_input *inputs);

/* Removes the function's recordings and all recordings after them. */
void rondo_function_forget_recordings(rondo_function *function);
/* Frees a function that is in no list, and its forms. Its recordings must have been removed. */
void rondo_function_free(rondo_function *function);

/* On a device that watches accesses, makes the memory of moving inputs that are not declared mutated read-only, or ends
 * that. */
void rondo_memory_protect_inputs(rondo_tree *tree, rondo_stream *stream, const rondo_function *function, bool on);

/* Removes the function from its tree and frees it, for the public call of this name. NULL is allowed. */
RONDO_MUST_USE rondo_status rondo_function_remove(const char *call, rondo_function *function);

/* For messages about a call: the public call that begins it, "rondo_function_call", and the public call that ends it
 * with what has run, "rondo_function_call: the body" or "rondo_region_end: the code". */
const char *rondo_function_call_name(const rondo_function *function);
const char *rondo_function_body_name(const rondo_function *function);

/* The form is never recorded from now on. */
void rondo_form_skip(rondo_form *form, rondo_skip skip, const char *message);

#endif
