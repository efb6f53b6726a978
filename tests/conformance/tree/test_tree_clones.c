/* SPDX-License-Identifier: MIT
 * Outputs that are cloned when their step ends (RONDO_OUTPUTS_CLONE, TR-9), after the tests of PyTorch's CUDAGraph
 * Trees, whose names and numbers the tests have. The peer clones storages of tensors that the garbage collector still
 * knows; Rondo clones buffers that are not released. In assert_seen, each letter is a call: e eager, r recorded, p
 * replayed.
 */
#include "support/test_scene.h"

static void clone_outputs(test_scene *s) { SCENE_TREE(s, .outputs = RONDO_OUTPUTS_CLONE); }

/* 91 test_clone_live_output_on_new_generation: values stay, the address moves, each memory is freed once; in every
 * state of the function: the step that ends was warmed up, recorded or replayed. */
SCENE_TEST(test_tr9_peer_91_what_is_held_is_cloned) {
  enum { STEPS = 6 };
  clone_outputs(s);
  rondo_function *f = scene_affine(s, "f", 3, 1);
  uint32_t *x = scene_words(s, 0);
  rondo_buffer *outs[STEPS];
  void *addresses[STEPS];
  for (uint32_t i = 0; i < STEPS; i++) {
    scene_set(s, x, 100 * i);
    outs[i] = scene_call(s, f, scene_at(x));
    addresses[i] = scene_address(outs[i]);
    if (i == 0) continue;
    /* The outputs of an eager run have separate memory, which stays. */
    assert_true((scene_address(outs[i - 1]) == addresses[i - 1]) == (i == 1));
    assert_int_equal(scene_info(s).clones, i - 1);
  }
  assert_seen(s, "erpppp");
  for (uint32_t i = 0; i < STEPS; i++) assert_counts(s, outs[i], 300 * i + 1, 3);
  assert_int_equal(scene_info(s).cloned_bytes, (STEPS - 2) * SCENE_BYTES);
  assert_int_equal(scene_info(s).eager_bytes, (STEPS - 1) * SCENE_BYTES);
  for (uint32_t i = 0; i < STEPS; i++) rondo_buffer_release(outs[i]);
  rondo_buffer_release(scene_call(s, f, scene_at(x))); /* after whose stream it is freed */
  assert_int_equal(scene_info(s).eager_bytes, 0);
}

/* 92 test_clone_live_output_keeps_cache_when_output_dead: outputs that nobody holds are not cloned. */
SCENE_TEST(test_tr9_peer_92_the_dead_cost_nothing) {
  clone_outputs(s);
  rondo_function *f = scene_affine(s, "f", 3, 1);
  const uint32_t *x = scene_words(s, 1);
  void *address = NULL;
  for (int i = 0; i < 6; i++) {
    rondo_buffer *out = scene_call(s, f, scene_at(x));
    if (i == 1) address = scene_address(out);
    if (i > 1) assert_ptr_equal(scene_address(out), address);
    rondo_buffer_release(out);
  }
  assert_int_equal(scene_info(s).clones, 0);
  assert_int_equal(scene_info(s).recordings, 1);
}

/* The whole output, a part of it, and a part of what the input is part of. */
static rondo_status parts_body(rondo_call *call, void *user) {
  scene_enter(user);
  scene_put(call, 0, scene_input(call, 0), 2, 0);
  return rondo_call_output_of_output(call, 1, 0, 16, 32, NULL);
}
static rondo_status hand_back_body(rondo_call *call, void *user) {
  scene_enter(user);
  scene_put(call, 0, scene_input(call, 0), 1, 1);
  return rondo_call_output_of_input(call, 1, 0, 8, 16, NULL);
}

static rondo_function *make_parts(test_scene *s) {
  return SCENE_FUNCTION(s, "parts", parts_body, scene_work(s, 0, 0), RONDO_INPUTS(RONDO_INPUT_MOVING));
}

