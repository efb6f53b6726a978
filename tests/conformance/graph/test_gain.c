/* SPDX-License-Identifier: MIT
 * The gain of recording (FW-8): costs of the device, measured or given; estimates of work; programs recorded always,
 * never or where it pays. Decisions are tested with given costs, so that no test depends on a clock.
 */
#include <pthread.h>
#include <string.h>

#include "support/rondo_test.h"
#include "support/test_program.h"

/* With these nothing pays, and with those everything. */
static const rondo_costs dear = {RONDO_COSTS_INIT, .launch_host = 1e9, .launch_latency = 1e9};
static const rondo_costs cheap = {RONDO_COSTS_INIT, .stream_kernel = 1e9};

static const rondo_value none = {0};

/* Costs ------------------------------------------------------------------------------------------------------------ */

/* But for what inputs add, of which zeros are the library's own. */
static void assert_costs(const rondo_costs *actual, const rondo_costs *expected) {
  const size_t from = offsetof(rondo_costs, stream_host), to = offsetof(rondo_costs, input_patched);
  assert_memory_equal((const char *)actual + from, (const char *)expected + from, to - from);
}

/* On a CPU device, whose lines are not held back, a kernel is not said to cost the device what the host takes of it. */
TEST(test_fw8_costs_of_the_device_are_not_the_hosts) {
  rondo_costs costs = {RONDO_COSTS_INIT};
  if (test_device_is("cuda")) skip();
  for (int i = 0; i < 5; i++) {
    assert_ok(rondo_device_set_costs(t->device, NULL));
    assert_ok(rondo_device_get_costs(t->device, &costs));
    assert_true(costs.stream_kernel <= costs.launch_kernel || costs.stream_kernel < costs.stream_host_kernel / 2);
  }
}

TEST(test_fw8_costs_are_measured_once) {
  rondo_costs first = {RONDO_COSTS_INIT}, second = {RONDO_COSTS_INIT};
  rondo_device_statistics before = {0}, after = {0};
  assert_ok(rondo_device_get_costs(t->device, &first));
  assert_ok(rondo_device_get_statistics(t->device, &before));
  assert_ok(rondo_device_get_costs(t->device, &second));
  assert_ok(rondo_device_get_statistics(t->device, &after));
  assert_costs(&second, &first);
  assert_int_equal(after.launches, before.launches);
  assert_true(first.launch_host + first.launch_latency > 0);
  assert_true(first.record + first.record_node > 0);
}

typedef struct asker {
  rondo_device *device;
  pthread_t thread;
  rondo_costs costs;
  rondo_status status;
} asker;

static void *ask(void *argument) {
  asker *self = argument;
  self->costs = (rondo_costs){RONDO_COSTS_INIT};
  self->status = rondo_device_get_costs(self->device, &self->costs);
  return NULL;
}

TEST(test_fw8_threads_that_ask_at_once_get_the_same_costs) {
  asker askers[4] = {{0}};
  for (size_t i = 0; i < 4; i++) {
    askers[i].device = t->device;
    assert_int_equal(pthread_create(&askers[i].thread, NULL, ask, &askers[i]), 0);
  }
  for (size_t i = 0; i < 4; i++) assert_int_equal(pthread_join(askers[i].thread, NULL), 0);
  for (size_t i = 0; i < 4; i++) {
    assert_ok(askers[i].status);
    assert_costs(&askers[i].costs, &askers[0].costs);
  }
}

