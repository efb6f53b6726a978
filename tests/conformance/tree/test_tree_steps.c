/* SPDX-License-Identifier: MIT
 * Steps of trees (TR-9, TR-2), after the tests of PyTorch's CUDAGraph Trees: each test has the peer's name and number.
 * The peer counts generations, and Rondo steps. The peer waits for a garbage collector or for the first backward to be
 * collected; Rondo's buffers are released. "Descendants of the roots" are path lengths and numbers of roots.
 * In assert_seen, each letter is a call: e eager, r recorded, p replayed.
 */
#include "support/test_scene.h"

/* The bodies of a forward, which returns what its backward needs, and of that backward: grad = (saved * 31 + given). */
static rondo_status forward_body(rondo_call *call, void *user) {
  const test_work *work = scene_enter(user);
  const uint32_t *x = scene_input(call, 0);
  scene_put(call, 0, x, work->factor, work->term);
  scene_put(call, 1, x, 1, 0);
  return RONDO_OK;
}
typedef struct training {
  rondo_function *forward, *backward;
  test_work *forward_work, *backward_work;
} training;

static training make_training(test_scene *s) {
  training out = {.forward_work = scene_work(s, 3, 1), .backward_work = scene_work(s, 0, 0)};
  out.forward = SCENE_FUNCTION(s, "forward", forward_body, out.forward_work, .kind = RONDO_FUNCTION_FORWARD,
                               RONDO_INPUTS(RONDO_INPUT_MOVING));
  out.backward = SCENE_FUNCTION(s, "backward", scene_body_combine, out.backward_work, .kind = RONDO_FUNCTION_BACKWARD,
                                RONDO_INPUTS(RONDO_INPUT_MOVING, RONDO_INPUT_MOVING));
  return out;
}

/* A forward; its result is released, and what its backward needs is kept. */
static rondo_buffer *run_forward(test_scene *s, const training *model, const uint32_t *x, uint32_t first) {
  rondo_buffer *outs[2];
  SCENE_CALL(s, model->forward, outs, 2, scene_at(x));
  assert_counts(s, outs[0], 3 * first + 1, 3);
  rondo_buffer_release(outs[0]);
  return outs[1];
}

/* The backward of a forward whose x counted up from `first`, with a gradient that counts up from 7; its buffers are
 * released. */
static void run_backward(test_scene *s, const training *model, rondo_buffer *saved, const uint32_t *gradient,
                         uint32_t first) {
  rondo_buffer *out;
  SCENE_CALL(s, model->backward, &out, 1, scene_given(saved), scene_at(gradient));
  assert_counts(s, out, 31 * first + 7, 32);
  rondo_buffer_release(out);
}

/* 30 test_function_compiled_multiple_times: twice in one step is a root with one child. */
SCENE_TEST(test_tr2_peer_30_a_function_twice_in_a_step) {
  rondo_function *f = scene_affine(s, "f", 3, 1);
  const uint32_t *x = scene_words(s, 1);
  for (int i = 0; i < 4; i++) {
    scene_begin(s);
    rondo_buffer *first = scene_call(s, f, scene_at(x)), *second = scene_call(s, f, scene_of(first));
    assert_counts(s, first, 4, 3);
    assert_counts(s, second, 13, 9);
    if (i > 0) assert_int_equal(scene_info(s).path_length, 2);
    rondo_buffer_release(first);
    rondo_buffer_release(second);
    scene_end(s);
  }
  assert_seen(s, "eerrpppp");
  assert_int_equal(scene_info(s).recordings, 2);
  assert_int_equal(scene_info(s).roots, 1);
}

/* 31 test_end_recording_early, and item 36: with all outputs dead the next call begins at the root, also in a step. */
SCENE_TEST(test_tr2_peer_31_a_dead_path_ends) {
  rondo_function *f = scene_affine(s, "f", 3, 1), *g = scene_affine(s, "g", 5, 2);
  const uint32_t *x = scene_words(s, 1);
  for (int i = 0; i < 4; i++) {
    scene_begin(s);
    rondo_buffer *out = scene_call(s, f, scene_at(x));
    rondo_buffer_release(out);
    out = scene_call(s, g, scene_at(x));
    assert_counts(s, out, 7, 5);
    rondo_buffer_release(out);
    scene_end(s);
  }
  assert_seen(s, "eerrpppp");
  assert_int_equal(scene_info(s).recordings, 2);
  assert_int_equal(scene_info(s).roots, 2);
}

