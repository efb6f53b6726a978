/* SPDX-License-Identifier: MIT
 * The thread of a worker: while nobody else has claimed the worker, it runs batches of what waits, then parts of
 * others' batches, makes tables anew where times have changed, and sleeps until it is called or something waiting gets
 * ripe.
 *
 * As few threads are called as there may be things to do, and none is left undone: before a thread sleeps it has looked
 * at all there is, and set a timer for what is not ripe. Whatever makes more of it ripe is followed by a call, or by a
 * look of who did it: a request that comes, a batch that opens its parts, a worker that is let go. Who takes one thing
 * calls for the rest. A thread that cannot look, as its worker is claimed, passes the call on, or what its timer was
 * for; and where no worker is free and asleep, all are looked from, or let go, later.
 */
#define _POSIX_C_SOURCE 200809L
#include <time.h>

#include "session/serve/batch.h"
#include "session/serve/stream_worker.h"
#include "session/session_internal.h"
#include "session/sizing/model_times.h"

void rondo_stream_workers_wake(rondo_session *session, size_t count) {
  for (uint32_t i = 0; i < session->options.streams && count > 0; i++) {
    rondo_stream_worker *worker = &session->workers[i];
    if (!worker->is_asleep || !rondo_stream_worker_is_free(worker)) continue;
    worker->is_asleep = false;
    pthread_cond_signal(&worker->wake);
    count--;
  }
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

/* With the worker claimed: whether there was something to do. Who leads a batch gets to its end by itself, and has to
 * wait, with a worker that does nothing, for parts that others took: they take them where they have nothing of their
 * own.
 */
static bool do_something(rondo_session *session, rondo_stream_worker *worker, uint64_t *out_wait_ns) {
  if (!rondo_batch_form(session, worker, out_wait_ns)) return rondo_batch_run_other_part(session, worker);
  rondo_batch_run(session, worker);
  return true;
}

void *rondo_stream_worker_main(void *argument) {
  rondo_stream_worker *worker = argument;
  rondo_session *session = worker->session;
  pthread_mutex_lock(&session->lock);
  while (!session->is_stopping) {
    uint64_t wait_ns = UINT64_MAX;
    bool has_done = false;
    if (rondo_stream_worker_is_free(worker)) {
      worker->is_claimed = true;
      has_done = do_something(session, worker, &wait_ns);
      worker->is_claimed = false;
      if (has_done) pthread_cond_broadcast(&session->change);
    } else {
      rondo_stream_workers_wake_for_rest(session);
    }
    if (!has_done && !rondo_session_renew(session, &wait_ns)) sleep_for(worker, wait_ns);
  }
  pthread_mutex_unlock(&session->lock);
  return NULL;
}
