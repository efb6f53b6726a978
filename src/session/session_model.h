/* SPDX-License-Identifier: MIT
 * Models: their programs, their places on the workers, their life.
 */
#ifndef RONDO_SESSION_SESSION_MODEL_H
#define RONDO_SESSION_SESSION_MODEL_H

#include "session/session_internal.h"

/* session_model.c */
RONDO_MUST_USE rondo_status rondo_model_make_program(rondo_session_model *model, size_t rows, rondo_program **out);
RONDO_MUST_USE rondo_status rondo_model_make(rondo_session *session, const char *name,
                                             const rondo_model_options *options, rondo_session_model **out);

/* A failure is that of work that nobody waited for; it is gone all the same. NULL is fine. */
RONDO_MUST_USE rondo_status rondo_model_free(rondo_session_model *model);
void rondo_model_drop_graphs(rondo_session_model *model, rondo_status *kept);

/* What is known of graphs behind the first `count` goes, before they do: others may ask for it meanwhile. */
void rondo_model_hide_graphs(rondo_session_model *model, size_t count);

#endif
