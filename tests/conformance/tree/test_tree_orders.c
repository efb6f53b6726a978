/* SPDX-License-Identifier: MIT
 * Calls of a tree in unusual orders: queries, releases, resets and destruction at unexpected points (TR-4, TR-8, TR-9,
 * TR-15). Each either succeeds or fails with an error, and existing state remains usable. In assert_seen, each letter
 * is a call: e eager, r recorded, p replayed.
 */
#include <string.h>

#include "support/test_scene.h"

/* Parts and inputs ------------------------------------------------------------------------------------------------- */

/* out = the half of its input that a value selects. */
static rondo_status half_body(rondo_call *call, void *user) {
  rondo_input input;
  void *out;
  scene_enter(user);
  assert_ok(rondo_call_get_input(call, 0, &input));
  assert_ok(rondo_call_output(call, 0, input.bytes, NULL, &out));
  return rondo_copy_async(rondo_call_stream(call), out, input.address, input.bytes);
}

/* A place inside a buffer that was cloned when its step ended: the bytes are those of the clone. */
SCENE_TEST(test_tr9_a_place_in_what_was_cloned) {
  SCENE_TREE(s, .outputs = RONDO_OUTPUTS_CLONE);
  rondo_function *f = scene_affine(s, "f", 3, 1);
  rondo_function *half = SCENE_FUNCTION(s, "half", half_body, scene_work(s, 0, 0), RONDO_INPUTS(RONDO_INPUT_MOVING));
  const uint32_t *x = scene_words(s, 1);
  for (int i = 0; i < 4; i++) {
    rondo_buffer *y = scene_call(s, f, scene_at(x)), *out;
    uint32_t *second_half = (uint32_t *)scene_address(y) + SCENE_WORDS / 2;
    SCENE_CALL(s, half, &out, 1, {.buffer = y, .address = second_half, .bytes = SCENE_BYTES / 2});
    test_assert_buffer(s->fixture, out, 3 * (1 + SCENE_WORDS / 2) + 1, 3);
    assert_counts(s, y, 4, 3);
    rondo_buffer_release(y);
    rondo_buffer_release(out);
  }
  assert_seen(s, "eerrpppp");
}

static rondo_status part_body(rondo_call *call, void *user) {
  scene_put(call, 0, scene_input(call, 0), scene_enter(user)->factor, 0);
  return rondo_call_output_of_output(call, 1, 0, SCENE_BYTES / 2, SCENE_BYTES / 2, NULL);
}

/* Information about a part is that of the whole, also after it was cloned; outputs have their numbers. */
SCENE_TEST(test_tr9_parts_name_their_whole) {
  SCENE_TREE(s, .outputs = RONDO_OUTPUTS_CLONE);
  rondo_function *f = SCENE_FUNCTION(s, "f", part_body, scene_work(s, 3, 0), RONDO_INPUTS(RONDO_INPUT_MOVING));
  const uint32_t *x = scene_words(s, 1);
  for (int i = 0; i < 3; i++) {
    rondo_buffer *outs[2], *next[2];
    SCENE_CALL(s, f, outs, 2, scene_at(x));
    rondo_buffer_info info = test_buffer_info(outs[1]);
    assert_int_equal(info.output, 1);
    assert_int_equal(info.is_recorded, i > 0);
    assert_true(info.step > 0);
    SCENE_CALL(s, f, next, 2, scene_at(x));
    for (int k = 0; k < 2; k++) {
      info = test_buffer_info(outs[k]);
      assert_true(info.is_valid);
      assert_false(info.is_recorded);
      assert_int_equal(info.step, 0);
      rondo_buffer_release(outs[k]);
      rondo_buffer_release(next[k]);
    }
  }
}

/* Fewer outputs than there are: the stale one's message says which it was. */
SCENE_TEST(test_tr9_stale_outputs_have_their_numbers) {
  rondo_function *f = SCENE_FUNCTION(s, "f", part_body, scene_work(s, 3, 0), RONDO_INPUTS(RONDO_INPUT_MOVING));
  const uint32_t *x = scene_words(s, 1);
  for (int i = 0; i < 3; i++) {
    rondo_buffer *outs[2], *next;
    void *address;
    SCENE_CALL(s, f, outs, 2, scene_at(x));
    SCENE_CALL(s, f, &next, 1, scene_at(x));
    assert_error(rondo_buffer_address(outs[1], &address), RONDO_INVALID_LIFETIME, RONDO_REASON_STALE_BUFFER);
    assert_message("output 1 of 'f'");
    for (int k = 0; k < 2; k++) rondo_buffer_release(outs[k]);
    rondo_buffer_release(next);
  }
}

static rondo_status empty_body(rondo_call *call, void *user) {
  void *address;
  scene_enter(user);
  return rondo_call_output(call, 0, 0, NULL, &address);
}

