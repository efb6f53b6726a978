/* SPDX-License-Identifier: MIT
 * Recordings that are made again because an address or a shape changed (TR-5, TR-7, TR-10), after the tests of
 * PyTorch's CUDAGraph Trees, whose names and numbers the tests have. The peer finds a recording by trying one after
 * another; Rondo finds it by a key. Both have the same recordings. In assert_seen, each letter is a call: e eager, r
 * recorded, p replayed.
 */
#include <string.h>

#include "support/test_scene.h"

static rondo_function *make_model(test_scene *s, const char *name, rondo_function_kind kind) {
  return SCENE_FUNCTION(s, name, scene_body_combine, scene_work(s, 0, 0), .kind = kind,
                        RONDO_INPUTS(RONDO_INPUT_MOVING, RONDO_INPUT_STATIC));
}

static rondo_buffer *call_model(test_scene *s, rondo_function *model, rondo_input x, const uint32_t *parameter) {
  rondo_buffer *out;
  SCENE_CALL(s, model, &out, 1, x, scene_at(parameter));
  return out;
}

/* 121 test_multi_dispatch_single_compile_param_inputs, 122 to 125 the same by swapping a module's weight or buffer: two
 * parameters make two recordings of forward and backward each; the old ones are used again. */
SCENE_TEST(test_tr5_peer_121_to_125_two_parameters) {
  rondo_function *forward = make_model(s, "forward", RONDO_FUNCTION_FORWARD);
  rondo_function *backward = make_model(s, "backward", RONDO_FUNCTION_BACKWARD);
  const uint32_t *x = scene_words(s, 1), *parameters[] = {scene_words(s, 10), scene_words(s, 20)};
  for (uint32_t i = 0; i < 10; i++) {
    const uint32_t *parameter = parameters[i / 2 % 2];
    const uint32_t first = 10 + 10 * (i / 2 % 2);
    rondo_buffer *out = call_model(s, forward, scene_at(x), parameter);
    rondo_buffer *gradient = call_model(s, backward, scene_of(out), parameter);
    assert_counts(s, out, 31 + first, 32);
    assert_counts(s, gradient, 31 * (31 + first) + first, 31 * 32 + 1);
    rondo_buffer_release(out);
    rondo_buffer_release(gradient);
  }
  assert_seen(s, "eerrrrpppppppppppppp");
  assert_int_equal(scene_info(s).recordings, 4);
  assert_int_equal(scene_info(s).roots, 2);
  for (size_t i = 0; i < RONDO_SKIP_ROOM; i++)
    if (i != RONDO_SKIP_WARM_UP) assert_int_equal(scene_info(s).skipped[i], 0);
}

/* 126 test_multi_dispatch_child_node, 127 test_multi_dispatch_parent_node: of a chain of two with their backwards, the
 * parameter is the second's or the first's. The peer counts 5 and 6 graphs, with its backward in two; here the chain of
 * three has 1 + 2 + 2 recordings, or 2 + 2 + 2. */
SCENE_TEST(test_tr5_peer_126_127_where_the_parameter_is) {
  for (int is_first = 0; is_first < 2; is_first++) {
    SCENE_TREE(s, .name = "chain");
    rondo_function *first = make_model(s, "first", RONDO_FUNCTION_FORWARD);
    rondo_function *second = make_model(s, "second", RONDO_FUNCTION_FORWARD);
    rondo_function *backward = make_model(s, "backward", RONDO_FUNCTION_BACKWARD);
    const uint32_t *x = scene_words(s, 1), *fixed = scene_words(s, 5);
    const uint32_t *parameters[] = {scene_words(s, 10), scene_words(s, 20)};
    for (uint32_t i = 0; i < 8; i++) {
      const uint32_t *changing = parameters[i / 2 % 2], from = 10 + 10 * (i / 2 % 2);
      rondo_buffer *a = call_model(s, first, scene_at(x), is_first != 0 ? changing : fixed);
      rondo_buffer *b = call_model(s, second, scene_of(a), is_first != 0 ? fixed : changing);
      rondo_buffer *c = call_model(s, backward, scene_of(b), fixed);
      const uint32_t at = 31 * (31 + (is_first != 0 ? from : 5)) + (is_first != 0 ? 5 : from);
      assert_counts(s, b, at, 31 * 32 + 1);
      assert_counts(s, c, 31 * at + 5, 31 * (31 * 32 + 1) + 1);
      rondo_buffer_release(a);
      rondo_buffer_release(b);
      rondo_buffer_release(c);
    }
    assert_outcome(s->tree, RONDO_CALL_REPLAYED);
    assert_int_equal(scene_info(s).recordings, is_first != 0 ? 6 : 5);
    assert_int_equal(scene_info(s).roots, is_first != 0 ? 2 : 1);
    s->calls = 0;
  }
}

/* 151 test_rerecord_if_static_input_address_changed, 130 test_no_rerecord_with_mark_static_address: two static inputs
 * are replaced at once: exactly two recordings, however the ordinary input moves. */
