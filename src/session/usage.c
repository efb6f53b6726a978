/* SPDX-License-Identifier: MIT
 * Utilisation: two events around the work of each part, and the union of the spans between them over all lanes. Events
 * and their distances are by who has claimed the lane, sums under the session's lock.
 */
#include "base/versioned.h"
#include "session/session_internal.h"

#define FAR_US 1e6 /* a single-precision number of milliseconds is exact to 0.06 us up to there */

static rondo_status make_event(rondo_session *session, rondo_event **out) {
  const rondo_event_options options = {RONDO_EVENT_OPTIONS_INIT, .timing = true};
  return rondo_event_create(session->device, &options, out);
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
    RONDO_TRY(make_event(session, &t->begin));
    RONDO_TRY(make_event(session, &t->end));
  }
  return begin_epoch(session);
}

void rondo_usage_close(rondo_session *session) {
  rondo_event_destroy(session->epoch);
  for (uint32_t i = 0; i < session->options.streams; i++) {
    rondo_event_destroy(session->lanes[i].timer.origin);
    rondo_event_destroy(session->lanes[i].timer.begin);
    rondo_event_destroy(session->lanes[i].timer.end);
  }
}

rondo_status rondo_usage_begin(rondo_lane *lane, rondo_stream *stream) {
  return lane->timer.begin == NULL ? RONDO_OK : rondo_event_record(lane->timer.begin, stream);
}

rondo_status rondo_usage_end(rondo_lane *lane, rondo_stream *stream) {
  return lane->timer.end == NULL ? RONDO_OK : rondo_event_record(lane->timer.end, stream);
}

/* Where `begin` is on the session's clock. */
static rondo_status find_begin(rondo_lane *lane, double *out_us) {
  rondo_lane_timer *t = &lane->timer;
  double us;
  RONDO_TRY(rondo_event_elapsed(t->has_origin ? t->origin : lane->session->epoch, t->begin, &us));
  *out_us = t->origin_us + us;
  return RONDO_OK;
}

static void move_origin(rondo_lane_timer *t, double begin_us) {
  rondo_event *old = t->origin;
  if (t->has_origin && begin_us - t->origin_us < FAR_US) return;
  t->origin = t->begin;
  t->begin = old;
  t->origin_us = begin_us;
  t->has_origin = true;
}

rondo_status rondo_usage_take(rondo_lane *lane) {
  rondo_session *session = lane->session;
  double begin, us;
  if (lane->timer.begin == NULL) return RONDO_OK;
  RONDO_TRY(find_begin(lane, &begin));
  RONDO_TRY(rondo_event_elapsed(lane->timer.begin, lane->timer.end, &us));
  move_origin(&lane->timer, begin);
  pthread_mutex_lock(&session->lock);
  rondo_busy_add(&session->busy, begin, begin + us);
  session->usage.parts++;
  session->usage.sum_us += us;
  pthread_mutex_unlock(&session->lock);
  return RONDO_OK;
}

rondo_status rondo_session_get_usage(rondo_session *session, rondo_session_usage *out_usage) {
  static const char call[] = "rondo_session_get_usage";
  RONDO_TRY(rondo_session_front(call, session));
  RONDO_TRY(rondo_require(call, "out_usage", out_usage));
  if (session->epoch == NULL)
    return rondo_fail(RONDO_INVALID_STATE, RONDO_REASON_NO_TIMING,
                      "%s: the session is not timed (rondo_session_options.timed)", call);
  pthread_mutex_lock(&session->lock);
  rondo_session_usage usage = session->usage;
  usage.busy_us = rondo_busy_us(&session->busy);
  pthread_mutex_unlock(&session->lock);
  return rondo_versioned_write("rondo_session_usage", &usage, out_usage, sizeof usage);
}