/* An output of no bytes does not keep its step alive, and is unchanged. */
SCENE_TEST(test_tr9_outputs_without_memory) {
  rondo_function *empty = SCENE_FUNCTION(s, "empty", empty_body, scene_work(s, 0, 0), RONDO_INPUTS(RONDO_INPUT_MOVING));
  rondo_function *f = scene_affine(s, "f", 3, 1);
  const uint32_t *x = scene_words(s, 1);
  for (int i = 0; i < 3; i++) {
    scene_begin(s);
    rondo_buffer *nothing = scene_call(s, empty, scene_at(x));
    rondo_buffer *out = scene_call(s, f, scene_at(x));
    assert_null(scene_address(nothing));
    rondo_buffer_release(scene_call(s, empty, scene_of(nothing)));
    rondo_buffer_release(nothing);
    rondo_buffer_release(out);
    scene_end(s);
  }
}

/* Fewer outputs are requested than exist: a hit still allocates nothing. */
SCENE_TEST(test_tr5_unasked_outputs_cost_no_memory) {
  rondo_function *f = SCENE_FUNCTION(s, "f", part_body, scene_work(s, 3, 0), RONDO_INPUTS(RONDO_INPUT_MOVING));
  const uint32_t *x = scene_words(s, 1);
  for (int i = 0; i < 4; i++) rondo_buffer_release(scene_call(s, f, scene_at(x)));
  const size_t before = s->fixture->allocator.calls;
  for (int i = 0; i < 4; i++) rondo_buffer_release(scene_call(s, f, scene_at(x)));
  assert_int_equal(s->fixture->allocator.calls, before);
  assert_seen(s, "erpppppp");
}

/* Steps, resets ---------------------------------------------------------------------------------------------------- */

static rondo_status forward_body(rondo_call *call, void *user) {
  scene_put(call, 0, scene_input(call, 0), scene_enter(user)->factor, 1);
  return RONDO_OK;
}

/* TR-9: a reset ends the step, even with a pending backward, and even inside a scope. */
SCENE_TEST(test_tr9_a_reset_ends_the_step) {
  rondo_function *f = SCENE_FUNCTION(s, "f", forward_body, scene_work(s, 3, 0), .kind = RONDO_FUNCTION_FORWARD,
                                     RONDO_INPUTS(RONDO_INPUT_MOVING));
  rondo_function *g = scene_affine(s, "g", 5, 2);
  const uint32_t *x = scene_words(s, 1);
  for (int in_scope = 0; in_scope < 2; in_scope++) {
    for (int i = 0; i < 3; i++) rondo_buffer_release(scene_call(s, f, scene_at(x)));
    if (in_scope == 1) scene_begin(s);
    rondo_buffer *held = scene_call(s, f, scene_at(x));
    assert_ok(rondo_tree_reset(s->tree));
    scene_assert_stale(held, "'f'");
    if (in_scope == 1) scene_end(s);
    rondo_buffer_release(held);
    const uint64_t steps = scene_info(s).steps;
    for (int i = 0; i < 3; i++) rondo_buffer_release(scene_call(s, g, scene_at(x)));
    assert_int_equal(scene_info(s).steps, steps + 3);
    assert_int_equal(scene_info(s).eager_bytes, 0);
  }
}

/* Buffers that were released, but not yet collected, when the tree is reset are freed once. */
SCENE_TEST(test_tr10_a_reset_after_releases) {
  rondo_function *f = scene_affine(s, "f", 3, 1);
  const uint32_t *x = scene_words(s, 1);
  rondo_buffer *first = scene_call(s, f, scene_at(x));
  rondo_buffer_release(first);
  assert_ok(rondo_tree_reset(s->tree));
  assert_int_equal(scene_info(s).eager_bytes, 0);
  rondo_buffer *second = scene_call(s, f, scene_at(x));
  assert_counts(s, second, 4, 3);
  assert_int_equal(scene_info(s).eager_bytes, 0);
  rondo_buffer_release(second);
}

/* While the stream of the last call captures, its work cannot be waited for: nothing is reset or destroyed. */
SCENE_TEST(test_tr10_no_reset_inside_a_capture) {
  rondo_function *f = scene_affine(s, "f", 3, 1);
  const uint32_t *x = scene_words(s, 1);
  for (int i = 0; i < 3; i++) rondo_buffer_release(scene_call(s, f, scene_at(x)));
  rondo_buffer *held = scene_call(s, f, scene_at(x));
  for (int i = 0; i < 2; i++) {
    rondo_graph *graph = NULL;
    assert_ok(rondo_capture_begin(s->stream, RONDO_CAPTURE_THREAD_LOCAL));
    if (i == 0)
      assert_fails(rondo_tree_reset(s->tree), RONDO_CAPTURE_REFUSED);
    else
      assert_fails(rondo_tree_destroy(s->tree), RONDO_CAPTURE_REFUSED);
    assert_fails(rondo_capture_end(s->stream, &graph), RONDO_CAPTURE_INVALID);
    assert_counts(s, held, 4, 3);
    assert_int_equal(scene_info(s).recordings, 1);
  }
  rondo_buffer_release(held);
  rondo_buffer_release(scene_call(s, f, scene_at(x)));
  assert_seen(s, "erppp");
}

/* Nested calls ----------------------------------------------------------------------------------------------------- */

