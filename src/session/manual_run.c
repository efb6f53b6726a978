/* SPDX-License-Identifier: MIT
 * Manual runs: the user takes a stream and launches graphs on it (SE-6). The worker stays claimed until the user gives
 * the stream back, and no graph changes until then.
 */
#include <assert.h>

#include "session/model_instance.h"
#include "session/serve/stream_worker.h"
#include "session/session.h"
#include "session/staging_memory.h"

static rondo_status take_stream(const char *call, rondo_session *session, rondo_session_model *m, size_t number) {
  if (number >= session->options.streams)
    return rondo_session_fail_range(call, "stream", number, session->options.streams);
  if (session->capturing != NULL)
    return rondo_fail(
        RONDO_INVALID_STATE, RONDO_REASON_ALREADY_CAPTURING,
        "%s: the session is in capture mode for model '%s', which records on every stream: end that first "
        "(rondo_session_capture_end)",
        call, session->capturing->name);
  if (m->idle.any == NULL || m->head->is_changing)
    return rondo_fail(RONDO_INVALID_STATE, RONDO_REASON_NOT_CAPTURED, "%s: model '%s' %s", call, m->name,
                      m->head->is_changing ? "is being captured or changed: try again after that"
                                           : "has no graphs: capture it first (rondo_session_capture)");
  rondo_stream_worker *worker = &session->workers[number];
  if (worker->manual != RONDO_MANUAL_NONE)
    return rondo_fail(RONDO_INVALID_STATE, RONDO_REASON_STILL_IN_USE,
                      "%s: stream %zu is taken already: give it back first (rondo_session_release_stream)", call,
                      number);
  worker->manual = RONDO_MANUAL_TAKING;
  pthread_cond_broadcast(&session->change); /* rondo_session_claim_all no longer holds requests back */
  rondo_stream_worker_claim(worker);
  assert(worker->manual == RONDO_MANUAL_TAKING && worker->is_claimed);
  worker->manual = RONDO_MANUAL_TAKEN;
  return RONDO_OK;
}

rondo_status rondo_session_acquire_stream(rondo_session *session, const char *model, size_t number,
                                          rondo_stream **out_stream) {
  static const char call[] = "rondo_session_acquire_stream";
  rondo_session_model *m;
  RONDO_TRY(rondo_require(call, "out_stream", out_stream));
  *out_stream = NULL;
  RONDO_TRY(rondo_session_enter(call, session, model, &m));
  const rondo_status status = take_stream(call, session, m, number);
  if (status == RONDO_OK) *out_stream = m->instances[number].stream;
  pthread_mutex_unlock(&session->lock);
  return status;
}

/* Other threads may add models at the front of the list, but cannot remove any while a stream is taken. */
static rondo_status synchronize_instances(rondo_session *session, size_t number) {
  rondo_status status = RONDO_OK;
  pthread_mutex_lock(&session->lock);
  rondo_session_model *first = session->models;
  pthread_mutex_unlock(&session->lock);
  for (rondo_session_model *m = first; m != NULL; m = m->next)
    rondo_status_keep_first(&status, rondo_model_instance_synchronize(&m->instances[number]));
  return status;
}

/* If several threads give the stream back, one of them succeeds. */
static bool begin_giving(rondo_session *session, size_t number) {
  rondo_stream_worker *worker = &session->workers[number];
  pthread_mutex_lock(&session->lock);
  const bool is_taken = worker->manual == RONDO_MANUAL_TAKEN;
  if (is_taken) worker->manual = RONDO_MANUAL_GIVING;
  pthread_mutex_unlock(&session->lock);
  return is_taken;
}

rondo_status rondo_session_release_stream(rondo_session *session, size_t number) {
  static const char call[] = "rondo_session_release_stream";
  RONDO_TRY(rondo_session_front(call, session));
  if (number >= session->options.streams)
    return rondo_session_fail_range(call, "stream", number, session->options.streams);
  if (!begin_giving(session, number))
    return rondo_fail(
        RONDO_INVALID_STATE, RONDO_REASON_SCOPE,
        "%s: stream %zu was not taken, or was given back already: take it first (rondo_session_acquire_stream)", call,
        number);
  const rondo_status status = synchronize_instances(session, number);
  pthread_mutex_lock(&session->lock);
  assert(session->workers[number].manual == RONDO_MANUAL_GIVING);
  session->workers[number].manual = RONDO_MANUAL_NONE;
  rondo_stream_worker_release(&session->workers[number]);
  pthread_mutex_unlock(&session->lock);
  return status;
}

