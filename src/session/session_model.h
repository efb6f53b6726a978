/* SPDX-License-Identifier: MIT
 * Makes and frees models, and makes their programs.
 */
#ifndef RONDO_SESSION_SESSION_MODEL_H
#define RONDO_SESSION_SESSION_MODEL_H

#include "session/session_internal.h"

/* Makes a program for this number of rows and this length, which is 0 without lengths, or for this size, by calling
 * `build` or `build_sized`. */
RONDO_MUST_USE rondo_status rondo_model_make_program(rondo_session_model *model, size_t rows, size_t length,
                                                     rondo_program **out);
RONDO_MUST_USE rondo_status rondo_model_make_sized_program(rondo_session_model *model, const rondo_model_size *size,
                                                           rondo_program **out);

/* Declares the states of the network that reads sources in a program of the head, so that they are among those of the
 * model. OK without such a network. */
RONDO_MUST_USE rondo_status rondo_model_add_source_states(rondo_session_model *head, rondo_program *program);

/* A model of one length. `head` is NULL for the head itself, and `network` for the shortest length of a network, which
 * has the `whole_name`. The history may be that of the options. */
typedef struct rondo_model_part {
  const char *name, *whole_name;
  rondo_session_model *head, *network;
  size_t length, source_length;
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
