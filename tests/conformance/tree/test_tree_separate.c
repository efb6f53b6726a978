/* SPDX-License-Identifier: MIT
 * Recordings without paths (TR-11): each has an arena of its own, and its outputs are valid until it is replayed.
 */
#include "support/test_effort.h"
#include "support/test_scene.h"

static rondo_output_policy policies[] = {RONDO_OUTPUTS_EXPIRE, RONDO_OUTPUTS_CLONE};

/* f and g in turns: values are right, there is one recording each whatever comes before it, and outputs outlive steps.
 */
static void test_tr11_recordings_stand_alone(void **state) {
  test_scene *s = *state;
  SCENE_TREE(s, .separate = true);
  rondo_function *f = scene_affine(s, "f", 3, 1), *g = scene_affine(s, "g", 2, 5);
  rondo_buffer *kept = NULL;
  for (uint32_t i = 0; i < 6; i++) {
    rondo_buffer *a = scene_call(s, f, scene_at(scene_words(s, 10 * i)));
    rondo_buffer *b = scene_call(s, g, scene_of(a));
    assert_counts(s, a, 30 * i + 1, 3);
    assert_counts(s, b, 60 * i + 7, 6);
    if (i == 1) assert_counts(s, kept, 7, 6); /* of a call that ran as it is */
    if (i > 1) scene_assert_stale(kept, "g");
    rondo_buffer_release(kept);
    rondo_buffer_release(a);
    kept = b;
  }
  rondo_buffer_release(kept);
  assert_seen(s, "uurrpppppppp");
  const rondo_tree_info info = scene_info(s);
  assert_int_equal(info.recordings, 2);
  assert_int_equal(info.roots, 2);
  assert_int_equal(info.path_length, 0);
  assert_int_equal(info.live_outputs, 0);
  assert_int_equal(info.skipped[RONDO_SKIP_BEHIND_WARM_UP], 0);
}

/* The memory that a tree shares is held for each: what TR-3 is compared with. */
static uint64_t arena_used(test_scene *s, bool separate) {
  SCENE_TREE(s, .separate = separate);
  uint32_t *words = test_words(s->fixture, 3 * 65536);
  rondo_function *f = scene_affine(s, "f", 3, 1);
  for (size_t i = 0; i < 9; i++) {
    const rondo_input input = {.address = words, .bytes = (1 + i % 3) * 65536 * sizeof *words};
    rondo_buffer_release(scene_call(s, f, input));
  }
  assert_seen(s, "uuurrrppp");
  const uint64_t used = scene_info(s).arena_used;
  assert_ok(rondo_stream_synchronize(s->stream));
  test_words_free(s->fixture, words);
  return used;
}

static void test_tr11_memory_is_the_sum(void **state) {
  test_scene *s = *state;
  const uint64_t separate = arena_used(s, true);
  if (test_is_guarded(s->fixture)) return; /* nothing is shared there */
  assert_true(separate >= 2 * arena_used(s, false) - 65536);
}

/* More recordings than address space would have for as many devices. */
static void test_tr11_thousands_of_recordings(void **state) {
  const uint32_t recordings = test_effort(2200);
  test_scene *s = *state;
  if (test_is_guarded(s->fixture)) return;
  SCENE_TREE(s, .separate = true, .max_recordings_per_place = recordings);
  rondo_function *f = SCENE_FUNCTION(s, "f", test_body_affine, scene_work(s, 3, 1), RONDO_INPUTS(RONDO_INPUT_MOVING),
                                     .max_shapes = recordings);
  uint32_t *words = test_words(s->fixture, recordings);
  for (size_t i = 1; i <= recordings; i++)
    for (int k = 0; k < 2; k++) rondo_buffer_release(test_call_words(s->fixture, f, words, i));
  assert_int_equal(scene_info(s).recordings, recordings);
  assert_int_equal(scene_info(s).skipped[RONDO_SKIP_MEMORY_LIMIT], 0);
  assert_ok(rondo_stream_synchronize(s->stream));
  test_words_free(s->fixture, words);
}

/* An output that is the next call's input, of the same recording, by hand to hand; also when it is changed in place. */
static void test_tr11_outputs_feed_their_own_recording(void **state) {
  test_scene *s = *state;
  for (size_t policy = 0; policy < 2; policy++) {
    SCENE_TREE(s, .separate = true, .outputs = policies[policy]);
    rondo_function *f = scene_affine(s, "f", 3, 1);
    uint32_t first = 0, step = 1;
    rondo_buffer *buffer = scene_call(s, f, scene_at(scene_words(s, 0)));
    for (size_t i = 0; i < 6; i++) {
      first = 3 * first + 1;
      step *= 3;
      assert_counts(s, buffer, first, step);
      rondo_buffer *next = scene_call(s, f, scene_of(buffer));
      if (policy == 1)
        assert_counts(s, buffer, first, step);
      else if (i > 0)
        scene_assert_stale(buffer, "f");
      rondo_buffer_release(buffer);
      buffer = next;
    }
    rondo_buffer_release(buffer);
    assert_seen(s, "urppppp");
    assert_int_equal(scene_info(s).recordings, 1);
  }
}

