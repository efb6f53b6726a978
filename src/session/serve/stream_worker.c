/* SPDX-License-Identifier: MIT
 * Claims of stream workers, and their threads. The thread of a worker looks for work in this order: a batch, a part of
 * another batch, callbacks of answered requests, outdated dispatch tables. Without work it sleeps until it is woken or
 * a request becomes ready.
 *
 * No work is lost:
 * - A thread sleeps only after it has looked for all kinds of work. A timer wakes it for the next request that becomes
 *   ready.
 * - A thread that adds work or releases a worker then looks for work itself, or wakes one sleeping worker. A thread
 *   that takes work does the same for the remaining work.
 * - A thread that wakes while its worker is claimed wakes another one instead.
 * - If no worker is both free and asleep, each worker will look for work or be released later.
 */
#define _POSIX_C_SOURCE 200809L
#include <assert.h>
#include <time.h>

#include "session/serve/answer_callbacks.h"
#include "session/serve/batch.h"
#include "session/serve/stream_worker.h"
#include "session/session_internal.h"
#include "session/sizing/model_times.h"

/* Claims ----------------------------------------------------------------------------------------------------------- */

/* The caller takes precedence over requests. Otherwise, while requests keep coming, the worker would be claimed for
 * them before the caller wakes. */
void rondo_stream_worker_claim(rondo_stream_worker *worker) {
  rondo_session *session = worker->session;
  worker->claims_waiting++;
  while (worker->is_claimed) pthread_cond_wait(&session->change, &session->lock);
  worker->claims_waiting--;
  worker->is_claimed = true;
  session->claims++;
}

bool rondo_stream_worker_is_alone(const rondo_stream_worker *worker) {
  const rondo_session *session = worker->session;
  for (uint32_t i = 0; i < session->options.streams; i++)
    if (i != worker->number && session->workers[i].is_claimed) return false;
  return true;
}

void rondo_stream_worker_release(rondo_stream_worker *worker) {
  assert(worker->is_claimed);
  worker->is_claimed = false;
  pthread_cond_broadcast(&worker->session->change);
  rondo_stream_workers_wake_for_rest(worker->session);
}

/* Calls that claim workers do so in the order in which they arrive. Otherwise a capture, which claims one worker after
 * the other, would get the next worker before a call that needs all of them wakes; and requests are held back while
 * that call waits. Taking a stream for manual runs does not wait for a turn, because the call that has the turn may
 * wait for that stream. A caller that has a worker never waits for a turn. */
static void await_turn(rondo_session *session) {
  const uint64_t turn = session->next_turn++;
  while (session->current_turn != turn) pthread_cond_wait(&session->change, &session->lock);
}

static void end_turn(rondo_session *session) {
  assert(session->current_turn < session->next_turn);
  session->current_turn++;
  pthread_cond_broadcast(&session->change);
}

void rondo_session_claim(rondo_session *session, uint32_t number) {
  pthread_mutex_lock(&session->lock);
  await_turn(session);
  rondo_stream_worker_claim(&session->workers[number]);
  end_turn(session);
  session->workers[number].mode_before = rondo_set_capture_mode(RONDO_CAPTURE_RELAXED);
  pthread_mutex_unlock(&session->lock);
}

void rondo_session_release(rondo_session *session, uint32_t number) {
  pthread_mutex_lock(&session->lock);
  (void)rondo_set_capture_mode(session->workers[number].mode_before);
  rondo_stream_worker_release(&session->workers[number]);
  pthread_mutex_unlock(&session->lock);
}

bool rondo_session_has_manual_stream(const rondo_session *session) {
  for (uint32_t i = 0; i < session->options.streams; i++)
    if (session->workers[i].manual != RONDO_MANUAL_NONE) return true;
  return false;
}

static bool has_claimed_worker(const rondo_session *session) {
  for (uint32_t i = 0; i < session->options.streams; i++)
    if (session->workers[i].is_claimed) return true;
  return false;
}

static void hold_requests_back(rondo_session *session, bool *inout_is_held_back, bool wanted) {
  if (*inout_is_held_back == wanted) return;
  *inout_is_held_back = wanted;
  for (uint32_t i = 0; i < session->options.streams; i++) {
    if (wanted)
      session->workers[i].claims_waiting++;
    else
      session->workers[i].claims_waiting--;
  }
  if (!wanted) rondo_stream_workers_wake_for_rest(session);
}

/* Claims all workers at once. A call that kept some and waited for others could deadlock with a caller that has one
 * stream for manual runs and wants another. Requests are held back, or some worker would always be busy. They are not
 * held back while a stream is taken for manual runs, because its user may wait for a request before giving it back. */
