/* SPDX-License-Identifier: MIT
 * What calls share with the code that prepares them (call.c).
 */
#ifndef RONDO_TREE_CALL_H
#define RONDO_TREE_CALL_H

#include "tree/tree_internal.h"

/* Checks the arguments of `call`, which is not NULL. */
RONDO_MUST_USE rondo_status rondo_call_check(const char *call, const rondo_function *function,
                                             const rondo_stream *stream, const rondo_input *inputs, size_t input_count);

/* Releases the references that the caller gave up, whether the call succeeded or not. `given` may be NULL. */
void rondo_call_drop_given(const rondo_input *given, size_t count);

/* CAPTURE_REFUSED while the stream captures. */
RONDO_MUST_USE rondo_status rondo_call_refuse_capture(const char *call, rondo_stream *stream);

/* Why a warm form is not recorded after the path's end, with the inputs in tree->inputs; NONE if it can be. */
rondo_skip rondo_call_find_skip(rondo_function *function, const rondo_form *form, const char **out_message);

#define RONDO_INPUTS_ARE_SHARED                                                                \
  "two of its inputs have bytes in common, of which it writes one and one moves: let both be " \
  "static, or hand them over as one input"
#define RONDO_ALL_ARE_NEEDED                                                                 \
  "all recordings that the tree may have (rondo_tree_options.max_recordings) belong to the " \
  "path of this step, or are held: raise the limit, or make steps of fewer calls"

/* The form is not recorded any more after so many recordings failed in a row. */
enum { RONDO_MAX_FAILURES = 3 };

#endif