/* 5 test_run_simple: two forms are two roots without children, when each call is a step. */
SCENE_TEST(test_tr2_peer_5_calls_are_steps) {
  rondo_function *f = scene_affine(s, "f", 3, 1);
  const uint32_t *x = scene_words(s, 1);
  for (int i = 0; i < 3; i++)
    for (size_t words = SCENE_WORDS / 2; words <= SCENE_WORDS; words += SCENE_WORDS / 2) {
      rondo_buffer *out;
      SCENE_CALL(s, f, &out, 1, {.address = (void *)(uintptr_t)x, .bytes = words * sizeof *x});
      test_assert_buffer(s->fixture, out, 4, 3);
      assert_int_equal(scene_info(s).path_length, i == 0 ? 0 : 1);
      rondo_buffer_release(out);
    }
  assert_seen(s, "eerrpp");
  assert_int_equal(scene_info(s).roots, 2);
  assert_int_equal(scene_info(s).recordings, 2);
}

/* 85 test_forward_backward, 37 test_cached_forward_backward: a root with one child; the values are the same, recorded
 * or not, and nothing lives after the step. */
SCENE_TEST(test_tr9_peer_85_37_forward_and_backward) {
  const training model = make_training(s);
  uint32_t *x = scene_words(s, 0), *gradient = scene_words(s, 7);
  for (uint32_t i = 0; i < 5; i++) {
    scene_set(s, x, 10 * i);
    rondo_buffer *saved = run_forward(s, &model, x, 10 * i);
    if (i > 0) assert_int_equal(scene_info(s).live_outputs, 1);
    run_backward(s, &model, saved, gradient, 10 * i);
    assert_int_equal(scene_info(s).live_outputs, 0);
  }
  assert_seen(s, "eerrpppppp");
  assert_int_equal(scene_info(s).roots, 1);
  assert_int_equal(scene_info(s).recordings, 2);
}

/* 109 test_forward_generation: chained forwards belong to the step of their backward, and what is held of them lives.
 */
SCENE_TEST(test_tr9_peer_109_forwards_belong_to_one_step) {
  const training model = make_training(s);
  const uint32_t *x = scene_words(s, 5), *gradient = scene_words(s, 7);
  for (int i = 0; i < 4; i++) {
    const uint64_t steps = scene_info(s).steps;
    rondo_buffer *first = run_forward(s, &model, x, 5), *second = run_forward(s, &model, x, 5);
    if (i > 0) assert_int_equal(scene_info(s).live_outputs, 2);
    run_backward(s, &model, second, gradient, 5);
    assert_int_equal(scene_info(s).steps, steps + 1);
    /* 34: the first backward ends the pending state, not the last one; held outputs belong to a step that any call may
     * end. */
    rondo_buffer_release(first);
  }
  assert_seen(s, "eeerrrpppppp");
  assert_int_equal(scene_info(s).roots, 1);
}

/* 38 test_forward_backward_not_called: of two forwards one has no backward; the one backward ends the step. */
SCENE_TEST(test_tr9_peer_38_a_backward_is_not_called) {
  const training model = make_training(s);
  const uint32_t *x = scene_words(s, 5), *gradient = scene_words(s, 7);
  for (int i = 0; i < 4; i++) {
    rondo_buffer *unused = run_forward(s, &model, x, 5);
    rondo_buffer *saved = run_forward(s, &model, x, 5);
    rondo_buffer_release(unused);
    run_backward(s, &model, saved, gradient, 5);
  }
  assert_seen(s, "eeerrrpppppp");
  assert_int_equal(scene_info(s).recordings, 3);
}

/* 33 test_forward_with_skipped_cudagraphed_backward: an eager backward ends the step all the same. */
SCENE_TEST(test_tr9_peer_33_an_eager_backward_ends_the_step) {
  const training model = make_training(s);
  const uint32_t *x = scene_words(s, 5), *gradient = scene_words(s, 7);
  assert_ok(rondo_function_set_recording(model.backward, false));
  for (int i = 0; i < 4; i++) {
    rondo_buffer *saved = run_forward(s, &model, x, 5);
    run_backward(s, &model, saved, gradient, 5);
    assert_skip(s->tree, DISABLED);
  }
  assert_seen(s, "eerepepe");
  assert_int_equal(scene_info(s).recordings, 1);
  assert_int_equal(scene_info(s).steps, 4);
}

/* 110 test_warn_on_pending_backward: forwards without a backward stay in one step. The peer warns that this is slow;
 * Rondo replays them as children of one another, and a forward that nobody holds begins the path again. */
