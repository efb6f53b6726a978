/* SPDX-License-Identifier: MIT
 * AD-1: Lets every call of the CUDA driver and every host allocation fail while a session serves a model, and a
 * compiled program runs, on streams that another handle of the device owns; also allocations on a CPU device. Either an
 * error is returned or the answers are right. The streams are the owner's again afterwards, nothing is left in the
 * driver or in host memory, and nothing is misused. Each kind of failure is tried at one point in three.
 */
#include "fault/fault_cuda_sweep.h"
#include "support/test_session.h"

enum { STREAMS = 2, ROWS = 8 };

static test_allocator allocator;

static struct {
  rondo_device *owner, *device;
  rondo_stream *made[STREAMS], *adopted[STREAMS];
  rondo_weights *weights;
  rondo_session *session;
  rondo_program *program;
  rondo_compiled *compiled;
  float y[2];
  bool wrong;
} work;

static rondo_status make(const char *name) {
  const rondo_device_options options = {RONDO_DEVICE_OPTIONS_INIT, .workers = 1, .allocator = &allocator.table};
  TRY(rondo_device_open(name, &options, &work.owner));
  TRY(rondo_device_open(name, &options, &work.device));
  for (int i = 0; i < STREAMS; i++) {
    TRY(rondo_stream_create(work.owner, NULL, &work.made[i]));
    TRY(rondo_stream_adopt(work.device, rondo_stream_native(work.made[i]), NULL, &work.adopted[i]));
  }
  return RONDO_OK;
}

static rondo_status request(size_t rows, rondo_run_mode mode) {
  static test_request r;
  rondo_answer answer = {.struct_size = sizeof answer};
  test_request_fill(&r, rows, rows);
  r.request.mode = mode;
  TRY(rondo_session_run(work.session, "scorer", &r.request, &answer));
  work.wrong |= answer.mode != RONDO_RUN_CAPTURED && !test_request_is_right(&r);
  return RONDO_OK;
}

static rondo_status record(void) {
  TRY(rondo_session_capture_begin(work.session, "scorer"));
  const rondo_status status = request(ROWS, RONDO_RUN_AUTO);
  const rondo_status ended = rondo_session_capture_end(work.session);
  return status == RONDO_OK ? ended : status;
}

static rondo_status serve(void) {
  const rondo_session_options options = {RONDO_SESSION_OPTIONS_INIT, .streams = 1, .max_eager_programs = 1,
                                         .stream_list = work.adopted};
  const rondo_model_options model = {RONDO_MODEL_OPTIONS_INIT, .build = test_build_scorer, .weights = work.weights};
  TRY(rondo_session_create(work.device, &options, &work.session));
  TRY(rondo_session_add_model(work.session, "scorer", &model));
  TRY(record());
  TRY(request(5, RONDO_RUN_RECORDED));
  TRY(request(3, RONDO_RUN_EAGER));
  TRY(rondo_session_remove_model(work.session, "scorer"));
  rondo_session *session = work.session;
  work.session = NULL;
  return rondo_session_destroy(session);
}

/* y = tanh(x). */
static rondo_status compute(void) {
  const rondo_program_options of_program = {RONDO_PROGRAM_OPTIONS_INIT, .allocator = &allocator.table};
  const rondo_compile_options options = {RONDO_COMPILE_OPTIONS_INIT, .stream = work.adopted[1]};
  const float x[] = {0, 100};
  rondo_value value;
  TRY(rondo_program_create(&of_program, &work.program));
  TRY(rondo_program_input(work.program, "x", RONDO_F32, (const size_t[]){2}, 1, &value));
  TRY(rondo_op_tanh(work.program, value, &value));
  TRY(rondo_program_output(work.program, "y", value));
  TRY(rondo_compile(work.program, work.device, &options, &work.compiled));
  TRY(rondo_compiled_write(work.compiled, "x", x, sizeof x));
  TRY(rondo_compiled_run(work.compiled));
  TRY(rondo_compiled_read(work.compiled, "y", work.y, sizeof work.y));
  work.wrong |= work.y[0] != 0 || work.y[1] != 1;
  return RONDO_OK;
}

static rondo_status run(const char *name) {
  memset(&work, 0, sizeof work);
  work.weights = test_scorer_weights();
  TRY(make(name));
  TRY(serve());
  TRY(compute());
  for (int i = 0; i < STREAMS; i++) TRY(rondo_stream_synchronize(work.made[i]));
  return RONDO_OK;
}

/* Teardown may return errors, too. The objects are destroyed in any case. */
static void tear_down(void) {
  rondo_status status = rondo_session_destroy(work.session);
  status = rondo_compiled_destroy(work.compiled);
  rondo_program_destroy(work.program);
  for (int i = 0; i < STREAMS; i++) {
    status = rondo_stream_destroy(work.adopted[i]);
    status = rondo_stream_destroy(work.made[i]);
  }
  rondo_weights_destroy(work.weights);
  status = rondo_device_close(work.device);
  status = rondo_device_close(work.owner);
  (void)status;
}

static fault_work tested = {.run = run,
                            .tear_down = tear_down,
                            .is_wrong = &work.wrong,
                            .least = 100,
                            .stride = 3,
                            .other = "cpu",
                            .memory = &allocator};
