/* SPDX-License-Identifier: MIT
 * Shapes of inputs and warm-ups (TR-1, TR-7), after the tests of PyTorch's CUDAGraph Trees, whose names and numbers the
 * tests have. The peer's integer inputs are Rondo's scalars and shapes. In assert_seen, each letter is a call: e eager,
 * r recorded, p replayed.
 */
#include <string.h>

#include "support/test_scene.h"

/* Calls with the first `words` of x, which count up from 1, as in * 3 + 1. */
static void call_form(test_scene *s, rondo_function *f, const uint32_t *x, size_t words) {
  rondo_buffer *out;
  SCENE_CALL(s, f, &out, 1, {.address = (void *)(uintptr_t)x, .bytes = words * sizeof *x});
  test_assert_buffer(s->fixture, out, 4, 3);
  rondo_buffer_release(out);
}

/* 107 test_dynamic_warmup: a new number warms up again: the body runs 2 times, then 4. */
static rondo_status scalar_body(rondo_call *call, void *user) {
  rondo_input scalar;
  scene_enter(user);
  assert_ok(rondo_call_get_input(call, 1, &scalar));
  scene_put(call, 0, scene_input(call, 0), (uint32_t)scalar.scalar, 0);
  return RONDO_OK;
}
SCENE_TEST(test_tr1_peer_107_numbers_warm_up) {
  test_work *work = scene_work(s, 0, 0);
  rondo_function *f = SCENE_FUNCTION(s, "f", scalar_body, work, RONDO_INPUTS(RONDO_INPUT_MOVING, RONDO_INPUT_SCALAR));
  const uint32_t *x = scene_words(s, 1);
  for (uint32_t number = 2; number <= 3; number++) {
    for (int i = 0; i < 3; i++) {
      rondo_buffer *out;
      SCENE_CALL(s, f, &out, 1, scene_at(x), {.scalar = number});
      assert_counts(s, out, number, number);
      rondo_buffer_release(out);
    }
    assert_int_equal(work->runs, number == 2 ? 2 : 4);
  }
  assert_seen(s, "erperp");
}

/* 106 test_dynamic_backward: two sizes, with a backward each: values and sizes are those of plain runs. */
SCENE_TEST(test_tr7_peer_106_sizes_of_a_backward) {
  rondo_function *forward = SCENE_FUNCTION(s, "forward", test_body_affine, scene_work(s, 3, 1),
                                           .kind = RONDO_FUNCTION_FORWARD, RONDO_INPUTS(RONDO_INPUT_MOVING));
  rondo_function *backward = SCENE_FUNCTION(s, "backward", test_body_affine, scene_work(s, 5, 2),
                                            .kind = RONDO_FUNCTION_BACKWARD, RONDO_INPUTS(RONDO_INPUT_MOVING));
  const uint32_t *x = scene_words(s, 1);
  for (size_t i = 0; i < 8; i++) {
    rondo_buffer *out;
    const size_t words = i % 2 == 0 ? SCENE_WORDS : 6;
    SCENE_CALL(s, forward, &out, 1, {.address = (void *)(uintptr_t)x, .bytes = words * sizeof *x});
    rondo_buffer *gradient = scene_call(s, backward, scene_given(out));
    assert_int_equal(test_buffer_info(gradient).bytes, words * sizeof *x);
    test_assert_buffer(s->fixture, gradient, 22, 15);
    rondo_buffer_release(gradient);
  }
  assert_seen(s, "eeeerrrrpppppppp");
  assert_int_equal(scene_info(s).roots, 2);
}

/* 108 test_mark_warmup_incomplete: a function stays un-warm while its body says so; others are not concerned; saying so
 * in a recording has no effect. 1 ..._without_cudagraphs: nor where recording is off. */