/* 93 test_clone_live_aliased_output_storage_on_new_generation, 94 test_clone_live_retargets_non_user_visible..., 96
 * test_clone_live_output_storage_with_only_user_view_live: an output and its part are cloned together and still share
 * memory; so is a part that is held alone. */
SCENE_TEST(test_tr9_peer_93_94_96_parts_follow_their_whole) {
  for (int only_part = 0; only_part < 2; only_part++) {
    clone_outputs(s);
    rondo_function *f = make_parts(s);
    uint32_t *x = scene_words(s, 0);
    rondo_buffer *old[2] = {NULL, NULL};
    for (uint32_t i = 0; i < 5; i++) {
      rondo_buffer *outs[2];
      scene_set(s, x, 10 * i);
      SCENE_CALL(s, f, outs, 2, scene_at(x));
      if (i > 0) {
        test_assert_buffer(s->fixture, old[1], 20 * (i - 1) + 8, 2);
        if (only_part == 0) assert_counts(s, old[0], 20 * (i - 1), 2);
        if (only_part == 0) assert_ptr_equal(scene_address(old[1]), (char *)scene_address(old[0]) + 16);
      }
      if (i > 1) assert_int_equal(scene_info(s).clones, i - 1);
      for (int k = 0; k < 2; k++) rondo_buffer_release(old[k]);
      if (only_part != 0) {
        rondo_buffer_release(outs[0]);
        outs[0] = NULL;
      }
      for (int k = 0; k < 2; k++) old[k] = outs[k];
    }
    for (int k = 0; k < 2; k++) rondo_buffer_release(old[k]);
    assert_seen(s, "erppp");
  }
}

/* 95 test_clone_live_prior_graph_output_alias: a part of the first recording's output that a second recording returns.
 * */
SCENE_TEST(test_tr9_peer_95_a_part_of_an_earlier_output) {
  clone_outputs(s);
  rondo_function *make = scene_affine(s, "make", 3, 1);
  rondo_function *back =
      SCENE_FUNCTION(s, "back", hand_back_body, scene_work(s, 0, 0), RONDO_INPUTS(RONDO_INPUT_MOVING));
  uint32_t *x = scene_words(s, 0);
  rondo_buffer *kept = NULL;
  for (uint32_t i = 0; i < 5; i++) {
    rondo_buffer *outs[2];
    scene_set(s, x, i);
    scene_begin(s);
    rondo_buffer *made = scene_call(s, make, scene_at(x));
    if (i > 0) test_assert_buffer(s->fixture, kept, 3 * (i - 1) + 7, 3);
    rondo_buffer_release(kept);
    SCENE_CALL(s, back, outs, 2, scene_given(made));
    assert_counts(s, outs[0], 3 * i + 2, 3);
    rondo_buffer_release(outs[0]);
    kept = outs[1];
    scene_end(s);
  }
  test_assert_buffer(s->fixture, kept, 19, 3);
  rondo_buffer_release(kept);
  assert_seen(s, "eerrpppppp");
}

/* 97 test_clone_live_output_used_as_next_generation_input: the old handle stays and the next step reads it right. */
SCENE_TEST(test_tr9_peer_97_the_next_step_reads_it) {
  enum { STEPS = 6 };
  clone_outputs(s);
  rondo_function *f = scene_affine(s, "f", 3, 1);
  uint32_t firsts[STEPS + 1] = {1}, steps[STEPS + 1] = {1};
  rondo_buffer *outs[STEPS];
  for (int i = 0; i < STEPS; i++) {
    outs[i] = scene_call(s, f, i == 0 ? scene_at(scene_words(s, 1)) : scene_of(outs[i - 1]));
    firsts[i + 1] = 3 * firsts[i] + 1;
    steps[i + 1] = 3 * steps[i];
    for (int k = 0; k <= i; k++) assert_counts(s, outs[k], firsts[k + 1], steps[k + 1]);
  }
  for (int i = 0; i < STEPS; i++) rondo_buffer_release(outs[i]);
  assert_seen(s, "erpppp");
}

