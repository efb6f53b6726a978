/* SPDX-License-Identifier: MIT
 * PR-5: Lets every host allocation fail while a model with lengths and sequences is added, recorded and used. The error
 * is OUT_OF_MEMORY, nothing is left, requests that are answered are right, and a failed step appends nothing.
 */
#include <string.h>

#include "fault/fault_allocations.h"
#include "support/test_sequences.h"

static struct {
  rondo_session *session;
  test_sequence sequence;
} made;

static rondo_status add(void) {
  static const size_t history[] = {1, 1, 1, 2}, lengths[] = {1, 3, 4, 1};
  const rondo_model_options options = {
      RONDO_MODEL_OPTIONS_INIT,
      .build_sized = test_build_adder,
      .slots = 3,
      .slot_positions = TEST_MOST_POSITIONS,
      .history = history,
      .history_lengths = lengths,
      .history_count = 4,
      .max_lengths = 2,
      .max_sizes = 2,
      .evict_idle = true,
      .row_inputs = {.length = "length", .slot = "slot", .start = "start", .positions = "positions", .last = "last"}};
  return rondo_session_add_model(made.session, "adder", &options);
}

static rondo_status append(size_t positions, rondo_run_mode mode) {
  test_sequence *s = &made.sequence;
  test_sequence_fill(s, positions, positions);
  s->request.mode = mode;
  const rondo_status status = rondo_session_run(made.session, "adder", &s->request, NULL);
  if (status == RONDO_OK) assert_true(test_sequence_is_right(s));
  rondo_sequence_info info = {.struct_size = sizeof info};
  assert_ok(rondo_sequence_get_info(s->sequence, &info));
  assert_int_equal(info.positions, s->positions);
  assert_false(info.is_busy);
  return status;
}

static rondo_status go_on(void) {
  test_sequence *s = &made.sequence;
  test_sequence_fill(s, 2, 1);
  s->request.next = test_sequence_next;
  s->request.user = s;
  s->steps_left = 3;
  const rondo_status status = rondo_session_run(made.session, "adder", &s->request, NULL);
  assert_int_equal(s->wrong, 0);
  return status;
}

static rondo_status do_all(fault_rig *rig) {
  const rondo_session_options options = {RONDO_SESSION_OPTIONS_INIT, .streams = 1, .max_eager_programs = 2};
  TRY(rondo_session_create(rig->device, &options, &made.session));
  TRY(add());
  TRY(rondo_sequence_open(made.session, "adder", &made.sequence.sequence));
  TRY(append(2, RONDO_RUN_EAGER));
  TRY(append(9, RONDO_RUN_EAGER));
  TRY(rondo_session_capture(made.session, "adder"));
  TRY(append(1, RONDO_RUN_RECORDED));
  TRY(append(11, RONDO_RUN_RECORDED));
  TRY(go_on());
  TRY(rondo_sequence_close(made.sequence.sequence));
  return rondo_session_remove_model(made.session, "adder");
}

static void destroy(void) {
  assert_ok(rondo_session_destroy(made.session));
  memset(&made, 0, sizeof made);
}

static const fault_work all = {.run = do_all, .destroy = destroy};

UNIT_TEST(test_pr5_an_allocation_fails) { fault_allocations(&all, false, 3); }

UNIT_TEST(test_pr5_all_allocations_fail_from_then_on) { fault_allocations(&all, true, 11); }
