/* SPDX-License-Identifier: MIT
 * What is recorded and what is not (TR-8, TR-15), after the annotation, partition and policy tests of PyTorch's
 * CUDAGraph Trees, whose names and numbers the tests have. Rondo's counterpart of the peer's annotations is
 * rondo_function_set_recording, which may be called around parts of a step; that of its policy object is
 * rondo_tree_options.should_record. In assert_seen, each letter is a call: e eager, r recorded, p replayed.
 */
#include <string.h>

#include "support/test_scene.h"

/* One call with x, which counts up from 1, of a function created by scene_affine(3, 1). */
static void call_affine(test_scene *s, rondo_function *f, const uint32_t *x) { scene_check(s, f, scene_at(x), 4, 3); }

/* 4 test_issue_195731_arithmetic_capture_control: plain arithmetic is recorded. 3 ..._svd_streams, 190
 * test_skip_cudagraph_unsafe_ops, 112 and 114 test_incompatible_cudagraph_ops_..., 166: an operation that is declared
 * unsafe, or of a shape that nobody knows, is not, on any stream, with its name; the results are right. */
static rondo_status unsafe_body(rondo_call *call, void *user) {
  const test_work *work = scene_enter(user);
  scene_put(call, 0, scene_input(call, 0), 3, 1);
  return rondo_call_refuse(call, (rondo_skip)work->factor, "svd");
}
SCENE_TEST(test_tr8_peer_3_4_114_190_unsafe_operations) {
  static const rondo_skip reasons[] = {RONDO_SKIP_UNSAFE, RONDO_SKIP_UNKNOWN_SHAPE, RONDO_SKIP_HOST_WORK};
  const uint32_t *x = scene_words(s, 1);
  rondo_stream *side = test_stream(s->fixture, "side");
  for (size_t i = 0; i < 3; i++) {
    rondo_function *f =
        SCENE_FUNCTION(s, "f", unsafe_body, scene_work(s, (uint32_t)reasons[i], 0), RONDO_INPUTS(RONDO_INPUT_MOVING));
    rondo_function *plain = scene_affine(s, "plain", 3, 1);
    for (int k = 0; k < 4; k++) {
      s->stream = k % 2 == 0 ? s->fixture->stream : side;
      call_affine(s, f, x);
      if (k > 0) assert_int_equal(test_last_call(s->tree).skip, reasons[i]);
      if (k > 0) assert_non_null(strstr(test_last_call(s->tree).message, "svd"));
      call_affine(s, plain, x);
    }
    assert_seen(s, "eeerepep");
    assert_int_equal(scene_info(s).skipped[reasons[i]], 3);
    assert_int_equal(test_function_info(f).skipped[reasons[i]], 3);
  }
  s->stream = s->fixture->stream;
}

/* 220 test_cudagraph_or_error, 116 test_incompatible_cudagraph_ops_nonzero_backend: a strict tree says it as an error,
 * which names operation and reason; warm-ups are none. */
SCENE_TEST(test_tr8_peer_116_220_strict_trees) {
  SCENE_TREE(s, .strict = true);
  const uint32_t *x = scene_words(s, 1);
  rondo_function *f =
      SCENE_FUNCTION(s, "f", unsafe_body, scene_work(s, RONDO_SKIP_UNKNOWN_SHAPE, 0), RONDO_INPUTS(RONDO_INPUT_MOVING));
  rondo_function *plain = scene_affine(s, "plain", 3, 1);
  for (int i = 0; i < 4; i++) {
    const rondo_input input = scene_at(x);
    rondo_buffer *out;
    call_affine(s, plain, x);
    if (i == 0) {
      call_affine(s, f, x);
      continue;
    }
    assert_error(rondo_function_call(f, s->stream, &input, 1, &out, 1), RONDO_UNSUPPORTED, RONDO_REASON_NOT_RECORDED);
    assert_message("svd");
    assert_message("UNKNOWN_SHAPE");
    assert_null(out);
  }
  assert_seen(s, "eerpp");
}

/* 115 test_incompatible_cudagraph_ops_nonzero_graph_breaks: three functions that cannot be recorded are three skips a
 * round, each counted with its function. */
