/* SPDX-License-Identifier: MIT
 * User objects of recordings: bodies retain them in the graph that is captured, and they go with the recording (AD-8).
 */
#include "support/test_scene.h"

/* Objects are counters of the host function's runs. A released one must not run any more. */
typedef struct object {
  uint32_t runs;
  bool is_released;
} object;

enum { MOST = 64 };

typedef struct objects {
  test_work *work;
  object all[MOST];
  uint32_t made, kept, released;
} objects;

static objects *current;

static rondo_status run(void *user) {
  object *o = user;
  if (o->is_released) return RONDO_INVALID_DATA;
  o->runs++;
  return RONDO_OK;
}

static void release(void *user) {
  object *o = user;
  assert_false(o->is_released);
  o->is_released = true;
  current->released++;
}

static rondo_status keep(rondo_graph *graph, object *o) {
  rondo_user_object *kept;
  TRY(rondo_user_object_create(o, release, 1, NULL, &kept));
  return rondo_graph_retain_object(graph, kept, 1, true);
}

static rondo_status body(rondo_call *call, void *user) {
  objects *of = user;
  object *o = &of->all[of->made++];
  rondo_capture_info info = {.struct_size = sizeof info};
  TRY(rondo_capture_get_info(rondo_call_stream(call), &info));
  if (info.graph != NULL) TRY(keep(info.graph, o));
  of->kept += info.graph != NULL;
  return rondo_host_async(rondo_call_stream(call), run, o);
}

static void call_with(const test_scene *s, rondo_function *function, uint64_t value) {
  assert_ok(rondo_tree_mark_step(s->tree));
  assert_ok(rondo_function_call(function, s->stream, &(rondo_input){.scalar = value}, 1, NULL, 0));
}

static rondo_function *make(test_scene *s, objects *of) {
  *of = (objects){0};
  current = of;
  return SCENE_FUNCTION(s, "keeps", body, of, RONDO_INPUTS(RONDO_INPUT_SCALAR));
}

/* Until the function is destroyed, and its launches have ended. */
SCENE_TEST(test_ad8_a_recording_keeps_objects) {
  static objects of;
  rondo_function *function = make(s, &of);
  call_with(s, function, 1);
  assert_int_equal(of.kept, 0); /* nothing keeps the objects of eager runs */
  for (int i = 0; i < 4; i++) call_with(s, function, 1);
  assert_int_equal(scene_info(s).replayed, 3);
  assert_int_equal(of.kept, of.made - 1);
  assert_int_equal(of.released, 0);
  assert_ok(rondo_function_destroy(function));
  assert_ok(rondo_stream_synchronize(s->stream));
  assert_int_equal(of.released, of.kept);
  assert_int_equal(of.all[of.made - 1].runs, 4);
}

/* Evicted recordings release theirs while others are made. */
SCENE_TEST(test_ad8_evicted_recordings_release_objects) {
  static objects of;
  SCENE_TREE(s, .max_recordings = 2);
  rondo_function *function = make(s, &of);
  for (uint64_t value = 0; value < 8; value++)
    for (int i = 0; i < 3; i++) {
      call_with(s, function, value);
      assert_ok(rondo_stream_synchronize(s->stream));
      assert_true(of.kept - of.released <= 4);
    }
  assert_int_equal(of.kept, 8);
  assert_ok(rondo_tree_destroy(s->tree));
  s->tree = NULL;
  assert_int_equal(of.released, of.kept);
}

/* Work in a capture of other code belongs to that graph. */
SCENE_TEST(test_ad8_captures_of_others_retain_objects) {
  static objects of;
  rondo_function *function = make(s, &of);
  assert_ok(rondo_tree_mark_step(s->tree));
  assert_ok(rondo_capture_begin(s->stream, RONDO_CAPTURE_THREAD_LOCAL));
  assert_ok(rondo_function_call(function, s->stream, &(rondo_input){.scalar = 1}, 1, NULL, 0));
  rondo_exec *exec = test_exec_of(test_capture_end(s->stream));
  assert_int_equal(of.kept, 1);
  assert_ok(rondo_function_destroy(function));
  test_launch(s->fixture, exec);
  assert_int_equal(of.all[0].runs, 1);
  assert_int_equal(of.released, 0);
  rondo_exec_destroy(exec);
  assert_ok(rondo_stream_synchronize(s->stream));
  assert_int_equal(of.released, 1);
}

/* A host step runs without a node: its object stays as long as the recording. */
static rondo_status step_body(rondo_call *call, void *user) {
  objects *of = user;
  object *o = &of->all[of->made++];
  rondo_capture_info info = {.struct_size = sizeof info};
  TRY(rondo_capture_get_info(rondo_call_stream(call), &info));
  if (info.graph != NULL) TRY(keep(info.graph, o));
  of->kept += info.graph != NULL;
  return rondo_call_host_step(call, run, o);
}

/* Recordings that share an exec exchange its objects, but keep those of their steps. */
static void test_steps(test_scene *s, rondo_tree_options options) {
  static objects of;
  scene_use(s, options);
  of = (objects){0};
  current = &of;
  rondo_function *function = SCENE_FUNCTION(s, "steps", step_body, &of, RONDO_INPUTS(RONDO_INPUT_SCALAR));
  for (int round = 0; round < 5; round++)
    for (uint64_t value = 0; value < 3; value++) call_with(s, function, value);
  assert_int_equal(of.released, of.kept - 3);
  assert_int_equal(scene_info(s).recordings, 3);
  assert_ok(rondo_function_destroy(function));
  assert_ok(rondo_stream_synchronize(s->stream));
  assert_int_equal(of.released, of.kept);
}

SCENE_TEST(test_ad8_recordings_keep_objects_of_host_steps) {
  test_steps(s, (rondo_tree_options){RONDO_TREE_OPTIONS_INIT});
}

SCENE_TEST(test_ad8_recordings_that_share_execs_keep_objects) {
  test_steps(s, (rondo_tree_options){RONDO_TREE_OPTIONS_INIT, .share_execs = true});
}
