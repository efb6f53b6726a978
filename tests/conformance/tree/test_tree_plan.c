/* SPDX-License-Identifier: MIT
 * The memory of whole paths (TR-3): the size of a tree's arena compared with the bytes that are alive at once on its
 * largest path. The path is planned from its warm-ups, or recorded one call after another, or planned again. The
 * lifetimes are those of a training step (activations are saved, and freed in reverse order), of serving (outputs die
 * in the order of their creation), and of two hundred shapes.
 *
 * All work uses the first WORDS words of its buffers; the other bytes are overwritten with other values.
 *
 * Letters are the outcomes of calls: e eager, r recorded, p replayed.
 */
#include <string.h>

#include "support/test_scene.h"

enum { WORDS = 32, LAYERS = 12, LINKS = 24, HELD = 3, SHAPES = 200, STEPS = 4 };

/* The sizes of a layer's output, of what it saves, and of its scratch memory. */
typedef struct layer {
  test_fixture *fixture;
  size_t out, saved, scratch; /* words */
  uint32_t factor;
  uint32_t runs;
  rondo_function *forward, *backward;
} layer;

typedef struct model {
  test_scene *scene;
  layer layers[LINKS];
  size_t count, held; /* held: outputs that are alive at once during serving */
  bool gives;         /* what the backwards get */
  uint32_t *x;
} model;

/* Sizes as of a network's layers: some large, many small, all different. */
static size_t next_size(uint32_t *seed) {
  *seed = *seed * 1664525 + 1013904223;
  const size_t exponent = *seed >> 29;
  *seed = *seed * 1664525 + 1013904223;
  return ((size_t)WORDS << exponent) + (*seed >> 22);
}

static void make_layers(model *m, test_scene *scene, size_t count, uint32_t seed) {
  *m = (model){.scene = scene, .count = count, .held = HELD, .gives = true, .x = scene_words(scene, 1)};
  for (size_t i = 0; i < count; i++)
    m->layers[i] = (layer){.fixture = scene->fixture,
                           .out = next_size(&seed),
                           .saved = next_size(&seed),
                           .scratch = next_size(&seed),
                           .factor = 3 + 2 * (uint32_t)i};
}

/* Bodies ----------------------------------------------------------------------------------------------------------- */

static void fill(rondo_call *call, void *memory, uint8_t value, size_t words) {
  const rondo_fill all = {.dst = memory, .value = value, .element_bytes = 1, .width = words * sizeof(uint32_t)};
  assert_ok(rondo_fill_async(rondo_call_stream(call), &all));
}

static void *scratch_of(rondo_call *call, const layer *at) {
  void *scratch = test_allocate_async(rondo_call_stream(call), at->scratch * sizeof(uint32_t));
  fill(call, scratch, 0xa5, at->scratch);
  return scratch;
}

static void put_output(rondo_call *call, size_t index, const void *from, size_t words) {
  void *out;
  assert_ok(rondo_call_output(call, index, words * sizeof(uint32_t), NULL, &out));
  fill(call, out, 0x5a, words);
  assert_ok(rondo_copy_async(rondo_call_stream(call), out, from, WORDS * sizeof(uint32_t)));
}

/* y = x * factor + 1. */
static rondo_status link_body(rondo_call *call, void *user) {
  layer *at = user;
  void *scratch = scratch_of(call, at);
  at->runs++;
  assert_ok(rondo_copy_async(rondo_call_stream(call), scratch, rondo_call_input(call, 0), WORDS * sizeof(uint32_t)));
  test_affine(at->fixture, rondo_call_stream(call), scratch, WORDS, at->factor, 1);
  put_output(call, 0, scratch, at->out);
  return rondo_free_async(rondo_call_stream(call), scratch);
}

/* The same, which saves x. */
static rondo_status forward_body(rondo_call *call, void *user) {
  const layer *at = user;
  assert_ok(link_body(call, user));
  put_output(call, 1, rondo_call_input(call, 0), at->saved);
  return RONDO_OK;
}