/* in = in * 2 + 1 in place. */
static rondo_status mutate_body(rondo_call *call, void *user) {
  scene_enter(user);
  scene_change(call, scene_input(call, 0), 2, 1);
  return RONDO_OK;
}

static void test_tr11_outputs_are_written_in_place(void **state) {
  test_scene *s = *state;
  static const uint32_t kinds[] = {RONDO_INPUT_MOVING | RONDO_INPUT_MUTATED, RONDO_INPUT_STATIC | RONDO_INPUT_MUTATED};
  for (size_t k = 0; k < 2; k++)
    for (int binding = RONDO_BINDING_AUTOMATIC; binding <= RONDO_BINDING_PATCH; binding++) {
      SCENE_TREE(s, .separate = true);
      rondo_function *f = scene_affine(s, "f", 3, 1);
      rondo_function *mutate = SCENE_FUNCTION(s, "mutate", mutate_body, scene_work(s, 0, 0), .inputs = &kinds[k],
                                              .input_count = 1, .binding = (rondo_binding)binding);
      const uint32_t *x = scene_words(s, 4);
      for (size_t i = 0; i < 4; i++) {
        rondo_buffer *a = scene_call(s, f, scene_at(x));
        SCENE_CALL(s, mutate, NULL, 0, scene_of(a));
        assert_counts(s, a, 27, 6);
        rondo_buffer_release(a);
      }
      assert_outcome(s->tree, RONDO_CALL_REPLAYED);
      s->calls = 0;
      s->seen[0] = '\0';
    }
}

/* What is held of a recording that goes cannot be read; and preparing, resetting and evicting work as in a tree. */
static void test_tr11_recordings_that_go(void **state) {
  test_scene *s = *state;
  SCENE_TREE(s, .separate = true, .max_recordings = 1);
  rondo_function *f = scene_affine(s, "f", 3, 1), *g = scene_affine(s, "g", 2, 5);
  const rondo_input x = scene_at(scene_words(s, 1));
  assert_ok(rondo_function_prepare(f, s->stream, &x, 1));
  rondo_buffer *a = scene_call(s, f, x);
  assert_counts(s, a, 4, 3);
  assert_int_equal(scene_info(s).live_outputs, 1);
  rondo_buffer_release(a);
  assert_ok(rondo_function_prepare(g, s->stream, &x, 1));
  assert_int_equal(scene_info(s).evicted, 1);
  rondo_buffer *b = scene_call(s, g, x);
  assert_ok(rondo_tree_reset(s->tree));
  scene_assert_stale(b, "g");
  assert_int_equal(scene_info(s).arena_bytes, 0);
  rondo_buffer_release(b);
  a = scene_call(s, f, x);
  assert_counts(s, a, 4, 3);
  rondo_buffer *part = scene_call(s, g, scene_of(a));
  assert_counts(s, part, 13, 6);
  assert_skip(s->tree, RECORDING_LIMIT);
  assert_counts(s, a, 4, 3); /* what is held is not evicted */
  assert_ok(rondo_function_destroy(f));
  scene_assert_stale(a, "f");
  rondo_buffer_release(a);
  rondo_buffer_release(part);
  assert_seen(s, "ppru");
}

static rondo_status fail_io(void *user) {
  (void)user;
  return RONDO_IO_ERROR;
}

/* What ends a recording waits for its launches, but a failure of the stream's work is its user's to hear of. */
static void assert_failure_is_left(test_scene *s) {
  rondo_function *f = scene_affine(s, "f", 3, 1), *g = scene_affine(s, "g", 2, 5);
  const rondo_input x = scene_at(scene_words(s, 1));
  for (int i = 0; i < 3; i++) rondo_buffer_release(scene_call(s, f, x));
  rondo_buffer_release(scene_call(s, g, x));
  assert_ok(rondo_host_async(s->stream, fail_io, NULL));
  rondo_buffer_release(scene_call(s, g, x));
  assert_seen(s, "urpur");
  assert_int_equal(scene_info(s).evicted, 1);
  assert_error(rondo_stream_synchronize(s->stream), RONDO_EXECUTION_FAILED, RONDO_REASON_HOST_FUNCTION_FAILED);
  assert_ok(rondo_stream_synchronize(s->stream));
}

static void test_tr11_ending_recordings_loses_no_failure(void **state) {
  test_scene *s = *state;
  for (int separate = 0; separate < 2; separate++) {
    SCENE_TREE(s, .separate = separate == 1, .max_recordings = 1);
    assert_failure_is_left(s);
  }
}

int main(void) {
  static const struct CMUnitTest tests[] = {
      scene_case(test_tr11_recordings_stand_alone),
      scene_case(test_tr11_memory_is_the_sum),
      scene_case(test_tr11_thousands_of_recordings),
      scene_case(test_tr11_outputs_feed_their_own_recording),
      scene_case(test_tr11_outputs_are_written_in_place),
      scene_case(test_tr11_recordings_that_go),
      scene_case(test_tr11_ending_recordings_loses_no_failure),
  };
  return test_main(tests);
}