TEST(test_fw8_costs_can_be_given) {
  rondo_costs costs = {RONDO_COSTS_INIT};
  assert_ok(rondo_device_set_costs(t->device, &dear));
  assert_ok(rondo_device_get_costs(t->device, &costs));
  assert_costs(&costs, &dear);
  rondo_costs wrong = dear;
  wrong.record_node = -1;
  assert_invalid(rondo_device_set_costs(t->device, &wrong), RONDO_REASON_OUT_OF_RANGE);
  assert_message("record_node is -1 microseconds");
  assert_ok(rondo_device_get_costs(t->device, &costs));
  assert_costs(&costs, &dear);
  assert_ok(rondo_device_set_costs(t->device, NULL));
  assert_ok(rondo_device_get_costs(t->device, &costs));
  assert_true(costs.launch_host < dear.launch_host);
  const double own = costs.input_copied_kib;
  assert_true(own > 0 && costs.input_patched_node > 0);
  costs.input_copied_kib = 2 * own;
  assert_ok(rondo_device_set_costs(t->device, &costs));
  assert_ok(rondo_device_get_costs(t->device, &costs));
  assert_true(costs.input_copied_kib == 2 * own);
  assert_ok(rondo_device_set_costs(t->device, &dear));
  assert_ok(rondo_device_get_costs(t->device, &costs));
  assert_true(costs.input_copied_kib == own);
  costs.input_queued_each = -1;
  assert_invalid(rondo_device_set_costs(t->device, &costs), RONDO_REASON_OUT_OF_RANGE);
  assert_invalid(rondo_device_set_costs(NULL, &dear), RONDO_REASON_NULL_ARGUMENT);
  assert_invalid(rondo_device_get_costs(t->device, NULL), RONDO_REASON_NULL_ARGUMENT);
}

/* Nothing is measured during a capture, and the capture continues. */
TEST(test_fw8_costs_leave_captures_alone) {
  rondo_costs costs = {RONDO_COSTS_INIT};
  rondo_stream *other = test_stream(t, "other");
  assert_ok(rondo_capture_begin(other, RONDO_CAPTURE_GLOBAL));
  assert_error(rondo_device_get_costs(t->device, &costs), RONDO_CAPTURE_REFUSED, RONDO_REASON_UNSUPPORTED_CALL);
  assert_message("the capture stays valid");
  assert_ok(rondo_device_set_costs(t->device, &dear));
  assert_ok(rondo_device_get_costs(t->device, &costs));
  assert_int_equal(test_capture_info(other).state, RONDO_CAPTURE_ACTIVE);
  test_graph_destroy(test_capture_end(other));
}

/* Estimates -------------------------------------------------------------------------------------------------------- */

typedef struct counted_work {
  uint32_t *word;
  uint32_t runs, kernels;
  rondo_status fails; /* with the second run */
} counted_work;

static rondo_status run_counted(rondo_stream *stream, void *user) {
  counted_work *work = user;
  if (++work->runs == 2 && work->fails != RONDO_OK) return work->fails;
  const rondo_fill fill = {.dst = work->word, .value = work->runs, .element_bytes = 4, .width = 1};
  for (uint32_t i = 0; i < work->kernels; i++) {
    const rondo_status status = rondo_fill_async(stream, &fill);
    if (status != RONDO_OK) return status;
  }
  return RONDO_OK;
}

TEST(test_fw8_work_is_measured_as_it_is) {
  counted_work work = {.word = test_words(t, 1), .kernels = 5};
  rondo_gain gain = {.struct_size = sizeof gain};
  assert_ok(rondo_device_set_costs(t->device, &cheap));
  assert_ok(rondo_gain_measure(t->stream, run_counted, &work, 3, &gain));
  assert_int_equal(work.runs, 1 + 2 * 3);
  assert_int_equal(test_word(t, work.word), work.runs);
  assert_int_equal(gain.works, 5);
  assert_false(gain.is_measured);
  assert_true(gain.host_us > 0 && gain.total_us >= gain.host_us);
  assert_true(gain.device_us >= 0 && gain.device_us <= gain.total_us);
  assert_true(rondo_gain_pays(&gain, 0, 0));
  assert_ok(rondo_device_set_costs(t->device, &dear));
  assert_ok(rondo_gain_measure(t->stream, run_counted, &work, 1, &gain));
  assert_false(rondo_gain_pays(&gain, 0, 0));
  assert_int_equal(gain.runs_to_repay, 0);
  work.runs = 0;
  assert_ok(rondo_gain_measure(t->stream, run_counted, &work, 0, &gain));
  assert_true(work.runs >= 3 && work.runs <= 51);
  test_words_free(t, work.word);
}

/* Recording saves at most the host's calls and the costs of streams: a device time that was measured in a quieter
 * moment than the whole run predicts no gain. */
