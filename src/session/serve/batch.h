/* SPDX-License-Identifier: MIT
 * Batches: requests of one model that run together, by the graphs that the dispatch table gives for their rows. All
 * functions are called under the lock, with the worker claimed.
 */
#ifndef RONDO_SESSION_SERVE_BATCH_H
#define RONDO_SESSION_SERVE_BATCH_H

#include "session/session_internal.h"

/* Forms a batch of ready requests. Returns false if no request is ready; *out_wait_ns is then the time until one
 * becomes ready, or UINT64_MAX if no request waits. */
bool rondo_batch_form(rondo_session *session, rondo_stream_worker *worker, uint64_t *out_wait_ns);

/* Runs the worker's batch and answers its requests. Releases the lock while it runs. */
void rondo_batch_run(rondo_session *session, rondo_stream_worker *worker);

/* Runs one part of another worker's batch. Returns false if all parts have been started. Releases the lock while it
 * runs. */
bool rondo_batch_run_other_part(rondo_session *session, rondo_stream_worker *worker);

#endif