SCENE_TEST(test_tr8_peer_115_skips_are_counted) {
  rondo_function *functions[3];
  const uint32_t *x = scene_words(s, 1);
  for (int i = 0; i < 3; i++)
    functions[i] =
        SCENE_FUNCTION(s, "f", unsafe_body, scene_work(s, RONDO_SKIP_UNSAFE, 0), RONDO_INPUTS(RONDO_INPUT_MOVING));
  for (int round = 0; round < 3; round++)
    for (int i = 0; i < 3; i++) call_affine(s, functions[i], x);
  assert_int_equal(scene_info(s).skipped[RONDO_SKIP_WARM_UP], 3);
  assert_int_equal(scene_info(s).skipped[RONDO_SKIP_UNSAFE], 6);
  for (int i = 0; i < 3; i++) assert_int_equal(test_function_info(functions[i]).skipped[RONDO_SKIP_UNSAFE], 2);
}

/* 16 test_multiple_devices_msg, 187 test_graph_partition_multiple_devices_msg: memory of another device that this one
 * may read is recorded, where the peer skips; without access the body cannot run, and the error says so. */
static rondo_status read_body(rondo_call *call, void *user) {
  void *out;
  scene_enter(user);
  assert_ok(rondo_call_output(call, 0, SCENE_BYTES, NULL, &out));
  const rondo_status status = rondo_copy_async(rondo_call_stream(call), out, rondo_call_input(call, 0), SCENE_BYTES);
  if (status == RONDO_OK) scene_change(call, out, 3, 1);
  return status;
}
SCENE_TEST(test_tr8_peer_16_187_two_devices) {
  rondo_device *other = NULL;
  void *words;
  const rondo_device_options options = {RONDO_DEVICE_OPTIONS_INIT, .workers = 1,
                                        .allocator = &s->fixture->allocator.table};
  const char *name = test_device_is("cuda") ? "cuda:1" : test_is_guarded(s->fixture) ? "cpu:check:1" : "cpu:1";
  const rondo_status opened = rondo_device_open(name, &options, &other);
  if (opened == RONDO_NOT_FOUND && test_device_is("cuda")) skip(); /* one GPU */
  assert_ok(opened);
  assert_ok(rondo_malloc(other, SCENE_BYTES, "far", &words));
  rondo_function *f = SCENE_FUNCTION(s, "f", read_body, scene_work(s, 0, 0), RONDO_INPUTS(RONDO_INPUT_STATIC));
  const rondo_input input = scene_at(words);
  rondo_buffer *out;
  for (int i = 0; i < 2; i++) {
    assert_invalid(rondo_function_call(f, s->stream, &input, 1, &out, 1), RONDO_REASON_NO_ACCESS);
    assert_null(out);
  }
  assert_ok(rondo_memory_set_access(other, s->fixture->device, true));
  scene_set(s, words, 1);
  for (int i = 0; i < 4; i++) call_affine(s, f, words);
  assert_seen(s, "erpp");
  assert_int_equal(scene_info(s).recordings, 1);
  scene_use(s, (rondo_tree_options){RONDO_TREE_OPTIONS_INIT}); /* execs that use the memory are destroyed before it */
  assert_ok(rondo_free(other, words));
  assert_ok(rondo_device_close(other));
}

/* 131, 132 test_cudagraph_annotation_disable...: off for all: nothing is recorded and all is right. 140
 * ..._enable: on again, it is. */
SCENE_TEST(test_tr8_peer_131_132_140_off_and_on) {
  rondo_function *f = scene_affine(s, "f", 3, 1);
  const uint32_t *x = scene_words(s, 1);
  assert_ok(rondo_tree_set_recording(s->tree, false));
  for (int i = 0; i < 3; i++) {
    call_affine(s, f, x);
    assert_skip(s->tree, DISABLED);
  }
  assert_int_equal(scene_info(s).recordings, 0);
  assert_int_equal(scene_info(s).arena_bytes, 0);
  assert_ok(rondo_tree_set_recording(s->tree, true));
  for (int i = 0; i < 3; i++) call_affine(s, f, x);
  assert_seen(s, "eeeerp");
}