TEST(test_fw8_runs_that_are_not_alike_predict_no_gain) {
  const rondo_costs costs = {RONDO_COSTS_INIT, .stream_latency = 2, .stream_kernel = 1.5,
                             .launch_host = 1, .launch_latency = 3, .launch_kernel = 1};
  rondo_gain gain = {.struct_size = sizeof gain, .works = 16, .host_us = 5, .device_us = 2500, .total_us = 8705};
  assert_ok(rondo_gain_estimate(&costs, &gain));
  assert_true(gain.recorded_total_us == 8705 - (5 + 2 + 16 * 0.5));
  gain.device_us = 8700; /* alike: 3 + 16 + 8700 - 16 * 1.5 */
  assert_ok(rondo_gain_estimate(&costs, &gain));
  assert_true(gain.recorded_total_us == 8695);
}

/* More than the stream's queue holds: the block ends by itself. */
TEST(test_fw8_much_work_is_not_held_back_for_ever) {
  counted_work work = {.word = test_words(t, 1), .kernels = 3000};
  rondo_gain gain = {.struct_size = sizeof gain};
  assert_ok(rondo_device_set_costs(t->device, &cheap));
  assert_ok(rondo_gain_measure(t->stream, run_counted, &work, 1, &gain));
  assert_int_equal(gain.works, 3000);
  test_words_free(t, work.word);
}

TEST(test_fw8_what_cannot_be_measured_is_refused) {
  counted_work work = {.word = test_words(t, 1), .kernels = 1, .fails = RONDO_LIMIT_EXCEEDED};
  rondo_gain gain = {.struct_size = sizeof gain};
  assert_ok(rondo_device_set_costs(t->device, &cheap));
  assert_error(rondo_gain_measure(t->stream, run_counted, &work, 2, &gain), RONDO_LIMIT_EXCEEDED,
               RONDO_REASON_HOST_FUNCTION_FAILED);
  assert_message("the work returned LIMIT_EXCEEDED");
  work.fails = RONDO_OK;
  assert_invalid(rondo_gain_measure(t->stream, run_counted, &work, 1001, &gain), RONDO_REASON_OUT_OF_RANGE);
  assert_invalid(rondo_gain_measure(t->stream, NULL, &work, 1, &gain), RONDO_REASON_NULL_ARGUMENT);
  assert_invalid(rondo_gain_measure(NULL, run_counted, &work, 1, &gain), RONDO_REASON_NULL_ARGUMENT);
  assert_invalid(rondo_gain_estimate(NULL, &gain), RONDO_REASON_NULL_ARGUMENT);
  assert_ok(rondo_capture_begin(t->stream, RONDO_CAPTURE_THREAD_LOCAL));
  assert_error(rondo_gain_measure(t->stream, run_counted, &work, 1, &gain), RONDO_CAPTURE_REFUSED,
               RONDO_REASON_UNSUPPORTED_CALL);
  test_graph_destroy(test_capture_end(t->stream));
  assert_ok(rondo_gain_measure(t->stream, run_counted, &work, 1, &gain));
  test_words_free(t, work.word);
}

/* Programs --------------------------------------------------------------------------------------------------------- */

/* w -= rate * gradient of the mean square of (x w). */
static rondo_program *make_program(void) {
  rondo_program *program = test_named_program("small");
  rondo_value x, w, rate, zeros, y;
  assert_ok(rondo_program_input(program, "x", RONDO_F32, (const size_t[]){2, 3}, 2, &x));
  assert_ok(rondo_program_input(program, "zeros", RONDO_F32, (const size_t[]){2, 4}, 2, &zeros));
  assert_ok(rondo_program_state(program, "w", RONDO_F32, (const size_t[]){3, 4}, 2, &w));
  assert_ok(rondo_program_cell(program, "rate", 0.5f, &rate));
  assert_ok(rondo_op_matmul(program, x, w, none, &y));
  assert_ok(rondo_op_tanh(program, y, &y));
  assert_ok(rondo_op_mse(program, y, zeros, RONDO_COMBINE_MEAN, &y));
  assert_ok(rondo_program_output(program, "loss", y));
  assert_ok(rondo_program_sgd(program, y, &(rondo_sgd_options){RONDO_SGD_OPTIONS_INIT, .learning_rate = rate}));
  return program;
}

static rondo_compiled *compile(test_fixture *t, rondo_record_policy policy) {
  const rondo_compile_options options = {RONDO_COMPILE_OPTIONS_INIT, .record = policy};
  rondo_program *program = make_program();
  return test_compile(program, t->device, &options);
}

