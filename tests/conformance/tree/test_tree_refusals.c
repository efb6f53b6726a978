/* SPDX-License-Identifier: MIT
 * Calls that trees refuse, in bodies and outside: each has a specific reason, and the call, the function and the tree
 * continue as if it had not been made (TR-8, TR-15). In assert_seen, each letter is a call: e eager, r recorded, p
 * replayed.
 */
#include "support/test_scene.h"

/* In bodies -------------------------------------------------------------------------------------------------------- */

static void refuse_numbers(rondo_call *call) {
  rondo_input input;
  void *out;
  assert_invalid(rondo_call_get_input(call, 1, &input), RONDO_REASON_OUT_OF_RANGE);
  assert_message("no input 1: 'f' has 1");
  assert_null(rondo_call_input(call, 1));
  assert_invalid(rondo_call_drop_input(call, 1), RONDO_REASON_OUT_OF_RANGE);
  assert_invalid(rondo_call_output(call, 1024, 4, NULL, &out), RONDO_REASON_OUT_OF_RANGE);
  assert_null(out);
  assert_invalid(rondo_call_output(call, 0, 4, NULL, &out), RONDO_REASON_DUPLICATE_NAME);
  assert_message("output 0 of 'f' exists already");
  assert_invalid(rondo_call_refuse(call, RONDO_SKIP_WARM_UP, "a sum"), RONDO_REASON_OUT_OF_RANGE);
  assert_message("WARM_UP");
}

static void refuse_parts(rondo_call *call) {
  assert_invalid(rondo_call_output_of_input(call, 1, 0, SCENE_BYTES - 4, 8, NULL), RONDO_REASON_OUT_OF_RANGE);
  assert_invalid(rondo_call_output_of_input(call, 1, 1, 0, 4, NULL), RONDO_REASON_OUT_OF_RANGE);
  assert_invalid(rondo_call_output_of_output(call, 1, 0, SCENE_BYTES + 1, 0, NULL), RONDO_REASON_OUT_OF_RANGE);
  assert_invalid(rondo_call_output_of_output(call, 1, 2, 0, 4, NULL), RONDO_REASON_OUT_OF_RANGE);
  assert_message("no output 2 of 'f' yet");
}

static void refuse_forms(rondo_call *call) {
  const rondo_output_options deep = {RONDO_OUTPUT_OPTIONS_INIT, .rank = RONDO_TREE_MAX_RANK + 1};
  const rondo_output_options odd = {RONDO_OUTPUT_OPTIONS_INIT, .flags = 2};
  const rondo_output_options uneven = {RONDO_OUTPUT_OPTIONS_INIT, .flags = RONDO_OUTPUT_ROWS, .rank = 1,
                                       .shape = {SCENE_WORDS + 1}};
  void *out;
  assert_invalid(rondo_call_output(call, 1, SCENE_BYTES, &deep, &out), RONDO_REASON_SHAPE);
  assert_invalid(rondo_call_output(call, 1, SCENE_BYTES, &odd, &out), RONDO_REASON_BAD_OPTIONS);
  assert_invalid(rondo_call_output(call, 1, SCENE_BYTES, &uneven, &out), RONDO_REASON_BAD_OPTIONS);
}

static rondo_status odd_body(rondo_call *call, void *user) {
  const test_work *work = scene_enter(user);
  scene_put(call, 0, scene_input(call, 0), work->factor, work->term);
  refuse_numbers(call);
  refuse_parts(call);
  refuse_forms(call);
  return RONDO_OK;
}

/* Run, recorded and replayed as if nothing had been refused. */
SCENE_TEST(test_tr8_bodies_go_on_after_refusals) {
  s->fails_inside = true;
  rondo_function *f = SCENE_FUNCTION(s, "f", odd_body, scene_work(s, 3, 1), RONDO_INPUTS(RONDO_INPUT_MOVING));
  const uint32_t *x = scene_words(s, 1);
  for (int i = 0; i < 4; i++) {
    scene_check(s, f, scene_at(x), 4, 3);
  }
  assert_seen(s, "erpp");
}

