/* SPDX-License-Identifier: MIT
 * When a request that waits is to run, and which goes first: the oldest of those that are ripe. Under the session's
 * lock.
 */
#ifndef RONDO_SESSION_SERVE_BATCH_DELAY_H
#define RONDO_SESSION_SERVE_BATCH_DELAY_H

#include "session/session_internal.h"

/* By which requests that ask for this way are decided; NULL: nothing but eager runs is for them. */
const rondo_dispatch_table *rondo_model_dispatch_table(const rondo_session_model *model, rondo_way way, bool is_loaded);

/* How many workers run something. */
size_t rondo_session_count_running(const rondo_session *session);

/* Among what waits, with the times that it waits for by itself; and out of there. */
void rondo_batch_delay_add(rondo_slot *slot);
void rondo_batch_delay_remove(rondo_slot *slot);

/* The oldest that is ripe; NULL: none is, and *out_wait_ns says for how long (UINT64_MAX: until something comes). */
rondo_slot *rondo_batch_delay_find_ready(const rondo_session *session, uint64_t now, uint64_t *out_wait_ns);

/* One of the model's whose deadline is not behind `now`; NULL: none. And the earliest deadline of the session's. */
rondo_slot *rondo_batch_delay_find_expired(const rondo_session_model *model, uint64_t now);
uint64_t rondo_batch_delay_next_deadline(const rondo_session *session);

#endif