/* 133 ..._disable_bwd_only, 134 ..._fwd_only, 136 ..._multiple_functions, 141 to 143, 147: each function is switched
 * separately, forward or backward. The peer's backward follows its forward; Rondo's is switched on its own. */
SCENE_TEST(test_tr8_peer_133_to_147_each_by_itself) {
  const uint32_t *x = scene_words(s, 1);
  for (unsigned on = 0; on < 4; on++) {
    SCENE_TREE(s, .name = "each");
    rondo_function *forward = SCENE_FUNCTION(s, "forward", test_body_affine, scene_work(s, 3, 1),
                                             .kind = RONDO_FUNCTION_FORWARD, RONDO_INPUTS(RONDO_INPUT_MOVING));
    rondo_function *backward = SCENE_FUNCTION(s, "backward", test_body_affine, scene_work(s, 5, 2),
                                              .kind = RONDO_FUNCTION_BACKWARD, RONDO_INPUTS(RONDO_INPUT_MOVING));
    assert_ok(rondo_function_set_recording(forward, (on & 1) != 0));
    assert_ok(rondo_function_set_recording(backward, (on & 2) != 0));
    for (int i = 0; i < 4; i++) {
      rondo_buffer *saved = scene_call(s, forward, scene_at(x)), *gradient = scene_call(s, backward, scene_of(saved));
      assert_counts(s, gradient, 22, 15);
      rondo_buffer_release(saved);
      rondo_buffer_release(gradient);
    }
    static const char *const seen[] = {"eeeeeeee", "eerepepe", "eeerepep", "eerrpppp"};
    assert_seen(s, seen[on]);
    assert_int_equal(scene_info(s).recordings, (on & 1) + (on >> 1));
    assert_int_equal(scene_info(s).steps, 4);
  }
}

/* 135 ..._graph_break_selective, 138 ..._context_manager, 143: of four parts of a step the two in the middle are off,
 * or on; the results are the same. */
SCENE_TEST(test_tr8_peer_135_138_143_the_middle) {
  const uint32_t *x = scene_words(s, 1);
  for (int on = 0; on < 2; on++) {
    rondo_function *parts[4];
    for (uint32_t i = 0; i < 4; i++) parts[i] = scene_affine(s, "part", 2 + i, i);
    for (int round = 0; round < 4; round++) {
      rondo_buffer *buffer = NULL;
      uint32_t first = 1, step = 1;
      scene_begin(s);
      for (uint32_t i = 0; i < 4; i++) {
        if (i == 1) assert_ok(rondo_tree_set_recording(s->tree, on != 0));
        if (i == 0 || i == 3) assert_ok(rondo_tree_set_recording(s->tree, on == 0));
        rondo_buffer *out = scene_call(s, parts[i], i == 0 ? scene_at(x) : scene_given(buffer));
        buffer = out;
        first = first * (2 + i) + i;
        step *= 2 + i;
      }
      assert_counts(s, buffer, first, step);
      rondo_buffer_release(buffer);
      scene_end(s);
    }
    assert_int_equal(test_function_info(parts[1]).recordings > 0, on != 0);
    assert_int_equal(test_function_info(parts[0]).recordings > 0, on == 0);
    assert_int_equal(scene_info(s).recordings, on == 0 ? 2 : 4);
    s->calls = 0;
  }
}

/* 137 ..._deeply_nested, 139, 144 to 146 ..._nested_callee_...: a function that is called in the body of another is a
 * part of that, whatever is said of it; off for the outer one is off for both. */
