/* SPDX-License-Identifier: MIT
 * Utilisation of the device and of the host, in sessions that are timed.
 *
 * Querying the time between two events takes as long as a small graph. So a thread does it after it has enqueued its
 * next work, and the answers of that work wait for it only if the work is shorter. Each thread also counts a span of
 * one other worker, so that spans of idle workers are counted in time.
 *
 * The lock of a timer guards its last span; the session's lock guards the sums. A failure here never fails a request;
 * rondo_session_get_usage reports it.
 */
#include <assert.h>

#include "base/clock.h"
#include "base/versioned_struct.h"
#include "session/serve/utilisation.h"
#include "session/session.h"
#include "session/session_internal.h"

/* Up to this distance, a single-precision number of milliseconds is exact to 0.06 us. */
#define MAX_ORIGIN_DISTANCE_US 1e6

static rondo_status make_event(rondo_session *session, rondo_event **out) {
  const rondo_event_options options = {RONDO_EVENT_OPTIONS_INIT, .timing = true};
  return rondo_event_create(session->device, &options, out);
}

static rondo_status make_span(rondo_session *session, rondo_event_pair *span) {
  RONDO_TRY(make_event(session, &span->begin));
  return make_event(session, &span->end);
}

static void destroy_span(rondo_event_pair *span) {
  rondo_event_destroy(span->begin);
  rondo_event_destroy(span->end);
}

static rondo_status begin_epoch(rondo_session *session) {
  rondo_stream *stream = NULL;
  RONDO_TRY(rondo_stream_create(session->device, NULL, &stream));
  rondo_status status = rondo_event_record(session->epoch, stream);
  rondo_status_keep_first(&status, rondo_stream_synchronize(stream));
  rondo_status_keep_first(&status, rondo_stream_destroy(stream));
  return status;
}

rondo_status rondo_utilisation_open(rondo_session *session) {
  if (!session->options.timed) return RONDO_OK;
  RONDO_TRY(make_event(session, &session->epoch));
  for (uint32_t i = 0; i < session->options.streams; i++) {
    rondo_stream_timer *t = &session->workers[i].timer;
    RONDO_TRY(make_event(session, &t->origin));
    RONDO_TRY(make_span(session, &t->current));
    RONDO_TRY(make_span(session, &t->last));
  }
  return begin_epoch(session);
}

void rondo_utilisation_close(rondo_session *session) {
  rondo_event_destroy(session->epoch);
  for (uint32_t i = 0; i < session->options.streams; i++) {
    rondo_stream_timer *t = &session->workers[i].timer;
    rondo_event_destroy(t->origin);
    destroy_span(&t->current);
    destroy_span(&t->last);
  }
}

rondo_status rondo_utilisation_begin(rondo_stream_worker *worker, rondo_stream *stream) {
  rondo_event *begin = worker->timer.current.begin;
  return begin == NULL ? RONDO_OK : rondo_event_record(begin, stream);
}

rondo_status rondo_utilisation_end(rondo_stream_worker *worker, rondo_stream *stream) {
  rondo_event *end = worker->timer.current.end;
  return end == NULL ? RONDO_OK : rondo_event_record(end, stream);
}

/* The previous span has been counted, or the thread that has the timer's lock is counting it, because counting follows
 * the enqueuing of each work. */
void rondo_utilisation_keep(rondo_stream_worker *worker) {
  rondo_stream_timer *t = &worker->timer;
  if (t->current.begin == NULL) return;
  pthread_mutex_lock(&t->lock);
  const rondo_event_pair ended = t->current;
  t->current = t->last;
  t->last = ended;
  t->has_last = true;
  pthread_mutex_unlock(&t->lock);
}

/* Finds the begin of the last span, on the session's clock. */
static rondo_status find_begin(const rondo_session *session, const rondo_stream_timer *t, double *out_us) {
  double us;
  RONDO_TRY(rondo_event_elapsed(t->has_origin ? t->origin : session->epoch, t->last.begin, &us));
  *out_us = t->origin_us + us;
  return RONDO_OK;
}

static void move_origin(rondo_stream_timer *t, double begin_us) {
  rondo_event *old = t->origin;
  if (t->has_origin && begin_us - t->origin_us < MAX_ORIGIN_DISTANCE_US) return;
  t->origin = t->last.begin;
  t->last.begin = old;
  t->origin_us = begin_us;
  t->has_origin = true;
}

