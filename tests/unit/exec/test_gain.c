/* SPDX-License-Identifier: MIT
 * The gain of recording, from a table of costs and the times of a run (FW-8): the prediction, the decision and its
 * message, without a clock.
 */
#include <math.h>
#include <string.h>

#include "exec/cost/device_costs.h"
#include "exec/cost/recording_gain.h"
#include "support/rondo_test.h"

/* Similar to those of a GPU. */
static const rondo_costs costs = {RONDO_COSTS_INIT,         .stream_host = 1,      .stream_host_kernel = 2,
                                  .stream_latency = 5,      .stream_kernel = 1.5,  .launch_host = 4,
                                  .launch_host_node = 0.01, .launch_host_cold = 2, .launch_latency = 8,
                                  .launch_kernel = 1,       .record = 50,          .record_node = 3};

/* Kernels of `us` each, enqueued with the host costs above. */
static rondo_gain estimate(uint32_t works, double us) {
  rondo_gain gain = {
      .struct_size = sizeof gain, .works = works, .host_us = 1 + 2 * (double)works, .device_us = works * (1.5 + us)};
  assert_ok(rondo_gain_estimate(&costs, &gain));
  return gain;
}

static void assert_number(double actual, double expected) {
  if (fabs(actual - expected) > 1e-9 * fabs(expected)) fail_msg("%.12g, not %.12g", actual, expected);
}

DEVICE_TEST(test_fw8_prediction_is_what_the_header_says) {
  const rondo_gain gain = estimate(64, 0.5);
  assert_number(gain.total_us, 5 + 129); /* the host is slower than the device, which takes 128 */
  assert_number(gain.recorded_host_us, 4 + 0.64);
  assert_number(gain.recorded_total_us, 8 + 64 + 32);
  assert_number(gain.record_us, 50 + 3 * 64);
  assert_number(gain.host_gain, 129 / 4.64);
  assert_number(gain.total_gain, 134.0 / 104);
  assert_int_equal(gain.runs_to_repay, 2); /* 242 us, 124.36 us of host time saved in each run */
  assert_false(gain.is_measured);
}

DEVICE_TEST(test_fw8_what_the_host_takes_more_is_taken_for_cold_caches_up_to_a_bound) {
  const double beyond[] = {-1, 0, 1.25, 2, 100}, more[] = {0, 0, 1.25, 2, 2};
  for (size_t i = 0; i < sizeof more / sizeof more[0]; i++) {
    rondo_gain gain = {.works = 10, .host_us = 21 + beyond[i], .device_us = 1000};
    assert_ok(rondo_gain_estimate(&costs, &gain));
    assert_number(gain.recorded_host_us, 4.1 + more[i]);
  }
}

DEVICE_TEST(test_fw8_kernels_that_take_less_than_their_place_take_nothing) {
  rondo_gain gain = {.works = 10, .host_us = 21, .device_us = 3, .total_us = 30};
  assert_ok(rondo_gain_estimate(&costs, &gain));
  assert_number(gain.total_us, 30); /* known, so not estimated */
  assert_number(gain.recorded_total_us, 18);
}

DEVICE_TEST(test_fw8_what_was_measured_stays) {
  rondo_gain gain = {.works = 10,
                     .host_us = 20,
                     .device_us = 30,
                     .total_us = 40,
                     .recorded_host_us = 5,
                     .recorded_total_us = 10,
                     .is_measured = true};
  assert_ok(rondo_gain_estimate(&costs, &gain));
  assert_number(gain.recorded_host_us, 5);
  assert_number(gain.recorded_total_us, 10);
  assert_number(gain.host_gain, 4);
  assert_number(gain.total_gain, 4);
  assert_int_equal(gain.runs_to_repay, 3); /* 80 us at 30 */
}

