/* SPDX-License-Identifier: MIT
 * Callbacks of answered requests (rondo_request.done). A thread that may have answered requests calls them before it
 * goes on. Answered requests keep their slots until their callbacks have returned.
 */
#ifndef RONDO_SESSION_SERVE_ANSWER_CALLBACKS_H
#define RONDO_SESSION_SERVE_ANSWER_CALLBACKS_H

#include "session/session_internal.h"

/* Under the lock. Adds a request that was answered. */
void rondo_answered_append(rondo_slot *slot);

/* Under the lock, which is released during the callbacks. Calls those of answered requests and frees their slots. The
 * thread's last error stays. Returns whether there were any. */
bool rondo_session_call_back(rondo_session *session);

#endif
