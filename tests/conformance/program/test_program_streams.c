/* SPDX-License-Identifier: MIT
 * Compiled programs on streams of the caller's, most of which another handle of the device owns (AD-1): order with
 * other work on the stream, several programs on one stream, default streams, lifetimes and refusals.
 */
#include <string.h>

#include "support/rondo_test.h"
#include "support/test_program.h"

enum { COUNT = 6, ROUNDS = 5 };
#define DEFAULT_STREAM(number) ((void *)(uintptr_t)(number))
enum { LEGACY = 1, PER_THREAD = 2 };

/* y = tanh(x) * w, with a state w. */
static rondo_program *make_program(const char *name) {
  rondo_program *program = test_named_program(name);
  const rondo_value x = test_value(program, 'i', "x", 1, COUNT), w = test_value(program, 's', "w", 1, COUNT);
  rondo_value y;
  assert_ok(rondo_op_tanh(program, x, &y));
  assert_ok(rondo_op_mul(program, y, w, &y));
  assert_ok(rondo_program_output(program, "y", y));
  return program;
}

static rondo_compile_options on(rondo_stream *stream, rondo_record_policy record) {
  return (rondo_compile_options){RONDO_COMPILE_OPTIONS_INIT, .record = record, .stream = stream};
}

static rondo_compiled *compile_with(const test_fixture *t, const rondo_compile_options *options) {
  return test_compile(make_program("on streams"), t->device, options);
}

static rondo_compiled *compile_on(const test_fixture *t, rondo_stream *stream, rondo_record_policy record) {
  const rondo_compile_options options = on(stream, record);
  rondo_compiled *compiled = compile_with(t, &options);
  assert_ptr_equal(rondo_compiled_stream(compiled), stream);
  return compiled;
}

static void assert_compile_refused(const test_fixture *t, const rondo_compile_options *options, rondo_status status,
                                   rondo_reason reason) {
  rondo_program *program = make_program("refused");
  rondo_compiled *compiled;
  assert_error(rondo_compile(program, t->device, options, &compiled), status, reason);
  assert_null(compiled);
  rondo_program_destroy(program);
}

static void write_state(rondo_compiled *compiled, float value) {
  float w[COUNT];
  for (int i = 0; i < COUNT; i++) w[i] = value;
  assert_ok(rondo_compiled_write(compiled, "w", w, sizeof w));
}

/* Runs it on zeros and on a large x, of which tanh is 1; y is then w. */
static void assert_state_is_used(rondo_compiled *compiled, float value) {
  float x[COUNT] = {0, 100, 100, 100, 100, 100}, y[COUNT];
  const float expected[COUNT] = {0, value, value, value, value, value};
  assert_ok(rondo_compiled_write(compiled, "x", x, sizeof x));
  assert_ok(rondo_compiled_run(compiled));
  assert_ok(rondo_compiled_read(compiled, "y", y, sizeof y));
  assert_near(y, expected, COUNT, 1e-6f);
}

/* Order ------------------------------------------------------------------------------------------------------------ */

/* The caller's copies before and after each run are on the same stream, and nothing waits in between. */
static void run_between_copies(const test_fixture *t, rondo_record_policy record) {
  static float x[ROUNDS][COUNT], y[ROUNDS][COUNT];
  rondo_compiled *compiled = compile_on(t, test_adopted_stream(t->device, NULL), record);
  rondo_stream *stream = rondo_compiled_stream(compiled);
  void *const input = test_compiled_value(compiled, 'i', "x").address;
  const void *const output = test_compiled_value(compiled, 'o', "y").address;
  write_state(compiled, 2);
  for (int i = 0; i < ROUNDS; i++) {
    x[i][i] = 100;
    assert_ok(rondo_copy_async(stream, input, x[i], sizeof x[i]));
    assert_ok(rondo_compiled_run(compiled));
    assert_ok(rondo_copy_async(stream, y[i], output, sizeof y[i]));
  }
  assert_ok(rondo_stream_synchronize(stream));
  for (int i = 0; i < ROUNDS; i++)
    for (int k = 0; k < COUNT; k++) assert_float_equal(y[i][k], (k == i ? 2.0f : 0.0f), 1e-6f);
}

