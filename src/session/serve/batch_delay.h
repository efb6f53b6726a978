/* SPDX-License-Identifier: MIT
 * When a waiting request is ready to run, and which one runs first: the oldest that is ready. All functions are called
 * under the session's lock.
 */
#ifndef RONDO_SESSION_SERVE_BATCH_DELAY_H
#define RONDO_SESSION_SERVE_BATCH_DELAY_H

#include "session/session_internal.h"

/* The table that dispatches requests of this mode. NULL: they run eagerly. */
const rondo_dispatch_table *rondo_model_dispatch_table(const rondo_session_model *model, rondo_run_mode mode,
                                                       bool is_loaded);

/* The number of workers that run a batch or a part. */
size_t rondo_session_count_running(const rondo_session *session);

/* Adds a request to the waiting ones, and computes its ready times; removes it. */
void rondo_batch_delay_add(rondo_slot *slot);
void rondo_batch_delay_remove(rondo_slot *slot);

/* The oldest ready request. NULL: none is ready, and *out_wait_ns is the time until one becomes ready (UINT64_MAX: no
 * request waits). */
rondo_slot *rondo_batch_delay_find_ready(const rondo_session *session, uint64_t now, uint64_t *out_wait_ns);

/* A request of the model whose deadline is at or before `now`; NULL: none. And the earliest deadline in the session. */
rondo_slot *rondo_batch_delay_find_expired(const rondo_session_model *model, uint64_t now);
uint64_t rondo_batch_delay_next_deadline(const rondo_session *session);

#endif