/* The model's instance on a stream, which has a graph of this index. Under the lock. */
static rondo_status find_in(const char *call, rondo_session_model *m, size_t index, size_t number,
                            rondo_model_instance **out) {
  const uint32_t streams = m->session->options.streams;
  if (index >= m->graphs.count) return rondo_session_fail_range(call, "graph", index, m->graphs.count);
  if (number >= streams) return rondo_session_fail_range(call, "stream", number, streams);
  *out = &m->instances[number];
  return RONDO_OK;
}

/* The same without the lock. The graph exists as long as a stream is taken. */
static rondo_status find_instance(const char *call, rondo_session *session, const char *model, size_t index,
                                  size_t number, rondo_model_instance **out) {
  rondo_session_model *m;
  RONDO_TRY(rondo_session_enter(call, session, model, &m));
  const rondo_status status = find_in(call, m, index, number, out);
  pthread_mutex_unlock(&session->lock);
  return status;
}

rondo_status rondo_session_get_input_copy(rondo_session *session, const char *model, size_t index, size_t number,
                                          size_t input, rondo_input_copy *out_copy) {
  static const char call[] = "rondo_session_get_input_copy";
  rondo_session_model *m;
  rondo_model_instance *instance = NULL;
  RONDO_TRY(rondo_require(call, "out_copy", out_copy));
  RONDO_TRY(rondo_session_enter(call, session, model, &m));
  rondo_status status = find_in(call, m, index, number, &instance);
  if (status == RONDO_OK && input >= m->inputs.count)
    status = rondo_session_fail_range(call, "input", input, m->inputs.count);
  if (status == RONDO_OK) *out_copy = instance->graphs.items[index].copies[input];
  pthread_mutex_unlock(&session->lock);
  return status;
}

static rondo_status require_taken(const char *call, rondo_session *session, size_t number) {
  pthread_mutex_lock(&session->lock);
  const bool is_taken = number < session->options.streams && session->workers[number].manual == RONDO_MANUAL_TAKEN;
  pthread_mutex_unlock(&session->lock);
  if (is_taken) return RONDO_OK;
  return rondo_fail(RONDO_INVALID_STATE, RONDO_REASON_SCOPE,
                    "%s: stream %zu was not taken: take it first (rondo_session_acquire_stream)", call, number);
}

rondo_status rondo_session_launch(rondo_session *session, const char *model, size_t index, size_t number) {
  static const char call[] = "rondo_session_launch";
  rondo_model_instance *instance = NULL;
  RONDO_TRY(find_instance(call, session, model, index, number, &instance));
  RONDO_TRY(require_taken(call, session, number));
  const rondo_instance_graph *g = &instance->graphs.items[index];
  RONDO_TRY(rondo_model_instance_run_upstream(instance, g, true));
  RONDO_TRY(rondo_model_instance_launch(instance, g, true));
  instance->last_graph = index + 1;
  pthread_mutex_lock(&session->lock);
  instance->model->graphs.items[index].info.launches++;
  instance->model->info.launches++;
  pthread_mutex_unlock(&session->lock);
  return RONDO_OK;
}

rondo_status rondo_session_get_result(rondo_session *session, const char *model, size_t number, size_t output,
                                      const void **out_data) {
  static const char call[] = "rondo_session_get_result";
  rondo_model_instance *instance = NULL;
  RONDO_TRY(rondo_require(call, "out_data", out_data));
  *out_data = NULL;
  RONDO_TRY(find_instance(call, session, model, 0, number, &instance));
  if (instance->last_graph == 0)
    return rondo_fail(
        RONDO_INVALID_STATE, RONDO_REASON_NO_OUTPUT,
        "%s: nothing of model '%s' was launched on stream %zu: launch it there first (rondo_session_launch)", call,
        model, number);
  if (output >= instance->model->outputs.count)
    return rondo_session_fail_range(call, "output", output, instance->model->outputs.count);
  const rondo_instance_graph *g = &instance->graphs.items[instance->last_graph - 1];
  *out_data = rondo_stage_output(instance->model, &g->stage, output);
  return RONDO_OK;
}
