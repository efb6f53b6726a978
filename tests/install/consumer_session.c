/* SPDX-License-Identifier: MIT
 * Uses the component rondo-session as it is installed: a session squares numbers, in a recorded run.
 */
#include <rondo/operators.h>
#include <rondo/session.h>
#include <stdio.h>

enum { ROWS = 4 };

static rondo_status build(void *user, size_t rows, rondo_program *program) {
  const size_t shape[] = {rows, 1};
  rondo_value x, y;
  (void)user;
  rondo_status status = rondo_program_input(program, "x", RONDO_F32, shape, 2, &x);
  if (status == RONDO_OK) status = rondo_op_mul(program, x, x, &y);
  return status == RONDO_OK ? rondo_program_output(program, "y", y) : status;
}

static rondo_status square(rondo_session *session, const float values[ROWS], float squares[ROWS]) {
  const size_t history[] = {ROWS};
  const rondo_model_options model = {RONDO_MODEL_OPTIONS_INIT, .build = build, .history = history, .history_count = 1};
  const void *inputs[] = {values};
  void *outputs[] = {squares};
  const rondo_request request = {RONDO_REQUEST_INIT, .rows = ROWS, .inputs = inputs, .outputs = outputs};
  rondo_status status = rondo_session_add_model(session, "square", &model);
  if (status == RONDO_OK) status = rondo_session_capture(session, "square");
  return status == RONDO_OK ? rondo_session_run(session, "square", &request, NULL) : status;
}

int main(void) {
  const float values[ROWS] = {1, 2, 3, 4};
  float squares[ROWS] = {0};
  rondo_device *device = NULL;
  rondo_session *session = NULL;
  rondo_status status = rondo_device_open("cpu", NULL, &device);
  if (status == RONDO_OK) status = rondo_session_create(device, NULL, &session);
  if (status == RONDO_OK) status = square(session, values, squares);
  if (status != RONDO_OK) fprintf(stderr, "%s\n", rondo_last_error()->message);
  if (rondo_session_destroy(session) != RONDO_OK) return 1;
  if (device != NULL && rondo_device_close(device) != RONDO_OK) return 1;
  const int right = status == RONDO_OK && squares[1] == 4 && squares[ROWS - 1] == 16;
  printf("%s %s\n", rondo_version(), right ? "ok" : "wrong");
  return right ? 0 : 1;
}
