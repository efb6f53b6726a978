/* SPDX-License-Identifier: MIT */
#include "support/test_scene.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The scene of the bodies' fixture. Tests run one after another; each thread has its own scene. */
static _Thread_local test_scene *here;

/* Life ------------------------------------------------------------------------------------------------------------- */

static int set_up(void **state, int (*fixture_setup)(void **state)) {
  test_scene *scene = calloc(1, sizeof *scene);
  void *fixture = NULL;
  if (scene == NULL || fixture_setup(&fixture) != 0) return -1;
  scene->fixture = fixture;
  scene->stream = scene->fixture->stream;
  scene->tree = test_tree(scene->fixture, NULL);
  *state = here = scene;
  return 0;
}

int scene_setup(void **state) { return set_up(state, test_setup); }
int scene_setup_workers(void **state) { return set_up(state, test_setup_workers); }

int scene_teardown(void **state) {
  test_scene *scene = *state;
  void *fixture = scene->fixture;
  bool clean = rondo_tree_destroy(scene->tree) == RONDO_OK;
  if (!clean) print_error("teardown: the tree: %s\n", rondo_last_error()->message);
  free(scene);
  return test_tree_teardown(&fixture) == 0 && clean ? 0 : -1;
}

void scene_use(test_scene *scene, rondo_tree_options options) {
  test_tree_destroy(scene->tree);
  scene->tree = test_tree(scene->fixture, &options);
}

/* Words, functions ------------------------------------------------------------------------------------------------- */

void scene_set(test_scene *scene, uint32_t *words, uint32_t first) {
  uint32_t values[SCENE_WORDS];
  for (uint32_t i = 0; i < SCENE_WORDS; i++) values[i] = first + i;
  test_write(scene->fixture, words, values, sizeof values);
}

uint32_t *scene_words(test_scene *scene, uint32_t first) {
  assert_true(scene->place_count < SCENE_PLACES);
  uint32_t *words = test_words(scene->fixture, SCENE_WORDS);
  scene->places[scene->place_count++] = words;
  scene_set(scene, words, first);
  return words;
}

test_work *scene_work(test_scene *scene, uint32_t factor, uint32_t term) {
  assert_true(scene->work_count < SCENE_PLACES);
  test_work *work = &scene->works[scene->work_count++];
  *work = (test_work){.fixture = scene->fixture, .factor = factor, .term = term};
  return work;
}

rondo_function *scene_make(test_scene *scene, const rondo_function_options *options) {
  rondo_function *function = NULL;
  assert_ok(rondo_function_create(scene->tree, options, &function));
  return function;
}

rondo_function *scene_affine(test_scene *scene, const char *name, uint32_t factor, uint32_t term) {
  return SCENE_FUNCTION(scene, name, test_body_affine, scene_work(scene, factor, term),
                        RONDO_INPUTS(RONDO_INPUT_MOVING));
}

/* In a body -------------------------------------------------------------------------------------------------------- */

test_work *scene_enter(void *user) {
  test_work *work = user;
  work->runs++;
  return work;
}

uint32_t *scene_input(rondo_call *call, size_t index) {
  uint32_t *words = rondo_call_input(call, index);
  assert_non_null(words);
  return words;
}

void scene_change(rondo_call *call, uint32_t *words, uint32_t factor, uint32_t term) {
  test_affine(here->fixture, rondo_call_stream(call), words, SCENE_WORDS, factor, term);
}

uint32_t *scene_put(rondo_call *call, size_t index, const uint32_t *from, uint32_t factor, uint32_t term) {
  void *out;
  assert_ok(rondo_call_output(call, index, SCENE_BYTES, NULL, &out));
  assert_ok(rondo_copy_async(rondo_call_stream(call), out, from, SCENE_BYTES));
  scene_change(call, out, factor, term);
  return out;
}

uint32_t *scene_combine(rondo_call *call, size_t index, const uint32_t *a, const uint32_t *b) {
  void *out;
  assert_ok(rondo_call_output(call, index, SCENE_BYTES, NULL, &out));
  assert_ok(rondo_launch(rondo_call_stream(call), test_kernel(here->fixture, TEST_KERNEL_COMBINE),
                         (rondo_grid){SCENE_WORDS, 0, 0}, RONDO_ARGS(&a, &b, &out)));
  return out;
}

rondo_status scene_body_mutate(rondo_call *call, void *user) {
  scene_enter(user);
  scene_change(call, scene_input(call, 0), 2, 1);
  scene_put(call, 0, scene_input(call, 0), 3, 0);
  return RONDO_OK;
}

