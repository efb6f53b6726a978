/* SPDX-License-Identifier: MIT
 * Every allocation of host memory may fail while a session is made, a program or function is added, planned, recorded,
 * served, drained and destroyed: the error is OUT_OF_MEMORY, nothing is left, and requests that are answered are right.
 */
#include <string.h>

#include "support/rondo_test.h"
#include "support/test_effort.h"
#include "support/test_session.h"

#define TRY(call)                            \
  do {                                       \
    const rondo_status status_ = (call);     \
    if (status_ != RONDO_OK) return status_; \
  } while (0)

typedef struct rig {
  test_allocator allocator;
  rondo_device *device;
  rondo_weights *weights;
  rondo_session *session;
} rig;

static rondo_status run(rig *r, size_t rows, rondo_way way) {
  static test_request request;
  test_request_fill(&request, rows, rows);
  request.request.way = way;
  rondo_answer answer = {.struct_size = sizeof answer};
  TRY(rondo_session_run(r->session, "scorer", &request.request, &answer));
  assert_true(answer.way == RONDO_WAY_CAPTURED || test_request_is_right(&request));
  return RONDO_OK;
}

static rondo_status record(rig *r) {
  TRY(rondo_session_capture_begin(r->session, "scorer"));
  rondo_status status = run(r, 16, RONDO_WAY_AUTO);
  if (status == RONDO_OK) status = run(r, 4, RONDO_WAY_AUTO);
  const rondo_status ended = rondo_session_capture_end(r->session);
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

static rondo_status copy(rig *r, size_t rows, rondo_way way) {
  uint32_t x[16], y[16] = {0};
  const void *inputs[] = {x};
  void *outputs[] = {y};
  for (uint32_t i = 0; i < rows; i++) x[i] = i + 1;
  const rondo_request request = {RONDO_REQUEST_INIT, .way = way, .rows = rows, .inputs = inputs, .outputs = outputs};
  rondo_answer answer = {.struct_size = sizeof answer};
  TRY(rondo_session_run(r->session, "copy", &request, &answer));
  for (uint32_t i = 0; i < rows && answer.way != RONDO_WAY_CAPTURED; i++) assert_int_equal(y[i], x[i]);
  return RONDO_OK;
}

static rondo_status serve_function(rig *r) {
  const rondo_row_value word = {.name = "word", .type = RONDO_I32};
  const size_t history[] = {4, 16};
  const rondo_model_options model = {RONDO_MODEL_OPTIONS_INIT, .body = copy_words, .inputs = &word,
                                     .input_count = 1,         .outputs = &word,   .output_count = 1,
                                     .history = history,       .history_count = 2, .max_sizes = 3};
  TRY(rondo_session_add_model(r->session, "copy", &model));
  TRY(copy(r, 3, RONDO_WAY_AUTO));
  TRY(rondo_session_capture(r->session, "copy"));
  TRY(copy(r, 16, RONDO_WAY_RECORDED));
  TRY(copy(r, 5, RONDO_WAY_UNRECORDED));
  return rondo_session_remove_model(r->session, "copy");
}

static rondo_status do_all(rig *r) {
  const size_t history[] = {3, 9, 27};
  const rondo_executor_options executor = {RONDO_EXECUTOR_OPTIONS_INIT, .threads = RONDO_EXECUTOR_NO_THREADS};
  const rondo_session_options options = {RONDO_SESSION_OPTIONS_INIT, .streams = 2, .max_unrecorded = 1, .timed = true,
                                         .executor = &executor};
  const rondo_model_options model = {RONDO_MODEL_OPTIONS_INIT, .build = test_build_scorer, .weights = r->weights,
                                     .history = history,       .history_count = 3,         .max_sizes = 2,
                                     .max_batch_rows = 108};
  TRY(rondo_session_create(r->device, &options, &r->session));
  TRY(rondo_session_add_model(r->session, "scorer", &model));
  rondo_model_bytes bytes = {.struct_size = sizeof bytes};
  TRY(rondo_session_plan(r->session, "scorer", history, 3, &bytes));
  TRY(run(r, 5, RONDO_WAY_AUTO));
  TRY(record(r));
  TRY(run(r, 3, RONDO_WAY_RECORDED));
  TRY(run(r, 70, RONDO_WAY_RECORDED));
  TRY(run(r, 6, RONDO_WAY_UNRECORDED));
  TRY(rondo_session_destroy_graphs(r->session, "scorer"));
  TRY(rondo_session_capture(r->session, "scorer"));
  TRY(run(r, 27, RONDO_WAY_RECORDED));
  return serve_function(r);
}

/* A tree says that as its reason not to record. */
static bool is_tree_without_memory(rondo_status status) {
  return status == RONDO_UNSUPPORTED && strstr(rondo_last_error()->message, "MEMORY_LIMIT") != NULL;
}

/* False when the work makes fewer allocations than that. */
static bool sweep(size_t at, bool rest, size_t *inout_heard) {
  static rig r;
  const rondo_device_options options = {RONDO_DEVICE_OPTIONS_INIT, .allocator = &r.allocator.table, .workers = 1};
  r = (rig){.device = NULL};
  test_allocator_init(&r.allocator);
  assert_ok(rondo_device_open("cpu", &options, &r.device));
  r.weights = test_scorer_weights();
  atomic_store(&r.allocator.calls, 0);
  atomic_store(&r.allocator.fail_at, at);
  atomic_store(&r.allocator.fail_on, rest);
  const rondo_status status = do_all(&r);
  const bool has_failed = atomic_load(&r.allocator.calls) >= at;
  atomic_store(&r.allocator.fail_at, 0);
  atomic_store(&r.allocator.fail_on, false);
  if (status != RONDO_OK && status != RONDO_OUT_OF_MEMORY && !is_tree_without_memory(status))
    fail_msg("allocation %zu: heard was %s: %s", at, rondo_status_name(status), rondo_last_error()->message);
  *inout_heard += status != RONDO_OK;
  assert_ok(rondo_session_destroy(r.session));
  rondo_weights_destroy(r.weights);
  assert_ok(rondo_device_close(r.device));
  if (atomic_load(&r.allocator.live) != 0) fail_msg("allocation %zu: %zu left", at, atomic_load(&r.allocator.live));
  assert_int_equal(atomic_load(&r.allocator.faults), 0);
  return has_failed;
}

static void sweep_all(bool rest, size_t step) {
  size_t at = 1, heard = 0, count = 0;
  for (; sweep(at, rest, &heard); at += step * test_failure_step()) count++;
  assert_true(count > 100 / (step * test_failure_step()));
  assert_true(heard > count / 2);
}

static void test_se6_an_allocation_fails(void **state) {
  (void)state;
  sweep_all(false, 11);
}

static void test_se6_all_allocations_fail_from_then_on(void **state) {
  (void)state;
  sweep_all(true, 29);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_se6_an_allocation_fails),
      cmocka_unit_test(test_se6_all_allocations_fail_from_then_on),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