void rondo_session_claim_all(rondo_session *session) {
  bool is_held_back = false;
  pthread_mutex_lock(&session->lock);
  await_turn(session);
  while (has_claimed_worker(session)) {
    hold_requests_back(session, &is_held_back, !rondo_session_has_manual_stream(session));
    pthread_cond_wait(&session->change, &session->lock);
  }
  for (uint32_t i = 0; i < session->options.streams; i++) session->workers[i].is_claimed = true;
  hold_requests_back(session, &is_held_back, false);
  end_turn(session);
  session->workers[0].mode_before = rondo_set_capture_mode(RONDO_CAPTURE_RELAXED);
  pthread_mutex_unlock(&session->lock);
}

void rondo_session_release_all(rondo_session *session) {
  pthread_mutex_lock(&session->lock);
  (void)rondo_set_capture_mode(session->workers[0].mode_before);
  for (uint32_t i = 0; i < session->options.streams; i++) session->workers[i].is_claimed = false;
  pthread_cond_broadcast(&session->change);
  rondo_stream_workers_wake_for_rest(session);
  pthread_mutex_unlock(&session->lock);
}

/* Threads ---------------------------------------------------------------------------------------------------------- */

/* The first worker that is free and asleep counts as woken; NULL: none is. */
static rondo_stream_worker *take_sleeping(rondo_session *session) {
  for (uint32_t i = 0; i < session->options.streams; i++) {
    rondo_stream_worker *worker = &session->workers[i];
    if (!worker->is_asleep || !rondo_stream_worker_is_free(worker)) continue;
    worker->is_asleep = false;
    return worker;
  }
  return NULL;
}

void rondo_stream_workers_wake(rondo_session *session, size_t count) {
  for (; count > 0; count--) {
    rondo_stream_worker *worker = take_sleeping(session);
    if (worker == NULL) return;
    pthread_cond_signal(&worker->wake);
  }
}

/* Once the lock is released, the requests may be answered, and another thread may destroy the session. */
void rondo_stream_workers_unlock_and_wake(rondo_session *session) {
  rondo_stream_worker *worker = rondo_session_has_rest(session) ? take_sleeping(session) : NULL;
  if (worker != NULL) atomic_fetch_add(&session->signals, 1);
  pthread_mutex_unlock(&session->lock);
  if (worker == NULL) return;
  pthread_cond_signal(&worker->wake);
  atomic_fetch_sub(&session->signals, 1);
}

static void sleep_until_woken(rondo_stream_worker *worker, uint64_t wait_ns) {
  pthread_mutex_t *lock = &worker->session->lock;
  if (wait_ns == UINT64_MAX) {
    pthread_cond_wait(&worker->wake, lock);
    return;
  }
  struct timespec until;
  clock_gettime(CLOCK_MONOTONIC, &until);
  const uint64_t ns = (uint64_t)until.tv_nsec + wait_ns;
  until.tv_sec += (time_t)(ns / 1000000000);
  until.tv_nsec = (long)(ns % 1000000000);
  pthread_cond_timedwait(&worker->wake, lock, &until);
}

static void sleep_for(rondo_stream_worker *worker, uint64_t wait_ns) {
  worker->is_asleep = true;
  sleep_until_woken(worker, wait_ns);
  worker->is_asleep = false;
}

/* Returns whether there was work. The worker is claimed. A thread helps with other batches only if it cannot form its
 * own: the thread of a batch waits, with an idle worker, until other workers have run their parts of it. */
static bool run_batch_or_part(rondo_session *session, rondo_stream_worker *worker, uint64_t *out_wait_ns) {
  if (!rondo_batch_form(session, worker, out_wait_ns)) return rondo_batch_run_other_part(session, worker);
  rondo_batch_run(session, worker);
  return true;
}

void *rondo_stream_worker_main(void *argument) {
  rondo_stream_worker *worker = argument;
  rondo_session *session = worker->session;
  assert(worker == &session->workers[worker->number]);
  rondo_thread_note_own();
  pthread_mutex_lock(&session->lock);
  while (!session->is_stopping) {
    uint64_t wait_ns = UINT64_MAX;
    bool has_done = false;
    if (rondo_stream_worker_is_free(worker)) {
      worker->is_claimed = true;
      has_done = run_batch_or_part(session, worker, &wait_ns);
      worker->is_claimed = false;
      if (has_done) pthread_cond_broadcast(&session->change);
    } else {
      rondo_stream_workers_wake_for_rest(session);
    }
    has_done |= rondo_session_call_back(session);
    if (!has_done && !rondo_session_renew(session, &wait_ns)) sleep_for(worker, wait_ns);
  }
  pthread_mutex_unlock(&session->lock);
  return NULL;
}
