/* SPDX-License-Identifier: MIT
 * The times of a model's graphs, the dispatch tables made from them, and trials that keep the times current.
 */
#ifndef RONDO_SESSION_SIZING_MODEL_TIMES_H
#define RONDO_SESSION_SIZING_MODEL_TIMES_H

#include "session/session_internal.h"

/* While the model is changing. Sets the times of the graphs in microseconds (`eager` may be NULL: eager runs are
 * not considered; given times are not updated by samples); makes the tables from all times; drops them. */
void rondo_model_set_times(rondo_session_model *model, const double *recorded, const double *eager, bool are_given);
RONDO_MUST_USE rondo_status rondo_model_make_tables(rondo_session_model *model);
void rondo_model_drop_tables(rondo_session_model *model);

/* Under the lock. Adds a sample of a graph that ran alone; cancels a renewal of the model, also one that runs; renews
 * the tables of an outdated model, giving the lock up meanwhile. The last returns whether there was one; if not,
 * *inout_wait_ns is at most the time until one may be renewed. */
void rondo_model_add_sample(rondo_session_model *model, size_t graph, uint64_t begin_ns, uint64_t end_ns);
void rondo_model_stop_renewal(rondo_session_model *model);
bool rondo_session_renew(rondo_session *session, uint64_t *inout_wait_ns);

/* Under the lock. Runs a dispatched batch by one graph instead, if it is time for a trial of that graph. */
void rondo_batch_begin_trial(const rondo_stream_worker *worker, rondo_batch *batch);

/* Under the lock. Accounts for the duration of a batch. */
void rondo_trial_account(const rondo_batch *batch, uint64_t run_ns);

#endif