/* A body that calls others. */
typedef struct outer_work {
  test_work work;
  test_scene *scene;
  rondo_function *inner, *other;
  rondo_buffer *kept;
  rondo_stream *stream; /* for the inner call; NULL = the call's */
} outer_work;

static rondo_buffer *call_inner(rondo_call *call, const outer_work *outer, rondo_function *function,
                                const rondo_input *input) {
  rondo_buffer *out = NULL;
  rondo_stream *stream = outer->stream != NULL ? outer->stream : rondo_call_stream(call);
  assert_ok(rondo_function_call(function, stream, input, 1, &out, 1));
  return out;
}

static rondo_status whole_and_part_body(rondo_call *call, void *user) {
  rondo_input input;
  scene_enter(user);
  assert_ok(rondo_call_get_input(call, 0, &input));
  return rondo_call_output_of_input(call, 0, 0, SCENE_BYTES / 2, SCENE_BYTES / 2, NULL);
}

static rondo_status parts_inside_body(rondo_call *call, void *user) {
  outer_work *outer = user;
  outer->work.runs++;
  const rondo_input x = scene_at(scene_input(call, 0));
  rondo_buffer *whole = call_inner(call, outer, outer->inner, &x);
  const rondo_input of_whole = scene_of(whole);
  rondo_buffer *part = call_inner(call, outer, outer->other, &of_whole);
  rondo_buffer_release(whole);
  void *out;
  assert_ok(rondo_call_output(call, 0, SCENE_BYTES / 2, NULL, &out));
  assert_ok(rondo_buffer_copy(part, rondo_call_stream(call), 0, out, SCENE_BYTES / 2));
  rondo_buffer_release(part);
  return RONDO_OK;
}

/* Freeing a part of a buffer of a nested call frees the whole in the recording. */
SCENE_TEST(test_nested_parts_are_freed_in_the_recording) {
  outer_work outer = {.work = {.fixture = s->fixture}, .scene = s, .inner = scene_affine(s, "inner", 3, 1)};
  outer.other = SCENE_FUNCTION(s, "part", whole_and_part_body, scene_work(s, 0, 0), RONDO_INPUTS(RONDO_INPUT_MOVING));
  rondo_function *f = SCENE_FUNCTION(s, "f", parts_inside_body, &outer, RONDO_INPUTS(RONDO_INPUT_MOVING));
  const uint32_t *x = scene_words(s, 1);
  for (int i = 0; i < 4; i++) {
    rondo_buffer *out = scene_call(s, f, scene_at(x));
    test_assert_buffer(s->fixture, out, 3 * (1 + SCENE_WORDS / 2) + 1, 3);
    rondo_buffer_release(out);
  }
  assert_seen(s, "erpp");
  assert_int_equal(outer.work.runs, 2);
}

static rondo_status unsafe_body(rondo_call *call, void *user) {
  scene_put(call, 0, scene_input(call, 0), scene_enter(user)->factor, 1);
  return rondo_call_refuse(call, RONDO_SKIP_UNSAFE, "svd");
}

static rondo_status outer_body(rondo_call *call, void *user) {
  outer_work *outer = user;
  rondo_buffer *out = NULL;
  outer->work.runs++;
  const rondo_input x = scene_at(scene_input(call, 0));
  rondo_stream *stream = outer->stream != NULL ? outer->stream : rondo_call_stream(call);
  const rondo_status status = rondo_function_call(outer->inner, stream, &x, 1, &out, 1);
  rondo_buffer_release(out);
  if (status != RONDO_OK) return status;
  scene_put(call, 0, scene_input(call, 0), 3, 1);
  return RONDO_OK;
}

/* TR-8: the reason that keeps a nested body from being recorded also applies to the enclosing call; its message stays.
 * */
SCENE_TEST(test_tr8_nested_bodies_refuse_for_the_whole) {
  outer_work outer = {.work = {.fixture = s->fixture}, .scene = s};
  outer.inner = SCENE_FUNCTION(s, "inner", unsafe_body, scene_work(s, 2, 0), RONDO_INPUTS(RONDO_INPUT_MOVING));
  rondo_function *f = SCENE_FUNCTION(s, "f", outer_body, &outer, RONDO_INPUTS(RONDO_INPUT_MOVING));
  const uint32_t *x = scene_words(s, 1);
  for (int i = 0; i < 4; i++) {
    scene_check(s, f, scene_at(x), 4, 3);
    if (i == 0) continue;
    assert_skip(s->tree, UNSAFE);
    assert_non_null(strstr(test_last_call(s->tree).message, "svd"));
    assert_string_equal(test_last_call(s->tree).function, "f");
  }
  assert_int_equal(outer.work.runs, 4);
  assert_int_equal(scene_info(s).rolled_back, 0);
}

