/* SPDX-License-Identifier: MIT
 * The parts of a call that preparing a call also uses (call.c).
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

/* Why a form that is warm cannot be recorded after the path's end; NONE: it can. The inputs are in tree->inputs. */
rondo_skip rondo_call_find_skip(rondo_function *function, const rondo_form *form, const char **out_message);

#define RONDO_INPUTS_ARE_SHARED                                                                \
  "two of its inputs share bytes; it writes one of them, and one moves: make both static, or " \
  "pass them as one input"
#define RONDO_ALL_ARE_NEEDED                                                                \
  "the tree has max_recordings recordings (rondo_tree_options), and all of them belong to " \
  "the path of this step, or to one that is suspended: raise the limit, or make steps of fewer calls"

/* After so many failed recordings in a row, a form is no longer recorded. */
enum { RONDO_MAX_FAILURES = 3 };

#endif
