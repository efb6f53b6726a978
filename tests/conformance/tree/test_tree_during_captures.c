/* SPDX-License-Identifier: MIT
 * Trees while others capture (GX-11, C9). A tree waits inside of calls: before host steps, when it tries what it found,
 * when it plans its paths or frees recordings. These waits neither fail nor invalidate a capture on another stream,
 * whatever its mode and whoever began it. Streams that a call works on cannot be destroyed during the call. In
 * assert_seen, each letter is a call: e eager, r recorded, p replayed.
 */
#include <string.h>

#include "support/test_scene.h"

/* Captures --------------------------------------------------------------------------------------------------------- */

typedef struct capturing {
  rondo_stream *stream;
  rondo_capture_mode mode;
  bool is_own; /* begun by the test's thread */
  rondo_status status;
} capturing;

static void begin(void *user) {
  capturing *self = user;
  self->status = rondo_capture_begin(self->stream, self->mode);
}

static capturing begin_capture(const test_scene *s, rondo_capture_mode mode, bool is_own) {
  capturing self = {.stream = test_stream(s->fixture, "captured"), .mode = mode, .is_own = is_own};
  if (is_own)
    begin(&self);
  else
    test_on_thread(begin, &self);
  assert_ok(self.status);
  return self;
}

static void assert_active(const capturing *self) {
  assert_int_equal(test_capture_info(self->stream).state, RONDO_CAPTURE_ACTIVE);
}

/* A capture that another thread began ends with its stream. */
static void end_capture(const capturing *self) {
  assert_active(self);
  if (self->is_own) test_graph_destroy(test_capture_end(self->stream));
  test_stream_destroy(self->stream);
}

/* Runs the work during a capture of each mode and thread. */
static void during_captures(test_scene *s, void (*work)(test_scene *s, const capturing *capture)) {
  static const rondo_capture_mode modes[] = {RONDO_CAPTURE_GLOBAL, RONDO_CAPTURE_THREAD_LOCAL, RONDO_CAPTURE_RELAXED};
  for (size_t i = 0; i < 3; i++)
    for (int is_own = 0; is_own < 2; is_own++) {
      const capturing capture = begin_capture(s, modes[i], is_own == 1);
      work(s, &capture);
      end_capture(&capture);
    }
}

/* Another tree for the scene. To destroy one is an act of the caller's, which captures may forbid. */
static void use_tree(test_scene *s, rondo_tree_options options) {
  rondo_capture_mode mode = RONDO_CAPTURE_RELAXED;
  assert_ok(rondo_capture_exchange_thread_mode(&mode));
  scene_use(s, options);
  assert_ok(rondo_capture_exchange_thread_mode(&mode));
}

static void assert_calls(test_scene *s, const capturing *capture, rondo_function *f, const uint32_t *x,
                         const char *seen) {
  for (size_t i = 0; i < strlen(seen); i++) {
    rondo_buffer_release(scene_call(s, f, scene_at(x)));
    assert_active(capture);
  }
  assert_seen(s, seen);
}

/* Waits of a tree's ------------------------------------------------------------------------------------------------ */

static rondo_status step_body(rondo_call *call, void *user) {
  scene_change(call, scene_input(call, 0), 1, 1);
  assert_ok(rondo_call_host_step(call, test_host_count, user));
  scene_put(call, 0, scene_input(call, 0), 3, 1);
  return RONDO_OK;
}

static void take_steps(test_scene *s, const capturing *capture) {
  static uint32_t steps; /* outlives the function */
  const uint32_t before = steps;
  rondo_function *f =
      SCENE_FUNCTION(s, "steps", step_body, &steps, RONDO_INPUTS(RONDO_INPUT_MOVING | RONDO_INPUT_MUTATED));
  uint32_t *x = s->places[0];
  assert_calls(s, capture, f, x, "erpp");
  assert_int_equal(steps - before, 4);
}
SCENE_TEST(test_tr14_host_steps_during_captures) {
  uint32_t *x = scene_words(s, 1);
  during_captures(s, take_steps);
  scene_assert_words(s, x, 1 + 6 * 4, 1);
}

static rondo_status twice_read_body(rondo_call *call, void *user) {
  (void)user;
  scene_combine(call, 0, scene_input(call, 0), scene_input(call, 0));
  return RONDO_OK;
}
static void find_inputs(test_scene *s, const capturing *capture) {
  const uint64_t checked = scene_info(s).checked;
  rondo_function *f = SCENE_FUNCTION(s, "found", twice_read_body, s, .find_inputs = true,
                                     .binding = RONDO_BINDING_PATCH, RONDO_INPUTS(RONDO_INPUT_MOVING));
  assert_calls(s, capture, f, s->places[0], "erpp");
  assert_int_equal(scene_info(s).checked - checked, 1);
  assert_int_equal(scene_info(s).untrusted, 0);
}
SCENE_TEST(test_tr6_inputs_are_found_during_captures) {
  (void)scene_words(s, 1);
  during_captures(s, find_inputs);
}

static void warm_up(test_scene *s, rondo_function *function, size_t outputs) {
  rondo_buffer *outs[2];
  scene_begin(s);
  SCENE_CALL(s, function, outs, outputs, scene_at(s->places[0]));
  for (size_t i = 0; i < outputs; i++) rondo_buffer_release(outs[i]);
  scene_end(s);
}

/* Functions that warm up in separate steps are recorded one after another: the hole that the first output leaves is too
 * small for later ones, unless the path is planned as a whole. The tree does that itself, waits, and frees the excess.
 * */
