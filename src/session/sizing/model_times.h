/* SPDX-License-Identifier: MIT
 * A model's times and the tables of decisions that follow from them: made when its graphs were measured, and anew
 * when samples of what ran say something else.
 */
#ifndef RONDO_SESSION_SIZING_MODEL_TIMES_H
#define RONDO_SESSION_SIZING_MODEL_TIMES_H

#include "session/session_internal.h"

/* dispatch_tables.c, while the model is changing: microseconds by graph (unrecorded may be NULL: 0; given ones stay as
 * they are), the tables that follow from all times, and their end. */
void rondo_model_set_times(rondo_session_model *model, const double *recorded, const double *unrecorded,
                           bool are_given);
RONDO_MUST_USE rondo_status rondo_model_make_tables(rondo_session_model *model);
void rondo_model_drop_tables(rondo_session_model *model);

/* Under the lock. What a graph took that ran alone; no renewal of the model is wanted, nor one that is under way; makes
 * tables anew for a model whose times have changed, giving the lock up meanwhile: whether there was one, or when to
 * look again. */
void rondo_model_add_sample(rondo_session_model *model, size_t graph, uint64_t begin_ns, uint64_t end_ns);
void rondo_model_stop_renewal(rondo_session_model *model);
bool rondo_session_renew(rondo_session *session, uint64_t *inout_wait_ns);

#endif