static rondo_status bias_body(rondo_call *call, void *user) {
  scene_enter(user);
  const uint32_t *sum = scene_combine(call, 0, scene_input(call, 0), scene_input(call, 1));
  scene_combine(call, 1, sum, scene_input(call, 2));
  return RONDO_OK;
}
SCENE_TEST(test_tr5_peer_130_151_static_inputs_are_replaced) {
  rondo_function *f = SCENE_FUNCTION(s, "f", bias_body, scene_work(s, 0, 0),
                                     RONDO_INPUTS(RONDO_INPUT_MOVING, RONDO_INPUT_STATIC, RONDO_INPUT_STATIC));
  const uint32_t *buffers[] = {scene_words(s, 1), scene_words(s, 2)},
                 *biases[] = {scene_words(s, 3), scene_words(s, 4)};
  for (uint32_t i = 0; i < 8; i++) {
    rondo_buffer *outs[2];
    const uint32_t at = i / 4;
    SCENE_CALL(s, f, outs, 2, scene_at(scene_words(s, i)), scene_at(buffers[at]), scene_at(biases[at]));
    assert_counts(s, outs[0], 31 * i + 1 + at, 32);
    assert_counts(s, outs[1], 31 * (31 * i + 1 + at) + 3 + at, 31 * 32 + 1);
    for (int k = 0; k < 2; k++) rondo_buffer_release(outs[k]);
  }
  assert_seen(s, "erpprppp");
  assert_int_equal(scene_info(s).recordings, 2);
}

/* 39 test_unaligned_static_input_trees, 40 ..._non_trees, 60 test_unaligned_static_parameter: a static input may have
 * any address. The peer copies unaligned inputs; Rondo makes a recording for each address, and never copies a static
 * input. */
SCENE_TEST(test_tr6_peer_39_40_60_unaligned_static_inputs) {
  rondo_function *f = SCENE_FUNCTION(s, "f", test_body_affine, scene_work(s, 3, 1), RONDO_INPUTS(RONDO_INPUT_STATIC));
  const uint32_t *x = scene_words(s, 0);
  for (uint32_t i = 0; i < 8; i++) {
    rondo_buffer *out;
    SCENE_CALL(s, f, &out, 1, {.address = (void *)(uintptr_t)(x + i % 2), .bytes = SCENE_BYTES / 2});
    test_assert_buffer(s->fixture, out, i % 2 * 3 + 1, 3);
    rondo_buffer_release(out);
  }
  assert_seen(s, "errppppp");
  assert_int_equal(scene_info(s).copied_inputs + scene_info(s).patched_inputs, 0);
}

/* 72 test_tensor_no_longer_in_pool: an output of the path is replaced by memory of the caller's: a sibling, and both
 * are used again. */
SCENE_TEST(test_tr5_peer_72_no_longer_of_the_path) {
  rondo_function *make = scene_affine(s, "make", 3, 1), *f = scene_affine(s, "f", 5, 2);
  const uint32_t *x = scene_words(s, 1);
  for (int i = 0; i < 8; i++) {
    scene_begin(s);
    rondo_buffer *made = scene_call(s, make, scene_at(x));
    rondo_buffer *out = scene_call(s, f, i % 4 < 2 ? scene_of(made) : scene_at(x));
    assert_counts(s, out, i % 4 < 2 ? 22 : 7, i % 4 < 2 ? 15 : 5);
    assert_counts(s, made, 4, 3);
    rondo_buffer_release(made);
    rondo_buffer_release(out);
    scene_end(s);
  }
  assert_seen(s, "eerrprpppppppppp");
  assert_int_equal(scene_info(s).recordings, 3);
  assert_int_equal(scene_info(s).roots, 1);
}

/* 79 test_does_not_demote_static_cudagraph_pool_input: a static input that is given outputs of the path at three
 * addresses has three recordings. */
static rondo_status three_body(rondo_call *call, void *user) {
  scene_enter(user);
  for (uint32_t i = 0; i < 3; i++) scene_put(call, i, scene_input(call, 0), i + 2, 0);
  return RONDO_OK;
}
SCENE_TEST(test_tr5_peer_79_static_inputs_of_the_path) {
  rondo_function *make = SCENE_FUNCTION(s, "make", three_body, scene_work(s, 0, 0), RONDO_INPUTS(RONDO_INPUT_MOVING));
  rondo_function *f = SCENE_FUNCTION(s, "f", test_body_affine, scene_work(s, 5, 2), RONDO_INPUTS(RONDO_INPUT_STATIC));
  const uint32_t *x = scene_words(s, 1);
  for (uint32_t i = 0; i < 9; i++) {
    rondo_buffer *outs[3];
    scene_begin(s);
    SCENE_CALL(s, make, outs, 3, scene_at(x));
    scene_check(s, f, scene_of(outs[i % 3]), 5 * (i % 3 + 2) + 2, 5 * (i % 3 + 2));
    for (int k = 0; k < 3; k++) rondo_buffer_release(outs[k]);
    scene_end(s);
  }
  assert_seen(s, "eerrprprpppppppppp");
  assert_int_equal(scene_info(s).recordings, 4);
}

