/* SPDX-License-Identifier: MIT
 * The live outputs of a path, and the memory that it takes (TR-3, TR-4, TR-10), after the tests of PyTorch's CUDAGraph
 * Trees: each test has the peer's name and number. The peer counts references to tensors; Rondo's buffers are retained
 * and released. The peer restores checkpoints of its pool; Rondo records around live memory, so that the tests assert
 * that contents stay and that memory is reused. In assert_seen, each letter is a call: e eager, r recorded, p replayed.
 */
#include "support/test_scene.h"

/* Two outputs: in * 2, in * 3. */
static rondo_status pair_body(rondo_call *call, void *user) {
  scene_enter(user);
  scene_put(call, 0, scene_input(call, 0), 2, 0);
  scene_put(call, 1, scene_input(call, 0), 3, 0);
  return RONDO_OK;
}
static rondo_function *make_pair(test_scene *s, const char *name) {
  return SCENE_FUNCTION(s, name, pair_body, scene_work(s, 0, 0), RONDO_INPUTS(RONDO_INPUT_MOVING));
}

static uint32_t live(const test_scene *s) { return scene_info(s).live_outputs; }

/* 6 test_cached_tensor_refcount_signatures, 63 test_multiple_insert_removal_caching: an output lives as long as it is
 * held by anyone, however often it is retained. */
SCENE_TEST(test_tr4_peer_6_63_holders_are_counted) {
  rondo_function *f = scene_affine(s, "f", 3, 1);
  const uint32_t *x = scene_words(s, 1);
  for (int i = 0; i < 4; i++) {
    rondo_buffer *out = scene_call(s, f, scene_at(x));
    for (int k = 0; k < 3; k++) rondo_buffer_retain(out);
    for (int k = 0; k < 3; k++) rondo_buffer_release(out);
    assert_int_equal(live(s), i == 0 ? 0 : 1); /* eager ones are no part of the path */
    assert_true((scene_info(s).eager_bytes == SCENE_BYTES) == (i == 0));
    assert_counts(s, out, 4, 3);
    rondo_buffer_release(out);
    assert_int_equal(live(s), 0);
    if (i > 0) assert_int_equal(scene_info(s).eager_bytes, 0);
  }
}

/* 32 test_execution_into_recording: replayed, then warmed up, then recorded: held outputs live in each state and are
 * freed when they are released. */
SCENE_TEST(test_tr4_peer_32_a_replay_goes_on_as_a_recording) {
  rondo_function *f = scene_affine(s, "f", 3, 1), *g = scene_affine(s, "g", 5, 2);
  const uint32_t *x = scene_words(s, 1);
  for (int i = 0; i < 2; i++) rondo_buffer_release(scene_call(s, f, scene_at(x)));
  for (int i = 0; i < 3; i++) {
    scene_begin(s);
    rondo_buffer *first = scene_call(s, f, scene_at(x));
    assert_int_equal(live(s), 1);
    rondo_buffer *second = scene_call(s, g, scene_of(first));
    assert_counts(s, first, 4, 3);
    assert_counts(s, second, 22, 15);
    assert_int_equal(live(s), i == 0 ? 1 : 2);
    rondo_buffer_release(first);
    assert_int_equal(live(s), i == 0 ? 0 : 1);
    assert_counts(s, second, 22, 15);
    rondo_buffer_release(second);
    assert_int_equal(live(s), 0);
    scene_end(s);
  }
  assert_seen(s, "erpeprpp");
}

/* 48 test_accumulate_multiple_recordings: of the outputs of several recordings exactly the held one lives. */
SCENE_TEST(test_tr4_peer_48_outputs_of_many_recordings) {
  rondo_function *f = scene_affine(s, "f", 3, 1);
  const uint32_t *x = scene_words(s, 1);
  for (size_t round = 0; round < 3; round++)
    for (size_t words = 8; words <= SCENE_WORDS; words += 8) {
      rondo_buffer *out;
      SCENE_CALL(s, f, &out, 1, {.address = (void *)(uintptr_t)x, .bytes = words * sizeof *x});
      assert_int_equal(live(s), round == 0 ? 0 : 1);
      rondo_buffer_release(out);
      assert_int_equal(live(s), 0);
    }
  assert_int_equal(scene_info(s).recordings, 4);
}

/* 50 test_live_outputs_multiple_graphs: a new branch after a replay, warmed up and then recorded, leaves what lives.
 */
SCENE_TEST(test_tr4_peer_50_a_branch_after_a_replay) {
  rondo_function *pair = make_pair(s, "pair"), *a = scene_affine(s, "a", 3, 1), *b = scene_affine(s, "b", 5, 2);
  const uint32_t *x = scene_words(s, 1);
  for (int i = 0; i < 8; i++) {
    rondo_buffer *outs[2], *out;
    scene_begin(s);
    SCENE_CALL(s, pair, outs, 2, scene_at(x));
    rondo_buffer_release(outs[0]);
    out = scene_call(s, i < 3 ? a : b, scene_of(outs[1]));
    if (i < 3)
      assert_counts(s, out, 10, 9);
    else
      assert_counts(s, out, 17, 15);
    assert_counts(s, outs[1], 3, 3);
    rondo_buffer_release(out);
    if (i > 0) assert_int_equal(live(s), 1);
    rondo_buffer_release(outs[1]);
    assert_int_equal(live(s), 0);
    scene_end(s);
  }
  assert_seen(s, "eerrpppeprpppppp");
  assert_int_equal(scene_info(s).recordings, 3);
}