static rondo_status count_span(rondo_session *session, rondo_stream_timer *t) {
  double begin, us;
  RONDO_TRY(find_begin(session, t, &begin));
  RONDO_TRY(rondo_event_elapsed(t->last.begin, t->last.end, &us));
  move_origin(t, begin);
  pthread_mutex_lock(&session->lock);
  rondo_span_union_add(&session->spans, begin, begin + us);
  session->usage.parts++;
  session->usage.sum_us += us;
  pthread_mutex_unlock(&session->lock);
  return RONDO_OK;
}

/* Keeps the failure for rondo_session_get_usage. */
static void keep_failure(rondo_session *session) {
  pthread_mutex_lock(&session->lock);
  if (session->utilisation_error.status == RONDO_OK) rondo_error_save(&session->utilisation_error);
  pthread_mutex_unlock(&session->lock);
}

/* Called with the timer's lock, which it releases. Returns whether there was a span to count. */
static bool count_and_unlock(rondo_session *session, rondo_stream_timer *t) {
  assert(t->origin != NULL);
  const bool has_last = t->has_last;
  t->has_last = false;
  if (has_last && count_span(session, t) != RONDO_OK) keep_failure(session);
  pthread_mutex_unlock(&t->lock);
  return has_last;
}

/* Skips a timer whose lock another thread has: that thread counts the span. */
static bool try_count(rondo_session *session, rondo_stream_timer *t) {
  return pthread_mutex_trylock(&t->lock) == 0 && count_and_unlock(session, t);
}

/* Counts the span of this worker and that of one other worker. Spans should be added nearly in order, and those of idle
 * workers would otherwise come late. */
void rondo_utilisation_collect(rondo_stream_worker *worker) {
  rondo_session *session = worker->session;
  const uint32_t count = session->options.streams;
  rondo_saved_error before;
  if (session->epoch == NULL) return;
  rondo_error_save(&before);
  (void)try_count(session, &worker->timer);
  for (uint32_t i = 1; i < count; i++)
    if (try_count(session, &session->workers[(worker->number + i) % count].timer)) break;
  rondo_error_restore(&before);
}

static void take_all(rondo_session *session) {
  for (uint32_t i = 0; i < session->options.streams; i++) {
    pthread_mutex_lock(&session->workers[i].timer.lock);
    (void)count_and_unlock(session, &session->workers[i].timer);
  }
}

uint64_t rondo_utilisation_read_clock(const rondo_session *session) {
  return session->epoch == NULL ? 0 : rondo_clock_ns();
}

void rondo_utilisation_count_forming(rondo_session *session, size_t requests, uint64_t begin_ns) {
  if (session->epoch == NULL) return;
  session->usage.batches++;
  session->usage.requests += requests;
  session->usage.batching_us += (double)(rondo_clock_ns() - begin_ns) / 1e3;
}

void rondo_utilisation_count_enqueue(rondo_stream_worker *worker) {
  if (worker->enqueue_ns == 0) return;
  worker->session->usage.graphs++;
  worker->session->usage.enqueue_us += (double)worker->enqueue_ns / 1e3;
  worker->enqueue_ns = 0;
}

static rondo_status read_usage(rondo_session *session, rondo_session_usage *out) {
  rondo_saved_error before;
  rondo_error_save(&before);
  take_all(session);
  rondo_error_restore(&before);
  pthread_mutex_lock(&session->lock);
  const rondo_saved_error error = session->utilisation_error;
  session->utilisation_error.status = RONDO_OK;
  *out = session->usage;
  out->busy_us = rondo_span_union_us(&session->spans);
  pthread_mutex_unlock(&session->lock);
  return rondo_error_raise(&error);
}

rondo_status rondo_session_get_usage(rondo_session *session, rondo_session_usage *out_usage) {
  static const char call[] = "rondo_session_get_usage";
  RONDO_TRY(rondo_session_front(call, session));
  RONDO_TRY(rondo_require(call, "out_usage", out_usage));
  if (session->epoch == NULL)
    return rondo_fail(RONDO_INVALID_STATE, RONDO_REASON_NO_TIMING,
                      "%s: the session is not timed (rondo_session_options.timed)", call);
  rondo_session_usage usage;
  RONDO_TRY(read_usage(session, &usage));
  return rondo_versioned_write("rondo_session_usage", &usage, out_usage, sizeof usage);
}