SCENE_TEST(test_tr9_peer_110_no_backward_comes) {
  const training model = make_training(s);
  const uint32_t *x = scene_words(s, 5);
  rondo_buffer *saved[4];
  for (int round = 0; round < 3; round++) {
    for (int i = 0; i < 4; i++) saved[i] = run_forward(s, &model, x, 5);
    for (int i = 0; i < 4; i++) {
      assert_counts(s, saved[i], 5, 1);
      rondo_buffer_release(saved[i]);
    }
  }
  assert_seen(s, "eeeerrrrpppp");
  assert_int_equal(scene_info(s).steps, 1);
  assert_int_equal(scene_info(s).roots, 1);
  assert_int_equal(scene_info(s).recordings, 4);
}

/* 111 test_mark_step: with marks, forwards are recorded without any backward. */
SCENE_TEST(test_tr9_peer_111_marks_make_steps) {
  const training model = make_training(s);
  const uint32_t *x = scene_words(s, 5);
  rondo_buffer *kept = NULL;
  for (int i = 0; i < 4; i++) {
    assert_ok(rondo_tree_mark_step(s->tree));
    rondo_buffer *saved = run_forward(s, &model, x, 5);
    if (kept != NULL) scene_assert_stale(kept, "forward");
    rondo_buffer_release(kept);
    kept = saved;
  }
  rondo_buffer_release(kept);
  assert_seen(s, "erpp");
  assert_int_equal(scene_info(s).recordings, 1);
}

/* 10 test_mark_step_overrides_pending_backward: the mark ends the step; the old handle errs, the new one is exact. */
SCENE_TEST(test_tr9_peer_10_a_mark_ends_a_pending_backward) {
  const training model = make_training(s);
  uint32_t *x = scene_words(s, 5);
  const uint32_t *gradient = scene_words(s, 7);
  for (uint32_t i = 0; i < 4; i++) {
    rondo_buffer *out;
    scene_set(s, x, i);
    rondo_buffer *old = run_forward(s, &model, x, i);
    assert_ok(rondo_tree_mark_step(s->tree));
    scene_set(s, x, 50 + i);
    rondo_buffer *saved = run_forward(s, &model, x, 50 + i);
    scene_assert_stale(old, "forward");
    const rondo_input inputs[] = {scene_of(old), scene_at(gradient)};
    assert_error(rondo_function_call(model.backward, s->stream, inputs, 2, &out, 1), RONDO_INVALID_LIFETIME,
                 RONDO_REASON_STALE_BUFFER);
    assert_null(out);
    rondo_buffer_release(old);
    run_backward(s, &model, saved, gradient, 50 + i);
    assert_ok(rondo_tree_mark_step(s->tree));
  }
  assert_int_equal(model.forward_work->runs, 2);
  assert_int_equal(test_last_call(s->tree).outcome, RONDO_CALL_REPLAYED);
}

/* 7 test_held_output_backward_after_other_call: outputs held in a step are exact after other calls of it. */
SCENE_TEST(test_tr4_peer_7_held_outputs_stay) {
  rondo_function *f = scene_affine(s, "f", 3, 1), *g = scene_affine(s, "g", 5, 2);
  uint32_t *x = scene_words(s, 1), *y = scene_words(s, 100);
  for (uint32_t i = 0; i < 5; i++) {
    scene_set(s, x, i);
    scene_begin(s);
    rondo_buffer *held = scene_call(s, f, scene_at(x));
    for (int other = 0; other < 3; other++) rondo_buffer_release(scene_call(s, g, scene_at(y)));
    rondo_buffer *out = scene_call(s, g, scene_of(held));
    assert_counts(s, held, 3 * i + 1, 3);
    assert_counts(s, out, 15 * i + 7, 15);
    rondo_buffer_release(held);
    rondo_buffer_release(out);
    scene_end(s);
  }
  assert_seen(s, "eeeeerrrrrppppppppppppppp");
}

/* 8 test_cross_graph_stale_grad_fn_bounded_growth: buffers of old steps that somebody keeps make no recordings. */
SCENE_TEST(test_tr10_peer_8_stale_buffers_make_no_recordings) {
  enum { STEPS = 30 };
  rondo_buffer *kept[STEPS];
  rondo_function *f = scene_affine(s, "f", 3, 1), *g = scene_affine(s, "g", 5, 2);
  const uint32_t *x = scene_words(s, 1);
  for (int i = 0; i < STEPS; i++) {
    scene_begin(s);
    kept[i] = scene_call(s, f, scene_at(x));
    scene_check(s, g, scene_of(kept[i]), 22, 15);
    scene_end(s);
  }
  assert_int_equal(scene_info(s).recordings, 2);
  assert_int_equal(scene_info(s).recorded, 2);
  for (int i = 0; i < STEPS; i++) rondo_buffer_release(kept[i]);
}