/* g' = g * 31 + saved; both are dropped before g' is allocated. */
static rondo_status backward_body(rondo_call *call, void *user) {
  layer *at = user;
  void *g = rondo_call_input(call, 0), *saved = rondo_call_input(call, 1), *scratch = scratch_of(call, at);
  at->runs++;
  assert_ok(rondo_launch(rondo_call_stream(call), test_kernel(at->fixture, TEST_KERNEL_COMBINE),
                         (rondo_grid){WORDS, 0, 0}, RONDO_ARGS(&g, &saved, &scratch)));
  assert_ok(rondo_call_drop_input(call, 0));
  assert_ok(rondo_call_drop_input(call, 1));
  put_output(call, 0, scratch, at->out);
  return rondo_free_async(rondo_call_stream(call), scratch);
}

/* Steps ------------------------------------------------------------------------------------------------------------ */

static void read_words(const model *m, const rondo_buffer *buffer, uint32_t *out) {
  assert_ok(rondo_buffer_copy(buffer, m->scene->stream, 0, out, WORDS * sizeof *out));
  assert_ok(rondo_stream_synchronize(m->scene->stream));
}

static void begin(model *m, uint32_t first, uint32_t *values) {
  scene_set(m->scene, m->x, first);
  m->scene->calls = 0;
  for (uint32_t i = 0; i < WORDS; i++) values[i] = first + i;
  scene_begin(m->scene);
}

static rondo_input input_x(const model *m) { return (rondo_input){.address = m->x, .bytes = WORDS * sizeof *m->x}; }

/* Forwards and backwards, with values as on the host. */
static void train(model *m, uint32_t first) {
  uint32_t values[WORDS], saved[LAYERS][WORDS], seen[WORDS];
  rondo_buffer *held[LAYERS], *outs[2] = {NULL, NULL};
  begin(m, first, values);
  for (size_t i = 0; i < m->count; i++) {
    const rondo_input x = i == 0 ? input_x(m) : scene_given(outs[0]);
    memcpy(saved[i], values, sizeof values);
    SCENE_CALL(m->scene, m->layers[i].forward, outs, 2, x);
    held[i] = outs[1];
    for (size_t k = 0; k < WORDS; k++) values[k] = values[k] * m->layers[i].factor + 1;
  }
  for (size_t i = m->count; i-- > 0;) {
    rondo_buffer *const gradient = outs[0];
    SCENE_CALL(m->scene, m->layers[i].backward, outs, 1, m->gives ? scene_given(gradient) : scene_of(gradient),
               m->gives ? scene_given(held[i]) : scene_of(held[i]));
    if (!m->gives) rondo_buffer_release(gradient);
    if (!m->gives) rondo_buffer_release(held[i]);
    for (size_t k = 0; k < WORDS; k++) values[k] = values[k] * 31 + saved[i][k];
  }
  read_words(m, outs[0], seen);
  assert_memory_equal(seen, values, sizeof seen);
  rondo_buffer_release(outs[0]);
  scene_end(m->scene);
}

/* One after the other, with the last outputs alive. */
static void serve(model *m, uint32_t first) {
  uint32_t values[WORDS], seen[WORDS];
  rondo_buffer *outs[LINKS];
  begin(m, first, values);
  for (size_t i = 0; i < m->count; i++) {
    if (i >= m->held) rondo_buffer_release(outs[i - m->held]);
    SCENE_CALL(m->scene, m->layers[i].forward, &outs[i], 1, i == 0 ? input_x(m) : scene_of(outs[i - 1]));
    for (size_t k = 0; k < WORDS; k++) values[k] = values[k] * m->layers[i].factor + 1;
    read_words(m, outs[i], seen);
    assert_memory_equal(seen, values, sizeof seen);
  }
  for (size_t i = m->count - m->held; i < m->count; i++) rondo_buffer_release(outs[i]);
  scene_end(m->scene);
}

typedef void step_function(model *m, uint32_t first);

