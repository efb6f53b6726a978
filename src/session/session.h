/* SPDX-License-Identifier: MIT
 * The session's life, its models by name, and the guard of its public calls.
 *
 * A model's callbacks, `build` and `body`, run without the session's lock, on threads that have claimed a stream worker
 * or change a model. A call of the same session from inside a callback could deadlock, so public calls refuse it: each
 * thread has a list of the callbacks that it runs.
 */
#ifndef RONDO_SESSION_SESSION_H
#define RONDO_SESSION_SESSION_H

#include "session/session_internal.h"

/* A callback that runs on this thread. `outer` is the callback that it runs in, perhaps of another session. */
typedef struct rondo_session_callback {
  const rondo_session *session;
  bool is_answer; /* it is `done` of a request */
  const struct rondo_session_callback *outer;
} rondo_session_callback;

/* Called around a callback, on its thread. */
void rondo_session_callback_enter(rondo_session_callback *callback, const rondo_session *session);
void rondo_session_callback_leave(const rondo_session_callback *callback);

/* Whether this thread runs `done` of a request of the session. */
bool rondo_session_is_in_done(const rondo_session *session);

/* The first check of every public call: refuses NULL, a session of a parent process, and a call from inside a callback
 * of a model of the session or from a host function. */
RONDO_MUST_USE rondo_status rondo_session_front(const char *call, const rondo_session *session);

/* The model of this name. Under the lock. */
RONDO_MUST_USE rondo_status rondo_session_find(rondo_session *session, const char *call, const char *name,
                                               rondo_session_model **out);

/* Checks the session and the name, locks the session and finds the model. The lock is held only after success. */
RONDO_MUST_USE rondo_status rondo_session_enter(const char *call, rondo_session *session, const char *name,
                                                rondo_session_model **out);

/* NOT_FOUND with OUT_OF_RANGE: an index is too large. */
rondo_status rondo_session_fail_range(const char *call, const char *what, size_t index, size_t count);

/* Marks the model as changing until rondo_session_change_end. Fails with STILL_IN_USE while a request uses the model or
 * a stream is taken for manual runs, and with ALREADY_CAPTURING while the model is changing. The second function is for
 * callers that have the lock and have found the model. */
RONDO_MUST_USE rondo_status rondo_session_change_begin(rondo_session *session, const char *call, const char *name,
                                                       rondo_session_model **out);
RONDO_MUST_USE rondo_status rondo_session_change_begin_locked(const char *call, rondo_session_model *model);
void rondo_session_change_end(rondo_session_model *model);

#endif
