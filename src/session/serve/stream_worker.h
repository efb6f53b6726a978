/* SPDX-License-Identifier: MIT
 * Stream workers: each stream of the session has a thread. The thread or a caller claims the worker; only the claimant
 * uses the instances of models on that stream.
 */
#ifndef RONDO_SESSION_SERVE_STREAM_WORKER_H
#define RONDO_SESSION_SERVE_STREAM_WORKER_H

#include "session/session_internal.h"

/* The following functions are called under the lock. Claiming waits, and releases the lock while it waits. */
static inline bool rondo_stream_worker_is_free(const rondo_stream_worker *worker) {
  return !worker->is_claimed && worker->claims_waiting == 0;
}
void rondo_stream_worker_claim(rondo_stream_worker *worker);
void rondo_stream_worker_release(rondo_stream_worker *worker);

/* Whether no other worker is claimed. */
bool rondo_stream_worker_is_alone(const rondo_stream_worker *worker);

/* Whether a stream is taken for manual runs. */
bool rondo_session_has_manual_stream(const rondo_session *session);

/* Wakes the threads of up to `count` workers that are free and asleep. */
void rondo_stream_workers_wake(rondo_session *session, size_t count);

static inline bool rondo_session_has_rest(const rondo_session *session) {
  const bool is_outdated = session->has_outdated && !session->is_renewing;
  return session->waiting > 0 || session->open != NULL || is_outdated;
}

/* Wakes one worker if there is work. Call it after adding work, releasing a worker, or taking a part of the work. */
static inline void rondo_stream_workers_wake_for_rest(rondo_session *session) {
  if (rondo_session_has_rest(session)) rondo_stream_workers_wake(session, 1);
}

/* Releases the lock, and then wakes one worker if there is work. A thread that is woken before needs the lock, and
 * would wait once more. */
void rondo_stream_workers_unlock_and_wake(rondo_session *session);

/* Without the lock. Claims one worker, or all of them at once, and releases them. In between, the thread is in relaxed
 * capture mode. */
void rondo_session_claim(rondo_session *session, uint32_t number);
void rondo_session_release(rondo_session *session, uint32_t number);
void rondo_session_claim_all(rondo_session *session);
void rondo_session_release_all(rondo_session *session);

/* The main function of a worker's thread. */
void *rondo_stream_worker_main(void *worker);

#endif