static rondo_status again_body(rondo_call *call, void *user) {
  const test_work *work = scene_enter(user);
  scene_put(call, 0, scene_input(call, 0), 3, 1);
  return work->runs <= work->factor ? rondo_call_warm_up_again(call) : RONDO_OK;
}
SCENE_TEST(test_tr1_peer_1_108_warm_up_again) {
  test_work *twice = scene_work(s, 2, 0), *ever = scene_work(s, UINT32_MAX, 0);
  rondo_function *f = SCENE_FUNCTION(s, "f", again_body, twice, RONDO_INPUTS(RONDO_INPUT_MOVING));
  rondo_function *other = scene_affine(s, "other", 3, 1);
  const uint32_t *x = scene_words(s, 1);
  for (int i = 0; i < 6; i++) {
    rondo_buffer_release(scene_call(s, f, scene_at(x)));
    rondo_buffer_release(scene_call(s, other, scene_at(x)));
  }
  assert_seen(s, "eeereprppppp");
  assert_int_equal(twice->runs, 4);
  f = SCENE_FUNCTION(s, "ever", again_body, ever, RONDO_INPUTS(RONDO_INPUT_MOVING));
  assert_ok(rondo_tree_set_recording(s->tree, false));
  for (int i = 0; i < 2; i++) call_form(s, f, x, SCENE_WORDS);
  assert_skip(s->tree, DISABLED);
  assert_ok(rondo_tree_set_recording(s->tree, true));
  for (int i = 0; i < 3; i++) call_form(s, f, x, SCENE_WORDS);
  assert_skip(s->tree, WARM_UP);
  ever->factor = 0;
  for (int i = 0; i < 3; i++) call_form(s, f, x, SCENE_WORDS);
  assert_seen(s, "eeeeeerp");
}

/* Items 20 and 25: the requested number of warm-ups for each shape. */
SCENE_TEST(test_tr1_warm_ups_are_counted) {
  test_work *work = scene_work(s, 3, 1);
  rondo_function *f = SCENE_FUNCTION(s, "f", test_body_affine, work, .warm_ups = 3, RONDO_INPUTS(RONDO_INPUT_MOVING));
  const uint32_t *x = scene_words(s, 1);
  for (size_t i = 0; i < 6; i++) call_form(s, f, x, SCENE_WORDS);
  for (size_t i = 0; i < 6; i++) call_form(s, f, x, 5);
  assert_seen(s, "eeerppeeerpp");
  assert_int_equal(work->runs, 8);
  assert_int_equal(scene_info(s).skipped[RONDO_SKIP_WARM_UP], 6);
}

/* 17 test_skip_symbolic, 18 ..._static_shapes: a function that may be recorded for one shape runs eagerly for others,
 * with the reason; the one shape is recorded. */
SCENE_TEST(test_tr7_peer_17_18_one_form) {
  rondo_function *f = SCENE_FUNCTION(s, "f", test_body_affine, scene_work(s, 3, 1), .static_shapes = true,
                                     RONDO_INPUTS(RONDO_INPUT_MOVING));
  const uint32_t *x = scene_words(s, 1);
  for (size_t i = 0; i < 9; i++) {
    call_form(s, f, x, i % 3 == 2 ? i : SCENE_WORDS);
    if (i % 3 == 2) assert_skip(s->tree, CHANGING_SHAPES);
  }
  assert_seen(s, "ereppeppe");
  assert_non_null(strstr(test_last_call(s->tree).message, "static_shapes"));
  assert_int_equal(test_function_info(f).recordings, 1);
}

/* 152 test_dynamic_shape_rerecord_limit_stops_recording_new_shapes, 154, 155 test_skip_if_dynamic_shape_limit_reached,
 * 156 test_warn_once_...: shapes up to the limit are recorded and continue to be replayed; others run eagerly and are
 * right; the reason says so, and the log says it once. */
static void count_lines(void *user, rondo_log_level level, const char *area, const char *message) {
  if (level <= RONDO_LOG_INFO && strcmp(area, "tree") == 0 && strstr(message, "SHAPE_LIMIT") != NULL) ++*(int *)user;
}
SCENE_TEST(test_tr7_peer_152_154_155_156_as_many_forms) {
  int lines = 0;
  rondo_function *f =
      SCENE_FUNCTION(s, "f", test_body_affine, scene_work(s, 3, 1), .max_shapes = 2, RONDO_INPUTS(RONDO_INPUT_MOVING));
  const uint32_t *x = scene_words(s, 1);
  rondo_log_set_sink(count_lines, &lines, RONDO_LOG_INFO);
  for (size_t words = 1; words <= 19; words++)
    for (int i = 0; i < 3; i++) call_form(s, f, x, words);
  rondo_log_set_sink(NULL, NULL, RONDO_LOG_ERROR);
  assert_int_equal(lines, 1);
  const rondo_function_info info = test_function_info(f);
  assert_int_equal(info.recordings, 2);
  assert_int_equal(info.skipped[RONDO_SKIP_SHAPE_LIMIT], 3 * 17);
  assert_int_equal(info.last_skip, RONDO_SKIP_SHAPE_LIMIT);
  assert_non_null(strstr(info.last_message, "max_shapes"));
  for (size_t words = 1; words <= 2; words++) {
    call_form(s, f, x, words);
    assert_outcome(s->tree, RONDO_CALL_REPLAYED);
  }
}

