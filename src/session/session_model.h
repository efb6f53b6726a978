/* SPDX-License-Identifier: MIT
 * Makes and frees models, and makes their programs.
 */
#ifndef RONDO_SESSION_SESSION_MODEL_H
#define RONDO_SESSION_SESSION_MODEL_H

#include "session/session_internal.h"

/* Makes a program for this number of rows by calling `build`. */
RONDO_MUST_USE rondo_status rondo_model_make_program(rondo_session_model *model, size_t rows, rondo_program **out);
/* Makes a model, which is not in the session's list yet. */
RONDO_MUST_USE rondo_status rondo_model_make(rondo_session *session, const char *name,
                                             const rondo_model_options *options, rondo_session_model **out);

/* Always frees the model. Returns a failure of earlier work that nobody has waited for. NULL is allowed. */
RONDO_MUST_USE rondo_status rondo_model_free(rondo_session_model *model);
/* Destroys all graphs and dispatch tables. */
void rondo_model_drop_graphs(rondo_session_model *model, rondo_status *kept);

/* Keeps only the first `count` graphs in the list. Call it before destroying the others, because other threads may
 * query the list. */
void rondo_model_hide_graphs(rondo_session_model *model, size_t count);

#endif