static void write_inputs(rondo_compiled *compiled) {
  float x[6], w[12];
  for (size_t i = 0; i < 6; i++) x[i] = (float)i - 2;
  for (size_t i = 0; i < 12; i++) w[i] = 0.1f * (float)i;
  assert_ok(rondo_compiled_write(compiled, "x", x, sizeof x));
  assert_ok(rondo_compiled_write(compiled, "w", w, sizeof w));
}

static void train(rondo_compiled *compiled, float losses[3]) {
  for (size_t i = 0; i < 3; i++) {
    assert_ok(rondo_compiled_run(compiled));
    assert_ok(rondo_compiled_read(compiled, "loss", &losses[i], sizeof losses[i]));
  }
}

/* Given costs decide what is recorded, with the reason; losses are the same in both modes. */
static void assert_recorded(test_fixture *t, const rondo_costs *costs, rondo_record_policy policy,
                            rondo_eager_reason reason) {
  static float first[3];
  float losses[3];
  assert_ok(rondo_device_set_costs(t->device, costs));
  rondo_compiled *compiled = compile(t, policy);
  rondo_compiled_info info = test_compiled_info(compiled);
  assert_int_equal(info.eager_reason, reason);
  assert_int_equal(rondo_compiled_exec(compiled) == NULL, reason != RONDO_EAGER_NONE);
  assert_int_equal(info.nodes > 0, reason == RONDO_EAGER_NONE);
  write_inputs(compiled);
  train(compiled, losses);
  if (first[0] == 0) memcpy(first, losses, sizeof first); /* NOLINT: of this device */
  assert_memory_equal(losses, first, sizeof first);
  assert_true(losses[2] < losses[0]);
  assert_ok(rondo_compiled_destroy(compiled));
}

TEST(test_fw8_programs_are_recorded_where_it_pays) {
  assert_recorded(t, &dear, RONDO_RECORD_ALWAYS, RONDO_EAGER_NONE);
  assert_recorded(t, &cheap, RONDO_RECORD_NEVER, RONDO_EAGER_REQUESTED);
  assert_recorded(t, &dear, RONDO_RECORD_AUTO, RONDO_EAGER_NO_GAIN);
  assert_recorded(t, &cheap, RONDO_RECORD_AUTO, RONDO_EAGER_NONE);
}

TEST(test_fw8_programs_can_ask_for_more) {
  rondo_program *program = make_program();
  rondo_compile_options options = {RONDO_COMPILE_OPTIONS_INIT, .record = RONDO_RECORD_AUTO, .expected_runs = 1};
  rondo_costs costs = cheap;
  costs.record = 1e9; /* every run gains, but a thousand seconds are not had back by one */
  assert_ok(rondo_device_set_costs(t->device, &costs));
  rondo_compiled *compiled = test_compile_kept(program, t->device, &options);
  assert_int_equal(test_compiled_info(compiled).eager_reason, RONDO_EAGER_NO_GAIN);
  assert_ok(rondo_compiled_destroy(compiled));
  options.least_gain = 0.5;
  assert_invalid(rondo_compile(program, t->device, &options, &compiled), RONDO_REASON_OUT_OF_RANGE);
  assert_message("least_gain is 0.5: pass at least 1, or 0 for the default");
  assert_null(compiled);
  options = (rondo_compile_options){RONDO_COMPILE_OPTIONS_INIT, .record = (rondo_record_policy)7};
  assert_invalid(rondo_compile(program, t->device, &options, &compiled), RONDO_REASON_BAD_OPTIONS);
}

/* Where costs are not known and cannot be measured now, it is recorded. */
TEST(test_fw8_programs_are_recorded_while_others_capture) {
  rondo_gain gain = {.struct_size = sizeof gain};
  rondo_stream *other = test_stream(t, "other");
  assert_ok(rondo_capture_begin(other, RONDO_CAPTURE_RELAXED));
  assert_invalid(rondo_gain_measure(NULL, NULL, NULL, 1, &gain), RONDO_REASON_NULL_ARGUMENT);
  rondo_compiled *compiled = compile(t, RONDO_RECORD_AUTO);
  assert_non_null(rondo_compiled_exec(compiled));
  assert_int_equal(rondo_last_error()->reason, RONDO_REASON_NULL_ARGUMENT); /* the refusal to measure is nobody's */
  assert_fails(rondo_compiled_get_gain(compiled, &gain), RONDO_INVALID_STATE);
  test_graph_destroy(test_capture_end(other));
}

