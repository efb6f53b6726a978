/* SPDX-License-Identifier: MIT
 * Recordings that share no memory (TR-11): a tree for each function. Each tree has a separate arena and separate steps,
 * and an output of one tree is an input of another like any other memory. In assert_seen, each letter is a call: e
 * eager, r recorded, p replayed.
 */
#include "support/test_effort.h"
#include "support/test_scene.h"

/* f = 3 x + 1 and g = 2 x + 5, each in a separate tree. The scene has the tree that was called last. */
typedef struct two_trees {
  rondo_tree *trees[2];
  rondo_function *functions[2];
} two_trees;

static two_trees make_two(test_scene *s, rondo_tree_options options) {
  two_trees two;
  scene_use(s, options);
  for (int i = 0; i < 2; i++) {
    if (i == 1) s->tree = test_tree(s->fixture, &options);
    two.trees[i] = s->tree;
    two.functions[i] = i == 0 ? scene_affine(s, "f", 3, 1) : scene_affine(s, "g", 2, 5);
  }
  return two;
}
#define MAKE_TWO(scene, ...) make_two((scene), (rondo_tree_options){RONDO_TREE_OPTIONS_INIT, __VA_ARGS__})

static void end_two(test_scene *s, const two_trees *two) {
  s->tree = two->trees[0];
  test_tree_destroy(two->trees[1]);
}

static rondo_buffer *call(test_scene *s, const two_trees *two, size_t which, rondo_input input) {
  s->tree = two->trees[which];
  return scene_call(s, two->functions[which], input);
}

static rondo_tree_info info_of(test_scene *s, const two_trees *two, size_t which) {
  s->tree = two->trees[which];
  return scene_info(s);
}

/* f and g in alternation: values are right, and each has one recording without a predecessor. */
SCENE_TEST(test_tr11_recordings_are_separate) {
  const two_trees two = MAKE_TWO(s, .name = "alone");
  rondo_buffer *kept = NULL;
  for (uint32_t i = 0; i < 6; i++) {
    rondo_buffer *a = call(s, &two, 0, scene_at(scene_words(s, 10 * i)));
    rondo_buffer *b = call(s, &two, 1, scene_of(a));
    assert_counts(s, a, 30 * i + 1, 3);
    assert_counts(s, b, 60 * i + 7, 6);
    if (i > 0) scene_assert_stale(kept, "g");
    rondo_buffer_release(kept);
    rondo_buffer_release(a);
    kept = b;
  }
  rondo_buffer_release(kept);
  assert_seen(s, "eerrpppppppp");
  for (size_t i = 0; i < 2; i++) {
    const rondo_tree_info info = info_of(s, &two, i);
    assert_int_equal(info.recordings, 1);
    assert_int_equal(info.roots, 1);
    assert_int_equal(info.live_outputs, 0);
    assert_int_equal(info.skipped[RONDO_SKIP_AFTER_WARM_UP], 0);
  }
  end_two(s, &two);
}

/* Bytes that the arenas of three functions need in one tree, or in a tree each. */
static uint64_t arena_used(test_scene *s, size_t tree_count) {
  enum { FUNCTIONS = 3 };
  rondo_tree *trees[FUNCTIONS];
  rondo_function *functions[FUNCTIONS];
  uint32_t *words = test_words(s->fixture, FUNCTIONS * 65536);
  uint64_t used = 0;
  SCENE_TREE(s, .name = "sum");
  for (size_t i = 0; i < FUNCTIONS; i++) {
    if (i > 0 && i < tree_count) s->tree = test_tree(s->fixture, NULL);
    trees[i] = s->tree;
    functions[i] = scene_affine(s, "f", 3, 1);
  }
  for (size_t i = 0; i < 3 * FUNCTIONS; i++) {
    s->tree = trees[i % FUNCTIONS];
    const rondo_input input = {.address = words, .bytes = (1 + i % FUNCTIONS) * 65536 * sizeof *words};
    rondo_buffer_release(scene_call(s, functions[i % FUNCTIONS], input));
  }
  assert_seen(s, "eeerrrppp");
  assert_ok(rondo_stream_synchronize(s->stream));
  for (size_t i = 0; i < tree_count; i++) {
    s->tree = trees[i];
    used += scene_info(s).arena_used;
    if (i > 0) test_tree_destroy(trees[i]);
  }
  s->tree = trees[0];
  test_words_free(s->fixture, words);
  return used;
}