/* 86 test_separate_recordings: two forms are two roots. */
SCENE_TEST(test_tr7_peer_86_two_forms) {
  rondo_function *f = scene_affine(s, "f", 3, 1);
  const uint32_t *x = scene_words(s, 1);
  for (int round = 0; round < 3; round++)
    for (uint32_t rank = 1; rank <= 2; rank++) {
      rondo_buffer *out;
      rondo_input input = scene_at(x);
      input.rank = rank;
      input.shape[0] = SCENE_WORDS / rank;
      input.shape[1] = rank;
      SCENE_CALL(s, f, &out, 1, input);
      assert_counts(s, out, 4, 3);
      rondo_buffer_release(out);
    }
  assert_seen(s, "eerrpp");
  assert_int_equal(scene_info(s).roots, 2);
}

/* 128 test_not_fallback_to_eager_if_have_not_recompiling_too_many_times, and two that the peer has removed:
 * test_fallback_to_eager_if_recompiling_too_many_times and ..._due_to_cudagraph_managed_tensor; 129
 * test_param_ptr_churn_does_not_count_toward_rerecord_limit: up to the limit at a position, all calls are recorded. One
 * more runs eagerly, with the reason, and the recordings are still replayed. Rondo counts all recordings of a position,
 * whether a parameter, an output of the path or a held output caused them, so that no tree grows without bound. */
SCENE_TEST(test_tr7_peer_128_129_recordings_of_a_place) {
  SCENE_TREE(s, .max_recordings_per_parent = 2);
  rondo_function *f = make_model(s, "f", RONDO_FUNCTION_INFERENCE);
  const uint32_t *x = scene_words(s, 1), *parameters[4];
  for (uint32_t i = 0; i < 4; i++) parameters[i] = scene_words(s, i);
  rondo_buffer_release(call_model(s, f, scene_at(x), parameters[0]));
  for (uint32_t i = 0; i < 12; i++) {
    rondo_buffer *out = call_model(s, f, scene_at(x), parameters[i % 4]);
    assert_counts(s, out, 31 + i % 4, 32);
    rondo_buffer_release(out);
    if (i % 4 < 2) continue;
    assert_skip(s->tree, RECORDING_LIMIT);
    assert_non_null(strstr(test_last_call(s->tree).message, "max_recordings_per_parent"));
  }
  assert_seen(s, "erreeppeeppee");
  assert_int_equal(scene_info(s).recordings, 2);
  assert_int_equal(scene_info(s).skipped[RONDO_SKIP_RECORDING_LIMIT], 6);
  /* After another call it is another place on the path. */
  rondo_function *make = scene_affine(s, "make", 3, 1);
  rondo_buffer_release(scene_call(s, make, scene_at(x)));
  scene_begin(s);
  rondo_buffer *made = scene_call(s, make, scene_at(x)), *out = call_model(s, f, scene_at(x), parameters[3]);
  assert_outcome(s->tree, RONDO_CALL_RECORDED);
  rondo_buffer_release(made);
  rondo_buffer_release(out);
  scene_end(s);
}

/* 113 test_compiled_autograd_static_input_params: of many inputs those that are static are never copied or patched. */
SCENE_TEST(test_tr6_peer_113_static_inputs_are_not_copied) {
  rondo_function *f = SCENE_FUNCTION(s, "f", bias_body, scene_work(s, 0, 0), .binding = RONDO_BINDING_COPY,
                                     RONDO_INPUTS(RONDO_INPUT_STATIC, RONDO_INPUT_MOVING, RONDO_INPUT_STATIC));
  const uint32_t *x = scene_words(s, 1);
  for (int i = 0; i < 6; i++) {
    rondo_buffer *outs[2];
    SCENE_CALL(s, f, outs, 2, scene_at(x), scene_at(x), scene_at(x));
    for (int k = 0; k < 2; k++) rondo_buffer_release(outs[k]);
  }
  const rondo_tree_info info = scene_info(s);
  assert_seen(s, "erpppp");
  assert_int_equal(info.copied_inputs, 5); /* of the launch that the recording is, and of four replays */
  assert_int_equal(info.copied_bytes, 5 * SCENE_BYTES);
}

/* 82 test_rerecording_logs_reason: the log reports each recording, with its number and its predecessor. */
static void count_recordings(void *user, rondo_log_level level, const char *area, const char *message) {
  if (level <= RONDO_LOG_INFO && strcmp(area, "tree") == 0 && strstr(message, "'f' is recorded") != NULL)
    ++*(int *)user;
}
SCENE_TEST(test_tr8_peer_82_recordings_are_logged) {
  int lines = 0;
  rondo_function *f = make_model(s, "f", RONDO_FUNCTION_INFERENCE);
  const uint32_t *x = scene_words(s, 1), *parameters[] = {scene_words(s, 0), scene_words(s, 0)};
  rondo_log_set_sink(count_recordings, &lines, RONDO_LOG_INFO);
  for (int i = 0; i < 6; i++) rondo_buffer_release(call_model(s, f, scene_at(x), parameters[i % 2]));
  rondo_log_set_sink(NULL, NULL, RONDO_LOG_ERROR);
  assert_int_equal(lines, 2);
}
