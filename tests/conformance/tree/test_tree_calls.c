/* SPDX-License-Identifier: MIT
 * Calls of a tree: warmed up, recorded, replayed (TR-1); paths and their branches (TR-2); the pool that recordings
 * share (TR-3, TR-4); what must be the same for a replay (TR-5); and outputs of completed steps (TR-9).
 */
#include <string.h>

#include "support/test_tree.h"

enum { WORDS = 64 };

/* TR-1: the body runs exactly twice. */
TREE_TEST(test_tr1_warms_up_records_and_replays) {
  test_work work = {.fixture = t, .factor = 3, .term = 5};
  rondo_tree *tree = test_tree(t, NULL);
  rondo_function *function = test_tree_function(tree, "triple", RONDO_INPUT_MOVING, &work);
  uint32_t *words = test_counting_words(t, WORDS, 100);
  static const rondo_call_outcome outcomes[] = {RONDO_CALL_EAGER, RONDO_CALL_RECORDED, RONDO_CALL_REPLAYED,
                                                RONDO_CALL_REPLAYED, RONDO_CALL_REPLAYED};
  for (size_t i = 0; i < 5; i++) {
    rondo_buffer *out = test_call_words(t, function, words, WORDS);
    assert_outcome(tree, outcomes[i]);
    test_assert_buffer(t, out, 305, 3);
    rondo_buffer_release(out);
  }
  assert_int_equal(work.runs, 2);
  const rondo_function_info info = test_function_info(function);
  assert_int_equal(info.recorded, 1);
  assert_int_equal(info.replayed, 3);
  assert_int_equal(info.bodies, 2);
  assert_int_equal(info.skipped[RONDO_SKIP_WARM_UP], 1);
}

/* TR-6: a moving input is where the caller has it. */
TREE_TEST(test_tr6_inputs_move) {
  test_work work = {.fixture = t, .factor = 2, .term = 1};
  rondo_tree *tree = test_tree(t, NULL);
  rondo_function *function = test_tree_function(tree, "double", RONDO_INPUT_MOVING, &work);
  for (uint32_t i = 0; i < 6; i++) {
    uint32_t *words = test_counting_words(t, WORDS, 10 * i);
    rondo_buffer *out = test_call_words(t, function, words, WORDS);
    test_assert_buffer(t, out, 20 * i + 1, 2);
    rondo_buffer_release(out);
    test_words_free(t, words);
  }
  assert_int_equal(work.runs, 2);
  const rondo_tree_info info = test_tree_info(tree);
  assert_int_equal(info.patched_inputs + info.copied_inputs, 5);
}

/* 1 -> 2 -> 4, or 1 -> 3 -> 4: a step of the example. */
typedef struct example {
  test_fixture *t;
  rondo_tree *tree;
  rondo_function *functions[4];
  test_work works[4];
  uint32_t *words;
} example;

static void make_example(test_fixture *t, example *out) {
  static const char *const names[] = {"one", "two", "three", "four"};
  *out = (example){.t = t, .tree = test_tree(t, NULL), .words = test_counting_words(t, WORDS, 7)};
  for (uint32_t i = 0; i < 4; i++) {
    out->works[i] = (test_work){.fixture = t, .factor = i + 2, .term = 10 * i};
    out->functions[i] = test_tree_function(out->tree, names[i], RONDO_INPUT_MOVING, &out->works[i]);
  }
}

static void free_example(example *e) {
  test_tree_destroy(e->tree);
  test_words_free(e->t, e->words);
}

/* Outcomes as letters: e eager, r recorded, p replayed. */
static void step(example *e, size_t middle, const char *outcomes) {
  char seen[4] = {0};
  const size_t order[] = {0, middle, 3};
  rondo_buffer *buffers[3];
  uint32_t first = 7, step = 1;
  assert_ok(rondo_tree_step_begin(e->tree));
  for (size_t i = 0; i < 3; i++) {
    const test_work *work = &e->works[order[i]];
    buffers[i] = i == 0 ? test_call_words(e->t, e->functions[0], e->words, WORDS)
                        : test_call_buffer(e->t, e->functions[order[i]], buffers[i - 1]);
    seen[i] = "?pre"[test_last_call(e->tree).outcome];
    first = first * work->factor + work->term;
    step *= work->factor;
  }
  test_assert_buffer(e->t, buffers[2], first, step);
  for (size_t i = 0; i < 3; i++) rondo_buffer_release(buffers[i]);
  assert_ok(rondo_tree_step_end(e->tree));
  assert_string_equal(seen, outcomes);
}