TEST(test_ad1_programs_run_in_order_with_the_callers_work) {
  run_between_copies(t, RONDO_RECORD_ALWAYS);
  run_between_copies(t, RONDO_RECORD_NEVER);
}

/* A run comes after what the owner enqueued. */
TEST_WORKERS(test_ad1_programs_wait_for_the_owners_work) {
  test_skip_if_serial();
  rondo_stream *theirs, *stream = test_adopted_stream(t->device, &theirs);
  rondo_compiled *compiled = compile_on(t, stream, RONDO_RECORD_ALWAYS);
  test_gate *gate = test_gate_make();
  uint32_t calls = 0;
  test_gate_hold(gate, theirs);
  assert_ok(rondo_compiled_run(compiled));
  assert_ok(rondo_host_async(stream, test_host_count, &calls));
  assert_int_equal(rondo_stream_query(stream), RONDO_NOT_READY);
  test_gate_open(gate);
  assert_ok(rondo_compiled_synchronize(compiled));
  assert_int_equal(calls, 1);
}

/* A failure of the caller's work is returned to who waits. */
TEST(test_ad1_programs_return_failures_of_their_stream) {
  rondo_stream *stream = test_adopted_stream(t->device, NULL);
  rondo_compiled *compiled = compile_on(t, stream, RONDO_RECORD_ALWAYS);
  write_state(compiled, 3);
  assert_ok(rondo_host_async(stream, test_host_fails, NULL));
  assert_fails(rondo_compiled_synchronize(compiled), RONDO_EXECUTION_FAILED);
  assert_state_is_used(compiled, 3);
}

/* Several programs ------------------------------------------------------------------------------------------------- */

TEST(test_ad1_programs_share_on_a_stream) {
  rondo_stream *stream = test_adopted_stream(t->device, NULL), *other = test_stream(t, "other");
  rondo_compiled *first = compile_on(t, stream, RONDO_RECORD_ALWAYS),
                 *second = compile_on(t, stream, RONDO_RECORD_NEVER);
  rondo_compile_options options = on(stream, RONDO_RECORD_ALWAYS);
  options.share = first;
  rondo_compiled *third = compile_with(t, &options);
  options.stream = NULL;
  rondo_compiled *fourth = compile_with(t, &options);
  options.stream = other;
  assert_compile_refused(t, &options, RONDO_INVALID_ARGUMENT, RONDO_REASON_BAD_OPTIONS);
  assert_message("share_states_only");
  options.share_states_only = true;
  rondo_compiled *fifth = compile_with(t, &options);
  assert_ptr_equal(rondo_compiled_stream(third), stream);
  assert_ptr_equal(rondo_compiled_stream(fourth), stream);
  assert_ptr_equal(rondo_compiled_stream(fifth), other);
  write_state(first, 4);
  write_state(second, 5);
  assert_ok(rondo_compiled_synchronize(first));
  assert_ok(rondo_compiled_destroy(first));
  assert_state_is_used(third, 4);
  assert_state_is_used(second, 5);
  assert_state_is_used(fourth, 4);
  assert_state_is_used(fifth, 4);
}

TEST(test_ad1_recompiled_programs_keep_their_stream) {
  rondo_stream *stream = test_adopted_stream(t->device, NULL);
  rondo_compiled *compiled = compile_on(t, stream, RONDO_RECORD_ALWAYS);
  write_state(compiled, 6);
  rondo_program *program = make_program("again");
  assert_ok(rondo_compiled_recompile(compiled, program, NULL));
  rondo_program_destroy(program);
  assert_ptr_equal(rondo_compiled_stream(compiled), stream);
  assert_state_is_used(compiled, 6);
}

/* Lifetime and refusals -------------------------------------------------------------------------------------------- */