static void make_training(model *m, test_scene *scene, uint32_t seed) {
  make_layers(m, scene, LAYERS, seed);
  for (size_t i = 0; i < m->count; i++) {
    layer *at = &m->layers[i];
    at->forward = SCENE_FUNCTION(scene, "forward", forward_body, at, RONDO_INPUTS(RONDO_INPUT_MOVING));
    at->backward =
        SCENE_FUNCTION(scene, "backward", backward_body, at, RONDO_INPUTS(RONDO_INPUT_MOVING, RONDO_INPUT_MOVING));
  }
}

static void make_serving(model *m, test_scene *scene, uint32_t seed) {
  make_layers(m, scene, LINKS, seed);
  for (size_t i = 0; i < m->count; i++)
    m->layers[i].forward = SCENE_FUNCTION(scene, "link", link_body, &m->layers[i], RONDO_INPUTS(RONDO_INPUT_MOVING));
}

static uint32_t runs_of(const model *m) {
  uint32_t runs = 0;
  for (size_t i = 0; i < m->count; i++) runs += m->layers[i].runs;
  return runs;
}

/* The last recording needs at most this share of the lower bound, and no more is backed, except whole pages. */
static void assert_takes(const model *m, double most) {
  const rondo_tree_info info = scene_info(m->scene);
  if (test_is_guarded(m->scene->fixture)) return;
  if ((double)info.arena_used > (double)info.arena_minimum * most)
    fail_msg("%llu bytes of the arena for %llu", (unsigned long long)info.arena_used,
             (unsigned long long)info.arena_minimum);
  assert_int_equal(info.arena_bytes, test_whole_pages(m->scene->fixture, info.arena_used));
}

/* Tests ------------------------------------------------------------------------------------------------------------ */

/* All calls of a step ended in the same state. */
static void assert_all(const model *m, char what) {
  for (size_t i = 0; i < m->scene->calls; i++) assert_int_equal(m->scene->seen[i], what);
}

/* Warmed up in one step, recorded in the next with a plan of the whole path, and then unchanged. */
static void run_first_recorded(model *m, step_function *step) {
  step(m, 1);
  assert_all(m, 'e');
  step(m, 2);
  assert_all(m, 'r');
  assert_takes(m, 1.01);
  for (uint32_t i = 0; i < 2 * STEPS; i++) step(m, i);
  assert_all(m, 'p');
  const rondo_tree_info info = scene_info(m->scene);
  assert_int_equal(info.warmed_up_paths, test_is_guarded(m->scene->fixture) ? 0 : 1);
  assert_int_equal(info.recorded, m->scene->calls);
  assert_int_equal(info.planned_paths, 0);
  assert_int_equal(info.rolled_back, 0);
}

/* Runs it on models of four seeds, each in a separate tree. */
static void run_seeds(test_scene *s, rondo_tree_options options, void (*run)(model *m, step_function *step),
                      bool trains) {
  options.plan_ms = 1000;
  for (uint32_t seed = 1; seed <= 4; seed++) {
    model m;
    scene_use(s, options);
    (trains ? make_training : make_serving)(&m, s, seed);
    run(&m, trains ? train : serve);
  }
}

static const rondo_tree_options planned_at_once = {RONDO_TREE_OPTIONS_INIT};
SCENE_TEST(test_tr3_a_training_step_as_first_recorded) { run_seeds(s, planned_at_once, run_first_recorded, true); }
SCENE_TEST(test_tr3_serving_as_first_recorded) { run_seeds(s, planned_at_once, run_first_recorded, false); }

/* More is alive than in the warm-ups, or less; or nothing is dropped: calls that do not fit the plan are recorded
 * separately, and none runs eagerly because of it. */
