/* SPDX-License-Identifier: MIT
 * The thread of a lane: while nobody else has claimed the lane, it runs parts of others' batches, then batches of what
 * waits, and sleeps until there is something to do or something waiting gets ripe.
 */
#define _POSIX_C_SOURCE 200809L
#include <time.h>

#include "session/session_internal.h"

static void sleep_for(rondo_session *session, uint64_t wait_ns) {
  if (wait_ns == UINT64_MAX) {
    pthread_cond_wait(&session->work, &session->lock);
    return;
  }
  struct timespec until;
  clock_gettime(CLOCK_MONOTONIC, &until);
  const uint64_t ns = (uint64_t)until.tv_nsec + wait_ns;
  until.tv_sec += (time_t)(ns / 1000000000);
  until.tv_nsec = (long)(ns % 1000000000);
  pthread_cond_timedwait(&session->work, &session->lock, &until);
}

/* With the lane claimed: whether there was something to do. */
static bool do_something(rondo_session *session, rondo_lane *lane, uint64_t *out_wait_ns) {
  if (rondo_batch_help(session, lane)) return true;
  if (!rondo_batch_form(session, lane, out_wait_ns)) return false;
  rondo_batch_lead(session, lane);
  return true;
}

void *rondo_lane_main(void *argument) {
  rondo_lane *lane = argument;
  rondo_session *session = lane->session;
  pthread_mutex_lock(&session->lock);
  while (!session->is_stopping) {
    uint64_t wait_ns = UINT64_MAX;
    bool has_done = false;
    if (rondo_lane_is_free(lane)) {
      lane->is_claimed = true;
      has_done = do_something(session, lane, &wait_ns);
      lane->is_claimed = false;
      if (has_done) pthread_cond_broadcast(&session->change);
    }
    if (!has_done) sleep_for(session, wait_ns);
  }
  pthread_mutex_unlock(&session->lock);
  return NULL;
}