/* Each tree holds the memory that one tree would share; TR-3 is compared with that. */
SCENE_TEST(test_tr11_memory_is_the_sum) {
  const uint64_t separate = arena_used(s, 3);
  if (test_is_guarded(s->fixture)) return; /* nothing is shared there */
  assert_true(separate >= 2 * arena_used(s, 1) - 65536);
}

/* Each tree reserves addresses; there are enough for many trees. */
SCENE_TEST(test_tr11_many_trees) {
  enum { MOST = 100 };
  const size_t count = test_effort(MOST);
  rondo_tree *trees[MOST];
  if (test_is_guarded(s->fixture)) skip();
  const uint32_t *x = scene_words(s, 1);
  test_work *work = scene_work(s, 3, 1);
  for (size_t i = 0; i < count; i++) {
    trees[i] = i == 0 ? s->tree : test_tree(s->fixture, NULL);
    s->tree = trees[i];
    rondo_function *f = SCENE_FUNCTION(s, "f", test_body_affine, work, RONDO_INPUTS(RONDO_INPUT_MOVING));
    for (int k = 0; k < 2; k++) {
      scene_check(s, f, scene_at(x), 4, 3);
    }
    assert_int_equal(scene_info(s).recordings, 1);
    assert_seen(s, "er");
  }
  for (size_t i = 1; i < count; i++) test_tree_destroy(trees[i]);
  s->tree = trees[0];
}

/* Each tree's output is the other's next input. With RONDO_OUTPUTS_CLONE, outputs stay valid. */
SCENE_TEST(test_tr11_trees_feed_each_other) {
  static const rondo_output_policy policies[] = {RONDO_OUTPUTS_EXPIRE, RONDO_OUTPUTS_CLONE};
  for (size_t policy = 0; policy < 2; policy++) {
    const two_trees two = MAKE_TWO(s, .outputs = policies[policy]);
    uint32_t first = 0, step = 1;
    rondo_buffer *held[8];
    for (size_t i = 0; i < 8; i++) {
      first = i % 2 == 0 ? 3 * first + 1 : 2 * first + 5;
      step *= i % 2 == 0 ? 3 : 2;
      held[i] = call(s, &two, i % 2, i == 0 ? scene_at(scene_words(s, 0)) : scene_of(held[i - 1]));
      assert_counts(s, held[i], first, step);
      if (i < 2) continue;
      if (policies[policy] == RONDO_OUTPUTS_EXPIRE)
        scene_assert_stale(held[i - 2], i % 2 == 0 ? "f" : "g");
      else
        (void)scene_address(held[i - 2]);
    }
    for (size_t i = 0; i < 8; i++) rondo_buffer_release(held[i]);
    assert_seen(s, "eerrpppp");
    for (size_t i = 0; i < 2; i++) assert_int_equal(info_of(s, &two, i).recordings, 1);
    end_two(s, &two);
  }
}

/* The same of one function: an output of the step before is the input. */
SCENE_TEST(test_tr11_outputs_feed_their_own_recording) {
  static const rondo_output_policy policies[] = {RONDO_OUTPUTS_EXPIRE, RONDO_OUTPUTS_CLONE};
  for (size_t policy = 0; policy < 2; policy++) {
    SCENE_TREE(s, .outputs = policies[policy]);
    rondo_function *f = scene_affine(s, "f", 3, 1);
    uint32_t first = 0, step = 1;
    rondo_buffer *buffer = scene_call(s, f, scene_at(scene_words(s, 0)));
    for (size_t i = 0; i < 6; i++) {
      first = 3 * first + 1;
      step *= 3;
      assert_counts(s, buffer, first, step);
      rondo_buffer *next = scene_call(s, f, scene_of(buffer));
      if (policies[policy] == RONDO_OUTPUTS_CLONE)
        assert_counts(s, buffer, first, step);
      else
        scene_assert_stale(buffer, "f");
      rondo_buffer_release(buffer);
      buffer = next;
    }
    rondo_buffer_release(buffer);
    assert_seen(s, "erppppp");
    assert_int_equal(scene_info(s).recordings, 1);
  }
}