/* 52 test_tensor_dies_between_checkpoint: memory of an output that died between a replay and a new recording is reused
 * for it. */
SCENE_TEST(test_tr4_peer_52_what_died_is_used_again) {
  rondo_function *pair = make_pair(s, "pair"), *a = scene_affine(s, "a", 3, 1), *b = scene_affine(s, "b", 5, 2);
  const uint32_t *x = scene_words(s, 1);
  uint64_t used = 0;
  for (int i = 0; i < 6; i++) {
    rondo_buffer *outs[2];
    scene_begin(s);
    SCENE_CALL(s, pair, outs, 2, scene_at(x));
    if (i >= 3) rondo_buffer_release(outs[0]); /* held when `a` was recorded, dead when `b` is */
    rondo_buffer *out = scene_call(s, i < 3 ? a : b, scene_of(outs[1]));
    assert_counts(s, outs[1], 3, 3);
    rondo_buffer_release(out);
    if (i < 3) rondo_buffer_release(outs[0]);
    rondo_buffer_release(outs[1]);
    scene_end(s);
    if (i == 2) used = scene_info(s).arena_used;
  }
  assert_seen(s, "eerrpppeprpp");
  if (!test_is_guarded(s->fixture)) assert_int_equal(scene_info(s).arena_used, used);
}

/* 57 test_checkpointing_resets_persistent_refs, 71 test_peristed_output_livenes: replays give the same addresses, also
 * around other recordings; the count of live outputs follows the holders. The peer drops its cached tensors at each
 * restore and creates others; Rondo creates handles in each call. */
SCENE_TEST(test_tr4_peer_57_71_addresses_stay) {
  rondo_function *pair = make_pair(s, "pair"), *a = scene_affine(s, "a", 3, 1);
  const uint32_t *x = scene_words(s, 1);
  void *addresses[2] = {NULL, NULL};
  for (int i = 0; i < 8; i++) {
    rondo_buffer *outs[2];
    scene_begin(s);
    SCENE_CALL(s, pair, outs, 2, scene_at(x));
    if (i > 0) assert_int_equal(live(s), 2);
    if (i == 1)
      for (int k = 0; k < 2; k++) addresses[k] = scene_address(outs[k]);
    for (int k = 0; i > 1 && k < 2; k++) assert_ptr_equal(scene_address(outs[k]), addresses[k]);
    if (i % 3 == 2) rondo_buffer_release(scene_call(s, a, scene_of(outs[0])));
    rondo_buffer_release(outs[0]);
    if (i > 0) assert_int_equal(live(s), 1);
    rondo_buffer_release(outs[1]);
    assert_int_equal(live(s), 0);
    scene_end(s);
  }
  assert_seen(s, "erpeppprpp");
}

/* 36 (item), and 31: liveness at recording is one-sided. An output that was dead then and is alive now needs another
 * recording; one that was alive then and is dead now does not. */
SCENE_TEST(test_tr5_liveness_is_one_sided) {
  rondo_function *pair = make_pair(s, "pair"), *a = scene_affine(s, "a", 3, 1);
  const uint32_t *x = scene_words(s, 1);
  static const bool holds[] = {true, true, true, false, true, false};
  for (int i = 0; i < 6; i++) {
    rondo_buffer *outs[2];
    scene_begin(s);
    SCENE_CALL(s, pair, outs, 2, scene_at(x));
    if (!holds[i]) rondo_buffer_release(outs[0]);
    rondo_buffer *out = scene_call(s, a, scene_of(outs[1]));
    assert_counts(s, out, 10, 9);
    if (holds[i]) assert_counts(s, outs[0], 2, 2);
    rondo_buffer_release(out);
    if (holds[i]) rondo_buffer_release(outs[0]);
    rondo_buffer_release(outs[1]);
    scene_end(s);
  }
  assert_seen(s, "eerrpppppppp");
  assert_int_equal(scene_info(s).recordings, 2);
}

/* 222 test_dealloc_handles_tensor_weakrefs_stack_traces_mismatch: outputs that are not requested cause no error. */
SCENE_TEST(test_tr4_peer_222_fewer_outputs_are_asked) {
  rondo_function *pair = make_pair(s, "pair");
  const uint32_t *x = scene_words(s, 1);
  for (size_t i = 0; i < 9; i++) {
    rondo_buffer *outs[2] = {NULL, NULL};
    const size_t count = i % 3;
    SCENE_CALL(s, pair, outs, count, scene_at(x));
    assert_true(live(s) <= count);
    if (count > 0) assert_counts(s, outs[0], 2, 2);
    for (size_t k = 0; k < count; k++) rondo_buffer_release(outs[k]);
    assert_int_equal(live(s), 0);
  }
  assert_seen(s, "erppppppp");
}

