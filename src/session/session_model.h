/* SPDX-License-Identifier: MIT
 * Makes and frees models, and makes their programs.
 */
#ifndef RONDO_SESSION_SESSION_MODEL_H
#define RONDO_SESSION_SESSION_MODEL_H

#include "session/session_internal.h"

/* Makes a program for this number of rows, or for this size, by calling `build` or `build_sized`. */
RONDO_MUST_USE rondo_status rondo_model_make_program(rondo_session_model *model, size_t rows, rondo_program **out);
RONDO_MUST_USE rondo_status rondo_model_make_sized_program(rondo_session_model *model, const rondo_model_size *size,
                                                           rondo_program **out);

/* A model of one length. `head` is NULL for the head itself; `whole_name` is NULL for others. The history may be that
 * of the options. */
typedef struct rondo_model_part {
  const char *name, *whole_name;
  rondo_session_model *head;
  size_t length;
  const size_t *history;
  size_t history_count;
} rondo_model_part;

/* Makes a model, which is not in the session's list yet. */
RONDO_MUST_USE rondo_status rondo_model_make(rondo_session *session, const rondo_model_part *part,
                                             const rondo_model_options *options, rondo_session_model **out);

/* Always frees the model, but no other length of it. Returns a failure of earlier work that nobody has waited for. NULL
 * is allowed. */
RONDO_MUST_USE rondo_status rondo_model_free(rondo_session_model *model);
/* Destroys all graphs and dispatch tables. */
void rondo_model_drop_graphs(rondo_session_model *model, rondo_status *kept);

/* Keeps only the first `count` graphs in the list. Call it before destroying the others, because other threads may
 * query the list. */
void rondo_model_hide_graphs(rondo_session_model *model, size_t count);

#endif
