/* SPDX-License-Identifier: MIT
 * Functions of a tree that are recorded where it pays (FW-8), decided by given costs; and static inputs that moved,
 * which are named with both addresses (FW-7).
 */
#include <stdio.h>
#include <string.h>

#include "support/test_tree.h"

enum { WORDS = TEST_CASE_WORDS, BYTES = WORDS * 4 };

/* With these nothing pays, and with those everything. */
static const rondo_costs dear = {RONDO_COSTS_INIT, .launch_host = 1e9, .launch_latency = 1e9};
static const rondo_costs cheap = {RONDO_COSTS_INIT, .stream_kernel = 1e9};

static void begin(test_tree_case *c, test_fixture *t, const rondo_costs *costs, const rondo_tree_options *options,
                  const rondo_function_options *function) {
  if (costs != NULL) assert_ok(rondo_device_set_costs(t->device, costs));
  test_tree_case_make(c, t, options, function, NULL);
}

static const rondo_function_options where_it_pays = {RONDO_FUNCTION_OPTIONS_INIT, .record = RONDO_RECORD_AUTO};

static void assert_explained(test_tree_case *c, rondo_explain_format format, const char *part) {
  char *text = NULL;
  assert_ok(rondo_tree_explain(c->tree, format, &text));
  if (strstr(text, part) == NULL) fail_msg("no '%s' in:\n%s", part, text);
  rondo_text_free(text);
}

TREE_TEST(test_fw8_what_does_not_pay_runs_as_it_is) {
  test_tree_case c;
  begin(&c, t, &dear, NULL, &where_it_pays);
  for (int i = 0; i < 2; i++) {
    test_tree_case_call(&c);
    assert_skip(c.tree, WARM_UP);
  }
  for (int i = 0; i < 3; i++) {
    test_tree_case_call(&c);
    assert_outcome(c.tree, RONDO_CALL_EAGER);
    assert_skip(c.tree, NO_GAIN);
    test_assert_said(c.tree, "recording it gains too little");
    test_assert_said(c.tree, "record more work at once");
  }
  const rondo_tree_info info = test_tree_info(c.tree);
  assert_int_equal(info.skipped[RONDO_SKIP_NO_GAIN], 3);
  assert_int_equal(info.recordings, 0);
  assert_int_equal(test_function_info(c.function).skipped[RONDO_SKIP_NO_GAIN], 3);
  assert_int_equal(test_function_info(c.function).bodies, 5);
  assert_string_equal(rondo_skip_name(RONDO_SKIP_NO_GAIN), "NO_GAIN");
  assert_explained(&c, RONDO_EXPLAIN_TEXT, "eager: NO_GAIN: recording it gains too little");
  assert_explained(&c, RONDO_EXPLAIN_TEXT, "gain         predicted: host ");
  assert_explained(&c, RONDO_EXPLAIN_JSON, "\"gain\":{\"works\":");
}

TREE_TEST(test_fw8_what_pays_is_recorded) {
  test_tree_case c;
  begin(&c, t, &cheap, NULL, &where_it_pays);
  for (int i = 0; i < 2; i++) test_tree_case_call(&c);
  test_tree_case_call(&c);
  assert_outcome(c.tree, RONDO_CALL_RECORDED);
  test_tree_case_call(&c);
  assert_outcome(c.tree, RONDO_CALL_REPLAYED);
  assert_int_equal(test_function_info(c.function).bodies, 3);
  assert_explained(&c, RONDO_EXPLAIN_TEXT, "gain         predicted: host ");
}

TREE_TEST(test_fw8_each_form_is_decided_by_itself) {
  test_tree_case c;
  begin(&c, t, &dear, NULL, &where_it_pays);
  for (int i = 0; i < 3; i++) test_tree_case_call(&c);
  assert_skip(c.tree, NO_GAIN);
  assert_ok(rondo_device_set_costs(c.t->device, &cheap));
  for (int i = 0; i < 3; i++) rondo_buffer_release(test_call_words(c.t, c.function, c.words, WORDS / 2));
  assert_outcome(c.tree, RONDO_CALL_RECORDED);
  test_tree_case_call(&c);
  assert_skip(c.tree, NO_GAIN);
}

TREE_TEST(test_fw8_strict_trees_refuse_what_does_not_pay) {
  test_tree_case c;
  begin(&c, t, &dear, TEST_TREE_OPTIONS(.strict = true), &where_it_pays);
  for (int i = 0; i < 2; i++) test_tree_case_call(&c);
  rondo_buffer *out;
  assert_error(test_tree_case_try(&c, &out), RONDO_UNSUPPORTED, RONDO_REASON_NOT_RECORDED);
  assert_message("NO_GAIN");
}

TREE_TEST(test_fw8_preparing_says_that_it_does_not_pay) {
  test_tree_case c;
  begin(&c, t, &dear, NULL, &where_it_pays);
  const rondo_input input = {.address = c.words, .bytes = BYTES};
  assert_error(rondo_function_prepare(c.function, c.t->stream, &input, 1), RONDO_UNSUPPORTED,
               RONDO_REASON_NOT_RECORDED);
  assert_message("NO_GAIN");
  test_tree_case_call(&c);
  assert_skip(c.tree, NO_GAIN);
  begin(&c, t, &cheap, NULL, &where_it_pays);
  const rondo_input other = {.address = c.words, .bytes = BYTES};
  assert_ok(rondo_function_prepare(c.function, c.t->stream, &other, 1));
}