TEST(test_fw8_gain_of_a_program_is_measured_and_leaves_no_trace) {
  float losses[3], again[3];
  rondo_gain gain = {.struct_size = sizeof gain}, known = {.struct_size = sizeof known};
  assert_ok(rondo_device_set_costs(t->device, &dear));
  for (int i = 0; i < 2; i++) {
    rondo_compiled *compiled = compile(t, i == 0 ? RONDO_RECORD_ALWAYS : RONDO_RECORD_NEVER);
    assert_fails(rondo_compiled_get_gain(compiled, &gain), RONDO_INVALID_STATE);
    assert_message("rondo_compiled_measure");
    write_inputs(compiled);
    assert_ok(rondo_compiled_measure(compiled, 3, &gain));
    assert_int_equal(gain.is_measured, i == 0);
    assert_true(gain.works > 0 && gain.total_us > 0 && gain.recorded_total_us > 0);
    assert_ok(rondo_compiled_get_gain(compiled, &known));
    assert_memory_equal(&known, &gain, sizeof gain);
    train(compiled, i == 0 ? losses : again);
    assert_ok(rondo_compiled_destroy(compiled));
  }
  assert_memory_equal(again, losses, sizeof losses);
  assert_true(losses[2] < losses[0]);
}

/* FW-3: staged copies are part of both modes, and a staged output holds the result of the last real run. */
TEST(test_fw8_staged_values_are_as_they_were) {
  const rondo_staged_value staged[] = {{"x", RONDO_STAGING_HOST}, {"loss", RONDO_STAGING_HOST}};
  const rondo_compile_options options = {RONDO_COMPILE_OPTIONS_INIT, .staged = staged, .staged_count = 2};
  rondo_program *program = make_program();
  rondo_gain gain = {.struct_size = sizeof gain};
  float x[6] = {1, -1, 2, -2, 3, -3}, loss = 0, again = 0;
  void *mapped = NULL;
  assert_ok(rondo_device_set_costs(t->device, &dear));
  rondo_compiled *compiled = test_compile_kept(program, t->device, &options);
  write_inputs(compiled);
  assert_ok(rondo_compiled_feed(compiled, "x", x, sizeof x));
  assert_ok(rondo_compiled_run(compiled));
  assert_ok(rondo_compiled_fetch(compiled, "loss", &loss, sizeof loss));
  assert_ok(rondo_compiled_measure(compiled, 2, &gain));
  assert_true(gain.is_measured);
  assert_ok(rondo_compiled_fetch(compiled, "loss", &again, sizeof again));
  assert_memory_equal(&again, &loss, sizeof loss);
  assert_ok(rondo_compiled_map(compiled, "x", NULL, &mapped));
  assert_error(rondo_compiled_measure(compiled, 1, NULL), RONDO_INVALID_STATE, RONDO_REASON_STILL_IN_USE);
  assert_ok(rondo_compiled_unmap(compiled, "x"));
}

TEST(test_fw8_programs_are_not_measured_while_they_are_captured) {
  assert_ok(rondo_device_set_costs(t->device, &dear));
  rondo_compiled *compiled = compile(t, RONDO_RECORD_ALWAYS);
  rondo_stream *stream = rondo_compiled_stream(compiled);
  assert_ok(rondo_capture_begin(stream, RONDO_CAPTURE_THREAD_LOCAL));
  assert_error(rondo_compiled_measure(compiled, 1, NULL), RONDO_CAPTURE_REFUSED, RONDO_REASON_UNSUPPORTED_CALL);
  test_graph_destroy(test_capture_end(stream));
  assert_ok(rondo_compiled_measure(compiled, 1, NULL));
  assert_invalid(rondo_compiled_measure(compiled, 1001, NULL), RONDO_REASON_OUT_OF_RANGE);
  assert_invalid(rondo_compiled_measure(NULL, 1, NULL), RONDO_REASON_NULL_ARGUMENT);
}