rondo_status scene_body_combine(rondo_call *call, void *user) {
  scene_enter(user);
  scene_combine(call, 0, scene_input(call, 0), scene_input(call, 1));
  return RONDO_OK;
}

/* Calls ------------------------------------------------------------------------------------------------------------ */

rondo_input scene_at(const uint32_t *words) {
  return (rondo_input){.address = (void *)(uintptr_t)words, .bytes = SCENE_BYTES};
}
rondo_input scene_of(rondo_buffer *buffer) { return (rondo_input){.buffer = buffer}; }
rondo_input scene_given(rondo_buffer *buffer) { return (rondo_input){.buffer = buffer, .give = true}; }

void scene_call_all(test_scene *scene, rondo_function *function, const rondo_input *inputs, size_t input_count,
                    rondo_buffer **outputs, size_t output_count) {
  char before[256], after[256];
  (void)snprintf(before, sizeof before, "%s", rondo_last_error()->message);
  assert_ok(rondo_function_call(function, scene->stream, inputs, input_count, outputs, output_count));
  (void)snprintf(after, sizeof after, "%s", rondo_last_error()->message);
  if (!scene->fails_inside) assert_string_equal(after, before);
  for (size_t i = 0; i < output_count; i++) assert_non_null(outputs[i]);
  assert_true(scene->calls < SCENE_CALLS);
  scene->seen[scene->calls++] = "?pre"[test_last_call(scene->tree).outcome];
  scene->seen[scene->calls] = '\0';
}

rondo_buffer *scene_call(test_scene *scene, rondo_function *function, rondo_input input) {
  rondo_buffer *out = NULL;
  scene_call_all(scene, function, &input, 1, &out, 1);
  return out;
}

void scene_check(test_scene *scene, rondo_function *function, rondo_input input, uint32_t first, uint32_t step) {
  rondo_buffer *out = scene_call(scene, function, input);
  assert_counts(scene, out, first, step);
  rondo_buffer_release(out);
}

void scene_assert_seen(test_scene *scene, const char *expected, const char *file, int line) {
  const bool is_same = strcmp(scene->seen, expected) == 0;
  if (!is_same) print_error("calls were %s, expected %s\n", scene->seen, expected);
  scene->calls = 0;
  scene->seen[0] = '\0';
  if (!is_same) _fail(file, line);
}

/* Looking ---------------------------------------------------------------------------------------------------------- */

static void assert_read(const uint32_t *words, uint32_t first, uint32_t step, const char *file, int line) {
  for (uint32_t i = 0; i < SCENE_WORDS; i++) {
    if (words[i] == first + i * step) continue;
    print_error("word %u is %u, expected %u\n", i, words[i], first + i * step);
    _fail(file, line);
  }
}

void scene_assert_counts(test_scene *scene, const rondo_buffer *buffer, uint32_t first, uint32_t step, const char *file,
                         int line) {
  uint32_t words[SCENE_WORDS];
  assert_ok(rondo_buffer_copy(buffer, scene->stream, 0, words, sizeof words));
  assert_ok(rondo_stream_synchronize(scene->stream));
  assert_read(words, first, step, file, line);
}

void scene_assert_words(test_scene *scene, const uint32_t *words, uint32_t first, uint32_t step) {
  uint32_t values[SCENE_WORDS];
  assert_ok(rondo_stream_synchronize(scene->stream));
  test_read(scene->fixture, values, words, sizeof values);
  assert_read(values, first, step, __FILE__, __LINE__);
}

rondo_status scene_body_outputs(rondo_call *call, void *user) {
  const size_t *bytes = user;
  for (size_t i = 0; bytes[i] != 0; i++) {
    void *out;
    assert_ok(rondo_call_output(call, i, bytes[i], NULL, &out));
    assert_ok(rondo_copy_async(rondo_call_stream(call), out, rondo_call_input(call, 0), SCENE_BYTES));
  }
  return RONDO_OK;
}

void scene_assert_stale(const rondo_buffer *buffer, const char *function) {
  void *address;
  assert_error(rondo_buffer_address(buffer, &address), RONDO_INVALID_LIFETIME, RONDO_REASON_STALE_BUFFER);
  assert_message(function);
  assert_null(address);
  assert_false(test_buffer_info(buffer).is_valid);
}

void *scene_address(const rondo_buffer *buffer) {
  void *address;
  assert_ok(rondo_buffer_address(buffer, &address));
  return address;
}

rondo_tree_info scene_info(const test_scene *scene) { return test_tree_info(scene->tree); }

void scene_begin(test_scene *scene) { assert_ok(rondo_tree_step_begin(scene->tree)); }
void scene_end(test_scene *scene) { assert_ok(rondo_tree_step_end(scene->tree)); }