/* 9 test_severed_backward_rerecord_repro: a pending backward keeps its path; a parameter that moves causes another
 * recording of the backward after the forward, which never becomes a root. */
SCENE_TEST(test_tr5_peer_9_a_moved_parameter_after_a_forward) {
  const training model = make_training(s);
  rondo_function *backward =
      SCENE_FUNCTION(s, "backward", scene_body_combine, scene_work(s, 0, 0), .kind = RONDO_FUNCTION_BACKWARD,
                     RONDO_INPUTS(RONDO_INPUT_MOVING, RONDO_INPUT_STATIC));
  const uint32_t *x = scene_words(s, 5), *parameters[] = {scene_words(s, 7), scene_words(s, 70)};
  for (int i = 0; i < 9; i++) {
    const int at = i / 2 % 2;
    rondo_buffer *saved = run_forward(s, &model, x, 5), *out;
    SCENE_CALL(s, backward, &out, 1, scene_of(saved), scene_at(parameters[at]));
    assert_counts(s, out, 5 * 31 + (at == 0 ? 7 : 70), 32);
    rondo_buffer_release(saved);
    rondo_buffer_release(out);
  }
  assert_seen(s, "eerrprpppppppppppp");
  assert_int_equal(scene_info(s).roots, 1);
  assert_int_equal(scene_info(s).recordings, 3);
}

/* 11 test_grad_accumulation_microbatch_numerics: two batches in one step; both backwards read what theirs saved. */
SCENE_TEST(test_tr9_peer_11_two_batches_in_a_step) {
  const training model = make_training(s);
  uint32_t *x[] = {scene_words(s, 0), scene_words(s, 0)};
  const uint32_t *gradient = scene_words(s, 7);
  for (uint32_t i = 0; i < 5; i++) {
    rondo_buffer *saved[2];
    scene_begin(s);
    for (uint32_t batch = 0; batch < 2; batch++) {
      scene_set(s, x[batch], 100 * batch + i);
      saved[batch] = run_forward(s, &model, x[batch], 100 * batch + i);
    }
    for (uint32_t batch = 2; batch-- > 0;) run_backward(s, &model, saved[batch], gradient, 100 * batch + i);
    scene_end(s);
  }
  assert_seen(s, "eeeerrrrpppppppppppp");
}

/* 118 test_storage_access_error, 119 test_clear_storage_data_ptr_access_error: an old output keeps its error for every
 * query, whatever happens to its memory; the memory itself has no error: the step's own output is there and is read. */
SCENE_TEST(test_tr9_peer_118_119_the_error_is_the_handles) {
  rondo_function *f = scene_affine(s, "f", 3, 1), *g = scene_affine(s, "g", 5, 2);
  const uint32_t *x = scene_words(s, 1);
  for (int i = 0; i < 2; i++) rondo_buffer_release(scene_call(s, f, scene_at(x)));
  rondo_buffer *old = scene_call(s, f, scene_at(x));
  const void *const at = scene_address(old);
  for (int i = 0; i < 3; i++) {
    rondo_buffer *now = scene_call(s, f, scene_at(x)), *out;
    const rondo_input given = scene_of(old);
    assert_ptr_equal(scene_address(now), at);
    assert_counts(s, now, 4, 3);
    scene_assert_stale(old, "'f'");
    assert_error(rondo_function_call(g, s->stream, &given, 1, &out, 1), RONDO_INVALID_LIFETIME,
                 RONDO_REASON_STALE_BUFFER);
    assert_message("'f'");
    rondo_buffer_release(now);
  }
  assert_ok(rondo_tree_reset(s->tree));
  scene_assert_stale(old, "'f'");
  rondo_buffer_release(old);
  assert_seen(s, "erpppp");
}

typedef struct keeping {
  rondo_function *inner;
  rondo_buffer *kept;
} keeping;

static rondo_status keeping_body(rondo_call *call, void *user) {
  keeping *self = user;
  const rondo_input given = {.address = scene_input(call, 0), .bytes = SCENE_BYTES};
  assert_ok(rondo_function_call(self->inner, rondo_call_stream(call), &given, 1, &self->kept, 1));
  assert_true(test_buffer_info(self->kept).is_valid);
  scene_put(call, 0, scene_input(call, 0), 2, 0);
  return RONDO_OK;
}

