/* SPDX-License-Identifier: MIT
 * PR-5: Lets every call of the CUDA driver and every host allocation fail while a session runs sequences of a model
 * with lengths. Either an error is returned, after which the sequence is as before the step, or the results are right.
 * Nothing is left in the driver or in host memory. Each kind of failure is tried at one point in five.
 */
#include "fault/fault_cuda_sweep.h"
#include "support/test_sequences.h"

static test_allocator allocator;
static const size_t lengths[] = {1, 4}, rows[] = {2};

static struct {
  rondo_device *device;
  rondo_session *session;
  test_sequence sequence;
  bool wrong;
} work;

static rondo_status append(size_t positions, rondo_run_mode mode) {
  test_sequence *s = &work.sequence;
  rondo_sequence_info info = {.struct_size = sizeof info};
  test_sequence_fill(s, positions, positions);
  s->request.mode = mode;
  const rondo_status status = rondo_session_run(work.session, "adder", &s->request, NULL);
  if (status == RONDO_OK) work.wrong |= !test_sequence_is_right(s);
  TRY(rondo_sequence_get_info(s->sequence, &info));
  work.wrong |= info.positions != s->positions || info.is_busy;
  return status;
}

static rondo_status record(void) {
  static test_sequence s;
  rondo_status status = RONDO_OK;
  TRY(rondo_session_capture_begin(work.session, "adder"));
  for (size_t i = 0; i < 2 && status == RONDO_OK; i++) {
    test_sequence_fill(&s, lengths[i], 1);
    s.request.rows = rows[0];
    status = rondo_session_run(work.session, "adder", &s.request, NULL);
  }
  const rondo_status ended = rondo_session_capture_end(work.session);
  return status == RONDO_OK ? ended : status;
}

static rondo_status run(const char *name) {
  const rondo_device_options device = {RONDO_DEVICE_OPTIONS_INIT, .workers = 1, .allocator = &allocator.table};
  const rondo_session_options options = {RONDO_SESSION_OPTIONS_INIT, .streams = 1, .max_eager_programs = 1};
  const rondo_model_options model = {
      RONDO_MODEL_OPTIONS_INIT,
      .build_sized = test_build_adder,
      .slots = 2,
      .slot_positions = TEST_MOST_POSITIONS,
      .lengths = lengths,
      .length_count = 2,
      .row_inputs = {.length = "length", .slot = "slot", .start = "start", .positions = "positions", .last = "last"}};
  memset(&work, 0, sizeof work);
  TRY(rondo_device_open(name, &device, &work.device));
  TRY(rondo_session_create(work.device, &options, &work.session));
  TRY(rondo_session_add_model(work.session, "adder", &model));
  TRY(record());
  TRY(rondo_sequence_open(work.session, "adder", &work.sequence.sequence));
  TRY(append(6, RONDO_RUN_RECORDED));
  TRY(append(1, RONDO_RUN_EAGER));
  TRY(append(1, RONDO_RUN_RECORDED));
  TRY(rondo_sequence_close(work.sequence.sequence));
  return rondo_session_remove_model(work.session, "adder");
}

/* Teardown may return errors, too. The objects are destroyed in any case. */
static void tear_down(void) {
  rondo_status status = rondo_session_destroy(work.session);
  status = rondo_device_close(work.device);
  (void)status;
}

static fault_work tested = {.run = run,
                            .tear_down = tear_down,
                            .is_wrong = &work.wrong,
                            .least = 100,
                            .stride = 5,
                            .other = "cpu",
                            .memory = &allocator};