/* 153 test_dynamic_shape_rerecord_limit_training: forward and backward have a limit each. */
SCENE_TEST(test_tr7_peer_153_limits_of_each) {
  rondo_function *forward =
      SCENE_FUNCTION(s, "forward", test_body_affine, scene_work(s, 3, 1), .kind = RONDO_FUNCTION_FORWARD,
                     .max_shapes = 3, RONDO_INPUTS(RONDO_INPUT_MOVING));
  rondo_function *backward =
      SCENE_FUNCTION(s, "backward", test_body_affine, scene_work(s, 5, 2), .kind = RONDO_FUNCTION_BACKWARD,
                     .max_shapes = 1, RONDO_INPUTS(RONDO_INPUT_MOVING));
  const uint32_t *x = scene_words(s, 1);
  for (size_t round = 0; round < 3; round++)
    for (size_t words = 4; words <= 16; words += 4) {
      rondo_buffer *out;
      SCENE_CALL(s, forward, &out, 1, {.address = (void *)(uintptr_t)x, .bytes = words * sizeof *x});
      rondo_buffer *gradient = scene_call(s, backward, scene_given(out));
      test_assert_buffer(s->fixture, gradient, 22, 15);
      rondo_buffer_release(gradient);
    }
  assert_int_equal(test_function_info(forward).recordings, 3);
  assert_int_equal(test_function_info(backward).recordings, 1);
  assert_int_equal(test_function_info(forward).skipped[RONDO_SKIP_SHAPE_LIMIT], 3);
  assert_int_equal(test_function_info(backward).skipped[RONDO_SKIP_SHAPE_LIMIT], 9);
}

/* 188 test_graph_partition_dynamic_shapes, 195 ..._custom_op_no_split: three forms, three recordings. 217
 * test_cudagraph_capture_sizes: the peer has a list of sizes that are recorded; here the caller switches recording off
 * around the others, which is one call. */
SCENE_TEST(test_tr7_peer_188_195_217_forms_that_are_wanted) {
  rondo_function *f = scene_affine(s, "f", 3, 1);
  const uint32_t *x = scene_words(s, 1);
  static const size_t wanted[] = {2, 4, 8};
  for (int round = 0; round < 3; round++)
    for (size_t words = 1; words <= 10; words++) {
      bool is_wanted = false;
      for (size_t i = 0; i < 3; i++) is_wanted |= wanted[i] == words;
      assert_ok(rondo_function_set_recording(f, is_wanted));
      call_form(s, f, x, words);
      if (!is_wanted) assert_skip(s->tree, DISABLED);
    }
  assert_int_equal(scene_info(s).recordings, 3);
  assert_int_equal(scene_info(s).skipped[RONDO_SKIP_DISABLED], 21);
}

/* 218 test_cudagraph_capture_sizes1, 219 ..._sizes2: the sizes of two and of three inputs, of which four pairs or
 * triples are recorded. */