/* A nested call on a stream that the recording does not know would run once and be missing from replays. */
SCENE_TEST(test_tr15_nested_calls_on_another_stream) {
  outer_work outer = {.work = {.fixture = s->fixture}, .scene = s, .inner = scene_affine(s, "inner", 2, 0)};
  outer.stream = test_stream(s->fixture, "aside");
  rondo_function *f = SCENE_FUNCTION(s, "f", outer_body, &outer, RONDO_INPUTS(RONDO_INPUT_MOVING));
  const uint32_t *x = scene_words(s, 1);
  for (int i = 0; i < 4; i++) {
    rondo_buffer *out = scene_call(s, f, scene_at(x));
    assert_ok(rondo_stream_synchronize(outer.stream));
    assert_counts(s, out, 4, 3);
    rondo_buffer_release(out);
    if (i == 0) continue;
    assert_skip(s->tree, OTHER_WORK);
    assert_non_null(strstr(test_last_call(s->tree).message, "aside"));
  }
  assert_seen(s, "eeee");
  test_stream_destroy(outer.stream);
}

static rondo_status keeping_body(rondo_call *call, void *user) {
  outer_work *outer = user;
  outer->work.runs++;
  const rondo_input x = scene_at(scene_input(call, 0));
  rondo_buffer *out = call_inner(call, outer, outer->inner, &x);
  if (outer->work.runs == 2)
    outer->kept = out;
  else
    rondo_buffer_release(out);
  scene_put(call, 0, scene_input(call, 0), 3, 1);
  return RONDO_OK;
}

/* A buffer of a nested call that outlives the recording in which it was created is stale, in every state. */
SCENE_TEST(test_tr9_nested_buffers_end_with_the_recording) {
  outer_work outer = {.work = {.fixture = s->fixture}, .scene = s, .inner = scene_affine(s, "inner", 2, 0)};
  rondo_function *f = SCENE_FUNCTION(s, "f", keeping_body, &outer, RONDO_INPUTS(RONDO_INPUT_MOVING));
  const uint32_t *x = scene_words(s, 1);
  rondo_buffer *outs[2];
  for (int i = 0; i < 2; i++) outs[i] = scene_call(s, f, scene_at(x));
  assert_skip(s->tree, KEPT_MEMORY);
  scene_assert_stale(outer.kept, "'inner'");
  rondo_buffer_release(outer.kept);
  for (int i = 0; i < 2; i++) rondo_buffer_release(outs[i]);
}

/* Bodies that go on after what was refused ------------------------------------------------------------------------- */

static uint32_t steps_taken;

static rondo_status deaf_body(rondo_call *call, void *user) {
  test_work *work = scene_enter(user);
  scene_put(call, 0, scene_input(call, 0), 3, 1);
  const rondo_status status = work->runs > 1 ? rondo_call_host_step(call, test_host_count, &steps_taken) : RONDO_OK;
  return status == RONDO_OK || work->term == 0 ? RONDO_OK : status;
}

/* A host step that the recording refuses is not lost when the body does not listen. */
SCENE_TEST(test_tr14_a_body_that_does_not_listen) {
  rondo_function *f = SCENE_FUNCTION(s, "f", deaf_body, scene_work(s, 0, 0), RONDO_INPUTS(RONDO_INPUT_MOVING));
  const uint32_t *x = scene_words(s, 1);
  steps_taken = 0;
  for (uint32_t i = 0; i < 4; i++) {
    scene_check(s, f, scene_at(x), 4, 3);
    assert_int_equal(steps_taken, i);
  }
}

static rondo_function *called_in_step;
static rondo_status step_status;
static rondo_reason step_reason;

static rondo_status calling_step(void *user) {
  test_scene *s = user;
  const rondo_input x = scene_at(s->places[0]);
  rondo_buffer *out;
  step_status = rondo_function_call(called_in_step, s->stream, &x, 1, &out, 1);
  step_reason = rondo_last_error()->reason;
  test_note_error();
  return RONDO_OK;
}

static test_scene *of_step;

static rondo_status step_calls_body(rondo_call *call, void *user) {
  scene_enter(user);
  assert_ok(rondo_call_host_step(call, calling_step, of_step));
  scene_put(call, 0, scene_input(call, 0), 3, 1);
  return RONDO_OK;
}

/* A host step is no body: it calls no functions of the tree, in no run. */
SCENE_TEST(test_tr14_a_step_calls_no_functions) {
  s->fails_inside = true;
  const uint32_t *x = scene_words(s, 1);
  called_in_step = scene_affine(s, "g", 2, 0);
  of_step = s;
  rondo_function *f = SCENE_FUNCTION(s, "f", step_calls_body, scene_work(s, 0, 0), RONDO_INPUTS(RONDO_INPUT_MOVING));
  for (int i = 0; i < 4; i++) {
    step_status = RONDO_OK;
    rondo_buffer *out = scene_call(s, f, scene_at(x));
    assert_int_equal(step_status, RONDO_INVALID_STATE);
    assert_int_equal(step_reason, RONDO_REASON_CONCURRENT_USE);
    assert_counts(s, out, 4, 3);
    rondo_buffer_release(out);
  }
  assert_seen(s, "erpp");
}

static rondo_status failing_step(void *user) {
  test_work *work = user;
  if (work->term == 0) return RONDO_OK;
  void *address;
  return rondo_malloc_async(NULL, 1, NULL, &address);
}

