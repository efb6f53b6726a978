/* SPDX-License-Identifier: MIT
 * The list of answered requests whose callbacks have not been called. Several threads may take requests from it at the
 * same time.
 */
#include <assert.h>

#include "session/serve/answer_callbacks.h"
#include "session/serve/request_queue.h"
#include "session/session.h"

void rondo_answered_append(rondo_slot *slot) {
  rondo_session *session = slot->session;
  assert(slot->state == RONDO_SLOT_DONE && slot->call_done != NULL);
  slot->next = NULL;
  *(session->answered == NULL ? &session->answered : &session->last_answered->next) = slot;
  session->last_answered = slot;
}

static void call_done(const rondo_slot *slot) {
  rondo_session_callback callback;
  const rondo_status status = rondo_error_raise(&slot->error);
  rondo_session_callback_enter(&callback, slot->session);
  callback.is_answer = true;
  slot->call_done(slot->user, status, status == RONDO_OK ? &slot->answer : NULL);
  rondo_session_callback_leave(&callback);
}

/* A callback may cancel a ticket, which answers another request. The loop that called the callback takes that one, so
 * that callbacks do not nest: each of many could cancel the next. */
bool rondo_session_call_back(rondo_session *session) {
  rondo_saved_error before;
  if (session->answered == NULL || rondo_session_is_in_done(session)) return false;
  rondo_error_save(&before);
  while (session->answered != NULL) {
    rondo_slot *slot = session->answered;
    session->answered = slot->next;
    pthread_mutex_unlock(&session->lock);
    call_done(slot);
    pthread_mutex_lock(&session->lock);
    rondo_slot_free(slot);
  }
  rondo_error_restore(&before);
  return true;
}