/* TR-3: the arena is as large as its largest path, not as all of them. */
SCENE_TEST(test_tr3_recordings_share_memory) {
  enum { FUNCTIONS = 20 };
  const uint32_t *x = scene_words(s, 1);
  rondo_function *functions[FUNCTIONS];
  uint64_t used = 0;
  if (test_is_guarded(s->fixture)) skip(); /* there nothing shares bytes */
  for (int i = 0; i < FUNCTIONS; i++) functions[i] = scene_affine(s, "f", (uint32_t)i + 2, 1);
  for (int i = 0; i < FUNCTIONS; i++) {
    for (int k = 0; k < 3; k++) rondo_buffer_release(scene_call(s, functions[i], scene_at(x)));
    if (i == 0) used = scene_info(s).arena_used;
  }
  assert_int_equal(scene_info(s).recordings, FUNCTIONS);
  assert_int_equal(scene_info(s).arena_used, used);
  assert_int_equal(scene_info(s).eager_bytes, 0);
}

/* 78 test_initial_mempool_allocation: memory is allocated with the tree, and no more while it suffices. */
SCENE_TEST(test_tr3_peer_78_memory_to_begin_with) {
  const uint64_t asked = (uint64_t)4 << 20;
  SCENE_TREE(s, .initial_bytes = asked);
  const uint64_t backed = scene_info(s).arena_bytes;
  assert_true(backed >= asked && test_memory_statistics(s->fixture).arena_backed >= asked);
  rondo_function *f = scene_affine(s, "f", 3, 1);
  const uint32_t *x = scene_words(s, 1);
  for (int i = 0; i < 4; i++) rondo_buffer_release(scene_call(s, f, scene_at(x)));
  if (!test_is_guarded(s->fixture)) assert_int_equal(scene_info(s).arena_bytes, backed);
  assert_int_equal(scene_info(s).arena_used > 0, true);
}

/* 46 test_graph_partition_gc, 84 test_cleanup: destroying functions frees the recordings, and a reset frees the memory,
 * although outputs are held. */
SCENE_TEST(test_tr10_peer_46_84_functions_go) {
  rondo_function *f = scene_affine(s, "f", 3, 1), *g = scene_affine(s, "g", 5, 2);
  const uint32_t *x = scene_words(s, 1);
  rondo_buffer *first = NULL, *second = NULL;
  for (int i = 0; i < 3; i++) {
    rondo_buffer_release(first);
    rondo_buffer_release(second);
    assert_ok(rondo_tree_mark_step(s->tree));
    first = scene_call(s, f, scene_at(x));
    second = scene_call(s, g, scene_of(first));
  }
  assert_int_equal(scene_info(s).recordings, 2);
  assert_ok(rondo_function_destroy(f)); /* and what was recorded after it */
  assert_int_equal(scene_info(s).recordings, 0);
  assert_int_equal(scene_info(s).functions, 1);
  assert_counts(s, first, 4, 3);
  assert_counts(s, second, 22, 15);
  assert_string_equal(test_buffer_info(first).function, "f");
  assert_ok(rondo_tree_reset(s->tree));
  assert_int_equal(scene_info(s).arena_bytes, 0);
  scene_assert_stale(first, "f");
  scene_assert_stale(second, "g");
  rondo_buffer_release(first);
  rondo_buffer_release(second);
  rondo_buffer_release(scene_call(s, g, scene_at(x)));
  assert_outcome(s->tree, RONDO_CALL_RECORDED); /* its form is warm */
}

/* TR-10: nothing grows while paths are the same. */
SCENE_TEST(test_tr10_nothing_grows) {
  rondo_function *pair = make_pair(s, "pair"), *a = scene_affine(s, "a", 3, 1);
  const uint32_t *x = scene_words(s, 1);
  rondo_tree_info warm = {0};
  rondo_memory_statistics held = {0};
  size_t host = 0;
  for (int i = 0; i < 60; i++) {
    rondo_buffer *outs[2];
    scene_begin(s);
    SCENE_CALL(s, pair, outs, 2, scene_at(x));
    rondo_buffer_release(scene_call(s, a, scene_of(outs[1])));
    for (int k = 0; k < 2; k++) rondo_buffer_release(outs[k]);
    scene_end(s);
    if (i > 5) continue;
    warm = scene_info(s);
    held = test_memory_statistics(s->fixture);
    host = atomic_load(&s->fixture->allocator.live);
  }
  const rondo_tree_info now = scene_info(s);
  const rondo_memory_statistics holds = test_memory_statistics(s->fixture);
  assert_int_equal(now.recorded, warm.recorded);
  assert_int_equal(now.allocations, warm.allocations);
  assert_int_equal(now.arena_bytes, warm.arena_bytes);
  assert_int_equal(now.exec_host_bytes, warm.exec_host_bytes);
  assert_int_equal(holds.arena_backed, held.arena_backed);
  assert_int_equal(holds.live_allocations, held.live_allocations);
  assert_int_equal(atomic_load(&s->fixture->allocator.live), host);
}