static rondo_status padded_body(rondo_call *call, void *user) {
  (void)scene_enter(user);
  assert_invalid(rondo_call_output_of_input(call, 0, 0, 0, 4, NULL), RONDO_REASON_BAD_OPTIONS);
  assert_message("RONDO_INPUT_ROWS");
  scene_put(call, 0, scene_input(call, 0), 3, 1);
  return RONDO_OK;
}

/* A padded input is not the caller's memory, so no output can be a part of it. */
SCENE_TEST(test_tr7_no_output_is_part_of_a_padded_input) {
  s->fails_inside = true;
  static const size_t sizes[] = {SCENE_WORDS};
  rondo_function *f =
      SCENE_FUNCTION(s, "f", padded_body, scene_work(s, 3, 1), RONDO_INPUTS(RONDO_INPUT_MOVING | RONDO_INPUT_ROWS),
                     .buckets = sizes, .bucket_count = 1);
  rondo_input input = scene_at(scene_words(s, 1));
  input.rank = 1;
  input.shape[0] = SCENE_WORDS;
  scene_check(s, f, input, 4, 3);
}

/* Outside ---------------------------------------------------------------------------------------------------------- */

static void expect_refused(test_scene *s, rondo_function *f, rondo_input input, rondo_reason reason) {
  rondo_buffer *out = (rondo_buffer *)(void *)s;
  assert_invalid(rondo_function_call(f, s->stream, &input, 1, &out, 1), reason);
  assert_null(out);
}

/* Inputs that are not what they are declared to be; the path and the buffers are unchanged. */
SCENE_TEST(test_tr8_inputs_that_are_refused) {
  rondo_function *first = scene_affine(s, "first", 3, 1), *f = scene_affine(s, "f", 2, 0);
  const uint32_t *x = scene_words(s, 1);
  for (int i = 0; i < 3; i++) {
    scene_begin(s);
    rondo_buffer *held = scene_call(s, first, scene_at(x));
    rondo_input outside = scene_of(held), deep = scene_at(x), nowhere = {.bytes = SCENE_BYTES};
    outside.address = (char *)scene_address(held) + SCENE_BYTES + 4;
    expect_refused(s, f, outside, RONDO_REASON_OUT_OF_RANGE);
    outside.address = (char *)scene_address(held) + 4;
    outside.bytes = SCENE_BYTES;
    expect_refused(s, f, outside, RONDO_REASON_OUT_OF_RANGE);
    deep.rank = RONDO_TREE_MAX_RANK + 1;
    expect_refused(s, f, deep, RONDO_REASON_SHAPE);
    expect_refused(s, f, nowhere, RONDO_REASON_NULL_ARGUMENT);
    rondo_buffer *out = scene_call(s, f, scene_of(held));
    assert_counts(s, out, 8, 6);
    uint32_t word;
    assert_invalid(rondo_buffer_copy(out, s->stream, SCENE_BYTES, &word, sizeof word), RONDO_REASON_OUT_OF_RANGE);
    rondo_buffer_release(out);
    rondo_buffer_release(held);
    scene_end(s);
  }
  assert_seen(s, "eerrpp");
}

SCENE_TEST(test_tr8_objects_that_are_refused) {
  static const uint32_t kinds[1025];
  const rondo_tree_options odd = {RONDO_TREE_OPTIONS_INIT, .outputs = (rondo_output_policy)2};
  rondo_tree *tree = s->tree;
  rondo_function *f = (rondo_function *)(void *)s;
  assert_invalid(rondo_tree_create(s->fixture->device, &odd, &tree), RONDO_REASON_BAD_OPTIONS);
  assert_null(tree);
  const rondo_function_options many = {RONDO_FUNCTION_OPTIONS_INIT, .name = "many", .body = test_body_nothing,
                                       .inputs = kinds, .input_count = 1025};
  assert_invalid(rondo_function_create(s->tree, &many, &f), RONDO_REASON_OUT_OF_RANGE);
  assert_message("the maximum is 1024");
  assert_null(f);
}