/* Costs that are not known cannot be measured while something is captured: rather a recording than none. */
TREE_TEST(test_fw8_without_an_estimate_it_is_recorded) {
  test_tree_case c;
  begin(&c, t, NULL, NULL, &where_it_pays);
  for (int i = 0; i < 2; i++) test_tree_case_call(&c);
  rondo_stream *other = test_stream(c.t, "other");
  rondo_buffer *out;
  assert_ok(rondo_capture_begin(other, RONDO_CAPTURE_RELAXED));
  assert_ok(test_tree_case_try(&c, &out));
  test_graph_destroy(test_capture_end(other));
  assert_outcome(c.tree, RONDO_CALL_RECORDED);
  rondo_buffer_release(out);
}

static rondo_status with_host_step(rondo_call *call, test_tree_case *c) {
  (void)c;
  return rondo_call_host_step(call, test_host_nothing, NULL);
}

static rondo_status wait_inside(rondo_call *call, test_tree_case *c) {
  (void)c;
  return rondo_stream_synchronize(rondo_call_stream(call));
}

static rondo_status fail_inside(rondo_call *call, test_tree_case *c) {
  (void)call;
  (void)c;
  return RONDO_LIMIT_EXCEEDED;
}

/* They wait in the middle, which no estimate takes into account. */
TREE_TEST(test_fw8_bodies_with_host_steps_are_recorded) {
  test_tree_case c;
  begin(&c, t, &dear, NULL, &where_it_pays);
  c.more = with_host_step;
  for (int i = 0; i < 3; i++) test_tree_case_call(&c);
  assert_outcome(c.tree, RONDO_CALL_RECORDED);
}

/* The block of the stream ends by itself; and the reason is the same as without an estimate. */
TREE_TEST(test_fw8_bodies_that_wait_are_run_as_they_are) {
  test_tree_case c;
  begin(&c, t, &cheap, NULL, &where_it_pays);
  c.more = wait_inside;
  for (int i = 0; i < 3; i++) test_tree_case_call(&c);
  assert_skip(c.tree, HOST_WORK);
}

TREE_TEST(test_fw8_bodies_that_fail_leave_no_meter) {
  test_tree_case c;
  begin(&c, t, &cheap, NULL, &where_it_pays);
  rondo_buffer *out;
  test_tree_case_call(&c);
  c.more = fail_inside;
  assert_status(test_tree_case_try(&c, &out), RONDO_LIMIT_EXCEEDED);
  c.more = NULL;
  test_tree_case_call(&c);
  assert_skip(c.tree, WARM_UP);
  test_tree_case_call(&c);
  assert_outcome(c.tree, RONDO_CALL_RECORDED);
}

TREE_TEST(test_fw8_never_is_never) {
  test_tree_case c;
  begin(&c, t, &cheap, NULL, TEST_FUNCTION_OPTIONS(.record = RONDO_RECORD_NEVER));
  for (int i = 0; i < 3; i++) {
    test_tree_case_call(&c);
    assert_skip(c.tree, DISABLED);
  }
}

TREE_TEST(test_policies_that_do_not_exist_are_refused) {
  rondo_tree *tree = test_tree(t, NULL);
  rondo_function *function = NULL;
  rondo_function_options options = {RONDO_FUNCTION_OPTIONS_INIT, .name = "f", .body = test_body_affine};
  options.record = (rondo_record_policy)3;
  assert_invalid(rondo_function_create(tree, &options, &function), RONDO_REASON_BAD_OPTIONS);
  options.record = RONDO_RECORD_AUTO;
  options.least_gain = 0.9;
  assert_invalid(rondo_function_create(tree, &options, &function), RONDO_REASON_OUT_OF_RANGE);
  assert_null(function);
}

/* Pointers that moved ---------------------------------------------------------------------------------------------- */

TREE_TEST(test_fw7_a_static_input_that_moved_is_named) {
  static const uint32_t fixed = RONDO_INPUT_STATIC;
  test_tree_case c;
  char addresses[2][32];
  begin(&c, t, NULL, TEST_TREE_OPTIONS(.max_recordings_per_parent = 2), TEST_FUNCTION_OPTIONS(.inputs = &fixed));
  uint32_t *others[2];
  for (int i = 0; i < 2; i++) test_tree_case_call(&c);
  assert_int_equal(test_function_info(c.function).moved, 0);
  assert_string_equal(test_function_info(c.function).moved_message, "");
  for (uint64_t i = 0; i < 2; i++) {
    others[i] = test_words(c.t, WORDS);
    rondo_buffer_release(test_call_words(c.t, c.function, others[i], WORDS));
    assert_int_equal(test_function_info(c.function).moved, i + 1);
  }
  assert_skip(c.tree, RECORDING_LIMIT);
  const char *message = test_function_info(c.function).moved_message;
  for (int i = 0; i < 2; i++) {
    (void)snprintf(addresses[i], sizeof addresses[i], "0x%llx", (unsigned long long)(uintptr_t)others[i]);
    if (strstr(message, addresses[i]) == NULL) fail_msg("no %s in: %s", addresses[i], message);
  }
  assert_non_null(strstr(message, "static input 0 was at"));
  assert_non_null(strstr(message, "RONDO_INPUT_MOVING"));
  assert_non_null(strstr(message, "max_recordings_per_parent"));
  assert_explained(&c, RONDO_EXPLAIN_TEXT, "moved        2 times, the last: static input 0");
  assert_explained(&c, RONDO_EXPLAIN_JSON, "\"moved\":{\"times\":2,\"message\":\"static input 0");
  test_tree_case_call(&c);
  assert_outcome(c.tree, RONDO_CALL_REPLAYED);
}
