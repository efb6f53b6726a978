/* SPDX-License-Identifier: MIT
 * Calls that are prepared before they are made (TR-1, TR-6, TR-13, TR-15): the first real call is a replay, and the
 * warm-up has no visible effect. Recordings that fail after a segment ran leave inputs unchanged. In assert_seen, each
 * letter is a call: e eager, r recorded, p replayed.
 */
#include <rondo/random.h>

#include "support/test_random_work.h"
#include "support/test_scene.h"

static void prepare(test_scene *s, rondo_function *function, const rondo_input *input) {
  assert_ok(rondo_function_prepare(function, s->stream, input, 1));
}

/* The body runs twice, for the preparation, and calls are replays from the first on. */
SCENE_TEST(test_tr1_prepared_calls_are_replays) {
  rondo_function *f = scene_affine(s, "f", 3, 5);
  const rondo_input input = scene_at(scene_words(s, 10));
  prepare(s, f, &input);
  prepare(s, f, &input);
  assert_int_equal(scene_info(s).calls, 0);
  assert_int_equal(scene_info(s).recorded, 0);
  assert_int_equal(scene_info(s).prepared, 1);
  assert_int_equal(scene_info(s).recordings, 1);
  assert_int_equal(scene_info(s).eager_bytes, 0);
  assert_int_equal(scene_info(s).skipped[RONDO_SKIP_WARM_UP], 0);
  assert_int_equal(test_last_call(s->tree).outcome, RONDO_CALL_NONE);
  for (uint32_t i = 0; i < 3; i++) {
    scene_check(s, f, scene_at(scene_words(s, 100 * i)), 300 * i + 5, 3);
  }
  assert_seen(s, "ppp");
  const rondo_function_info info = test_function_info(f);
  assert_int_equal(info.bodies, 2);
  assert_int_equal(info.prepared, 1);
  assert_int_equal(info.calls, 3);
}

/* A prepared call that is already recorded needs no capacity, and takes none from another recording; a new one does. */
SCENE_TEST(test_tr10_prepared_again_at_the_bound) {
  SCENE_TREE(s, .max_recordings = 2);
  rondo_function *f = scene_affine(s, "f", 3, 5), *g = scene_affine(s, "g", 2, 1), *h = scene_affine(s, "h", 7, 0);
  const rondo_input input = scene_at(scene_words(s, 1));
  prepare(s, f, &input);
  prepare(s, g, &input);
  prepare(s, f, &input);
  prepare(s, g, &input);
  assert_int_equal(scene_info(s).evicted, 0);
  assert_int_equal(scene_info(s).prepared, 2);
  prepare(s, h, &input);
  assert_int_equal(scene_info(s).evicted, 1);
  assert_int_equal(scene_info(s).recordings, 2);
}

/* In a step: the next call on the path is prepared after it, and the path stays. */
SCENE_TEST(test_tr2_the_next_call_of_a_path) {
  rondo_function *f = scene_affine(s, "f", 3, 5), *g = scene_affine(s, "g", 2, 1);
  const uint32_t *x = scene_words(s, 1);
  const rondo_input input = scene_at(x);
  prepare(s, f, &input);
  for (int i = 0; i < 3; i++) {
    scene_begin(s);
    rondo_buffer *a = scene_call(s, f, scene_at(x));
    const rondo_input of_a = scene_of(a);
    prepare(s, g, &of_a);
    assert_int_equal(scene_info(s).live_outputs, 1);
    assert_int_equal(scene_info(s).path_length, 1);
    assert_counts(s, a, 8, 3);
    rondo_buffer *b = scene_call(s, g, of_a);
    assert_counts(s, b, 17, 6);
    assert_counts(s, a, 8, 3);
    rondo_buffer_release(a);
    rondo_buffer_release(b);
    scene_end(s);
  }
  assert_seen(s, "pppppp");
  assert_int_equal(scene_info(s).recordings, 2);
  assert_int_equal(scene_info(s).roots, 1);
}

