/* SPDX-License-Identifier: MIT
 * Lets every call of the CUDA driver, and every host allocation, fail while a model of a session is divided between a
 * GPU and a CPU device (SE-9): added, planned, run eagerly, recorded, replayed, divided again for other rows, and
 * destroyed. Either an error is returned or the answers are right. Nothing is left in the driver or in host memory, and
 * nothing is misused. Each kind of failure is tried at one point in seven, each starting at a different point.
 */
#include "fault/fault_cuda_sweep.h"
#include "support/test_session.h"

static test_allocator allocator;

static struct {
  rondo_device *devices[2];
  rondo_weights *weights;
  rondo_session *session;
  bool wrong;
} work;

static rondo_status serve(size_t rows, rondo_run_mode mode) {
  static test_request request;
  rondo_answer answer = {.struct_size = sizeof answer};
  test_request_fill(&request, rows, rows);
  request.request.mode = mode;
  TRY(rondo_session_run(work.session, "scorer", &request.request, &answer));
  work.wrong |= answer.mode != RONDO_RUN_CAPTURED && !test_request_is_right(&request);
  return RONDO_OK;
}

static rondo_status record(void) {
  TRY(rondo_session_capture_begin(work.session, "scorer"));
  const rondo_status status = serve(8, RONDO_RUN_AUTO);
  const rondo_status ended = rondo_session_capture_end(work.session);
  return status == RONDO_OK ? ended : status;
}

static rondo_status serve_divided(void) {
  static const rondo_placement_rule rule = {.operator_name = "embedding", .place = 1};
  const rondo_session_options options = {RONDO_SESSION_OPTIONS_INIT, .streams = 1, .max_eager_programs = 1};
  const rondo_model_options model = {RONDO_MODEL_OPTIONS_INIT, .build = test_build_scorer, .weights = work.weights,
                                     .devices = work.devices,  .device_count = 2,          .rules = &rule,
                                     .rule_count = 1};
  const size_t rows = 8;
  rondo_model_bytes bytes = {.struct_size = sizeof bytes};
  TRY(rondo_session_create(work.devices[0], &options, &work.session));
  TRY(rondo_session_add_model(work.session, "scorer", &model));
  TRY(rondo_session_plan(work.session, "scorer", &rows, 1, &bytes));
  TRY(serve(3, RONDO_RUN_AUTO));
  TRY(record());
  TRY(serve(5, RONDO_RUN_RECORDED));
  TRY(serve(12, RONDO_RUN_RECORDED));
  TRY(serve(4, RONDO_RUN_EAGER));
  return rondo_session_destroy_graphs(work.session, "scorer");
}

static rondo_status run(const char *device) {
  memset(&work, 0, sizeof work);
  const rondo_device_options options = {RONDO_DEVICE_OPTIONS_INIT, .allocator = &allocator.table, .workers = 1};
  TRY(rondo_device_open(device, &options, &work.devices[0]));
  TRY(rondo_device_open("cpu:1", &options, &work.devices[1]));
  work.weights = test_scorer_weights();
  return serve_divided();
}

/* Teardown may return errors, too. The objects are destroyed in any case. */
static void tear_down(void) {
  rondo_status status = rondo_session_destroy(work.session);
  rondo_weights_destroy(work.weights);
  for (int i = 0; i < 2; i++) status = rondo_device_close(work.devices[i]);
  (void)status;
}

static fault_work tested = {.run = run,
                            .tear_down = tear_down,
                            .is_wrong = &work.wrong,
                            .least = 100,
                            .stride = 7,
                            .other = "cpu",
                            .memory = &allocator};
