/* SPDX-License-Identifier: MIT
 * Utilisation: two events around the work of each part, and the union of the spans between them over all lanes. To ask
 * a driver for their distances takes as long as a small graph: who has claimed the lane does it while the device has
 * its next work, so that no answer waits for it, or else who wants the sums, by the timer's lock. Sums are under the
 * session's.
 */
#include "base/versioned.h"
#include "session/session_internal.h"

#define FAR_US 1e6 /* a single-precision number of milliseconds is exact to 0.06 us up to there */

static rondo_status make_event(rondo_session *session, rondo_event **out) {
  const rondo_event_options options = {RONDO_EVENT_OPTIONS_INIT, .timing = true};
  return rondo_event_create(session->device, &options, out);
}

static rondo_status make_span(rondo_session *session, rondo_lane_span *span) {
  RONDO_TRY(make_event(session, &span->begin));
  return make_event(session, &span->end);
}

static void destroy_span(rondo_lane_span *span) {
  rondo_event_destroy(span->begin);
  rondo_event_destroy(span->end);
}

static rondo_status begin_epoch(rondo_session *session) {
  rondo_stream *stream = NULL;
  RONDO_TRY(rondo_stream_create(session->device, NULL, &stream));
  rondo_status status = rondo_event_record(session->epoch, stream);
  rondo_keep_first(&status, rondo_stream_synchronize(stream));
  rondo_keep_first(&status, rondo_stream_destroy(stream));
  return status;
}

rondo_status rondo_usage_open(rondo_session *session) {
  if (!session->options.timed) return RONDO_OK;
  RONDO_TRY(make_event(session, &session->epoch));
  for (uint32_t i = 0; i < session->options.streams; i++) {
    rondo_lane_timer *t = &session->lanes[i].timer;
    RONDO_TRY(make_event(session, &t->origin));
    RONDO_TRY(make_span(session, &t->current));
    RONDO_TRY(make_span(session, &t->last));
  }
  return begin_epoch(session);
}

void rondo_usage_close(rondo_session *session) {
  rondo_event_destroy(session->epoch);
  for (uint32_t i = 0; i < session->options.streams; i++) {
    rondo_lane_timer *t = &session->lanes[i].timer;
    rondo_event_destroy(t->origin);
    destroy_span(&t->current);
    destroy_span(&t->last);
  }
}

rondo_status rondo_usage_begin(rondo_lane *lane, rondo_stream *stream) {
  rondo_event *begin = lane->timer.current.begin;
  return begin == NULL ? RONDO_OK : rondo_event_record(begin, stream);
}

rondo_status rondo_usage_end(rondo_lane *lane, rondo_stream *stream) {
  rondo_event *end = lane->timer.current.end;
  return end == NULL ? RONDO_OK : rondo_event_record(end, stream);
}

/* What was kept before has been taken, or is by who has the lock: that comes behind all work that is queued. */
void rondo_usage_keep(rondo_lane *lane) {
  rondo_lane_timer *t = &lane->timer;
  if (t->current.begin == NULL) return;
  pthread_mutex_lock(&t->lock);
  const rondo_lane_span ended = t->current;
  t->current = t->last;
  t->last = ended;
  t->has_last = true;
  pthread_mutex_unlock(&t->lock);
}

/* Where the last span's begin is on the session's clock. */
static rondo_status find_begin(const rondo_session *session, const rondo_lane_timer *t, double *out_us) {
  double us;
  RONDO_TRY(rondo_event_elapsed(t->has_origin ? t->origin : session->epoch, t->last.begin, &us));
  *out_us = t->origin_us + us;
  return RONDO_OK;
}

static void move_origin(rondo_lane_timer *t, double begin_us) {
  rondo_event *old = t->origin;
  if (t->has_origin && begin_us - t->origin_us < FAR_US) return;
  t->origin = t->last.begin;
  t->last.begin = old;
  t->origin_us = begin_us;
  t->has_origin = true;
}

/* Under the timer's lock. */
static rondo_status take_last(rondo_session *session, rondo_lane_timer *t) {
  double begin, us;
  t->has_last = false;
  RONDO_TRY(find_begin(session, t, &begin));
  RONDO_TRY(rondo_event_elapsed(t->last.begin, t->last.end, &us));
  move_origin(t, begin);
  pthread_mutex_lock(&session->lock);
  rondo_busy_add(&session->busy, begin, begin + us);
  session->usage.parts++;
  session->usage.sum_us += us;
  pthread_mutex_unlock(&session->lock);
  return RONDO_OK;
}

/* With the timer's lock, which is let go. */
static rondo_status take_and_unlock(rondo_session *session, rondo_lane_timer *t) {
  const rondo_status status = t->has_last ? take_last(session, t) : RONDO_OK;
  pthread_mutex_unlock(&t->lock);
  return status;
}

/* All lanes', so that spans are added nearly in order: one whose lane has nothing to do would else come late. Where
 * another thread has the lock of a timer, it takes what there is. */
rondo_status rondo_usage_take(rondo_session *session) {
  if (session->epoch == NULL) return RONDO_OK;
  for (uint32_t i = 0; i < session->options.streams; i++) {
    rondo_lane_timer *t = &session->lanes[i].timer;
    if (pthread_mutex_trylock(&t->lock) == 0) RONDO_TRY(take_and_unlock(session, t));
  }
  return RONDO_OK;
}

static rondo_status take_for_good(rondo_session *session) {
  for (uint32_t i = 0; i < session->options.streams; i++) {
    pthread_mutex_lock(&session->lanes[i].timer.lock);
    RONDO_TRY(take_and_unlock(session, &session->lanes[i].timer));
  }
  return RONDO_OK;
}

rondo_status rondo_session_get_usage(rondo_session *session, rondo_session_usage *out_usage) {
  static const char call[] = "rondo_session_get_usage";
  RONDO_TRY(rondo_session_front(call, session));
  RONDO_TRY(rondo_require(call, "out_usage", out_usage));
  if (session->epoch == NULL)
    return rondo_fail(RONDO_INVALID_STATE, RONDO_REASON_NO_TIMING,
                      "%s: the session is not timed (rondo_session_options.timed)", call);
  RONDO_TRY(take_for_good(session));
  pthread_mutex_lock(&session->lock);
  rondo_session_usage usage = session->usage;
  usage.busy_us = rondo_busy_us(&session->busy);
  pthread_mutex_unlock(&session->lock);
  return rondo_versioned_write("rondo_session_usage", &usage, out_usage, sizeof usage);
}
