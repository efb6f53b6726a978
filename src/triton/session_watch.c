/* SPDX-License-Identifier: MIT
 * The server has no call for "this request was cancelled", so it is asked. Without requests in flight the thread
 * sleeps, after it has reported once more.
 */
#define _POSIX_C_SOURCE 200809L
#include "triton/session_watch.h"

#include <time.h>

#include "base/clock.h"
#include "base/error.h"
#include "triton/recorded_session.h"
#include "triton/sequence_requests.h"
#include "triton/server_functions.h"
#include "triton/sizes/size_choice.h"

enum { PERIOD_MS = 10, RETRY_MS = 1, REPORT_MS = 100, MOST_CANCELLED = 64 };

static bool was_cancelled(const rondo_triton_flight *flight) {
  bool is_cancelled = false;
  if (flight->ticket.session == NULL || flight->is_cancelled) return false;
  rondo_triton_ignore(rondo_triton_server.request_is_cancelled(flight->handle, &is_cancelled));
  return is_cancelled;
}

/* Under the lock, which is released while the session is called. A flight in the list has not been released. */
static void cancel_flights(rondo_triton_served *served) {
  rondo_ticket tickets[MOST_CANCELLED];
  size_t count = 0;
  if (rondo_triton_server.request_is_cancelled == NULL) return;
  for (rondo_triton_flight *at = served->flights; at != NULL && count < MOST_CANCELLED; at = at->next) {
    if (!was_cancelled(at)) continue;
    at->is_cancelled = true;
    tickets[count++] = at->ticket;
  }
  if (count == 0) return;
  pthread_mutex_unlock(&served->lock);
  for (size_t i = 0; i < count; i++) rondo_ticket_cancel(tickets[i]); /* its answer may be on its way */
  pthread_mutex_lock(&served->lock);
}

/* Without the lock: only this thread exchanges and frees sessions. */
static void report_all(rondo_triton_served *served) {
  if (served->retired != NULL) rondo_triton_recorded_report(served, served->retired);
  rondo_triton_recorded_report(served, served->recorded);
}

/* Under the lock, which is released meanwhile. */
static void report(rondo_triton_served *served) {
  pthread_mutex_unlock(&served->lock);
  report_all(served);
  pthread_mutex_lock(&served->lock);
}

static void sleep_for(rondo_triton_served *served, uint64_t ms) {
  struct timespec until;
  clock_gettime(CLOCK_MONOTONIC, &until);
  const uint64_t ns = (uint64_t)until.tv_nsec + ms * 1000000;
  until.tv_sec += (time_t)(ns / 1000000000);
  until.tv_nsec = (long)(ns % 1000000000);
  pthread_cond_timedwait(&served->wake, &served->lock, &until);
}

/* A request that comes wakes the thread only then. */
static void sleep_until_woken(rondo_triton_served *served) {
  served->is_asleep = true;
  pthread_cond_wait(&served->wake, &served->lock);
  served->is_asleep = false;
}

static void *watch(void *argument) {
  rondo_triton_served *served = argument;
  uint64_t reported_ns = 0;
  pthread_mutex_lock(&served->lock);
  while (!served->is_stopping) {
    cancel_flights(served);
    const uint64_t numbered = served->numbered, ends = served->sequence_ends; /* others may come, and be answered */
    const bool is_waiting = rondo_triton_sequences_serve(served);
    rondo_triton_sizes_renew(served);
    if (served->in_flight == 0 || rondo_clock_ns() - reported_ns > REPORT_MS * UINT64_C(1000000)) {
      report(served);
      reported_ns = rondo_clock_ns();
    }
    if (served->is_stopping) break;
    if (served->sequence_ends != ends) continue;
    if (is_waiting)
      sleep_for(served, RETRY_MS);
    else if (served->in_flight > 0)
      sleep_for(served, PERIOD_MS);
    else if (served->numbered == numbered && !rondo_triton_sizes_has_work(served))
      sleep_until_woken(served);
  }
  pthread_mutex_unlock(&served->lock);
  return NULL;
}

rondo_status rondo_triton_watch_start(rondo_triton_served *served) {
  RONDO_TRY(rondo_thread_start(&served->watch, "rondo-watch", watch, served));
  served->has_watch = true;
  return RONDO_OK;
}

void rondo_triton_watch_stop(rondo_triton_served *served) {
  if (!served->has_watch) return;
  pthread_mutex_lock(&served->lock);
  served->is_stopping = true;
  pthread_cond_signal(&served->wake);
  pthread_mutex_unlock(&served->lock);
  rondo_thread_join(served->watch);
  report_all(served); /* another version of the model may share the counters */
}