/* Continues after a step that failed; the recording in progress then records nothing more. */
static rondo_status deaf_step_body(rondo_call *call, void *user) {
  test_work *work = scene_enter(user);
  const rondo_status status = rondo_call_host_step(call, failing_step, work);
  void *probe;
  const rondo_status goes_on = rondo_malloc_async(rondo_call_stream(call), 4, NULL, &probe);
  if (goes_on == RONDO_OK) assert_ok(rondo_free_async(rondo_call_stream(call), probe));
  if (goes_on == RONDO_OK) scene_put(call, 0, scene_input(call, 0), 3, 1);
  if (goes_on != RONDO_OK) assert_int_equal(rondo_last_error()->reason, RONDO_REASON_STRAY_WORK);
  return work->factor == 0 ? RONDO_OK : status;
}

/* Calls whose step fails while `term` is 1, in each kind of run: the call returns the status of the step, whatever
 * failed before it. */
static void assert_steps_fail(test_scene *s, rondo_function_body body, rondo_status expected) {
  test_work *work = scene_work(s, 0, 0);
  rondo_function *f = SCENE_FUNCTION(s, "f", body, work, RONDO_INPUTS(RONDO_INPUT_MOVING));
  const rondo_input x = scene_at(scene_words(s, 1));
  for (int i = 0; i < 4; i++) {
    rondo_buffer *out = NULL;
    void *address;
    assert_reason(rondo_malloc_async(NULL, 1, NULL, &address), RONDO_REASON_NULL_ARGUMENT);
    work->term = 1;
    assert_int_equal(rondo_function_call(f, s->stream, &x, 1, &out, 1), expected);
    assert_null(out);
    work->term = 0;
    out = scene_call(s, f, x);
    assert_counts(s, out, 4, 3);
    rondo_buffer_release(out);
  }
}

/* The call returns the failure of a host step, whatever its body returns. */
SCENE_TEST(test_tr14_a_failed_step_is_the_calls_failure) {
  assert_steps_fail(s, deaf_step_body, RONDO_INVALID_ARGUMENT);
}

/* An error that the body returns although no call of the library failed. */
static rondo_status mute_body(rondo_call *call, void *user) {
  test_work *work = scene_enter(user);
  scene_put(call, 0, scene_input(call, 0), 3, 1);
  return work->runs == 2 ? RONDO_UNSUPPORTED : RONDO_OK;
}

SCENE_TEST(test_tr15_errors_without_words) {
  rondo_function *f = SCENE_FUNCTION(s, "f", mute_body, scene_work(s, 0, 0), RONDO_INPUTS(RONDO_INPUT_MOVING));
  const uint32_t *x = scene_words(s, 1);
  rondo_buffer *out = scene_call(s, f, scene_at(x));
  rondo_buffer_release(out);
  void *address;
  assert_reason(rondo_malloc_async(NULL, 1, NULL, &address), RONDO_REASON_NULL_ARGUMENT);
  out = scene_call(s, f, scene_at(x));
  assert_counts(s, out, 4, 3);
  assert_skip(s->tree, OTHER_WORK);
  assert_non_null(strstr(test_last_call(s->tree).message, "UNSUPPORTED"));
  assert_null(strstr(test_last_call(s->tree).message, "rondo_malloc_async"));
  rondo_buffer_release(out);
  rondo_buffer_release(scene_call(s, f, scene_at(x)));
  assert_seen(s, "eer");
}

static rondo_status mute_step(void *user) { return ((test_work *)user)->term == 0 ? RONDO_OK : RONDO_UNSUPPORTED; }

static rondo_status mute_step_body(rondo_call *call, void *user) {
  test_work *work = scene_enter(user);
  const rondo_status status = rondo_call_host_step(call, mute_step, work);
  if (status == RONDO_OK) scene_put(call, 0, scene_input(call, 0), 3, 1);
  return status;
}

/* The same for an error that a host step returns. */
SCENE_TEST(test_tr14_steps_without_words) { assert_steps_fail(s, mute_step_body, RONDO_UNSUPPORTED); }

static rondo_status end_capture_body(rondo_call *call, void *user) {
  test_work *work = scene_enter(user);
  scene_put(call, 0, scene_input(call, 0), 3, 1);
  rondo_graph *graph = NULL;
  if (work->runs == 2) assert_ok(rondo_capture_end(rondo_call_stream(call), &graph));
  if (work->runs == 2 && work->term == 1)
    assert_ok(rondo_capture_begin(rondo_call_stream(call), RONDO_CAPTURE_THREAD_LOCAL));
  return rondo_graph_destroy(graph);
}

/* TR-15: a body that ends the recording's capture, and one that begins another in its place. */
SCENE_TEST(test_tr15_bodies_that_end_the_capture) {
  for (uint32_t begins = 0; begins < 2; begins++) {
    rondo_function *f =
        SCENE_FUNCTION(s, "f", end_capture_body, scene_work(s, 0, begins), RONDO_INPUTS(RONDO_INPUT_MOVING));
    const uint32_t *x = scene_words(s, 1);
    for (int i = 0; i < 4; i++) {
      scene_check(s, f, scene_at(x), 4, 3);
    }
    assert_seen(s, "eerp");
  }
}

