/* SPDX-License-Identifier: MIT
 * Lets every call of the CUDA driver, and every host allocation, fail while a session serves a model on one device
 * (SE-5, SE-8). Several requests run at once, some with inputs in host memory of the device, some padded; by several
 * graphs and eagerly, with a state written in between, and timed. Either an error is returned or the answers are right.
 * Nothing is left in the driver or in host memory, and nothing is misused. Each kind of failure is tried at one point
 * in five, each starting at a different point.
 */
#include "fault/fault_cuda_sweep.h"
#include "support/test_session.h"

enum { TOGETHER = 3 };

static test_allocator allocator;
static const size_t sizes[] = {16, 8};

static struct {
  rondo_device *device;
  rondo_weights *weights;
  rondo_session *session;
  test_request requests[TOGETHER];
  rondo_ticket tickets[TOGETHER];
  void *pinned[TOGETHER][2];
  size_t submitted;
  bool wrong;
} work;

/* The first request has both inputs in host memory of the device, the second request one, the third none. */
static rondo_status move_inputs(size_t index) {
  test_request *r = &work.requests[index];
  const size_t bytes[] = {TEST_FEATURES * sizeof *r->x, sizeof *r->ids};
  for (size_t i = 0; i + index < 2; i++) {
    void **memory = &work.pinned[index][i];
    if (*memory == NULL) TRY(rondo_host_malloc(work.device, TEST_MOST_ROWS * bytes[i], memory));
    memcpy(*memory, r->inputs[i], r->request.rows * bytes[i]);
    r->inputs[i] = *memory;
  }
  return RONDO_OK;
}

static rondo_status submit(size_t index, size_t rows, rondo_run_mode mode) {
  test_request *r = &work.requests[index];
  test_request_fill(r, rows, 10 * rows + index);
  TRY(move_inputs(index));
  r->request.mode = mode;
  TRY(rondo_session_submit(work.session, "scorer", &r->request, &work.tickets[index]));
  work.submitted++;
  return RONDO_OK;
}

static rondo_status submit_all(const size_t *rows, rondo_run_mode mode) {
  for (size_t i = 0; i < TOGETHER; i++) TRY(submit(i, rows[i], mode));
  return RONDO_OK;
}

/* Waits for all requests that were submitted, whatever failed. */
static void await_all(rondo_status *kept) {
  for (size_t i = 0; i < work.submitted; i++) {
    const rondo_status status = rondo_ticket_wait(work.tickets[i], NULL);
    work.wrong |= status == RONDO_OK && !test_request_is_right(&work.requests[i]);
    if (*kept == RONDO_OK) *kept = status;
  }
  work.submitted = 0;
}

/* The requests wait for the only stream, so that they run as one batch. */
static rondo_status serve(const size_t *rows, rondo_run_mode mode) {
  rondo_stream *stream;
  TRY(rondo_session_acquire_stream(work.session, "scorer", 0, &stream));
  rondo_status status = submit_all(rows, mode);
  const rondo_status given = rondo_session_release_stream(work.session, 0);
  await_all(&status);
  return status == RONDO_OK ? given : status;
}

static rondo_status record(void) {
  const double us[] = {11, 10};
  static test_request r;
  rondo_status status = RONDO_OK;
  TRY(rondo_session_capture_begin(work.session, "scorer"));
  for (size_t i = 0; i < 2 && status == RONDO_OK; i++) {
    test_request_fill(&r, sizes[i], 1);
    status = rondo_session_run(work.session, "scorer", &r.request, NULL);
  }
  const rondo_status ended = rondo_session_capture_end(work.session);
  TRY(status);
  TRY(ended);
  return rondo_session_set_times(work.session, "scorer", us, NULL, 2, 1);
}

static rondo_status write_state(void) {
  rondo_weight w;
  TRY(rondo_weights_find(work.weights, "w", &w));
  return rondo_session_write(work.session, "scorer", "w", w.data, w.bytes);
}

static rondo_status run(const char *device) {
  static const size_t padded[] = {3, 4, 2}, whole[] = {8, 3, 5}, split[] = {20, 9, 1};
  const rondo_device_options options = {RONDO_DEVICE_OPTIONS_INIT, .allocator = &allocator.table, .workers = 1};
  const rondo_session_options one = {RONDO_SESSION_OPTIONS_INIT, .streams = 1, .max_eager_programs = 1, .timed = true};
  memset(&work, 0, sizeof work);
  work.weights = test_scorer_weights();
  const rondo_model_options model = {RONDO_MODEL_OPTIONS_INIT, .build = test_build_scorer, .weights = work.weights};
  TRY(rondo_device_open(device, &options, &work.device));
  TRY(rondo_session_create(work.device, &one, &work.session));
  TRY(rondo_session_add_model(work.session, "scorer", &model));
  TRY(record());
  TRY(serve(padded, RONDO_RUN_RECORDED));
  TRY(write_state());
  TRY(serve(whole, RONDO_RUN_RECORDED));
  TRY(serve(split, RONDO_RUN_RECORDED));
  TRY(serve(padded, RONDO_RUN_EAGER));
  return rondo_session_destroy_graphs(work.session, "scorer");
}

/* Teardown may return errors, too. The objects are destroyed in any case. */
static void tear_down(void) {
  rondo_status status = rondo_session_destroy(work.session);
  for (size_t i = 0; i < TOGETHER * 2; i++)
    if (work.pinned[i / 2][i % 2] != NULL) status = rondo_host_free(work.device, work.pinned[i / 2][i % 2]);
  rondo_weights_destroy(work.weights);
  status = rondo_device_close(work.device);
  (void)status;
}

/* Asserts that the run took all paths. */
static void assert_whole(void) {
  const rondo_model_info info = test_model_info(work.session, "scorer");
  assert_int_equal(info.batched, 3 + 3 + 2);
  assert_int_equal(info.split, 2); /* the request of 20 rows, and the one of 1 row in the same batch */
  assert_int_equal(info.eager, TOGETHER);
}

static fault_work tested = {.run = run,
                            .tear_down = tear_down,
                            .assert_whole = assert_whole,
                            .is_wrong = &work.wrong,
                            .least = 100,
                            .stride = 5,
                            .other = "cpu",
                            .memory = &allocator};