/* in = in * 2 + 1 in place. */
static rondo_status mutate_body(rondo_call *call, void *user) {
  scene_enter(user);
  scene_change(call, scene_input(call, 0), 2, 1);
  return RONDO_OK;
}

/* A function of one tree writes to the output of another tree's function. */
SCENE_TEST(test_tr11_outputs_are_written_in_place) {
  static const uint32_t kinds[] = {RONDO_INPUT_MOVING | RONDO_INPUT_MUTATED, RONDO_INPUT_STATIC | RONDO_INPUT_MUTATED};
  for (size_t k = 0; k < 2; k++)
    for (int binding = RONDO_BINDING_AUTOMATIC; binding <= RONDO_BINDING_PATCH; binding++) {
      two_trees two = MAKE_TWO(s, .name = "in place");
      two.functions[1] = SCENE_FUNCTION(s, "mutate", mutate_body, scene_work(s, 0, 0), .inputs = &kinds[k],
                                        .input_count = 1, .binding = (rondo_binding)binding);
      const uint32_t *x = scene_words(s, 4);
      for (size_t i = 0; i < 4; i++) {
        rondo_buffer *a = call(s, &two, 0, scene_at(x));
        s->tree = two.trees[1];
        SCENE_CALL(s, two.functions[1], NULL, 0, scene_of(a));
        assert_counts(s, a, 27, 6);
        rondo_buffer_release(a);
      }
      assert_outcome(s->tree, RONDO_CALL_REPLAYED);
      s->calls = 0;
      s->seen[0] = '\0';
      end_two(s, &two);
    }
}

/* Preparing, resetting and destroying one tree leaves the memory of the other. */
SCENE_TEST(test_tr11_recordings_that_go) {
  const two_trees two = MAKE_TWO(s, .max_recordings = 1);
  const rondo_input x = scene_at(scene_words(s, 1));
  for (size_t i = 0; i < 2; i++) assert_ok(rondo_function_prepare(two.functions[i], s->stream, &x, 1));
  rondo_buffer *a = call(s, &two, 0, x);
  assert_counts(s, a, 4, 3);
  assert_int_equal(info_of(s, &two, 0).live_outputs, 1);
  assert_int_equal(info_of(s, &two, 1).live_outputs, 0);
  rondo_buffer *b = call(s, &two, 1, scene_of(a));
  assert_ok(rondo_tree_reset(two.trees[1]));
  scene_assert_stale(b, "g");
  assert_int_equal(info_of(s, &two, 1).arena_bytes, 0);
  assert_int_equal(info_of(s, &two, 1).recordings, 0);
  assert_int_equal(info_of(s, &two, 0).recordings, 1);
  assert_counts(s, a, 4, 3);
  rondo_buffer_release(b);
  b = call(s, &two, 1, scene_of(a));
  assert_counts(s, b, 13, 6);
  assert_ok(rondo_function_destroy(two.functions[0]));
  assert_int_equal(info_of(s, &two, 0).recordings, 0);
  assert_counts(s, a, 4, 3); /* of its step, which is not over */
  assert_counts(s, b, 13, 6);
  rondo_buffer_release(a);
  rondo_buffer_release(b);
  assert_seen(s, "ppr");
  end_two(s, &two);
}

/* A call that ends a recording waits for its launches, but only the stream's user receives a failure of the stream's
 * work. */
static void assert_failure_is_left(test_scene *s) {
  rondo_function *f = scene_affine(s, "f", 3, 1), *g = scene_affine(s, "g", 2, 5);
  const rondo_input x = scene_at(scene_words(s, 1));
  for (int i = 0; i < 3; i++) rondo_buffer_release(scene_call(s, f, x));
  rondo_buffer_release(scene_call(s, g, x));
  assert_ok(rondo_host_async(s->stream, test_host_fails, NULL));
  rondo_buffer_release(scene_call(s, g, x));
  assert_seen(s, "erper");
  assert_int_equal(scene_info(s).evicted, 1);
  assert_error(rondo_stream_synchronize(s->stream), RONDO_EXECUTION_FAILED, RONDO_REASON_HOST_FUNCTION_FAILED);
  assert_ok(rondo_stream_synchronize(s->stream));
}

SCENE_TEST(test_tr11_ending_recordings_loses_no_failure) {
  SCENE_TREE(s, .max_recordings = 1);
  assert_failure_is_left(s);
}