/* Inputs that are given -------------------------------------------------------------------------------------------- */

/* out 0 = inputs 0 and 1, after the first was dropped as far as may be. */
static rondo_status drop_body(rondo_call *call, void *user) {
  const uint32_t *a = scene_input(call, 0), *b = scene_input(call, 1);
  test_work *work = scene_enter(user);
  assert_ok(rondo_call_drop_input(call, 0));
  assert_ok(rondo_call_drop_input(call, 0));
  void *scratch = test_allocate_async(rondo_call_stream(call), SCENE_BYTES);
  test_affine(work->fixture, rondo_call_stream(call), scratch, SCENE_WORDS, 0, 77);
  scene_combine(call, 0, b, work->term == 1 ? b : a);
  return rondo_free_async(rondo_call_stream(call), scratch);
}

/* One buffer as two inputs, of which one is given: it is not dropped while the other is read. */
SCENE_TEST(test_tr4_one_buffer_given_and_read) {
  rondo_function *f = scene_affine(s, "f", 1, 0);
  rondo_function *drop =
      SCENE_FUNCTION(s, "drop", drop_body, scene_work(s, 0, 1), RONDO_INPUTS(RONDO_INPUT_MOVING, RONDO_INPUT_MOVING));
  const uint32_t *x = scene_words(s, 1);
  for (int i = 0; i < 4; i++) {
    scene_begin(s);
    rondo_buffer *y = scene_call(s, f, scene_at(x)), *out;
    SCENE_CALL(s, drop, &out, 1, scene_given(y), scene_of(y));
    assert_counts(s, out, 32, 32);
    rondo_buffer_release(out);
    scene_end(s);
  }
  assert_seen(s, "eerrpppp");
}

static rondo_status keep_dropped_body(rondo_call *call, void *user) {
  test_work *work = scene_enter(user);
  scene_put(call, 0, scene_input(call, 0), 3, 1);
  if (work->term == 0) {
    assert_ok(rondo_call_output_of_input(call, 1, 0, 0, SCENE_BYTES, NULL));
    assert_ok(rondo_call_drop_input(call, 0));
    scene_put(call, 2, scene_input(call, 0), 5, 0);
    return RONDO_OK;
  }
  assert_ok(rondo_call_drop_input(call, 0));
  return rondo_call_output_of_input(call, 1, 0, 0, SCENE_BYTES, NULL);
}

/* A returned input is held and not dropped; a dropped one cannot be returned. */
SCENE_TEST(test_tr4_dropped_inputs_are_no_outputs) {
  rondo_function *f = scene_affine(s, "f", 1, 0);
  const uint32_t *x = scene_words(s, 1);
  rondo_function *hand =
      SCENE_FUNCTION(s, "hand", keep_dropped_body, scene_work(s, 0, 0), RONDO_INPUTS(RONDO_INPUT_MOVING));
  for (int i = 0; i < 4; i++) {
    scene_begin(s);
    rondo_buffer *outs[3], *y = scene_call(s, f, scene_at(x));
    SCENE_CALL(s, hand, outs, 3, scene_given(y));
    assert_counts(s, outs[0], 4, 3);
    assert_counts(s, outs[1], 1, 1);
    assert_counts(s, outs[2], 5, 5);
    for (int k = 0; k < 3; k++) rondo_buffer_release(outs[k]);
    scene_end(s);
  }
  assert_seen(s, "eerrpppp");
  rondo_function *late =
      SCENE_FUNCTION(s, "late", keep_dropped_body, scene_work(s, 0, 1), RONDO_INPUTS(RONDO_INPUT_MOVING));
  scene_begin(s);
  rondo_buffer *y = scene_call(s, f, scene_at(x)), *outs[2];
  const rondo_input given = scene_given(y);
  assert_error(rondo_function_call(late, s->stream, &given, 1, outs, 2), RONDO_INVALID_LIFETIME,
               RONDO_REASON_USE_AFTER_FREE);
  assert_message("input 0 of 'late'");
  scene_end(s);
}

/* out 0 = the input, read after it was dropped: where `term` is 1, when other memory may have taken its place. */
static rondo_status keep_given_body(rondo_call *call, void *user) {
  const test_work *work = scene_enter(user);
  const uint32_t *given = scene_input(call, 0), *b = scene_input(call, 1);
  void *out, *scratch;
  if (work->term == 0) assert_ok(rondo_call_output(call, 0, SCENE_BYTES, NULL, &out));
  assert_ok(rondo_call_drop_input(call, 0));
  if (work->term == 1) {
    assert_ok(rondo_malloc_async(rondo_call_stream(call), SCENE_BYTES, NULL, &scratch));
    test_affine(work->fixture, rondo_call_stream(call), scratch, SCENE_WORDS, 0, 77);
    assert_ok(rondo_free_async(rondo_call_stream(call), scratch));
    assert_ok(rondo_call_output(call, 0, SCENE_BYTES, NULL, &out));
  }
  return rondo_launch(rondo_call_stream(call), test_kernel(work->fixture, TEST_KERNEL_COMBINE),
                      (rondo_grid){SCENE_WORDS, 0, 0}, RONDO_ARGS(&b, &given, &out));
}

