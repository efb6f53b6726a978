/* SPDX-License-Identifier: MIT
 * A session's life, its workers and who has claimed them, its models by name.
 */
#ifndef RONDO_SESSION_SESSION_H
#define RONDO_SESSION_SESSION_H

#include "session/session_internal.h"

/* session.c: the model of this name; under the lock. */
RONDO_MUST_USE rondo_status rondo_session_find(rondo_session *session, const char *call, const char *name,
                                               rondo_session_model **out);

/* Whether all others are unclaimed. */
bool rondo_stream_worker_is_alone(const rondo_stream_worker *worker);
void rondo_stream_worker_claim(rondo_stream_worker *worker);
void rondo_stream_worker_release(rondo_stream_worker *worker);

/* Claims a worker, waiting for it, or all of them at once; and gives them up. Without the lock. */
void rondo_session_claim(rondo_session *session, uint32_t number);
void rondo_session_release(rondo_session *session, uint32_t number);
void rondo_session_claim_all(rondo_session *session);
void rondo_session_release_all(rondo_session *session);

/* The model is changing until the end: STILL_IN_USE while requests of it are taken, or streams by hand, and
 * ALREADY_CAPTURING while it changes already. The second one is for who has the lock, and has looked at the arguments.
 */
RONDO_MUST_USE rondo_status rondo_session_change_begin(rondo_session *session, const char *call, const char *name,
                                                       rondo_session_model **out);
RONDO_MUST_USE rondo_status rondo_session_change_begin_locked(rondo_session *session, const char *call,
                                                              const char *name, rondo_session_model **out);
void rondo_session_change_end(rondo_session_model *model);

#endif