SCENE_TEST(test_tr3_a_path_that_is_not_as_it_was_warmed_up) {
  static const size_t held[] = {HELD - 1, HELD + 2, LINKS};
  for (size_t i = 0; i < sizeof held / sizeof held[0]; i++) {
    model m;
    SCENE_TREE(s, .no_plan_again = true);
    make_serving(&m, s, 1);
    serve(&m, 1);
    m.held = held[i];
    serve(&m, 2);
    assert_all(&m, 'r');
    serve(&m, 3);
    assert_all(&m, 'p');
    m.held = HELD;
    for (uint32_t k = 0; k < STEPS; k++) serve(&m, k);
    assert_all(&m, 'p');
  }
  for (int i = 0; i < 2; i++) {
    model m;
    SCENE_TREE(s, .no_plan_again = true);
    make_training(&m, s, 1);
    m.gives = i == 0;
    train(&m, 1);
    m.gives = i != 0;
    train(&m, 2);
    assert_all(&m, 'r');
    train(&m, 3);
    assert_all(&m, 'p');
  }
}

/* Calls after existing recordings are planned around what lives of these. */
SCENE_TEST(test_tr3_a_path_that_grows) {
  model m;
  SCENE_TREE(s, .no_plan_again = true);
  make_serving(&m, s, 1);
  for (m.count = 6; m.count <= LINKS; m.count += 6)
    for (uint32_t i = 0; i < STEPS; i++) serve(&m, i);
  m.count = LINKS;
  serve(&m, 1);
  assert_all(&m, 'p');
  const rondo_tree_info info = scene_info(m.scene);
  assert_int_equal(info.warmed_up_paths, test_is_guarded(m.scene->fixture) ? 0 : LINKS / 6);
  assert_int_equal(info.recorded, LINKS);
}

/* Warm-ups are freed with their functions. */
SCENE_TEST(test_tr3_warm_ups_end_with_their_functions) {
  model m;
  SCENE_TREE(s, .no_plan_again = true);
  make_serving(&m, s, 1);
  serve(&m, 1);
  assert_ok(rondo_function_destroy(m.layers[--m.count].forward));
  for (uint32_t i = 0; i < STEPS; i++) serve(&m, i);
  assert_all(&m, 'p');
  assert_int_equal(scene_info(m.scene).warmed_up_paths, 0);
}

/* Recorded one after another, each without knowledge of later calls: a reset leaves only warm functions. */
static void record_singly(model *m, step_function *step) {
  step(m, 1);
  assert_ok(rondo_tree_reset(m->scene->tree));
}

/* Warmed up, recorded and replayed; planned again, and recorded once more without warming up. */
static void run_planned_again(model *m, step_function *step) {
  const bool is_guarded = test_is_guarded(m->scene->fixture);
  record_singly(m, step);
  for (uint32_t i = 0; i < STEPS; i++) step(m, i * 100);
  const rondo_tree_info before = scene_info(m->scene);
  const uint32_t runs = runs_of(m);
  assert_int_equal(before.planned_paths, 0);
  assert_ok(rondo_tree_plan_again(m->scene->tree));
  for (uint32_t i = 0; i < STEPS; i++) step(m, 7 + i);
  const rondo_tree_info after = scene_info(m->scene);
  const bool is_planned = after.planned_paths > 0;
  assert_int_equal(after.recordings, before.recordings);
  assert_int_equal(after.recorded - before.recorded, is_planned ? before.recordings : 0);
  assert_int_equal(runs_of(m) - runs, is_planned ? before.recordings : 0);
  assert_int_equal(after.rolled_back, 0);
  assert_true(after.arena_used <= before.arena_used || is_guarded);
  if (is_planned) {
    assert_int_equal(after.planned_before, before.arena_used);
    assert_int_equal(after.planned_after, after.arena_used);
  }
  assert_takes(m, 1.01);
}

static const rondo_tree_options planned_on_request = {RONDO_TREE_OPTIONS_INIT, .no_plan_again = true};
SCENE_TEST(test_tr3_a_training_step_planned_again) { run_seeds(s, planned_on_request, run_planned_again, true); }
SCENE_TEST(test_tr3_serving_planned_again) { run_seeds(s, planned_on_request, run_planned_again, false); }

/* The tree does not record again on its own if that saves no page. */
static bool is_in_pages(const model *m) {
  const rondo_tree_info info = scene_info(m->scene);
  return test_whole_pages(m->scene->fixture, info.arena_used) > test_whole_pages(m->scene->fixture, info.arena_minimum);
}

