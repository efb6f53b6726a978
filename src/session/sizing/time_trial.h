/* SPDX-License-Identifier: MIT
 * Trials: a graph that decisions pass over is never run, so that nothing would correct a time of it that was
 * measured beside load.
 */
#ifndef RONDO_SESSION_SIZING_TIME_TRIAL_H
#define RONDO_SESSION_SIZING_TIME_TRIAL_H

#include "session/session_internal.h"

/* time_trial.c, under the lock: runs the batch, which was decided, by one graph if that is to be tried; and counts that
 * one ran for so long. */
void rondo_batch_begin_trial(const rondo_stream_worker *worker, rondo_batch *batch);
void rondo_trial_account(const rondo_batch *batch, uint64_t run_ns);

#endif
