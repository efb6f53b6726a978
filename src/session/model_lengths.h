/* SPDX-License-Identifier: MIT
 * Models with lengths: makes one model for each length, of the model's network and of the one that reads sources, and
 * finds the one that runs a request.
 */
#ifndef RONDO_SESSION_MODEL_LENGTHS_H
#define RONDO_SESSION_MODEL_LENGTHS_H

#include "session/session_internal.h"

/* Checks what the options say about lengths and sequences. */
RONDO_MUST_USE rondo_status rondo_model_lengths_check(const rondo_model_options *options);

/* Makes the model, or a list of models, linked by `next`, the shortest first. Free takes such a list. */
RONDO_MUST_USE rondo_status rondo_model_lengths_make(rondo_session *session, const char *name,
                                                     const rondo_model_options *options, rondo_session_model **out);
RONDO_MUST_USE rondo_status rondo_model_lengths_free(rondo_session_model *first);

/* The shortest length of a network that has so many positions, or else the longest. Under the lock, as are the next. */
rondo_session_model *rondo_model_lengths_find(rondo_session_model *network, size_t length);

/* The model after the last length of a network, and after all that have the head. */
rondo_session_model *rondo_model_lengths_end(const rondo_session_model *network);
rondo_session_model *rondo_model_group_end(const rondo_session_model *head);

/* Whether it is a length of the network that reads sources. */
static inline bool rondo_model_reads_source(const rondo_session_model *model) { return model->network != model->head; }

/* Whether `name` is that of all lengths of a network together, not of one. */
bool rondo_model_is_whole(const rondo_session_model *model, const char *name);

#endif