/* Between two steps: outputs of the step before stay readable, also when they are the input. */
SCENE_TEST(test_tr9_a_step_that_is_over_stays_readable) {
  rondo_function *f = scene_affine(s, "f", 3, 5), *g = scene_affine(s, "g", 2, 1);
  const rondo_input input = scene_at(scene_words(s, 1));
  prepare(s, f, &input);
  rondo_buffer *a = scene_call(s, f, input);
  const rondo_input of_a = scene_of(a);
  prepare(s, g, &of_a);
  prepare(s, g, &input);
  assert_counts(s, a, 8, 3);
  assert_int_equal(scene_info(s).live_outputs, 1);
  rondo_buffer *b = scene_call(s, g, of_a);
  scene_assert_stale(a, "f");
  assert_counts(s, b, 17, 6);
  rondo_buffer_release(a);
  rondo_buffer_release(b);
  assert_seen(s, "pp");
  assert_int_equal(scene_info(s).roots, 2);
}

static rondo_function *make_mutate(test_scene *s, rondo_function_body body, void *user, uint32_t kind,
                                   uint32_t warm_ups) {
  return SCENE_FUNCTION(s, "mutate", body, user, .inputs = &kind, .input_count = 1, .warm_ups = warm_ups);
}

SCENE_TEST(test_tr6_mutated_inputs_are_restored) {
  static const uint32_t kinds[] = {RONDO_INPUT_MOVING | RONDO_INPUT_MUTATED, RONDO_INPUT_STATIC | RONDO_INPUT_MUTATED};
  for (size_t i = 0; i < 2; i++) {
    rondo_function *f = make_mutate(s, scene_body_mutate, scene_work(s, 0, 0), kinds[i], 3);
    uint32_t *words = scene_words(s, 7);
    const rondo_input input = scene_at(words);
    prepare(s, f, &input);
    scene_assert_words(s, words, 7, 1);
    assert_int_equal(test_function_info(f).bodies, 4);
    rondo_buffer *out = scene_call(s, f, input);
    scene_assert_words(s, words, 15, 2);
    assert_counts(s, out, 45, 6);
    rondo_buffer_release(out);
    assert_seen(s, "p");
  }
}

/* A buffer that the path created. */
SCENE_TEST(test_tr6_mutated_managed_inputs_are_restored) {
  rondo_function *make = scene_affine(s, "make", 3, 1);
  rondo_function *f =
      make_mutate(s, scene_body_mutate, scene_work(s, 0, 0), RONDO_INPUT_MOVING | RONDO_INPUT_MUTATED, 1);
  const rondo_input input = scene_at(scene_words(s, 0));
  prepare(s, make, &input);
  scene_begin(s);
  rondo_buffer *a = scene_call(s, make, input);
  const rondo_input of_a = scene_of(a);
  prepare(s, f, &of_a);
  assert_counts(s, a, 1, 3);
  rondo_buffer *out = scene_call(s, f, of_a);
  assert_counts(s, a, 3, 6);
  assert_counts(s, out, 9, 18);
  rondo_buffer_release(a);
  rondo_buffer_release(out);
  scene_end(s);
  assert_seen(s, "pp");
}

/* Random numbers (TR-13) ------------------------------------------------------------------------------------------- */

static rondo_status draw_body(rondo_call *call, void *user) {
  void *out;
  assert_ok(rondo_call_output(call, 0, SCENE_BYTES, NULL, &out));
  return rondo_random_uniform(user, rondo_call_stream(call), out, SCENE_WORDS, 0, 1);
}

static void read_floats(test_scene *s, rondo_function *f, float floats[SCENE_WORDS]) {
  rondo_buffer *out;
  assert_ok(rondo_function_call(f, s->stream, NULL, 0, &out, 1));
  assert_ok(rondo_buffer_copy(out, s->stream, 0, floats, SCENE_BYTES));
  assert_ok(rondo_stream_synchronize(s->stream));
  rondo_buffer_release(out);
}

SCENE_TEST(test_tr13_a_preparation_draws_nothing) {
  rondo_generator *generator, *other;
  float floats[3][SCENE_WORDS], expected[SCENE_WORDS];
  rondo_random drawn;
  assert_ok(rondo_generator_create(s->fixture->device, NULL, &generator));
  assert_ok(rondo_generator_create(s->fixture->device, NULL, &other));
  assert_ok(rondo_generator_reserve(generator, s->stream, 8, &drawn));
  assert_ok(rondo_generator_reserve(other, s->stream, 12, &drawn));
  rondo_function *f = SCENE_FUNCTION(s, "draw", draw_body, generator, .warm_ups = 2);
  assert_ok(rondo_function_prepare(f, s->stream, NULL, 0));
  assert_int_equal(test_generator_offset(generator), 8);
  assert_int_equal(test_generator_offset(other), 12);
  for (int i = 0; i < 3; i++) read_floats(s, f, floats[i]);
  assert_int_equal(test_generator_offset(generator), 20);
  for (uint64_t i = 0; i < 3; i++) {
    for (uint32_t k = 0; k < SCENE_WORDS; k++)
      expected[k] = (float)(rondo_philox(0, k / 4, 8 + 4 * i).x[k % 4] >> 8) * 0x1p-24f;
    assert_memory_equal(floats[i], expected, sizeof expected);
  }
  test_tree_destroy(s->tree);
  s->tree = NULL;
  rondo_generator_destroy(generator);
  rondo_generator_destroy(other);
}