/* A body that keeps using an input that it dropped is not recorded: replays would read what reuses its memory. This is
 * found if nothing has reused it yet, and always if each allocation has separate pages. */
SCENE_TEST(test_tr15_dropped_and_kept_inputs) {
  const uint32_t *x = scene_words(s, 1);
  for (uint32_t reused = 0; reused <= test_is_guarded(s->fixture); reused++) {
    rondo_function *f = scene_affine(s, "made", 1, 0);
    rondo_function *keep = SCENE_FUNCTION(s, "keep", keep_given_body, scene_work(s, 0, reused),
                                          RONDO_INPUTS(RONDO_INPUT_MOVING, RONDO_INPUT_MOVING));
    for (int i = 0; i < 4; i++) {
      scene_begin(s);
      rondo_buffer *y = scene_call(s, f, scene_at(x)), *out;
      SCENE_CALL(s, keep, &out, 1, scene_given(y), scene_at(x));
      assert_counts(s, out, 32, 32);
      if (i > 0) assert_skip(s->tree, OTHER_WORK);
      if (i > 0) assert_non_null(strstr(test_last_call(s->tree).message, "'made'"));
      rondo_buffer_release(out);
      scene_end(s);
    }
    assert_seen(s, "eerepepe");
    assert_int_equal(test_function_info(keep).recordings, 0);
    assert_int_equal(test_function_info(keep).skipped[RONDO_SKIP_OTHER_WORK], 3);
  }
  assert_true(scene_info(s).rolled_back > 0);
  assert_int_equal(scene_info(s).live_outputs, 0);
}

static rondo_status accumulate_body(rondo_call *call, void *user) {
  scene_enter(user);
  scene_change(call, scene_input(call, 0), 2, 0);
  scene_put(call, 0, scene_input(call, 1), 1, 0);
  return RONDO_OK;
}

/* TR-6: a moving input that overlaps a written static one sees the written value, as in an eager run. */
SCENE_TEST(test_tr6_static_inputs_that_are_written_and_read) {
  rondo_function *f = SCENE_FUNCTION(s, "f", accumulate_body, scene_work(s, 0, 0), .binding = RONDO_BINDING_COPY,
                                     RONDO_INPUTS(RONDO_INPUT_STATIC | RONDO_INPUT_MUTATED, RONDO_INPUT_MOVING));
  uint32_t *x = scene_words(s, 1), *other = scene_words(s, 100);
  uint32_t factor = 1;
  for (int i = 0; i < 8; i++) {
    const bool is_shared = i % 2 == 1;
    rondo_buffer *out;
    SCENE_CALL(s, f, &out, 1, scene_at(x), scene_at(is_shared ? x : other));
    factor *= 2;
    assert_counts(s, out, is_shared ? factor : 100, is_shared ? factor : 1);
    if (is_shared) assert_skip(s->tree, MUTATED_INPUT);
    rondo_buffer_release(out);
  }
  assert_seen(s, "eerepepe");
}

/* TR-8: buffers of a tree of another device; clones into a capture. */
SCENE_TEST(test_tr8_buffers_where_they_do_not_belong) {
  rondo_function *f = scene_affine(s, "f", 3, 1);
  rondo_buffer *y = scene_call(s, f, scene_at(scene_words(s, 1))), *clone = y;
  assert_ok(rondo_capture_begin(s->stream, RONDO_CAPTURE_THREAD_LOCAL));
  assert_error(rondo_buffer_clone(y, s->stream, &clone), RONDO_CAPTURE_REFUSED, RONDO_REASON_UNSUPPORTED_CALL);
  assert_null(clone);
  rondo_graph *graph = test_capture_end(s->stream);
  test_graph_destroy(graph);
  if (!test_device_is("cuda")) {
    const char *name = test_is_guarded(s->fixture) ? "cpu:check:1" : "cpu:1";
    const rondo_device_options options = {RONDO_DEVICE_OPTIONS_INIT, .workers = 1,
                                          .allocator = &s->fixture->allocator.table};
    rondo_device *second;
    rondo_tree *tree;
    rondo_buffer *there, *out;
    assert_ok(rondo_device_open(name, &options, &second));
    assert_ok(rondo_tree_create(second, NULL, &tree));
    assert_ok(rondo_buffer_create(tree, SCENE_BYTES, NULL, &there));
    const rondo_input input = scene_given(there);
    assert_invalid(rondo_function_call(f, s->stream, &input, 1, &out, 1), RONDO_REASON_OTHER_DEVICE);
    test_tree_destroy(tree);
    assert_ok(rondo_device_close(second));
  }
  rondo_buffer_release(y);
}

/* Captures of the caller's ----------------------------------------------------------------------------------------- */

