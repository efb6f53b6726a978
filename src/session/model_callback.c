/* SPDX-License-Identifier: MIT
 * Callbacks of models, `build` and `body`: they run without the session's lock, on threads that have claimed a worker
 * or change a model, so that a call of the same session from inside could wait for what waits for the callback. Such
 * calls are refused at the front doors, which know by a list of each thread's callbacks.
 */
#include "session/model_callback.h"
#include "exec/api_check.h"
#include "session/session_internal.h"

static _Thread_local const rondo_session_callback *innermost;

void rondo_session_callback_enter(rondo_session_callback *callback, const rondo_session *session) {
  *callback = (rondo_session_callback){.session = session, .outer = innermost};
  innermost = callback;
}

void rondo_session_callback_leave(const rondo_session_callback *callback) { innermost = callback->outer; }

rondo_status rondo_session_front(const char *call, const rondo_session *session) {
  RONDO_TRY(rondo_front(call, "the session", session));
  RONDO_TRY(rondo_device_require_own(call, session->device));
  for (const rondo_session_callback *at = innermost; at != NULL; at = at->outer)
    if (at->session == session)
      return rondo_fail(RONDO_INVALID_STATE, RONDO_REASON_IN_CALLBACK,
                        "%s was called inside a callback of a model of the session (build, body): these must not call "
                        "their session",
                        call);
  return RONDO_OK;
}
