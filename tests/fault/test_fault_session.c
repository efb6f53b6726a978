/* SPDX-License-Identifier: MIT
 * Lets every host allocation fail while a session is created, a program or function is added, planned, recorded,
 * served, drained and destroyed. The error is OUT_OF_MEMORY, nothing is left, and requests that are answered are right.
 */
#include <string.h>

#include "fault/fault_allocations.h"
#include "support/test_session.h"

static struct {
  rondo_weights *weights;
  rondo_session *session;
} made;

static rondo_status run(size_t rows, rondo_run_mode mode) {
  static test_request request;
  test_request_fill(&request, rows, rows);
  request.request.mode = mode;
  rondo_answer answer = {.struct_size = sizeof answer};
  TRY(rondo_session_run(made.session, "scorer", &request.request, &answer));
  assert_true(answer.mode == RONDO_RUN_CAPTURED || test_request_is_right(&request));
  return RONDO_OK;
}

static rondo_status record(void) {
  TRY(rondo_session_capture_begin(made.session, "scorer"));
  rondo_status status = run(16, RONDO_RUN_AUTO);
  if (status == RONDO_OK) status = run(4, RONDO_RUN_AUTO);
  const rondo_status ended = rondo_session_capture_end(made.session);
  return status == RONDO_OK ? ended : status;
}

/* A function: y = x. */
static rondo_status copy_words(rondo_call *call, void *user) {
  rondo_input x;
  void *y;
  (void)user;
  TRY(rondo_call_get_input(call, 0, &x));
  TRY(rondo_call_output(call, 0, x.bytes, NULL, &y));
  return rondo_copy_async(rondo_call_stream(call), y, x.address, x.bytes);
}

static rondo_status copy(size_t rows, rondo_run_mode mode) {
  uint32_t x[16], y[16] = {0};
  const void *inputs[] = {x};
  void *outputs[] = {y};
  for (uint32_t i = 0; i < rows; i++) x[i] = i + 1;
  const rondo_request request = {RONDO_REQUEST_INIT, .mode = mode, .rows = rows, .inputs = inputs, .outputs = outputs};
  rondo_answer answer = {.struct_size = sizeof answer};
  TRY(rondo_session_run(made.session, "copy", &request, &answer));
  for (uint32_t i = 0; i < rows && answer.mode != RONDO_RUN_CAPTURED; i++) assert_int_equal(y[i], x[i]);
  return RONDO_OK;
}

static rondo_status serve_function(void) {
  const rondo_row_value word = {.name = "word", .type = RONDO_I32};
  const size_t history[] = {4, 16};
  const rondo_model_options model = {RONDO_MODEL_OPTIONS_INIT, .body = copy_words, .inputs = &word,
                                     .input_count = 1,         .outputs = &word,   .output_count = 1,
                                     .history = history,       .history_count = 2, .max_sizes = 3};
  TRY(rondo_session_add_model(made.session, "copy", &model));
  TRY(copy(3, RONDO_RUN_AUTO));
  TRY(rondo_session_capture(made.session, "copy"));
  TRY(copy(16, RONDO_RUN_RECORDED));
  TRY(copy(5, RONDO_RUN_EAGER));
  return rondo_session_remove_model(made.session, "copy");
}

/* y = x + x [rows, length]. */
static rondo_status build_doubled(void *user, const rondo_model_size *size, rondo_program *program) {
  const size_t shape[] = {size->rows, size->length};
  rondo_value x, y;
  (void)user;
  TRY(rondo_program_input(program, "x", RONDO_F32, shape, 2, &x));
  TRY(rondo_op_add(program, x, x, &y));
  return rondo_program_output(program, "y", y);
}

static rondo_status double_rows(size_t rows, size_t length) {
  float x[16], y[16] = {0};
  const rondo_request request = {RONDO_REQUEST_INIT, .rows = rows, .length = length, .inputs = (const void *[]){x},
                                 .outputs = (void *[]){y}};
  for (size_t i = 0; i < rows * length; i++) x[i] = (float)i;
  TRY(rondo_session_run(made.session, "doubled", &request, NULL));
  for (size_t i = 0; i < rows * length; i++) assert_true(y[i] == 2 * x[i]);
  return RONDO_OK;
}

/* The lengths are exact: the second request has a graph, the others have programs of their own. */
static rondo_status serve_lengths(void) {
  static const size_t history[] = {2, 1, 1}, lengths[] = {4, 5, 3};
  const rondo_model_options model = {RONDO_MODEL_OPTIONS_INIT, .build_sized = build_doubled,
                                     .history = history,       .history_lengths = lengths,
                                     .history_count = 3,       .max_lengths = 2,
                                     .max_sizes = 1,           .max_batch_rows = 1,
                                     .exact_lengths = true};
  TRY(rondo_session_add_model(made.session, "doubled", &model));
  TRY(rondo_session_capture(made.session, "doubled"));
  for (size_t length = 3; length <= 5; length++) TRY(double_rows(2, length));
  return rondo_session_remove_model(made.session, "doubled");
}

static rondo_status do_all(fault_rig *rig) {
  const size_t history[] = {3, 9, 27};
  const rondo_executor_options executor = {RONDO_EXECUTOR_OPTIONS_INIT, .threads = RONDO_EXECUTOR_NO_THREADS};
  const rondo_session_options options = {RONDO_SESSION_OPTIONS_INIT, .streams = 2, .max_eager_programs = 1,
                                         .timed = true, .executor = &executor};
  const rondo_model_options model = {RONDO_MODEL_OPTIONS_INIT, .build = test_build_scorer, .weights = made.weights,
                                     .history = history,       .history_count = 3,         .max_sizes = 2,
                                     .max_batch_rows = 108};
  TRY(rondo_session_create(rig->device, &options, &made.session));
  TRY(rondo_session_add_model(made.session, "scorer", &model));
  rondo_model_bytes bytes = {.struct_size = sizeof bytes};
  TRY(rondo_session_plan(made.session, "scorer", history, 3, &bytes));
  TRY(run(5, RONDO_RUN_AUTO));
  TRY(record());
  TRY(run(3, RONDO_RUN_RECORDED));
  TRY(run(70, RONDO_RUN_RECORDED));
  TRY(run(6, RONDO_RUN_EAGER));
  TRY(rondo_session_destroy_graphs(made.session, "scorer"));
  TRY(rondo_session_capture(made.session, "scorer"));
  TRY(run(27, RONDO_RUN_RECORDED));
  TRY(serve_lengths());
  return serve_function();
}

/* A tree returns that as its reason not to record. */
static bool is_tree_without_memory(rondo_status status) {
  return status == RONDO_UNSUPPORTED && strstr(rondo_last_error()->message, "MEMORY_LIMIT") != NULL;
}

static void prepare(void) { made.weights = test_scorer_weights(); }

static void destroy(void) {
  assert_ok(rondo_session_destroy(made.session));
  rondo_weights_destroy(made.weights);
  memset(&made, 0, sizeof made);
}

static const fault_work all = {
    .prepare = prepare, .run = do_all, .destroy = destroy, .is_expected = is_tree_without_memory};

UNIT_TEST(test_se6_an_allocation_fails) { fault_allocations(&all, false, 11); }

UNIT_TEST(test_se6_all_allocations_fail_from_then_on) { fault_allocations(&all, true, 29); }
