/* SPDX-License-Identifier: MIT
 * The times of a model's graphs, the dispatch tables made from them, and trials that keep the times current.
 */
#ifndef RONDO_SESSION_SIZING_MODEL_TIMES_H
#define RONDO_SESSION_SIZING_MODEL_TIMES_H

#include "session/session_internal.h"

/* While the model is changing. Sets the times of the graphs in microseconds. `eager` may be NULL: eager runs are not
 * considered. `are_given`: samples do not change the times. */
void rondo_model_set_times(rondo_session_model *model, const double *recorded, const double *eager, bool are_given);
/* Makes the dispatch tables from the times; drops the tables. */
RONDO_MUST_USE rondo_status rondo_model_make_tables(rondo_session_model *model);
void rondo_model_drop_tables(rondo_session_model *model);

/* Under the lock. Adds a sample of a graph that ran alone; cancels a renewal of the model, even one in progress. */
void rondo_model_add_sample(rondo_session_model *model, size_t graph, uint64_t begin_ns, uint64_t end_ns);
void rondo_model_stop_renewal(rondo_session_model *model);
/* Under the lock, which it releases while it works. Renews the tables of an outdated model. False: there is none, and
 * *inout_wait_ns is lowered to the time until one may be renewed. */
bool rondo_session_renew(rondo_session *session, uint64_t *inout_wait_ns);

/* Under the lock. If a trial of a graph is due, the dispatched batch will run by that graph instead. */
void rondo_batch_begin_trial(const rondo_stream_worker *worker, rondo_batch *batch);

/* Under the lock. Updates the debt of trials with the duration of a batch. */
void rondo_trial_account(const rondo_batch *batch, uint64_t run_ns);

#endif
