/* SPDX-License-Identifier: MIT
 * Outputs that alias inputs, constants or other outputs, or have no memory (item 28 of the peer's behavior); after the
 * tests of PyTorch's CUDAGraph Trees, whose names and numbers the tests have. The peer finds aliases by comparing
 * storages; Rondo's bodies declare what an output is part of. In assert_seen, each letter is a call: e eager, r
 * recorded, p replayed.
 */
#include "support/test_scene.h"

static uint32_t live(const test_scene *s) { return scene_info(s).live_outputs; }

/* An input that is returned whole, and 16 bytes of it. */
static rondo_status through_body(rondo_call *call, void *user) {
  scene_enter(user);
  assert_ok(rondo_call_output_of_input(call, 0, 0, 0, SCENE_BYTES, NULL));
  assert_ok(rondo_call_output_of_input(call, 1, 0, 16, 16, NULL));
  scene_put(call, 2, scene_input(call, 0), 2, 0);
  return RONDO_OK;
}

static void check_through(test_scene *s, rondo_buffer *const outs[3], uint32_t first) {
  assert_counts(s, outs[0], first, 1);
  test_assert_buffer(s->fixture, outs[1], first + 4, 1);
  assert_counts(s, outs[2], 2 * first, 2);
}

/* 58 test_aliased_static_parameter, 54 test_aliasing_static_ref, 55 ..._no_graph_partition, 87 test_alias_of_parameter,
 * 49 test_constant_output: parts of a static input are that memory in every state, outlive the step, and do not live on
 * the path; whether bodies may be cut at host steps or not. */
static void assert_parts_of_parameters(test_scene *s, bool no_host_steps) {
  SCENE_TREE(s, .no_host_steps = no_host_steps);
  rondo_function *f = SCENE_FUNCTION(s, "f", through_body, scene_work(s, 0, 0), RONDO_INPUTS(RONDO_INPUT_STATIC));
  uint32_t *parameter = scene_words(s, 1);
  rondo_buffer *old = NULL, *outs[3];
  for (uint32_t i = 0; i < 5; i++) {
    scene_set(s, parameter, i);
    SCENE_CALL(s, f, outs, 3, scene_at(parameter));
    check_through(s, outs, i);
    assert_ptr_equal(scene_address(outs[0]), parameter);
    assert_ptr_equal(scene_address(outs[1]), parameter + 4);
    assert_int_equal(live(s), i == 0 ? 0 : 1);
    if (old != NULL) assert_counts(s, old, i, 1); /* of no step: the current parameter */
    rondo_buffer_release(old);
    rondo_buffer_release(outs[2]);
    rondo_buffer_release(outs[1]);
    assert_int_equal(live(s), 0);
    old = outs[0];
  }
  rondo_buffer_release(old);
  assert_seen(s, "erppp");
}

SCENE_TEST(test_tr6_peer_49_54_55_58_87_parts_of_parameters) {
  for (int way = 0; way < 2; way++) assert_parts_of_parameters(s, way != 0);
}

/* 67 test_output_alias: an ordinary input and a part of it are returned, wherever the input is in that call. */
SCENE_TEST(test_tr6_peer_67_inputs_returned) {
  rondo_function *f = SCENE_FUNCTION(s, "f", through_body, scene_work(s, 0, 0), RONDO_INPUTS(RONDO_INPUT_MOVING));
  for (uint32_t i = 0; i < 5; i++) {
    rondo_buffer *outs[3];
    uint32_t *x = scene_words(s, 10 * i);
    SCENE_CALL(s, f, outs, 3, scene_at(x));
    check_through(s, outs, 10 * i);
    assert_ptr_equal(scene_address(outs[0]), x);
    for (int k = 0; k < 3; k++) rondo_buffer_release(outs[k]);
    assert_int_equal(live(s), 0);
  }
  assert_seen(s, "erppp");
}

/* 53 test_aliased_storage_single_weakref, 95 (its first half): a second function returns what the first created: one
 * memory, which lives until its last handle is released. */
