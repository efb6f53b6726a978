/* SPDX-License-Identifier: MIT
 * Callbacks of models, `build` and `body`: they run without the session's lock, on threads that have claimed a
 * worker or change a model, so that a call of the same session from inside could wait for what waits for the
 * callback.
 */
#ifndef RONDO_SESSION_MODEL_CALLBACK_H
#define RONDO_SESSION_MODEL_CALLBACK_H

#include "session/session_internal.h"

/* model_callback.c: refuses inside of a callback of a model of the session, or of a host function, and NULL. */
RONDO_MUST_USE rondo_status rondo_session_front(const char *call, const rondo_session *session);

/* Around a callback, on its thread. */
void rondo_session_callback_enter(rondo_session_callback *callback, const rondo_session *session);
void rondo_session_callback_leave(const rondo_session_callback *callback);

#endif