/* An output of a call inside a body lives in the capture that the body is in, and only while the body runs. */
SCENE_TEST(test_tr9_outputs_of_inner_calls_end_with_the_body) {
  keeping self = {.inner = scene_affine(s, "inner", 3, 1)};
  rondo_function *outer = SCENE_FUNCTION(s, "outer", keeping_body, &self, RONDO_INPUTS(RONDO_INPUT_MOVING));
  const rondo_input x = scene_at(scene_words(s, 1));
  rondo_buffer *out = NULL;
  assert_ok(rondo_capture_begin(s->stream, RONDO_CAPTURE_THREAD_LOCAL));
  assert_ok(rondo_function_call(outer, s->stream, &x, 1, &out, 1));
  scene_assert_stale(self.kept, "'inner'");
  rondo_buffer_release(self.kept);
  rondo_buffer_release(out);
  test_graph_destroy(test_capture_end(s->stream));
}

/* 89 test_error_on_dealloc_use, 90 test_error_on_dealloc_use2: reading an output of a completed step, or a part of it,
 * is an error in every state; the message names function and step and says what to do. */
static rondo_status part_body(rondo_call *call, void *user) {
  scene_enter(user);
  scene_put(call, 0, scene_input(call, 0), 2, 0);
  return rondo_call_output_of_output(call, 1, 0, 16, 16, NULL);
}
SCENE_TEST(test_tr9_peer_89_90_old_outputs_are_not_read) {
  rondo_function *f = SCENE_FUNCTION(s, "f", part_body, scene_work(s, 0, 0), RONDO_INPUTS(RONDO_INPUT_MOVING));
  const uint32_t *x = scene_words(s, 1);
  rondo_buffer *old[2] = {NULL, NULL}, *outs[2];
  uint32_t word;
  for (int i = 0; i < 5; i++) {
    SCENE_CALL(s, f, outs, 2, scene_at(x));
    for (int k = 0; k < 2 && old[k] != NULL; k++) {
      scene_assert_stale(old[k], "'f'");
      assert_message("rondo_buffer_clone");
      assert_message("RONDO_OUTPUTS_CLONE");
      assert_message("rondo_tree_step_begin");
      assert_reason(rondo_buffer_copy(old[k], s->stream, 0, &word, 4), RONDO_REASON_STALE_BUFFER);
      rondo_buffer *clone;
      assert_reason(rondo_buffer_clone(old[k], s->stream, &clone), RONDO_REASON_STALE_BUFFER);
      assert_null(clone);
      rondo_buffer_release(old[k]);
    }
    for (int k = 0; k < 2; k++) old[k] = outs[k];
  }
  for (int k = 0; k < 2; k++) rondo_buffer_release(old[k]);
  assert_seen(s, "erppp");
}

/* Item 33: after the first mark, calls alone begin no step; a reset keeps it so. */
SCENE_TEST(test_tr9_marks_take_over) {
  rondo_function *f = scene_affine(s, "f", 3, 1);
  const uint32_t *x = scene_words(s, 1);
  for (int i = 0; i < 3; i++) rondo_buffer_release(scene_call(s, f, scene_at(x)));
  assert_int_equal(scene_info(s).steps, 3);
  assert_ok(rondo_tree_mark_step(s->tree));
  rondo_buffer *first = scene_call(s, f, scene_at(x)), *second = scene_call(s, f, scene_at(x));
  assert_counts(s, first, 4, 3);
  assert_counts(s, second, 4, 3);
  assert_int_equal(scene_info(s).steps, 4);
  rondo_buffer_release(first);
  rondo_buffer_release(second);
}

/* Scopes: the outermost counts; marks in them, and ends without a begin, are refused. */
SCENE_TEST(test_tr9_scopes_nest) {
  rondo_function *f = scene_affine(s, "f", 3, 1);
  const uint32_t *x = scene_words(s, 1);
  assert_error(rondo_tree_step_end(s->tree), RONDO_INVALID_STATE, RONDO_REASON_SCOPE);
  scene_begin(s);
  rondo_buffer *out = scene_call(s, f, scene_at(x));
  scene_begin(s);
  rondo_buffer_release(scene_call(s, f, scene_at(x)));
  assert_error(rondo_tree_mark_step(s->tree), RONDO_INVALID_STATE, RONDO_REASON_SCOPE);
  scene_end(s);
  rondo_buffer_release(scene_call(s, f, scene_at(x)));
  assert_counts(s, out, 4, 3);
  scene_end(s);
  rondo_buffer_release(scene_call(s, f, scene_at(x)));
  scene_assert_stale(out, "f");
  rondo_buffer_release(out);
  assert_int_equal(scene_info(s).steps, 2);
}
