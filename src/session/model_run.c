/* SPDX-License-Identifier: MIT
 * Model runs: an object that keeps the rows and addresses of a request and submits it repeatedly. A model cannot be
 * removed while it has runs. Thread-compatible.
 */
#include <string.h>

#include "exec/api_check.h"
#include "session/model_values.h"
#include "session/session.h"
#include "session/session_internal.h"

struct rondo_model_run {
  rondo_session *session;
  rondo_session_model *model;
  size_t rows; /* 0: not set */
  bool is_bound;
  const void *inputs[RONDO_SESSION_MAX_VALUES];
  void *outputs[RONDO_SESSION_MAX_VALUES];
};

rondo_status rondo_model_run_create(rondo_session *session, const char *model, rondo_model_run **out_run) {
  static const char call[] = "rondo_model_run_create";
  RONDO_TRY(rondo_require(call, "out_run", out_run));
  *out_run = NULL;
  RONDO_TRY(rondo_session_front(call, session));
  RONDO_TRY(rondo_require(call, "model", model));
  rondo_model_run *run = NULL;
  RONDO_TRY(rondo_allocate_items(&session->allocator, 1, sizeof *run, &run));
  run->session = session;
  pthread_mutex_lock(&session->lock);
  rondo_status status = rondo_session_find(session, call, model, &run->model);
  if (status == RONDO_OK && run->model->head->slots != NULL)
    status = rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_BAD_OPTIONS,
                        "%s: model '%s' has sequences, which requests use: call rondo_session_run", call, model);
  if (status == RONDO_OK) {
    run->model->runs++;
    session->runs++;
  }
  pthread_mutex_unlock(&session->lock);
  if (status == RONDO_OK)
    *out_run = run;
  else
    rondo_release(&session->allocator, run, 1, sizeof *run);
  return status;
}

void rondo_model_run_destroy(rondo_model_run *run) {
  if (run == NULL || run->session->device->is_inherited) return;
  rondo_session *session = run->session;
  pthread_mutex_lock(&session->lock);
  run->model->runs--;
  session->runs--;
  pthread_mutex_unlock(&session->lock);
  rondo_release(&session->allocator, run, 1, sizeof *run);
}

rondo_status rondo_model_run_reshape(rondo_model_run *run, size_t rows) {
  static const char call[] = "rondo_model_run_reshape";
  RONDO_TRY(rondo_check_call(call, "the run", run));
  if (rows == 0)
    return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_SHAPE, "%s: a run of model '%s' of 0 rows: give at least 1",
                      call, run->model->name);
  RONDO_TRY(rondo_model_check_rows(call, run->model, rows));
  if (rows > run->rows) run->is_bound = false;
  run->rows = rows;
  return RONDO_OK;
}

rondo_status rondo_model_run_bind(rondo_model_run *run, const void *const *inputs, void *const *outputs) {
  static const char call[] = "rondo_model_run_bind";
  RONDO_TRY(rondo_check_call(call, "the run", run));
  RONDO_TRY(rondo_require(call, "inputs", inputs));
  RONDO_TRY(rondo_require(call, "outputs", outputs));
  for (size_t i = 0; i < run->model->given_inputs; i++)
    RONDO_TRY(rondo_require(call, run->model->inputs.items[i].name, inputs[i]));
  memcpy(run->inputs, inputs, run->model->given_inputs * sizeof *inputs);
  memcpy(run->outputs, outputs, run->model->outputs.count * sizeof *outputs);
  run->is_bound = true;
  return RONDO_OK;
}

rondo_status rondo_model_run_invoke(rondo_model_run *run, rondo_answer *out_answer) {
  RONDO_TRY(rondo_check_call("rondo_model_run_invoke", "the run", run));
  if (run->rows == 0 || !run->is_bound)
    return rondo_fail(RONDO_INVALID_STATE, run->rows == 0 ? RONDO_REASON_SHAPE : RONDO_REASON_NULL_ARGUMENT,
                      "rondo_model_run_invoke: a run of model '%s' has %s: %s first", run->model->name,
                      run->rows == 0 ? "no rows" : "no inputs and outputs",
                      run->rows == 0 ? "rondo_model_run_reshape" : "rondo_model_run_bind");
  const rondo_request request = {RONDO_REQUEST_INIT, .rows = run->rows, .inputs = run->inputs, .outputs = run->outputs};
  return rondo_session_run(run->session, run->model->name, &request, out_answer);
}