static void run_steady(model *m, step_function *step) {
  record_singly(m, step);
  for (uint32_t i = 0; i < 12; i++) step(m, i);
  if (is_in_pages(m)) assert_takes(m, 1.05);
  const uint64_t recorded = scene_info(m->scene).recorded;
  for (uint32_t i = 0; i < 12; i++) step(m, i);
  assert_int_equal(scene_info(m->scene).recorded, recorded);
  assert_int_equal(scene_info(m->scene).rolled_back, 0);
}

/* An unchanged tree plans again on its own if it uses too much memory, and only once. */
SCENE_TEST(test_tr3_paths_are_planned_when_steady) {
  test_fixture *t = s->fixture;
  uint64_t planned = 0;
  for (uint32_t seed = 1; seed <= 8; seed++) {
    model m;
    SCENE_TREE(s, .plan_after = 3, .plan_ms = 1000);
    (seed % 2 == 0 ? make_training : make_serving)(&m, s, seed);
    run_steady(&m, seed % 2 == 0 ? train : serve);
    planned += scene_info(s).planned_paths;
  }
  assert_true(planned > 0 || test_is_guarded(t) || test_whole_pages(t, 1) > 65536);
}

/* By default at the beginning of the second path that follows; after that at longer intervals. */
SCENE_TEST(test_tr3_paths_are_planned_soon) {
  model m;
  SCENE_TREE(s, .plan_ms = 1000);
  make_serving(&m, s, 1);
  record_singly(&m, serve);
  serve(&m, 1);
  assert_all(&m, 'r');
  serve(&m, 2);
  assert_all(&m, 'p');
  const bool is_planned = !test_is_guarded(m.scene->fixture) && is_in_pages(&m);
  serve(&m, 3);
  assert_all(&m, is_planned ? 'r' : 'p');
  if (is_planned) assert_takes(&m, 1.05);
  for (uint32_t i = 0; i < STEPS; i++) serve(&m, i);
  assert_all(&m, 'p');
  const uint64_t planned = scene_info(m.scene).planned_paths;
  assert_int_equal(planned, is_planned);
  assert_ok(rondo_tree_reset(m.scene->tree));
  for (uint32_t i = 0; i < 4; i++) serve(&m, i);
  assert_int_equal(scene_info(m.scene).planned_paths, planned);
  serve(&m, 4);
  assert_int_equal(scene_info(m.scene).planned_paths, 2 * planned);
}

/* Planned as a path that continues differently: calls that do not fit their plan are recorded separately, and results
 * stay right. */
SCENE_TEST(test_tr3_a_path_that_changes_after_it_was_planned) {
  model m;
  SCENE_TREE(s, .no_plan_again = true, .plan_ms = 1000);
  make_serving(&m, s, 1);
  record_singly(&m, serve);
  for (uint32_t i = 0; i < STEPS; i++) serve(&m, i);
  assert_ok(rondo_tree_plan_again(m.scene->tree));
  const size_t all = m.count;
  for (uint32_t round = 0; round < 3; round++) {
    for (m.count = HELD; m.count < all; m.count += 5) serve(&m, 10 + round);
    m.count = all;
    serve(&m, 20 + round);
  }
  serve(&m, 30);
  assert_all(&m, 'p');
}

/* A function that is destroyed takes the plans that it is part of with it. */
SCENE_TEST(test_tr3_plans_end_with_their_functions) {
  model m;
  SCENE_TREE(s, .no_plan_again = true, .plan_ms = 1000);
  make_serving(&m, s, 1);
  record_singly(&m, serve);
  for (uint32_t i = 0; i < STEPS; i++) serve(&m, i);
  assert_ok(rondo_tree_plan_again(m.scene->tree));
  assert_ok(rondo_function_destroy(m.layers[--m.count].forward));
  for (uint32_t i = 0; i < STEPS; i++) serve(&m, i);
  assert_ok(rondo_tree_plan_again(m.scene->tree));
  assert_ok(rondo_tree_reset(m.scene->tree));
  for (uint32_t i = 0; i < STEPS; i++) serve(&m, i);
  assert_ok(rondo_tree_plan_again(m.scene->tree));
}

