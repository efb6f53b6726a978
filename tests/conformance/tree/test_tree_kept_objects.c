/* SPDX-License-Identifier: MIT
 * Objects that recordings keep for their host functions (rondo_call_keep): how long, and who refuses them (AD-8).
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

static rondo_status body(rondo_call *call, void *user) {
  objects *of = user;
  object *o = &of->all[of->made++];
  bool is_kept;
  TRY(rondo_call_keep(call, o, release, &is_kept));
  of->kept += is_kept;
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

/* Until the function is destroyed, which waits for the launches. */
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
SCENE_TEST(test_ad8_captures_of_others_keep_nothing) {
  static objects of;
  bool is_kept = true;
  rondo_function *function = make(s, &of);
  assert_ok(rondo_tree_mark_step(s->tree));
  assert_ok(rondo_capture_begin(s->stream, RONDO_CAPTURE_THREAD_LOCAL));
  assert_ok(rondo_function_call(function, s->stream, &(rondo_input){.scalar = 1}, 1, NULL, 0));
  rondo_exec *exec = test_instantiate(test_capture_end(s->stream));
  assert_int_equal(of.kept, 0);
  test_launch(s->fixture, exec);
  assert_int_equal(of.all[0].runs, 1);
  assert_invalid(rondo_call_keep(NULL, &of, release, &is_kept), RONDO_REASON_NULL_ARGUMENT);
  assert_false(is_kept);
}
