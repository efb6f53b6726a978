/* SPDX-License-Identifier: MIT
 * The thread of a lane: while nobody else has claimed the lane, it runs batches of what waits, then parts of others'
 * batches, makes tables anew where times have changed, and sleeps until it is called or something waiting gets ripe.
 *
 * As few threads are called as there may be things to do, and none is left undone: before a thread sleeps it has looked
 * at all there is, and set a timer for what is not ripe. Whatever makes more of it ripe is followed by a call, or by a
 * look of who did it: a request that comes, a batch that opens its parts, a lane that is let go. Who takes one thing
 * calls for the rest. A thread that cannot look, as its lane is claimed, passes the call on, or what its timer was for;
 * and where no lane is free and asleep, all are looked from, or let go, later.
 */
#define _POSIX_C_SOURCE 200809L
#include <time.h>

#include "session/serve/batch.h"
#include "session/serve/lane.h"
#include "session/session_internal.h"
#include "session/sizing/dispatch_tables.h"

void rondo_lanes_call(rondo_session *session, size_t count) {
  for (uint32_t i = 0; i < session->options.streams && count > 0; i++) {
    rondo_lane *lane = &session->lanes[i];
    if (!lane->is_asleep || !rondo_lane_is_free(lane)) continue;
    lane->is_asleep = false;
    pthread_cond_signal(&lane->called);
    count--;
  }
}

static void wait_for_call(rondo_lane *lane, uint64_t wait_ns) {
  pthread_mutex_t *lock = &lane->session->lock;
  if (wait_ns == UINT64_MAX) {
    pthread_cond_wait(&lane->called, lock);
    return;
  }
  struct timespec until;
  clock_gettime(CLOCK_MONOTONIC, &until);
  const uint64_t ns = (uint64_t)until.tv_nsec + wait_ns;
  until.tv_sec += (time_t)(ns / 1000000000);
  until.tv_nsec = (long)(ns % 1000000000);
  pthread_cond_timedwait(&lane->called, lock, &until);
}

static void sleep_for(rondo_lane *lane, uint64_t wait_ns) {
  lane->is_asleep = true;
  wait_for_call(lane, wait_ns);
  lane->is_asleep = false;
}

/* With the lane claimed: whether there was something to do. Who leads a batch gets to its end by itself, and has to
 * wait, with a lane that does nothing, for parts that others took: they take them where they have nothing of their own.
 */
static bool do_something(rondo_session *session, rondo_lane *lane, uint64_t *out_wait_ns) {
  if (!rondo_batch_form(session, lane, out_wait_ns)) return rondo_batch_help(session, lane);
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
    } else {
      rondo_lanes_call_for_rest(session);
    }
    if (!has_done && !rondo_session_renew(session, &wait_ns)) sleep_for(lane, wait_ns);
  }
  pthread_mutex_unlock(&session->lock);
  return NULL;
}
