/* SPDX-License-Identifier: MIT
 * Capturing: graphs recorded on every lane, and the capture mode. The model is changing all the while, so that no
 * request of it runs; each lane is claimed while it records.
 */
#include "session/model_capture.h"
#include "base/clock.h"
#include "session/model_callback.h"
#include "session/model_instance.h"
#include "session/session.h"
#include "session/session_internal.h"
#include "session/session_model.h"
#include "session/sizing/choose_sizes.h"

/* Recording a size ------------------------------------------------------------------------------------------------ */

/* With what it takes, found out on the first lane. */
static rondo_status record_on_first(rondo_session_model *model, size_t rows, rondo_session_graph *out) {
  rondo_model_instance *place = &model->places[0];
  const uint64_t begin = rondo_clock_ns();
  RONDO_TRY(rondo_model_instance_capture(place, rows));
  const double capture_us = (double)(rondo_clock_ns() - begin) / 1e3;
  RONDO_TRY(rondo_model_instance_describe(place, place->graphs.count - 1, out));
  out->capture_us = capture_us;
  return RONDO_OK;
}

rondo_status rondo_session_record_on(rondo_session_model *model, uint32_t lane, size_t rows, rondo_session_graph *out) {
  rondo_capture_mode mode = RONDO_CAPTURE_RELAXED; /* captures of others are left alone */
  rondo_session_claim(model->session, lane);
  rondo_status status = rondo_capture_exchange_thread_mode(&mode);
  if (status == RONDO_OK) {
    status = lane == 0 ? record_on_first(model, rows, out) : rondo_model_instance_capture(&model->places[lane], rows);
    rondo_keep_first(&status, rondo_capture_exchange_thread_mode(&mode));
  }
  rondo_session_release(model->session, lane);
  return status;
}

void rondo_session_take_back(rondo_session_model *model, size_t count) {
  rondo_saved_error error;
  rondo_error_save(&error);
  rondo_status ignored = RONDO_OK;
  rondo_model_forget_graphs(model, count);
  for (uint32_t i = 0; i < model->session->options.streams; i++) {
    rondo_session_claim(model->session, i);
    while (model->places[i].graphs.count > count) rondo_model_instance_drop_last(&model->places[i], &ignored);
    rondo_session_release(model->session, i);
  }
  rondo_error_restore(&error);
}

static rondo_status check_new(const rondo_session_model *model, size_t rows) {
  if (model->graphs.count == RONDO_SESSION_MAX_SIZES)
    return rondo_fail(RONDO_LIMIT_EXCEEDED, RONDO_REASON_OUT_OF_RANGE,
                      "model '%s' has %d graphs already, which is the most: use those, or destroy them all first "
                      "(rondo_session_destroy_graphs)",
                      model->name, RONDO_SESSION_MAX_SIZES);
  for (size_t i = 0; i < model->graphs.count; i++)
    if (model->graphs.items[i].rows == rows)
      return rondo_fail(RONDO_INVALID_STATE, RONDO_REASON_ALREADY_CAPTURED,
                        "model '%s' has a graph of %zu rows already (graph %zu): capture each number of rows once",
                        model->name, rows, i);
  return RONDO_OK;
}

static rondo_status record(rondo_session_model *model, size_t rows) {
  rondo_session_graph graph = {.rows = rows};
  for (uint32_t i = 0; i < model->session->options.streams; i++)
    RONDO_TRY(rondo_session_record_on(model, i, rows, &graph));
  pthread_mutex_lock(&model->session->lock);
  model->graphs.items[model->graphs.count++] = graph;
  pthread_mutex_unlock(&model->session->lock);
  return RONDO_OK;
}

rondo_status rondo_session_record(rondo_session_model *model, size_t rows) {
  RONDO_TRY(check_new(model, rows));
  const size_t before = model->graphs.count;
  const rondo_status status = record(model, rows);
  if (status != RONDO_OK) rondo_session_take_back(model, before);
  return status;
}

/* Capture mode ---------------------------------------------------------------------------------------------------- */

/* In one go: in between a stream could be taken by hand, which recording needs. */
static rondo_status enter_mode(rondo_session *session, const char *call, const char *name) {
  rondo_session_model *model;
  if (session->capturing != NULL)
    return rondo_fail(RONDO_INVALID_STATE, RONDO_REASON_ALREADY_CAPTURING,
                      "%s: the session is in capture mode for model '%s': end that first", call,
                      session->capturing->name);
  RONDO_TRY(rondo_session_change_begin_locked(session, call, name, &model));
  session->capturing = model;
  return RONDO_OK;
}

rondo_status rondo_session_capture_begin(rondo_session *session, const char *model) {
  static const char call[] = "rondo_session_capture_begin";
  RONDO_TRY(rondo_session_front(call, session));
  RONDO_TRY(rondo_require(call, "model", model));
  pthread_mutex_lock(&session->lock);
  const rondo_status status = enter_mode(session, call, model);
  pthread_mutex_unlock(&session->lock);
  return status;
}

static rondo_session_model *leave_mode(rondo_session *session) {
  pthread_mutex_lock(&session->lock);
  while (session->capturing != NULL && session->capturing->taken > 0)
    pthread_cond_wait(&session->change, &session->lock);
  rondo_session_model *model = session->capturing;
  session->capturing = NULL;
  pthread_mutex_unlock(&session->lock);
  return model;
}

rondo_status rondo_session_capture_end(rondo_session *session) {
  RONDO_TRY(rondo_session_front("rondo_session_capture_end", session));
  rondo_session_model *model = leave_mode(session);
  if (model == NULL)
    return rondo_fail(
        RONDO_INVALID_STATE, RONDO_REASON_NOT_CAPTURING,
        "rondo_session_capture_end: the session is not in capture mode: begin it first (rondo_session_capture_begin)");
  const rondo_status status = rondo_model_measure(model);
  rondo_session_change_end(model);
  return status;
}
