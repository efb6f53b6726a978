/* SPDX-License-Identifier: MIT
 * Batches: requests of one model that run together, by the graphs that the dispatch table gives for their rows. All
 * functions are called under the lock, with the worker claimed.
 */
#ifndef RONDO_SESSION_SERVE_BATCH_H
#define RONDO_SESSION_SERVE_BATCH_H

#include "session/session_internal.h"

/* Forms a batch of requests that are ready. Returns false when none is; *out_wait_ns is then the time until one will
 * be, or UINT64_MAX if none waits. */
bool rondo_batch_form(rondo_session *session, rondo_stream_worker *worker, uint64_t *out_wait_ns);

/* Runs the worker's batch and answers its requests. Gives the lock up meanwhile. */
void rondo_batch_run(rondo_session *session, rondo_stream_worker *worker);

/* Runs one part of another worker's batch, if one has not been started. Gives the lock up meanwhile. */
bool rondo_batch_run_other_part(rondo_session *session, rondo_stream_worker *worker);

#endif