/* Bytes of the arena after shapes of `from` to `to` times WORDS words were recorded. */
static uint64_t record_shapes(test_scene *scene, layer *at, size_t from, size_t to, uint64_t *out_used) {
  SCENE_TREE(scene, .max_recordings_per_parent = SHAPES);
  rondo_function *f = SCENE_FUNCTION(scene, "f", test_body_affine, scene_work(scene, 3, 1),
                                     RONDO_INPUTS(RONDO_INPUT_MOVING), .max_shapes = SHAPES);
  uint32_t *x = test_words(at->fixture, SHAPES * WORDS);
  for (size_t i = from; i <= to; i++)
    for (int k = 0; k < 3; k++) rondo_buffer_release(test_call_words(at->fixture, f, x, i * WORDS));
  const rondo_tree_info info = scene_info(scene);
  assert_int_equal(info.recordings, to - from + 1);
  assert_int_equal(info.replayed, to - from + 1);
  assert_true(info.exec_host_bytes > 0);
  assert_true(info.arena_used <= info.arena_minimum + info.arena_minimum / 20 || test_is_guarded(at->fixture));
  assert_ok(rondo_stream_synchronize(scene->stream));
  test_words_free(at->fixture, x);
  *out_used = info.arena_used;
  return info.arena_bytes;
}

/* Two hundred shapes hold the memory of the largest one. */
SCENE_TEST(test_tr3_two_hundred_shapes) {
  layer at = {.fixture = s->fixture};
  uint64_t used_by_all, used_by_one;
  const uint64_t all = record_shapes(s, &at, 1, SHAPES, &used_by_all);
  const uint64_t one = record_shapes(s, &at, SHAPES, SHAPES, &used_by_one);
  if (test_is_guarded(at.fixture)) return;
  assert_int_equal(used_by_all, used_by_one);
  assert_int_equal(all, one);
  assert_int_equal(all, test_whole_pages(at.fixture, used_by_all));
}

/* A step in which those that are not NULL are called. */
static void call_wide(test_scene *s, rondo_function *f, rondo_function *g, rondo_input x) {
  rondo_buffer *outs[3] = {NULL};
  scene_begin(s);
  if (f != NULL) SCENE_CALL(s, f, outs, 2, x);
  rondo_buffer_release(outs[0]);
  if (g != NULL) SCENE_CALL(s, g, &outs[2], 1, x);
  for (int i = 1; i < 3; i++) rondo_buffer_release(outs[i]);
  scene_end(s);
}

/* Planning waits for the stream, whose user is the one to hear of its failures. */
SCENE_TEST(test_tr3_planning_when_steady_loses_no_failure) {
  static size_t first[] = {4 << 20, 2 << 20, 0}, second[] = {6 << 20, 0};
  SCENE_TREE(s, .plan_after = 2, .plan_ms = 1000);
  rondo_function *f = SCENE_FUNCTION(s, "first", scene_body_outputs, first, RONDO_INPUTS(RONDO_INPUT_MOVING));
  rondo_function *g = SCENE_FUNCTION(s, "second", scene_body_outputs, second, RONDO_INPUTS(RONDO_INPUT_MOVING));
  const rondo_input x = scene_at(scene_words(s, 1));
  call_wide(s, f, NULL, x);
  call_wide(s, NULL, g, x);
  for (int i = 0; i < 7; i++) {
    assert_ok(rondo_host_async(s->stream, test_host_fails, NULL));
    call_wide(s, f, g, x);
    assert_error(rondo_stream_synchronize(s->stream), RONDO_EXECUTION_FAILED, RONDO_REASON_HOST_FUNCTION_FAILED);
  }
  assert_int_equal(scene_info(s).planned_paths, !test_is_guarded(s->fixture));
}