/* Segments (TR-14) ------------------------------------------------------------------------------------------------- */

typedef struct host_work {
  test_work work;
  uint32_t steps, fails_in_run;
  rondo_generator *generator;
  bool drops;
} host_work;

static rondo_status count_step(void *user) {
  ((host_work *)user)->steps++;
  return RONDO_OK;
}

/* in = in * 2 + 1; a host step; out = in * 3, where it does not fail. */
static rondo_status stepped_body(rondo_call *call, void *user) {
  host_work *host = user;
  scene_enter(&host->work);
  scene_change(call, scene_input(call, 0), 2, 1);
  const rondo_status status = rondo_call_host_step(call, count_step, host);
  if (status != RONDO_OK) return status;
  if (host->work.runs == host->fails_in_run) return rondo_call_refuse(call, RONDO_SKIP_UNSAFE, "the second half");
  scene_put(call, 0, scene_input(call, 0), 3, 0);
  return RONDO_OK;
}

SCENE_TEST(test_tr14_bodies_with_host_steps) {
  host_work host = {.work = *scene_work(s, 0, 0)};
  rondo_function *f = make_mutate(s, stepped_body, &host, RONDO_INPUT_STATIC | RONDO_INPUT_MUTATED, 1);
  uint32_t *words = scene_words(s, 7);
  const rondo_input input = scene_at(words);
  prepare(s, f, &input);
  scene_assert_words(s, words, 7, 1);
  assert_int_equal(host.steps, 1); /* of the warm-up */
  rondo_buffer *out = scene_call(s, f, input);
  assert_counts(s, out, 45, 6);
  scene_assert_words(s, words, 15, 2);
  assert_int_equal(host.steps, 2);
  prepare(s, make_mutate(s, stepped_body, &host, RONDO_INPUT_STATIC | RONDO_INPUT_MUTATED, 1), &input);
  assert_int_equal(host.steps, 3);
  assert_counts(s, out, 45, 6);
  scene_assert_words(s, words, 15, 2);
  rondo_buffer_release(out);
  assert_seen(s, "p");
}

/* TR-15: the first segment writes the input, the second fails, and the body runs eagerly on the original contents. */
SCENE_TEST(test_tr15_a_failed_recording_leaves_inputs_alone) {
  host_work host = {.work = *scene_work(s, 0, 0), .fails_in_run = 2};
  rondo_function *f = make_mutate(s, stepped_body, &host, RONDO_INPUT_STATIC | RONDO_INPUT_MUTATED, 1);
  uint32_t *words = scene_words(s, 7), first = 7, step = 1;
  for (int i = 0; i < 4; i++) {
    rondo_buffer *out = scene_call(s, f, scene_at(words));
    first = 2 * first + 1;
    step *= 2;
    scene_assert_words(s, words, first, step);
    assert_counts(s, out, 3 * first, 3 * step);
    rondo_buffer_release(out);
  }
  assert_seen(s, "eeee");
  assert_int_equal(scene_info(s).rolled_back, 1);
  assert_int_equal(scene_info(s).skipped[RONDO_SKIP_UNSAFE], 3);
}

/* The same of numbers drawn, and of an input that was dropped in the first segment. */
static rondo_status draw_and_fail_body(rondo_call *call, void *user) {
  host_work *host = user;
  void *out;
  scene_enter(&host->work);
  assert_ok(rondo_call_output(call, 0, SCENE_BYTES, NULL, &out));
  assert_ok(rondo_random_uniform(host->generator, rondo_call_stream(call), out, SCENE_WORDS, 0, 1));
  scene_put(call, 1, scene_input(call, 0), 1, 0);
  assert_ok(rondo_call_drop_input(call, 0));
  void *scratch = test_allocate_async(rondo_call_stream(call), SCENE_BYTES);
  scene_change(call, scratch, 0, 77);
  assert_ok(rondo_free_async(rondo_call_stream(call), scratch));
  const rondo_status status = rondo_call_host_step(call, count_step, host);
  if (status != RONDO_OK) return status;
  return host->work.runs == host->fails_in_run ? rondo_call_refuse(call, RONDO_SKIP_UNSAFE, "the second half")
                                               : RONDO_OK;
}

