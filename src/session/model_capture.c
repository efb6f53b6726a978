/* SPDX-License-Identifier: MIT
 * Records graphs on every stream, and implements the capture mode. The model is changing, so none of its requests runs.
 * Each worker is claimed while its stream records.
 */
#include <assert.h>

#include "base/clock.h"
#include "session/model_capture.h"
#include "session/model_instance.h"
#include "session/model_lengths.h"
#include "session/serve/stream_worker.h"
#include "session/session.h"
#include "session/session_internal.h"
#include "session/session_model.h"
#include "session/sizing/choose_sizes.h"

/* Recording a size ------------------------------------------------------------------------------------------------- */

/* Also describes the graph, and measures how long recording takes. */
static rondo_status record_on_first_instance(rondo_session_model *model, size_t rows, rondo_session_graph *out) {
  rondo_model_instance *instance = &model->instances[0];
  const uint64_t begin = rondo_clock_ns();
  RONDO_TRY(rondo_model_instance_capture(instance, rows));
  const double capture_us = (double)(rondo_clock_ns() - begin) / 1e3;
  RONDO_TRY(rondo_model_instance_describe(instance, instance->graphs.count - 1, out));
  out->info.capture_us = capture_us;
  return RONDO_OK;
}

rondo_status rondo_session_record_on(rondo_session_model *model, uint32_t worker, size_t rows,
                                     rondo_session_graph *out) {
  rondo_session_claim(model->session, worker);
  const rondo_status status = worker == 0 ? record_on_first_instance(model, rows, out)
                                          : rondo_model_instance_capture(&model->instances[worker], rows);
  rondo_session_release(model->session, worker);
  return status;
}

void rondo_session_drop_graphs_from(rondo_session_model *model, size_t count) {
  rondo_saved_error error;
  rondo_error_save(&error);
  rondo_status ignored = RONDO_OK;
  rondo_model_hide_graphs(model, count);
  for (uint32_t i = 0; i < model->session->options.streams; i++) {
    rondo_session_claim(model->session, i);
    while (model->instances[i].graphs.count > count)
      rondo_model_instance_drop_last_graph(&model->instances[i], &ignored);
    rondo_session_release(model->session, i);
  }
  rondo_error_restore(&error);
}

static rondo_status check_new(const rondo_session_model *model, size_t rows) {
  if (model->graphs.count == RONDO_SESSION_MAX_SIZES)
    return rondo_fail(
        RONDO_LIMIT_EXCEEDED, RONDO_REASON_OUT_OF_RANGE,
        "model '%s' already has %d graphs, the maximum: destroy its graphs first (rondo_session_destroy_graphs)",
        model->name, RONDO_SESSION_MAX_SIZES);
  for (size_t i = 0; i < model->graphs.count; i++)
    if (model->graphs.items[i].info.rows == rows)
      return rondo_fail(RONDO_INVALID_STATE, RONDO_REASON_ALREADY_CAPTURED,
                        "model '%s' already has a graph of %zu rows (graph %zu): capture each number of rows once",
                        model->name, rows, i);
  return RONDO_OK;
}

static rondo_status record(rondo_session_model *model, size_t rows) {
  rondo_session_graph graph = {.info.rows = rows};
  for (uint32_t i = 0; i < model->session->options.streams; i++)
    RONDO_TRY(rondo_session_record_on(model, i, rows, &graph));
  pthread_mutex_lock(&model->session->lock);
  assert(model->graphs.count < RONDO_SESSION_MAX_SIZES);
  model->graphs.items[model->graphs.count++] = graph;
  pthread_mutex_unlock(&model->session->lock);
  return RONDO_OK;
}

rondo_status rondo_session_record(rondo_session_model *model, size_t rows) {
  assert(model->head->is_changing && rows > 0);
  RONDO_TRY(check_new(model, rows));
  const size_t before = model->graphs.count;
  const rondo_status status = record(model, rows);
  if (status != RONDO_OK) rondo_session_drop_graphs_from(model, before);
  return status;
}

/* Capture mode ----------------------------------------------------------------------------------------------------- */

/* Under the lock throughout, or another thread could take a stream for manual runs in between. Recording needs all
 * streams. */
static rondo_status enter_mode(rondo_session *session, const char *call, rondo_session_model *model) {
  if (session->capturing != NULL)
    return rondo_fail(RONDO_INVALID_STATE, RONDO_REASON_ALREADY_CAPTURING,
                      "%s: the session is in capture mode for model '%s': end that first", call,
                      session->capturing->name);
  RONDO_TRY(rondo_session_change_begin_locked(call, model));
  session->capturing = model->head;
  return RONDO_OK;
}

rondo_status rondo_session_capture_begin(rondo_session *session, const char *model) {
  static const char call[] = "rondo_session_capture_begin";
  rondo_session_model *found;
  RONDO_TRY(rondo_session_enter(call, session, model, &found));
  const rondo_status status = enter_mode(session, call, found);
  pthread_mutex_unlock(&session->lock);
  return status;
}

static rondo_session_model *leave_mode(rondo_session *session) {
  pthread_mutex_lock(&session->lock);
  while (session->capturing != NULL && session->capturing->in_use > 0)
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
  rondo_status status = RONDO_OK;
  const rondo_session_model *end = rondo_model_group_end(model);
  for (rondo_session_model *m = model; m != end && status == RONDO_OK; m = m->next) status = rondo_model_measure(m);
  rondo_session_change_end(model);
  return status;
}