/* 98, 99, 100 test_clone_live_output_saved_for_backward_...: an output that a forward saved, whole, only by a part, or
 * as a part, is cloned at a mark, and the backward reads it correctly after the next forward. */
static rondo_status backward_body(rondo_call *call, void *user) {
  rondo_input saved;
  void *out;
  scene_enter(user);
  assert_ok(rondo_call_get_input(call, 0, &saved));
  assert_ok(rondo_call_output(call, 0, saved.bytes, NULL, &out));
  assert_ok(rondo_copy_async(rondo_call_stream(call), out, saved.address, saved.bytes));
  test_affine(((test_work *)user)->fixture, rondo_call_stream(call), out, saved.bytes / sizeof(uint32_t), 7, 1);
  return RONDO_OK;
}
SCENE_TEST(test_tr9_peer_98_99_100_saved_for_a_backward) {
  for (int saves = 0; saves < 2; saves++) { /* 0: the whole, 1: only a part */
    clone_outputs(s);
    rondo_function *forward = SCENE_FUNCTION(s, "forward", parts_body, scene_work(s, 0, 0),
                                             .kind = RONDO_FUNCTION_FORWARD, RONDO_INPUTS(RONDO_INPUT_MOVING));
    rondo_function *backward = SCENE_FUNCTION(s, "backward", backward_body, scene_work(s, 0, 0),
                                              .kind = RONDO_FUNCTION_BACKWARD, RONDO_INPUTS(RONDO_INPUT_MOVING));
    uint32_t *x = scene_words(s, 0);
    for (uint32_t i = 0; i < 5; i++) {
      rondo_buffer *saved[2], *other[2], *out;
      scene_set(s, x, i);
      assert_ok(rondo_tree_mark_step(s->tree));
      SCENE_CALL(s, forward, saved, 2, scene_at(x));
      rondo_buffer_release(saved[1 - saves]);
      assert_ok(rondo_tree_mark_step(s->tree));
      scene_set(s, x, 1000);
      SCENE_CALL(s, forward, other, 2, scene_at(x));
      SCENE_CALL(s, backward, &out, 1, scene_given(saved[saves]));
      test_assert_buffer(s->fixture, out, (saves == 0 ? 2 * i : 2 * i + 8) * 7 + 1, 14);
      rondo_buffer_release(out);
      for (int k = 0; k < 2; k++) rondo_buffer_release(other[k]);
    }
    assert_outcome(s->tree, RONDO_CALL_REPLAYED);
    s->calls = 0;
  }
}

/* 101 test_grad_accumulation_dealloc_error_message: a gradient that is an output of an old step cannot be accumulated;
 * the error says what to do. A buffer of rondo_buffer_create belongs to no step, and accumulates everything (64
 * test_accumulate_grad), in place or through a separate buffer. */