/* What nested calls allocate is freed in the caller's graph; the outputs are memory of the graph, which frees them. */
SCENE_TEST(test_calls_inside_calls_inside_a_capture) {
  outer_work outer = {.work = {.fixture = s->fixture}, .scene = s, .inner = scene_affine(s, "inner", 2, 0)};
  rondo_function *f = SCENE_FUNCTION(s, "f", outer_body, &outer, RONDO_INPUTS(RONDO_INPUT_MOVING));
  const uint32_t *x = scene_words(s, 1);
  uint32_t *result = scene_words(s, 0);
  assert_ok(rondo_capture_begin(s->stream, RONDO_CAPTURE_THREAD_LOCAL));
  rondo_buffer *out = scene_call(s, f, scene_at(x));
  assert_skip(s->tree, CAPTURING);
  assert_ok(rondo_buffer_copy(out, s->stream, 0, result, SCENE_BYTES));
  assert_ok(rondo_free_async(s->stream, scene_address(out)));
  rondo_buffer_release(out);
  rondo_graph *graph = test_capture_end(s->stream);
  rondo_exec *exec = test_instantiate(graph);
  for (int i = 0; i < 3; i++) assert_ok(rondo_exec_launch(exec, s->stream));
  scene_assert_words(s, result, 4, 3);
  rondo_exec_destroy(exec);
  test_graph_destroy(graph);
  out = scene_call(s, f, scene_at(x));
  assert_counts(s, out, 4, 3);
  rondo_buffer_release(out);
}

/* Bounds ----------------------------------------------------------------------------------------------------------- */

/* TR-7: a path that is as long as the tree may have recordings. */
SCENE_TEST(test_tr7_a_path_as_long_as_the_bound) {
  SCENE_TREE(s, .max_recordings = 3);
  rondo_function *f = scene_affine(s, "f", 3, 1);
  const uint32_t *x = scene_words(s, 1);
  for (int i = 0; i < 3; i++) {
    rondo_buffer *outs[6];
    scene_begin(s);
    for (int k = 0; k < 6; k++) {
      outs[k] = scene_call(s, f, k == 0 ? scene_at(x) : scene_of(outs[k - 1]));
      if (i > 0 && k >= 3) assert_skip(s->tree, RECORDING_LIMIT);
    }
    for (int k = 0; k < 6; k++) rondo_buffer_release(outs[k]);
    scene_end(s);
  }
  assert_int_equal(scene_info(s).recordings, 3);
  assert_int_equal(scene_info(s).evicted, 0);
}

/* Recordings prepared in addition to a path never displace the path's recordings, whatever their bytes. */
SCENE_TEST(test_tr7_prepared_next_to_a_path) {
  SCENE_TREE(s, .max_exec_bytes = 1);
  rondo_function *f = scene_affine(s, "f", 3, 1);
  const rondo_input x = scene_at(scene_words(s, 1)), half = {.address = x.address, .bytes = SCENE_BYTES / 2};
  for (int i = 0; i < 2; i++) rondo_buffer_release(scene_call(s, f, x));
  rondo_buffer *held = scene_call(s, f, x);
  assert_ok(rondo_function_prepare(f, s->stream, &half, 1));
  assert_counts(s, held, 4, 3);
  assert_int_equal(scene_info(s).path_length, 1);
  rondo_buffer_release(scene_call(s, f, x));
  rondo_buffer_release(held);
  assert_seen(s, "erpp");
}

static rondo_status changing_body(rondo_call *call, void *user) {
  const test_work *work = scene_enter(user);
  uint32_t *out = scene_put(call, 0, scene_input(call, 0), 3, 1);
  for (uint32_t i = 0; i < work->factor; i++) scene_change(call, out, 1, 1);
  return RONDO_OK;
}

/* A path's recordings are needed, whatever the size of their execs, which are of different work: those beyond the bound
 * are counted. */
SCENE_TEST(test_tr8_execs_beyond_their_bound) {
  SCENE_TREE(s, .max_exec_bytes = 1);
  rondo_function *f[3];
  for (uint32_t k = 0; k < 3; k++)
    f[k] = SCENE_FUNCTION(s, "f", changing_body, scene_work(s, k, 0), RONDO_INPUTS(RONDO_INPUT_MOVING));
  const uint32_t *x = scene_words(s, 1);
  for (int i = 0; i < 3; i++) {
    rondo_buffer *outs[3];
    scene_begin(s);
    for (int k = 0; k < 3; k++) outs[k] = scene_call(s, f[k], k == 0 ? scene_at(x) : scene_of(outs[k - 1]));
    for (int k = 0; k < 3; k++) rondo_buffer_release(outs[k]);
    scene_end(s);
    assert_int_equal(scene_info(s).exec_overruns, i == 0 ? 0 : 2);
  }
  char *text;
  assert_ok(rondo_tree_explain(s->tree, RONDO_EXPLAIN_TEXT, &text));
  assert_non_null(strstr(text, "(2 made beyond it)"));
  rondo_text_free(text);
  assert_int_equal(scene_info(s).recordings, 3);
}