TEST(test_ad1_streams_outlive_programs) {
  rondo_stream *stream = test_stream(t, "mine");
  rondo_compiled *first = compile_on(t, stream, RONDO_RECORD_ALWAYS),
                 *second = compile_on(t, stream, RONDO_RECORD_NEVER);
  uint32_t calls = 0;
  for (int i = 0; i < 2; i++) {
    assert_error(rondo_stream_destroy(stream), RONDO_INVALID_STATE, RONDO_REASON_STILL_IN_USE);
    assert_message("stream 'mine'");
    assert_message("rondo_compiled_destroy");
    assert_ok(rondo_compiled_destroy(i == 0 ? first : second));
  }
  assert_ok(rondo_host_async(stream, test_host_count, &calls));
  assert_ok(rondo_stream_synchronize(stream));
  assert_int_equal(calls, 1);
  test_stream_destroy(stream);
}

TEST(test_ad1_streams_that_programs_cannot_use) {
  const char *const other_name = test_device_is("cuda") ? "cuda:0" : test_device_is("cpu:check") ? "cpu:check" : "cpu";
  rondo_device *other = test_device(other_name, NULL);
  rondo_stream *theirs, *stream = test_stream(t, "captured");
  assert_ok(rondo_stream_create(other, NULL, &theirs));
  rondo_compile_options options = on(theirs, RONDO_RECORD_ALWAYS);
  assert_compile_refused(t, &options, RONDO_INVALID_ARGUMENT, RONDO_REASON_OTHER_DEVICE);
  test_stream_destroy(theirs);
  options.stream = stream;
  assert_ok(rondo_capture_begin(stream, RONDO_CAPTURE_THREAD_LOCAL));
  assert_compile_refused(t, &options, RONDO_CAPTURE_REFUSED, RONDO_REASON_UNSUPPORTED_CALL);
  assert_message("end the capture first");
  assert_ok(rondo_host_async(stream, test_host_nothing, NULL));
  assert_int_equal(test_node_count(test_capture_end(stream)), 1); /* it went on */
  rondo_compiled *compiled = compile_on(t, stream, RONDO_RECORD_ALWAYS);
  write_state(compiled, 1);
  assert_state_is_used(compiled, 1);

  rondo_program *program = make_program("divided");
  const rondo_divide_options divide = {RONDO_DIVIDE_OPTIONS_INIT, .compile = &options};
  rondo_divided *divided;
  assert_error(rondo_compile_divided(program, &t->device, 1, &divide, &divided), RONDO_INVALID_ARGUMENT,
               RONDO_REASON_BAD_OPTIONS);
  rondo_program_destroy(program);
}

static void run_elsewhere(void *compiled) {
  assert_error(rondo_compiled_run(compiled), RONDO_INVALID_STATE, RONDO_REASON_WRONG_THREAD);
}

static rondo_stream *adopt_default(const test_fixture *t, uintptr_t number) {
  rondo_stream *stream;
  assert_ok(rondo_stream_adopt(t->device, DEFAULT_STREAM(number), NULL, &stream));
  return stream;
}

TEST(test_ad1_programs_on_default_streams) {
  if (!test_device_is("cuda")) skip();
  rondo_stream *legacy = adopt_default(t, LEGACY), *mine = adopt_default(t, PER_THREAD);
  const rondo_compile_options options = on(legacy, RONDO_RECORD_ALWAYS);
  assert_compile_refused(t, &options, RONDO_CAPTURE_REFUSED, RONDO_REASON_UNSUPPORTED_CALL);
  assert_message("use another stream");
  rondo_compiled *eager = compile_on(t, legacy, RONDO_RECORD_NEVER),
                 *recorded = compile_on(t, mine, RONDO_RECORD_ALWAYS);
  write_state(eager, 7);
  write_state(recorded, 8);
  assert_state_is_used(eager, 7);
  assert_state_is_used(recorded, 8);
  test_on_thread(run_elsewhere, recorded);
  assert_state_is_used(recorded, 8);
  assert_ok(rondo_compiled_destroy(eager));
  assert_ok(rondo_compiled_destroy(recorded));
  test_stream_destroy(legacy);
  test_stream_destroy(mine);
}