SCENE_TEST(test_tr4_peer_53_two_functions_share_memory) {
  rondo_function *make = scene_affine(s, "make", 3, 1);
  rondo_function *f = SCENE_FUNCTION(s, "f", through_body, scene_work(s, 0, 0), RONDO_INPUTS(RONDO_INPUT_MOVING));
  const uint32_t *x = scene_words(s, 1);
  for (int i = 0; i < 5; i++) {
    rondo_buffer *outs[3];
    scene_begin(s);
    rondo_buffer *made = scene_call(s, make, scene_at(x));
    SCENE_CALL(s, f, outs, 3, scene_given(made));
    assert_counts(s, outs[0], 4, 3);
    assert_counts(s, outs[2], 8, 6);
    rondo_buffer_release(outs[2]);
    rondo_buffer_release(outs[0]);
    if (i > 0) assert_int_equal(live(s), 1);
    test_assert_buffer(s->fixture, outs[1], 16, 3);
    rondo_buffer_release(outs[1]);
    assert_int_equal(live(s), 0);
    scene_end(s);
  }
  assert_seen(s, "eerrpppppp");
}

/* Two parts of one output, which is not itself returned. */
static rondo_status halves_body(rondo_call *call, void *user) {
  scene_enter(user);
  scene_put(call, 0, scene_input(call, 0), 2, 0);
  assert_ok(rondo_call_output_of_output(call, 1, 0, 0, SCENE_BYTES / 2, NULL));
  return rondo_call_output_of_output(call, 2, 0, SCENE_BYTES / 2, SCENE_BYTES / 2, NULL);
}

/* 69 test_aliased_output_checkpoint, 83 test_checkpoint_shared_output_storage_deallocation: the memory of two parts is
 * used again when both are dead, and not before; once. */
SCENE_TEST(test_tr4_peer_69_83_parts_hold_the_whole) {
  rondo_function *halves =
      SCENE_FUNCTION(s, "halves", halves_body, scene_work(s, 0, 0), RONDO_INPUTS(RONDO_INPUT_MOVING));
  rondo_function *f = scene_affine(s, "f", 3, 1);
  const uint32_t *x = scene_words(s, 0);
  for (int held = 0; held < 3; held++) {
    for (int i = 0; i < 3; i++) {
      rondo_buffer *outs[3];
      scene_begin(s);
      SCENE_CALL(s, halves, outs, 3, scene_at(x));
      rondo_buffer_release(outs[0]);
      for (int k = 1; k < 3; k++)
        if (k > held) rondo_buffer_release(outs[k]);
      const bool is_recorded = held > 0 || i > 0;
      if (is_recorded) assert_int_equal(live(s), held == 0 ? 0 : 1);
      rondo_buffer *out = scene_call(s, f, scene_at(x));
      assert_counts(s, out, 1, 3);
      for (int k = 1; k <= held && k < 3; k++) {
        test_assert_buffer(s->fixture, outs[k], k == 1 ? 0 : SCENE_WORDS, 2);
        rondo_buffer_release(outs[k]);
      }
      rondo_buffer_release(out);
      assert_int_equal(live(s), 0);
      scene_end(s);
    }
  }
  /* f is a root when all is dead; after a half that lives it is a child, which fits for one half and for both. */
  assert_seen(s, "eerrppprpppppppppp");
  assert_int_equal(scene_info(s).recordings, 3);
  assert_int_equal(scene_info(s).roots, 2);
}

/* Outputs without memory, from an input without. */
static rondo_status empty_body(rondo_call *call, void *user) {
  void *nothing = user;
  rondo_input input;
  scene_enter(user);
  assert_ok(rondo_call_get_input(call, 0, &input));
  assert_int_equal(input.bytes, 0);
  assert_int_equal(input.rank, 2);
  assert_int_equal(input.shape[1], 0);
  const rondo_output_options options = {RONDO_OUTPUT_OPTIONS_INIT, .rank = 2, .shape = {3, 0}, .name = "empty"};
  assert_ok(rondo_call_output(call, 0, 0, &options, &nothing));
  assert_null(nothing);
  assert_ok(rondo_call_output_of_input(call, 1, 0, 0, 0, NULL));
  assert_ok(rondo_call_output_of_output(call, 2, 0, 0, 0, NULL));
  scene_put(call, 3, scene_input(call, 1), 2, 0);
  return rondo_call_output_of_output(call, 4, 3, SCENE_BYTES, 0, NULL);
}