static rondo_status sizes_body(rondo_call *call, void *user) {
  const test_work *work = scene_enter(user);
  for (size_t i = 0; i < work->factor; i++) {
    rondo_input input;
    void *out;
    assert_ok(rondo_call_get_input(call, i, &input));
    assert_ok(rondo_call_output(call, i, input.bytes, NULL, &out));
    assert_ok(rondo_copy_async(rondo_call_stream(call), out, input.address, input.bytes));
    test_affine(work->fixture, rondo_call_stream(call), out, input.bytes / sizeof(uint32_t), 3, 1);
  }
  return RONDO_OK;
}
static void call_sizes(test_scene *s, rondo_function *f, uint32_t *x, uint32_t inputs, uint32_t bits) {
  rondo_input given[3];
  rondo_buffer *outs[3];
  for (uint32_t i = 0; i < inputs; i++)
    given[i] = (rondo_input){.address = x, .bytes = (4 + 4 * (size_t)(bits >> i & 1)) * sizeof *x};
  scene_call_all(s, f, given, inputs, outs, inputs);
  for (uint32_t i = 0; i < inputs; i++) {
    assert_int_equal(test_buffer_info(outs[i]).bytes, given[i].bytes);
    test_assert_buffer(s->fixture, outs[i], 4, 3);
    rondo_buffer_release(outs[i]);
  }
}
SCENE_TEST(test_tr7_peer_218_219_sizes_of_several_inputs) {
  static const uint32_t moving[] = {RONDO_INPUT_MOVING, RONDO_INPUT_MOVING, RONDO_INPUT_MOVING};
  static const uint32_t wanted[] = {0x0f, 0x69}; /* all pairs; the triples of an even number of large ones */
  uint32_t *x = scene_words(s, 1);
  for (uint32_t inputs = 2; inputs <= 3; inputs++) {
    SCENE_TREE(s, .name = "sizes");
    rondo_function *f =
        SCENE_FUNCTION(s, "f", sizes_body, scene_work(s, inputs, 0), .inputs = moving, .input_count = inputs);
    const uint32_t forms = 1U << inputs;
    for (uint32_t i = 0; i < 4 * forms; i++) {
      const bool is_wanted = (wanted[inputs - 2] >> i % forms & 1) != 0;
      assert_ok(rondo_function_set_recording(f, is_wanted));
      call_sizes(s, f, x, inputs, i % forms);
      if (!is_wanted) assert_skip(s->tree, DISABLED);
    }
    assert_int_equal(scene_info(s).recordings, 4);
    assert_int_equal(scene_info(s).replayed, 8);
    assert_int_equal(scene_info(s).skipped[RONDO_SKIP_DISABLED], 4 * (forms - 4));
    s->calls = 0;
  }
}

/* 196 test_graph_partition_cpu_tensor_symints, 223 test_opaque_value_input_cudagraph: an opaque pointer, which only the
 * host reads, is neither copied nor compared, and causes no recordings. */
static rondo_status opaque_body(rondo_call *call, void *user) {
  rondo_input opaque;
  scene_enter(user);
  assert_ok(rondo_call_get_input(call, 1, &opaque));
  assert_true(opaque.address != NULL && opaque.bytes == 0);
  scene_put(call, 0, scene_input(call, 0), 3, 1);
  return RONDO_OK;
}
SCENE_TEST(test_tr7_peer_196_223_opaque_inputs) {
  rondo_function *f =
      SCENE_FUNCTION(s, "f", opaque_body, scene_work(s, 0, 0), RONDO_INPUTS(RONDO_INPUT_MOVING, RONDO_INPUT_OPAQUE));
  const uint32_t *x = scene_words(s, 1);
  char things[6];
  for (int i = 0; i < 6; i++) {
    rondo_buffer *out;
    SCENE_CALL(s, f, &out, 1, scene_at(x), {.address = &things[i]});
    assert_counts(s, out, 4, 3);
    rondo_buffer_release(out);
  }
  assert_seen(s, "erpppp");
  assert_int_equal(scene_info(s).copied_inputs + scene_info(s).patched_inputs, 5);
}

/* 168 to 171, 173, 174 test_graph_partition_cpu_scalar...: a host value that changes is in a cell of the device that is
 * a static input, so that one recording suffices; 172 ..._mutation: the body writes it back. */
static rondo_status cell_body(rondo_call *call, void *user) {
  uint32_t *cell = scene_input(call, 1);
  scene_enter(user);
  scene_combine(call, 0, scene_input(call, 0), cell);
  scene_change(call, cell, 1, 1);
  return RONDO_OK;
}
SCENE_TEST(test_tr6_peer_168_to_174_numbers_in_cells) {
  rondo_function *f = SCENE_FUNCTION(s, "f", cell_body, scene_work(s, 0, 0),
                                     RONDO_INPUTS(RONDO_INPUT_MOVING, RONDO_INPUT_STATIC | RONDO_INPUT_MUTATED));
  const uint32_t *x = scene_words(s, 1);
  uint32_t *cell = scene_words(s, 0);
  for (uint32_t i = 0; i < 6; i++) {
    rondo_buffer *out;
    scene_set(s, cell, 7 * i);
    SCENE_CALL(s, f, &out, 1, scene_at(x), scene_at(cell));
    assert_counts(s, out, 31 + 7 * i, 32);
    scene_assert_words(s, cell, 7 * i + 1, 1);
    rondo_buffer_release(out);
  }
  assert_seen(s, "erpppp");
}