static rondo_status outer_body(rondo_call *call, void *user) {
  rondo_function *inner = user;
  const rondo_input input = scene_at(scene_input(call, 0));
  rondo_buffer *out;
  const rondo_status status = rondo_function_call(inner, rondo_call_stream(call), &input, 1, &out, 1);
  if (status != RONDO_OK) return status;
  void *made;
  assert_ok(rondo_buffer_address(out, &made));
  scene_put(call, 0, made, 1, 0);
  rondo_buffer_release(out);
  return RONDO_OK;
}
SCENE_TEST(test_tr8_peer_137_144_nested_functions) {
  const uint32_t *x = scene_words(s, 1);
  rondo_function *inner = scene_affine(s, "inner", 3, 1);
  rondo_function *outer = SCENE_FUNCTION(s, "outer", outer_body, inner, RONDO_INPUTS(RONDO_INPUT_MOVING));
  assert_ok(rondo_function_set_recording(inner, false));
  for (int i = 0; i < 4; i++) call_affine(s, outer, x);
  assert_seen(s, "erpp");
  assert_int_equal(scene_info(s).skipped[RONDO_SKIP_NESTED], 2);
  assert_ok(rondo_function_set_recording(outer, false));
  assert_ok(rondo_function_set_recording(inner, true));
  call_affine(s, outer, x);
  assert_skip(s->tree, DISABLED);
  call_affine(s, inner, x);
  assert_skip(s->tree, WARM_UP); /* in a body its forms are not warmed up */
}

/* 148 test_cudagraph_min_partition_size_skip_small, 149 ..._allow_large. */
SCENE_TEST(test_tr8_peer_148_149_small_recordings) {
  const uint32_t *x = scene_words(s, 1);
  for (uint32_t least = 2; least <= 20; least += 18) {
    rondo_function *f = SCENE_FUNCTION(s, "f", test_body_affine, scene_work(s, 3, 1), .min_nodes = least,
                                       RONDO_INPUTS(RONDO_INPUT_MOVING));
    for (int i = 0; i < 4; i++) call_affine(s, f, x);
    assert_seen(s, least == 2 ? "erpp" : "eeee");
    if (least == 2) continue;
    assert_skip(s->tree, TOO_SMALL);
    test_assert_said(s->tree, "min_nodes");
    assert_int_equal(scene_info(s).skipped[RONDO_SKIP_TOO_SMALL], 3);
    assert_int_equal(test_function_info(f).last_skip, RONDO_SKIP_TOO_SMALL);
  }
}

/* 70 test_workspace_allocation_error: memory that a body keeps is found, with its size, and the recording is undone;
 * the call is right. */
static rondo_status keeping_body(rondo_call *call, void *user) {
  void **kept = user;
  scene_put(call, 0, scene_input(call, 0), 3, 1);
  return rondo_malloc_async(rondo_call_stream(call), 768, NULL, kept);
}
SCENE_TEST(test_tr15_peer_70_memory_that_is_kept) {
  void *kept[3] = {NULL};
  const uint32_t *x = scene_words(s, 1);
  rondo_function *f = SCENE_FUNCTION(s, "f", keeping_body, &kept[2], RONDO_INPUTS(RONDO_INPUT_MOVING));
  call_affine(s, f, x);
  kept[0] = kept[2];
  call_affine(s, f, x); /* recorded, abandoned, and run eagerly */
  kept[1] = kept[2];
  assert_skip(s->tree, KEPT_MEMORY);
  assert_non_null(strstr(test_last_call(s->tree).message, "768"));
  assert_int_equal(scene_info(s).rolled_back, 1);
  assert_int_equal(scene_info(s).recordings, 0);
  for (int i = 0; i < 2; i++) assert_ok(rondo_free_async(s->stream, kept[i]));
  assert_seen(s, "ee");
}

/* 224 test_policy_cudagraphify_called, 225 test_should_wrap_false_skips_cudagraph, 227 test_default_policy_matches_...:
 * the policy is called before each recording, with the function and its number of recordings; a function that it
 * refuses runs eagerly. */