static void plan_steady(test_scene *s, const capturing *capture) {
  static size_t first[] = {4 << 20, 2 << 20, 0}, second[] = {6 << 20, 0};
  use_tree(s, (rondo_tree_options){RONDO_TREE_OPTIONS_INIT, .plan_after = 2, .plan_ms = 1000});
  rondo_function *f = SCENE_FUNCTION(s, "first", scene_body_outputs, first, RONDO_INPUTS(RONDO_INPUT_MOVING));
  rondo_function *g = SCENE_FUNCTION(s, "second", scene_body_outputs, second, RONDO_INPUTS(RONDO_INPUT_MOVING));
  const rondo_input x = scene_at(s->places[0]);
  warm_up(s, f, 2);
  warm_up(s, g, 1);
  for (int i = 0; i < 7; i++) {
    rondo_buffer *outs[2], *wide;
    scene_begin(s);
    SCENE_CALL(s, f, outs, 2, x);
    rondo_buffer_release(outs[0]);
    SCENE_CALL(s, g, &wide, 1, x);
    rondo_buffer_release(outs[1]);
    rondo_buffer_release(wide);
    scene_end(s);
    assert_active(capture);
  }
  assert_int_equal(scene_info(s).planned_paths, !test_is_guarded(s->fixture));
  assert_seen(s, test_is_guarded(s->fixture) ? "eerrpppppppppppp" : "eerrpprrpppppppp");
}
SCENE_TEST(test_tr3_paths_are_planned_during_captures) {
  (void)scene_words(s, 1);
  during_captures(s, plan_steady);
}

/* At most one recording is kept, so that each frees the previous one. */
static void evict_recordings(test_scene *s, const capturing *capture) {
  use_tree(s, (rondo_tree_options){RONDO_TREE_OPTIONS_INIT, .max_recordings = 1});
  rondo_function *functions[] = {scene_affine(s, "f", 3, 1), scene_affine(s, "g", 5, 1)};
  for (int i = 0; i < 8; i++) {
    rondo_buffer_release(scene_call(s, functions[i % 2], scene_at(s->places[0])));
    assert_active(capture);
  }
  assert_seen(s, "eerrrrrr");
  assert_int_equal(scene_info(s).evicted, 5);
  for (int i = 0; i < 2; i++) assert_ok(rondo_function_destroy(functions[i]));
}
SCENE_TEST(test_tr11_recordings_are_evicted_during_captures) {
  (void)scene_words(s, 1);
  during_captures(s, evict_recordings);
}

/* A function may be destroyed while the stream of its last call captures, and the capture continues. */
SCENE_TEST(test_tr11_functions_go_while_their_stream_captures) {
  rondo_function *f = scene_affine(s, "f", 3, 1);
  const uint32_t *x = scene_words(s, 1);
  for (int i = 0; i < 3; i++) rondo_buffer_release(scene_call(s, f, scene_at(x)));
  assert_ok(rondo_capture_begin(s->stream, RONDO_CAPTURE_THREAD_LOCAL));
  assert_ok(rondo_function_destroy(f));
  test_graph_destroy(test_capture_end(s->stream));
  assert_int_equal(scene_info(s).recordings, 0);
}

/* Streams that are worked on --------------------------------------------------------------------------------------- */

static rondo_status destroy_step(void *user) {
  assert_error(rondo_stream_destroy(((test_scene *)user)->stream), RONDO_INVALID_STATE, RONDO_REASON_STILL_IN_USE);
  assert_message("function of a tree");
  return RONDO_OK;
}

static rondo_status destroying_body(rondo_call *call, void *user) {
  assert_ok(destroy_step(user));
  scene_put(call, 0, scene_input(call, 0), 3, 1);
  return rondo_call_host_step(call, destroy_step, user);
}

/* Warmed up, recorded, replayed (where its step is still called), eager, and in a capture. */
SCENE_TEST(test_a_body_does_not_destroy_its_stream) {
  s->fails_inside = true;
  rondo_function *f = SCENE_FUNCTION(s, "f", destroying_body, s, RONDO_INPUTS(RONDO_INPUT_MOVING));
  const uint32_t *x = scene_words(s, 1);
  s->stream = test_stream(s->fixture, "held");
  for (int i = 0; i < 5; i++) {
    if (i == 4) assert_ok(rondo_tree_set_recording(s->tree, false));
    scene_check(s, f, scene_at(x), 4, 3);
  }
  assert_seen(s, "erppe");
  rondo_stream *held = s->stream;
  s->stream = s->fixture->stream;
  test_stream_destroy(held);
  rondo_buffer_release(scene_call(s, f, scene_at(x)));
}

/* A joined side stream may be destroyed; its captured work is discarded, and the call runs eagerly. */
static rondo_status side_body(rondo_call *call, void *user) {
  test_scene *s = user;
  rondo_stream *side = test_stream(s->fixture, "side");
  scene_put(call, 0, scene_input(call, 0), 3, 1);
  test_order(s->fixture, rondo_call_stream(call), side);
  test_order(s->fixture, side, rondo_call_stream(call));
  return rondo_stream_destroy(side);
}
SCENE_TEST(test_a_body_destroys_a_stream_of_its_own) {
  rondo_function *f = SCENE_FUNCTION(s, "f", side_body, s, RONDO_INPUTS(RONDO_INPUT_MOVING));
  const uint32_t *x = scene_words(s, 1);
  for (int i = 0; i < 4; i++) {
    scene_check(s, f, scene_at(x), 4, 3);
    if (i > 0) assert_skip(s->tree, HOST_WORK);
    if (i > 0) assert_non_null(strstr(test_last_call(s->tree).message, "the destruction of stream 'side'"));
  }
  assert_seen(s, "eeee");
}