/* 68 test_empty_storage, 66 test_empty_cpu_tensor, 216 test_meta_tensor: inputs and outputs without memory are allowed
 * everywhere, live nowhere, and keep their shape. */
SCENE_TEST(test_tr7_peer_66_68_216_no_memory) {
  rondo_function *f =
      SCENE_FUNCTION(s, "f", empty_body, scene_work(s, 0, 0), RONDO_INPUTS(RONDO_INPUT_MOVING, RONDO_INPUT_MOVING));
  const uint32_t *x = scene_words(s, 1);
  for (int i = 0; i < 5; i++) {
    rondo_buffer *outs[5];
    SCENE_CALL(s, f, outs, 5, {.rank = 2, .shape = {7, 0}}, scene_at(x));
    for (int k = 0; k < 3; k++) assert_null(scene_address(outs[k]));
    rondo_buffer_info info = test_buffer_info(outs[0]);
    assert_int_equal(info.rank, 2);
    assert_int_equal(info.shape[0], 3);
    assert_int_equal(info.bytes, 0);
    assert_counts(s, outs[3], 2, 2);
    assert_ok(rondo_buffer_copy(outs[4], s->stream, 0, NULL, 0));
    assert_int_equal(live(s), i == 0 ? 0 : 1);
    for (int k = 0; k < 5; k++) rondo_buffer_release(outs[k]);
    assert_int_equal(live(s), 0);
  }
  assert_seen(s, "erppp");
}

/* 176 test_view_only_cuda_graph_suppresses_empty_warning: a body that queues nothing and only returns its input. It is
 * recorded like any other, also in a strict tree; with min_nodes it is TOO_SMALL. */
static rondo_status view_body(rondo_call *call, void *user) {
  scene_enter(user);
  return rondo_call_output_of_input(call, 0, 0, 4, SCENE_BYTES - 4, NULL);
}
SCENE_TEST(test_tr8_peer_176_a_body_without_work) {
  for (uint32_t least = 0; least < 2; least++) {
    SCENE_TREE(s, .strict = least == 0);
    rondo_function *f =
        SCENE_FUNCTION(s, "f", view_body, scene_work(s, 0, 0), .min_nodes = least, RONDO_INPUTS(RONDO_INPUT_MOVING));
    for (uint32_t i = 0; i < 4; i++) {
      uint32_t *x = scene_words(s, i);
      rondo_buffer *out = scene_call(s, f, scene_at(x));
      assert_ptr_equal(scene_address(out), x + 1);
      test_assert_buffer(s->fixture, out, i + 1, 1);
      rondo_buffer_release(out);
      if (least == 1 && i > 0) assert_skip(s->tree, TOO_SMALL);
    }
    assert_seen(s, least == 0 ? "erpp" : "eeee");
  }
}

/* 177 test_kernel_free_allocation_uses_cudagraph_pool: a body that only allocates its output. */
static rondo_status allocating_body(rondo_call *call, void *user) {
  void *out;
  scene_enter(user);
  return rondo_call_output(call, 0, SCENE_BYTES, NULL, &out);
}
SCENE_TEST(test_tr3_peer_177_a_body_that_only_allocates) {
  rondo_function *f = SCENE_FUNCTION(s, "f", allocating_body, scene_work(s, 0, 0), .input_count = 0);
  for (int i = 0; i < 4; i++) {
    rondo_buffer *out;
    uint32_t words[SCENE_WORDS];
    assert_ok(rondo_function_call(f, s->stream, NULL, 0, &out, 1));
    assert_ok(rondo_fill_async(
        s->stream, &(rondo_fill){.dst = scene_address(out), .value = 9, .element_bytes = 4, .width = SCENE_WORDS}));
    assert_ok(rondo_buffer_copy(out, s->stream, 0, words, sizeof words));
    assert_ok(rondo_stream_synchronize(s->stream));
    assert_int_equal(words[SCENE_WORDS - 1], 9);
    if (i > 0) assert_int_equal(live(s), 1);
    rondo_buffer_release(out);
  }
  assert_outcome(s->tree, RONDO_CALL_REPLAYED);
}