static rondo_status accumulate_body(rondo_call *call, void *user) {
  uint32_t *sum = scene_input(call, 0);
  scene_enter(user);
  const uint32_t *next = scene_combine(call, 0, sum, scene_input(call, 1));
  return rondo_copy_async(rondo_call_stream(call), sum, next, SCENE_BYTES);
}
SCENE_TEST(test_tr9_peer_64_101_gradients_of_no_step) {
  rondo_function *f = SCENE_FUNCTION(s, "accumulate", accumulate_body, scene_work(s, 0, 0),
                                     RONDO_INPUTS(RONDO_INPUT_STATIC | RONDO_INPUT_MUTATED, RONDO_INPUT_MOVING));
  rondo_function *make = scene_affine(s, "make", 3, 1);
  const uint32_t *x = scene_words(s, 1);
  rondo_buffer *sum = NULL, *old = NULL;
  uint32_t first = 0, step = 0;
  assert_ok(rondo_buffer_create(s->tree, SCENE_BYTES, NULL, &sum));
  assert_ok(
      rondo_fill_async(s->stream, &(rondo_fill){.dst = scene_address(sum), .element_bytes = 4, .width = SCENE_WORDS}));
  for (uint32_t i = 0; i < 5; i++) {
    rondo_buffer *out, *refused;
    scene_begin(s);
    rondo_buffer *gradient = scene_call(s, make, scene_at(x));
    SCENE_CALL(s, f, &out, 1, scene_of(sum), scene_of(gradient));
    first = first * 31 + 4;
    step = step * 31 + 3;
    assert_counts(s, out, first, step);
    assert_counts(s, sum, first, step);
    if (old != NULL) {
      const rondo_input inputs[] = {scene_of(old), scene_of(gradient)};
      assert_reason(rondo_function_call(f, s->stream, inputs, 2, &refused, 1), RONDO_REASON_STALE_BUFFER);
      assert_message("'make'");
      assert_message("rondo_buffer_clone");
    }
    rondo_buffer_release(old);
    rondo_buffer_release(out);
    old = gradient;
    scene_end(s);
  }
  rondo_buffer_release(old);
  rondo_buffer_release(sum);
  assert_seen(s, "eerrpppppp");
}

/* A clone that the caller requests belongs to no step. */
SCENE_TEST(test_tr9_clones_of_the_callers) {
  rondo_function *f = make_parts(s);
  const uint32_t *x = scene_words(s, 3);
  for (int i = 0; i < 4; i++) {
    rondo_buffer *outs[2], *clones[2];
    SCENE_CALL(s, f, outs, 2, scene_at(x));
    for (int k = 0; k < 2; k++) assert_ok(rondo_buffer_clone(outs[k], s->stream, &clones[k]));
    for (int k = 0; k < 2; k++) rondo_buffer_release(outs[k]);
    SCENE_CALL(s, f, outs, 2, scene_at(x));
    for (int k = 0; k < 2; k++) rondo_buffer_release(outs[k]);
    assert_counts(s, clones[0], 6, 2);
    test_assert_buffer(s->fixture, clones[1], 14, 2);
    for (int k = 0; k < 2; k++) rondo_buffer_release(clones[k]);
  }
  rondo_buffer *outs[2];
  SCENE_CALL(s, f, outs, 2, scene_at(x));
  for (int k = 0; k < 2; k++) rondo_buffer_release(outs[k]);
  assert_int_equal(scene_info(s).eager_bytes, 0);
}

/* A reset ends a step like a call, and so does planning, also when the stream of the last call was destroyed: held
 * outputs are cloned, parts together with their whole. */
SCENE_TEST(test_tr9_cloned_without_a_stream) {
  for (int plans = 0; plans < 2; plans++) {
    clone_outputs(s);
    rondo_function *f = make_parts(s);
    const uint32_t *x = scene_words(s, 3);
    rondo_stream *const before = s->stream;
    rondo_buffer *outs[2];
    rondo_stream *own = test_stream(s->fixture, NULL);
    s->stream = own;
    for (int i = 0; i < 3; i++) {
      SCENE_CALL(s, f, outs, 2, scene_at(x));
      if (i < 2)
        for (int k = 0; k < 2; k++) rondo_buffer_release(outs[k]);
    }
    s->stream = before;
    test_stream_destroy(own);
    assert_ok(plans != 0 ? rondo_tree_plan_again(s->tree) : rondo_tree_reset(s->tree));
    assert_int_equal(scene_info(s).clones, 1);
    assert_int_equal(scene_info(s).live_outputs, 0);
    assert_counts(s, outs[0], 6, 2);
    test_assert_buffer(s->fixture, outs[1], 14, 2);
    rondo_buffer *again[2];
    SCENE_CALL(s, f, again, 2, scene_at(x));
    assert_counts(s, again[0], 6, 2);
    assert_counts(s, outs[0], 6, 2);
    for (int k = 0; k < 2; k++) {
      rondo_buffer_release(outs[k]);
      rondo_buffer_release(again[k]);
    }
  }
}
