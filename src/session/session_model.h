/* SPDX-License-Identifier: MIT
 * Makes and frees models, and makes their programs.
 */
#ifndef RONDO_SESSION_SESSION_MODEL_H
#define RONDO_SESSION_SESSION_MODEL_H

#include "session/session_internal.h"

/* The program for this number of rows, made by `build`; a new model, which is not in the session's list. */
RONDO_MUST_USE rondo_status rondo_model_make_program(rondo_session_model *model, size_t rows, rondo_program **out);
RONDO_MUST_USE rondo_status rondo_model_make(rondo_session *session, const char *name,
                                             const rondo_model_options *options, rondo_session_model **out);

/* Always frees the model. A returned failure comes from earlier work that has not been waited for. NULL is allowed. */
RONDO_MUST_USE rondo_status rondo_model_free(rondo_session_model *model);
void rondo_model_drop_graphs(rondo_session_model *model, rondo_status *kept);

/* Removes the graphs from index `count` on from the list, before they are destroyed: other threads may query it. */
void rondo_model_hide_graphs(rondo_session_model *model, size_t count);

#endif