SCENE_TEST(test_tr15_a_failed_recording_draws_nothing) {
  host_work host = {.work = *scene_work(s, 0, 0), .fails_in_run = 2};
  assert_ok(rondo_generator_create(s->fixture->device, NULL, &host.generator));
  rondo_function *make = scene_affine(s, "make", 3, 1);
  rondo_function *f = SCENE_FUNCTION(s, "f", draw_and_fail_body, &host, RONDO_INPUTS(RONDO_INPUT_MOVING));
  const uint32_t *x = scene_words(s, 0);
  for (uint64_t i = 0; i < 4; i++) {
    rondo_buffer *outs[2];
    scene_begin(s);
    rondo_buffer *a = scene_call(s, make, scene_at(x));
    SCENE_CALL(s, f, outs, 2, scene_given(a));
    assert_counts(s, outs[1], 1, 3);
    assert_int_equal(test_generator_offset(host.generator), 4 * (i + 1));
    for (int k = 0; k < 2; k++) rondo_buffer_release(outs[k]);
    scene_end(s);
  }
  assert_seen(s, "eerepepe");
  test_tree_destroy(s->tree);
  s->tree = NULL;
  rondo_generator_destroy(host.generator);
}

/* Refusals --------------------------------------------------------------------------------------------------------- */

static rondo_status waiting_body(rondo_call *call, void *user) {
  scene_enter(user);
  return rondo_stream_synchronize(rondo_call_stream(call));
}

static rondo_status again_body(rondo_call *call, void *user) {
  scene_enter(user);
  return rondo_call_warm_up_again(call);
}

static void assert_refused(test_scene *s, rondo_function *f, const rondo_input *input, const char *reason) {
  assert_error(rondo_function_prepare(f, s->stream, input, 1), RONDO_UNSUPPORTED, RONDO_REASON_NOT_RECORDED);
  assert_message("rondo_function_prepare");
  assert_message(reason);
}

SCENE_TEST(test_tr8_what_cannot_be_prepared) {
  const rondo_input input = scene_at(scene_words(s, 1));
  test_work *work = scene_work(s, 1, 0);
  assert_refused(s, SCENE_FUNCTION(s, "f", waiting_body, work, RONDO_INPUTS(RONDO_INPUT_MOVING)), &input, "HOST_WORK");
  assert_refused(s, SCENE_FUNCTION(s, "f", again_body, work, RONDO_INPUTS(RONDO_INPUT_MOVING)), &input, "WARM_UP");
  assert_refused(s, SCENE_FUNCTION(s, "f", waiting_body, work, RONDO_INPUTS(RONDO_INPUT_MOVING), .unsafe = true),
                 &input, "UNSAFE");
  rondo_function *f = scene_affine(s, "f", 3, 5), *g = scene_affine(s, "g", 3, 5);
  assert_ok(rondo_function_set_recording(f, false));
  assert_refused(s, f, &input, "DISABLED");
  assert_ok(rondo_function_set_recording(f, true));
  scene_begin(s);
  rondo_buffer *out = scene_call(s, g, input);
  assert_refused(s, f, &input, "AFTER_WARM_UP");
  rondo_buffer_release(out);
  scene_end(s);
  assert_invalid(rondo_function_prepare(f, s->stream, &input, 0), RONDO_REASON_ARGUMENT_COUNT);
  assert_invalid(rondo_function_prepare(f, s->stream, NULL, 1), RONDO_REASON_NULL_ARGUMENT);
  assert_invalid(rondo_function_prepare(NULL, s->stream, &input, 1), RONDO_REASON_NULL_ARGUMENT);
  assert_ok(rondo_capture_begin(s->stream, RONDO_CAPTURE_THREAD_LOCAL));
  assert_error(rondo_function_prepare(f, s->stream, &input, 1), RONDO_CAPTURE_REFUSED, RONDO_REASON_UNSUPPORTED_CALL);
  rondo_graph *graph = test_capture_end(s->stream);
  test_graph_destroy(graph);
  prepare(s, f, &input);
  assert_int_equal(test_function_info(f).bodies, 2);
  assert_seen(s, "e");
}
