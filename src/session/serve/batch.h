/* SPDX-License-Identifier: MIT
 * Batches: requests of a model that run together, by the graphs that the table says for their rows.
 */
#ifndef RONDO_SESSION_SERVE_BATCH_H
#define RONDO_SESSION_SERVE_BATCH_H

#include "session/session_internal.h"

/* batch.c, under the lock, and with the worker claimed. Forms a batch of what waits; false when nothing is ripe, and
 * *out_wait_ns says for how long (UINT64_MAX: until something comes). */
bool rondo_batch_form(rondo_session *session, rondo_stream_worker *worker, uint64_t *out_wait_ns);

/* Runs the worker's batch to its end; gives the lock up meanwhile. */
void rondo_batch_run(rondo_session *session, rondo_stream_worker *worker);

/* Runs a part of another worker's batch, if there is one to take; likewise. */
bool rondo_batch_run_other_part(rondo_session *session, rondo_stream_worker *worker);

#endif