/* Many small kernels gain, few large ones don't. */
DEVICE_TEST(test_fw8_decision_over_counts_and_sizes) {
  static const uint32_t counts[] = {1, 4, 16, 64, 256};
  static const double sizes[] = {0.5, 5, 50, 5000};
  static const bool pays[4][5] = {{false, true, true, true, true}, /* one kernel: a launch replaces a launch */
                                  {false, true, true, true, true}, /* host time is saved */
                                  {false, false, false, false, false},
                                  {false, false, false, false, false}};
  for (size_t s = 0; s < 4; s++)
    for (size_t c = 0; c < 5; c++) {
      const rondo_gain gain = estimate(counts[c], sizes[s]);
      if (rondo_gain_pays(&gain, 0, 0) != pays[s][c])
        fail_msg("%u of %g us: %g, %g", counts[c], sizes[s], gain.total_gain, gain.host_gain);
    }
}

DEVICE_TEST(test_fw8_bars_can_be_moved) {
  const rondo_gain gain = estimate(64, 0.5); /* 124.36 us of 134 us saved, 242 us to repay */
  assert_true(rondo_gain_pays(&gain, 13, 2));
  assert_false(rondo_gain_pays(&gain, 14, 2));
  assert_false(rondo_gain_pays(&gain, 13, 1));
  assert_false(rondo_gain_pays(NULL, 0, 0));
  const rondo_gain worse = estimate(1, 1e6); /* the launch of the exec costs more than that of the kernel */
  assert_int_equal(worse.runs_to_repay, 0);
  assert_false(rondo_gain_pays(&worse, 1, UINT64_MAX));
}

DEVICE_TEST(test_fw8_nothing_of_a_device_that_costs_nothing) {
  const rondo_costs none = {RONDO_COSTS_INIT};
  rondo_gain gain = {.works = 1, .total_us = 4};
  assert_ok(rondo_gain_estimate(&none, &gain));
  assert_int_equal(gain.host_gain, 0);
  assert_int_equal(gain.total_gain, 0);
  assert_int_equal(gain.runs_to_repay, 1);
  assert_true(rondo_gain_pays(&gain, 1000, 1));
}

/* FW-7: the message for a graph that is too small has the numbers and the remedy. */
DEVICE_TEST(test_fw7_too_small_a_graph_is_reported_with_numbers) {
  char message[RONDO_GAIN_MESSAGE];
  rondo_gain gain = estimate(2, 50);
  rondo_gain_explain(&gain, (rondo_gain_bar){0}, message, sizeof message);
  assert_non_null(strstr(message, "2 kernels and copies take 108.0 us, 5.0 us of it the host's"));
  assert_non_null(strstr(message, "predicted to take 110.0 us and 4.0 us recorded, 1.01 times as fast"));
  assert_non_null(strstr(message, "but least_gain is 1.10: record more work at once"));
  gain = estimate(64, 0.5);
  rondo_gain_explain(&gain, (rondo_gain_bar){.runs = 1}, message, sizeof message);
  assert_non_null(strstr(message, "repays the 242 us of recording after 2 runs, but 1 are expected"));
  rondo_gain_explain(&gain, (rondo_gain_bar){0}, message, 8); /* truncated */
  assert_int_equal(strlen(message), 7);
}

DEVICE_TEST(test_bars_and_policies_are_checked) {
  assert_ok(rondo_gain_bar_check("call", (rondo_gain_bar){.least = 1}));
  const double wrong[] = {-1, 0.5, INFINITY, NAN};
  for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++)
    assert_invalid(rondo_gain_bar_check("call", (rondo_gain_bar){.least = wrong[i]}), RONDO_REASON_OUT_OF_RANGE);
  assert_ok(rondo_record_policy_check("call", RONDO_RECORD_AUTO));
  assert_invalid(rondo_record_policy_check("call", (rondo_record_policy)3), RONDO_REASON_BAD_OPTIONS);
}

DEVICE_TEST(test_medians) {
  double samples[] = {5, 1, 4, 2, 3, 100};
  assert_number(rondo_median(samples, 5), 3);
  assert_number(rondo_median(samples, 6), 3.5);
  assert_true(rondo_median(samples, 0) == 0);
}