/* 51 test_expanded_inputs: the peer's broadcast inputs are overlapping inputs in Rondo. */
SCENE_TEST(test_tr6_peer_51_inputs_over_one_another) {
  const uint32_t *x = scene_words(s, 1);
  for (int binding = RONDO_BINDING_AUTOMATIC; binding <= RONDO_BINDING_PATCH; binding++) {
    rondo_function *f =
        SCENE_FUNCTION(s, "f", scene_body_combine, scene_work(s, 0, 0), .binding = (rondo_binding)binding,
                       RONDO_INPUTS(RONDO_INPUT_MOVING, RONDO_INPUT_MOVING));
    for (int i = 0; i < 4; i++) {
      rondo_buffer *out;
      SCENE_CALL(s, f, &out, 1, scene_at(x), scene_at(x));
      assert_counts(s, out, 32, 32);
      rondo_buffer_release(out);
    }
    assert_seen(s, "erpp");
  }
}

static rondo_status hand_through_body(rondo_call *call, void *user) {
  scene_enter(user);
  return rondo_call_output_of_input(call, 0, 0, 0, SCENE_BYTES, NULL);
}

static rondo_function *make_hand_through(test_scene *s, rondo_tree *tree) {
  rondo_function *made;
  assert_ok(rondo_function_create(
      tree,
      &(rondo_function_options){RONDO_FUNCTION_OPTIONS_INIT, .name = "hand", .body = hand_through_body,
                                .user = scene_work(s, 0, 0), RONDO_INPUTS(RONDO_INPUT_MOVING)},
      &made));
  return made;
}

static void assert_gone(test_scene *s, rondo_function *reader, rondo_buffer *buffer) {
  rondo_buffer *out;
  void *address;
  const rondo_input input = {.buffer = buffer};
  assert_error(rondo_buffer_address(buffer, &address), RONDO_INVALID_STATE, RONDO_REASON_TREE_GONE);
  assert_error(rondo_buffer_clone(buffer, s->stream, &out), RONDO_INVALID_STATE, RONDO_REASON_TREE_GONE);
  assert_error(rondo_function_call(reader, s->stream, &input, 1, &out, 1), RONDO_INVALID_STATE, RONDO_REASON_TREE_GONE);
}

/* A part of another tree's buffer ends with either tree. */
SCENE_TEST(test_tr9_parts_of_another_trees_buffers) {
  rondo_function *here = make_hand_through(s, s->tree);
  for (int goes_first = 0; goes_first < 2; goes_first++) {
    rondo_tree *other;
    rondo_buffer *whole, *part;
    assert_ok(rondo_tree_create(s->fixture->device, NULL, &other));
    assert_ok(rondo_buffer_create(goes_first == 0 ? s->tree : other, SCENE_BYTES, NULL, &whole));
    const rondo_input input = {.buffer = whole};
    assert_ok(
        rondo_function_call(goes_first == 0 ? make_hand_through(s, other) : here, s->stream, &input, 1, &part, 1));
    assert_ptr_equal(scene_address(part), scene_address(whole));
    assert_ok(rondo_tree_destroy(other));
    assert_gone(s, here, part);
    if (goes_first == 0)
      assert_non_null(scene_address(whole));
    else
      assert_gone(s, here, whole);
    rondo_buffer_release(part);
    rondo_buffer_release(whole);
  }
}