typedef struct policy {
  rondo_function *refused;
  uint32_t asked, recordings;
  char name[16];
} policy;
static bool ask(void *user, const rondo_recording_question *question) {
  policy *p = user;
  p->asked++;
  p->recordings = question->recordings;
  (void)strncpy(p->name, question->function, sizeof p->name - 1);
  return question->asked != p->refused;
}
SCENE_TEST(test_tr8_peer_224_225_227_policies) {
  policy p = {0};
  SCENE_TREE(s, .should_record = ask, .user = &p);
  const uint32_t *x = scene_words(s, 1);
  rondo_function *f = scene_affine(s, "f", 3, 1), *g = scene_affine(s, "g", 3, 1);
  p.refused = g;
  for (int i = 0; i < 4; i++) call_affine(s, f, x);
  assert_int_equal(p.asked, 1);
  assert_string_equal(p.name, "f");
  for (int i = 0; i < 4; i++) call_affine(s, g, x);
  assert_skip(s->tree, REFUSED);
  test_assert_said(s->tree, "should_record");
  assert_int_equal(scene_info(s).skipped[RONDO_SKIP_REFUSED], 3);
  assert_int_equal(test_function_info(g).last_skip, RONDO_SKIP_REFUSED);
  assert_string_equal(p.name, "g");
  assert_int_equal(p.asked, 4);
  p.refused = NULL;
  call_affine(s, g, x);
  for (int i = 0; i < 2; i++) {
    rondo_buffer *out;
    SCENE_CALL(s, g, &out, 1, {.address = (void *)(uintptr_t)x, .bytes = 8});
    rondo_buffer_release(out);
  }
  assert_int_equal(p.recordings, 1);
  assert_seen(s, "erppeeeerer");
}

/* 226 test_wrap_output_called, 230 test_should_wrap_false_with_wrap_output: the peer's policy may wrap everything that
 * it compiled once more. Here that is a function around others: the policy is called for it alone, and it is recorded
 * with everything that its body calls, although the policy refuses those functions on their own. */
SCENE_TEST(test_tr8_peer_226_230_a_function_around_others) {
  policy p = {0};
  SCENE_TREE(s, .should_record = ask, .user = &p);
  const uint32_t *x = scene_words(s, 1);
  rondo_function *inner = scene_affine(s, "inner", 3, 1);
  rondo_function *outer = SCENE_FUNCTION(s, "outer", outer_body, inner, RONDO_INPUTS(RONDO_INPUT_MOVING));
  p.refused = inner;
  for (int i = 0; i < 4; i++) call_affine(s, outer, x);
  assert_seen(s, "erpp");
  assert_int_equal(p.asked, 1);
  assert_string_equal(p.name, "outer");
  for (int i = 0; i < 2; i++) call_affine(s, inner, x);
  assert_skip(s->tree, REFUSED);
  assert_string_equal(p.name, "inner");
  assert_int_equal(scene_info(s).recordings, 1);
}

/* 228, 229 test_policy_cudagraphify_partition: a body with host steps is one question. */
static rondo_status stepping_body(rondo_call *call, void *user) {
  scene_enter(user);
  const rondo_status status = rondo_call_host_step(call, test_host_nothing, NULL);
  if (status != RONDO_OK) return status;
  scene_put(call, 0, scene_input(call, 0), 3, 1);
  return RONDO_OK;
}
SCENE_TEST(test_tr8_peer_228_229_segments_are_one_question) {
  policy p = {0};
  SCENE_TREE(s, .should_record = ask, .user = &p);
  const uint32_t *x = scene_words(s, 1);
  rondo_function *f = SCENE_FUNCTION(s, "f", stepping_body, scene_work(s, 0, 0), RONDO_INPUTS(RONDO_INPUT_MOVING));
  for (int i = 0; i < 4; i++) call_affine(s, f, x);
  assert_seen(s, "erpp");
  assert_int_equal(p.asked, 1);
}

/* 167 test_graph_partition_log_message, 82: each decision is one line of the log. */
static void count_lines(void *user, rondo_log_level level, const char *area, const char *message) {
  int *counts = user;
  (void)level;
  if (strcmp(area, "tree") != 0) return;
  counts[0] += strstr(message, "runs eagerly: WARM_UP") != NULL;
  counts[1] += strstr(message, "is recorded") != NULL;
  counts[2] += strstr(message, "is replayed") != NULL;
}
SCENE_TEST(test_tr8_peer_167_decisions_are_logged) {
  int counts[3] = {0};
  rondo_function *f = scene_affine(s, "f", 3, 1);
  const uint32_t *x = scene_words(s, 1);
  rondo_log_set_sink(count_lines, counts, RONDO_LOG_DEBUG);
  for (int i = 0; i < 5; i++) call_affine(s, f, x);
  rondo_log_set_sink(NULL, NULL, RONDO_LOG_ERROR);
  assert_int_equal(counts[0], 1);
  assert_int_equal(counts[1], 1);
  assert_int_equal(counts[2], 3);
}
