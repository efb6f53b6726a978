/* SPDX-License-Identifier: MIT
 * Functions and their forms (function.c).
 */
#ifndef RONDO_TREE_FUNCTION_H
#define RONDO_TREE_FUNCTION_H

#include "tree/tree_internal.h"

/* The form of these inputs, made at its first call. Whether it is recorded at all is decided then. */
RONDO_MUST_USE rondo_status rondo_form_find(rondo_function *function, const rondo_resolved_input *inputs,
                                            rondo_form **out);

/* Whether what is known of the form speaks against recording a call with these inputs. */
bool rondo_form_is_skipped(const rondo_form *form, const rondo_resolved_input *inputs);

/* Takes the function's recordings out, with all after them. */
void rondo_function_forget_recordings(rondo_function *function);
/* Frees a function that is in no list any more, with its forms; its recordings are gone. */
void rondo_function_free(rondo_function *function);

/* On a device that watches accesses, the memory of moving inputs that are not declared mutated is read only while the
 * call's work runs. */
void rondo_memory_protect_inputs(rondo_tree *tree, rondo_stream *stream, const rondo_function *function, bool on);

/* The form is not recorded, permanently; and whether calls of it may be. */
void rondo_form_skip(rondo_form *form, rondo_skip skip, const char *message);

#endif