/* TR-2, TR-10: the document's example. */
TREE_TEST(test_tr2_paths_branch) {
  example e;
  make_example(t, &e);
  step(&e, 1, "eee");
  step(&e, 1, "rrr");
  step(&e, 1, "ppp");
  assert_int_equal(test_tree_info(e.tree).recordings, 3);
  step(&e, 2, "pee");
  step(&e, 2, "prr");
  step(&e, 2, "ppp");
  step(&e, 1, "ppp");
  const rondo_tree_info info = test_tree_info(e.tree);
  assert_int_equal(info.recordings, 5);
  assert_int_equal(info.roots, 1);
  assert_int_equal(info.recorded, 5);
  free_example(&e);
}

/* TR-9: an output of a step that is over cannot be read, recorded or not. */
TREE_TEST(test_tr9_outputs_expire_with_their_step) {
  test_work work = {.fixture = t, .factor = 3, .term = 0};
  rondo_tree *tree = test_tree(t, NULL);
  rondo_function *function = test_tree_function(tree, "decode", RONDO_INPUT_MOVING, &work);
  uint32_t *words = test_counting_words(t, WORDS, 1);
  rondo_buffer *old = NULL;
  for (size_t i = 0; i < 5; i++) {
    void *address;
    assert_ok(rondo_tree_mark_step(tree));
    rondo_buffer *out = test_call_words(t, function, words, WORDS);
    assert_ok(rondo_buffer_address(out, &address));
    if (old != NULL) {
      assert_error(rondo_buffer_address(old, &address), RONDO_INVALID_LIFETIME, RONDO_REASON_STALE_BUFFER);
      assert_message("decode");
    }
    rondo_buffer_release(old);
    old = out;
  }
  rondo_buffer_release(old);
  assert_int_equal(work.runs, 2);
  assert_int_equal(test_tree_info(tree).recordings, 1);
}

/* TR-9: with RONDO_OUTPUTS_CLONE they stay. */
TREE_TEST(test_tr9_outputs_are_cloned) {
  test_work work = {.fixture = t, .factor = 3, .term = 0};
  const rondo_tree_options options = {RONDO_TREE_OPTIONS_INIT, .outputs = RONDO_OUTPUTS_CLONE};
  rondo_tree *tree = test_tree(t, &options);
  rondo_function *function = test_tree_function(tree, "decode", RONDO_INPUT_MOVING, &work);
  rondo_buffer *outs[5];
  for (uint32_t i = 0; i < 5; i++) {
    uint32_t *words = test_counting_words(t, WORDS, i * 1000);
    outs[i] = test_call_words(t, function, words, WORDS);
    assert_ok(rondo_stream_synchronize(t->stream));
    test_words_free(t, words);
  }
  for (uint32_t i = 0; i < 5; i++) {
    test_assert_buffer(t, outs[i], i * 3000, 3);
    rondo_buffer_release(outs[i]);
  }
  assert_int_equal(work.runs, 2);
}

/* TR-5: an output that was dead when the second call was recorded and is held now: another recording; then the old one
 * again. */
TREE_TEST(test_tr5_liveness_makes_another_recording) {
  test_work first = {.fixture = t, .factor = 3, .term = 1}, second = {.fixture = t, .factor = 5, .term = 2};
  rondo_tree *tree = test_tree(t, NULL);
  rondo_function *one = test_tree_function(tree, "one", RONDO_INPUT_STATIC, &first);
  rondo_function *two = test_tree_function(tree, "two", RONDO_INPUT_STATIC, &second);
  uint32_t *words = test_counting_words(t, WORDS, 1), *other = test_counting_words(t, WORDS, 50);
  static const bool keeps[] = {false, false, false, true, true, false, true};
  static const char *const expected[] = {"ee", "rr", "pp", "pr", "pp", "pp", "pp"};
  for (size_t i = 0; i < 7; i++) {
    char seen[3] = {0};
    assert_ok(rondo_tree_step_begin(tree));
    rondo_buffer *holds = test_call_words(t, one, words, WORDS);
    seen[0] = "?pre"[test_last_call(tree).outcome];
    rondo_buffer *again = test_call_words(t, one, words, WORDS);
    if (!keeps[i]) rondo_buffer_release(again);
    rondo_buffer *out = test_call_words(t, two, other, WORDS);
    seen[1] = "?pre"[test_last_call(tree).outcome];
    test_assert_buffer(t, holds, 4, 3);
    if (keeps[i]) test_assert_buffer(t, again, 4, 3);
    test_assert_buffer(t, out, 252, 5);
    rondo_buffer_release(holds);
    rondo_buffer_release(out);
    if (keeps[i]) rondo_buffer_release(again);
    assert_ok(rondo_tree_step_end(tree));
    assert_string_equal(seen, expected[i]);
  }
}
