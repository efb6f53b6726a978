/* SPDX-License-Identifier: MIT
 * Inputs that are a different output of the path each time, and are demoted (TR-5, TR-6, TR-8), after the tests of
 * PyTorch's CUDAGraph Trees, whose names and numbers the tests have. The peer keeps the recordings that demotion makes
 * useless; Rondo frees them, because no call can need them. In assert_seen, each letter is a call: e eager, r recorded,
 * p replayed.
 */
#include <string.h>

#include "support/test_scene.h"

enum { OUTPUTS = 6 };

/* OUTPUTS outputs: input * (k + 2). */
static rondo_status produce_body(rondo_call *call, void *user) {
  scene_enter(user);
  for (uint32_t k = 0; k < OUTPUTS; k++) scene_put(call, k, scene_input(call, 0), k + 2, 0);
  return RONDO_OK;
}

static rondo_function *make_producer(test_scene *s) {
  return SCENE_FUNCTION(s, "produce", produce_body, scene_work(s, 0, 0), RONDO_INPUTS(RONDO_INPUT_MOVING));
}
#define MAKE_CONSUMER(scene, ...)                                                   \
  SCENE_FUNCTION((scene), "consume", scene_body_combine, scene_work((scene), 0, 0), \
                 RONDO_INPUTS(RONDO_INPUT_MOVING, RONDO_INPUT_MOVING), __VA_ARGS__)

typedef struct pair {
  test_scene *scene;
  rondo_function *produce, *consume;
  const uint32_t *x; /* counts up from 1 */
} pair;

static pair make_pair(test_scene *s, rondo_function *consume) {
  return (pair){.scene = s, .produce = make_producer(s), .consume = consume, .x = scene_words(s, 1)};
}

/* A step: what is produced, of which two are consumed, while all are held. */
static void run_pair(const pair *p, uint32_t a, uint32_t b) {
  rondo_buffer *outs[OUTPUTS], *out;
  scene_begin(p->scene);
  SCENE_CALL(p->scene, p->produce, outs, OUTPUTS, scene_at(p->x));
  SCENE_CALL(p->scene, p->consume, &out, 1, scene_of(outs[a]), scene_of(outs[b]));
  assert_counts(p->scene, out, 31 * (a + 2) + b + 2, 31 * (a + 2) + b + 2);
  for (uint32_t k = 0; k < OUTPUTS; k++) {
    assert_counts(p->scene, outs[k], k + 2, k + 2);
    rondo_buffer_release(outs[k]);
  }
  rondo_buffer_release(out);
  scene_end(p->scene);
}

static uint64_t demoted(const rondo_function *function) { return test_function_info(function).demoted; }

/* 73 test_demote_only_changing_cudagraph_managed_input: of two inputs one is another output each time, and the other
 * stays. With a limit of 2 the third recording is the one that has the first as memory that moves, and is the last. */
SCENE_TEST(test_tr5_peer_73_only_what_moves_is_demoted) {
  for (int binding = RONDO_BINDING_AUTOMATIC; binding <= RONDO_BINDING_PATCH; binding++) {
    SCENE_TREE(s, .name = "demotion");
    const pair p = make_pair(s, MAKE_CONSUMER(s, .demote_after = 2, .binding = (rondo_binding)binding));
    for (uint32_t i = 0; i < 3; i++) run_pair(&p, i == 0 ? 0 : i - 1, OUTPUTS - 1);
    assert_seen(s, "eerrpr");
    assert_int_equal(scene_info(s).recordings, 3);
    assert_int_equal(scene_info(s).demoted, 0);
    run_pair(&p, 2, OUTPUTS - 1);
    assert_seen(s, "pr");
    assert_int_equal(scene_info(s).demoted, 1);
    assert_int_equal(scene_info(s).recordings, 2);
    const rondo_tree_info before = scene_info(s);
    for (uint32_t i = 0; i < 10; i++) run_pair(&p, i % OUTPUTS, OUTPUTS - 1); /* what came before, too */
    assert_seen(s, "pppppppppppppppppppp");
    const rondo_tree_info after = scene_info(s);
    assert_int_equal(after.copied_inputs + after.patched_inputs - before.copied_inputs - before.patched_inputs, 20);
    assert_int_equal(after.allocations, before.allocations);
    assert_int_equal(demoted(p.consume), 1);
  }
}

/* 74 test_demoted_input_alias_lifetime: an output that was dead when the demoted recording was made must be dead when
 * it is used, and no other: so it is also used when both inputs are one output. */
static void run_alone(const pair *p, uint32_t a) {
  rondo_buffer *outs[OUTPUTS], *out;
  scene_begin(p->scene);
  SCENE_CALL(p->scene, p->produce, outs, OUTPUTS, scene_at(p->x));
  for (uint32_t k = 0; k < OUTPUTS - 1; k++)
    if (k != a) rondo_buffer_release(outs[k]);
  SCENE_CALL(p->scene, p->consume, &out, 1, scene_of(outs[a]), scene_of(outs[OUTPUTS - 1]));
  assert_counts(p->scene, out, 31 * (a + 2) + OUTPUTS + 1, 31 * (a + 2) + OUTPUTS + 1);
  assert_counts(p->scene, outs[a], a + 2, a + 2);
  if (a != OUTPUTS - 1) rondo_buffer_release(outs[a]);
  rondo_buffer_release(outs[OUTPUTS - 1]);
  rondo_buffer_release(out);
  scene_end(p->scene);
}
SCENE_TEST(test_tr4_peer_74_lives_of_demoted_inputs) {
  const pair p = make_pair(s, MAKE_CONSUMER(s, .demote_after = 1));
  for (uint32_t i = 0; i < 3; i++) run_alone(&p, i / 2);
  assert_seen(s, "eerrpr");
  assert_int_equal(demoted(p.consume), 1);
  run_alone(&p, OUTPUTS - 1);
  assert_seen(s, "pp");
  run_alone(&p, 2); /* it was dead then */
  assert_seen(s, "pr");
  for (uint32_t i = 0; i < 4; i++) run_alone(&p, 1 + i % 2);
  assert_seen(s, "pppppppp");
  assert_int_equal(scene_info(s).recordings, 3);
}

/* A demoted input that is given: its memory is the call's to the end, and nobody's afterwards. */
static rondo_status use_up_body(rondo_call *call, void *user) {
  scene_enter(user);
  void *scratch = test_allocate_async(rondo_call_stream(call), SCENE_BYTES);
  assert_ok(rondo_copy_async(rondo_call_stream(call), scratch, scene_input(call, 0), SCENE_BYTES));
  assert_ok(rondo_call_drop_input(call, 0));
  scene_combine(call, 0, scratch, scene_input(call, 1));
  return rondo_free_async(rondo_call_stream(call), scratch);
}
SCENE_TEST(test_tr4_demoted_inputs_that_are_given) {
  pair p = make_pair(s, NULL);
  p.consume = SCENE_FUNCTION(s, "use up", use_up_body, scene_work(s, 0, 0), .demote_after = 1,
                             RONDO_INPUTS(RONDO_INPUT_MOVING, RONDO_INPUT_MOVING));
  for (uint32_t i = 0; i < 8; i++) {
    rondo_buffer *outs[OUTPUTS], *out;
    const uint32_t a = i < 2 ? 0 : i % (OUTPUTS - 1);
    scene_begin(s);
    SCENE_CALL(s, p.produce, outs, OUTPUTS, scene_at(p.x));
    SCENE_CALL(s, p.consume, &out, 1, scene_given(outs[a]), scene_of(outs[OUTPUTS - 1]));
    if (i > 0) assert_int_equal(scene_info(s).live_outputs, OUTPUTS);
    assert_counts(s, out, 31 * (a + 2) + OUTPUTS + 1, 31 * (a + 2) + OUTPUTS + 1);
    for (uint32_t k = 0; k < OUTPUTS; k++)
      if (k != a) rondo_buffer_release(outs[k]);
    rondo_buffer_release(out);
    scene_end(s);
  }
  assert_seen(s, "eerrprpppppppppp");
  assert_int_equal(scene_info(s).demoted, 1);
}

/* 75 test_does_not_demote_stabilized_cudagraph_managed_input: one that moved, and stays since, is not demoted with the
 * other. */
SCENE_TEST(test_tr5_peer_75_what_came_to_rest_is_not_demoted) {
  const pair p = make_pair(s, MAKE_CONSUMER(s, .demote_after = 3));
  static const uint32_t places[][2] = {{0, 2}, {0, 2}, {1, 3}, {1, 4}, {1, 5}, {1, 0}, {1, 1}};
  for (size_t i = 0; i < sizeof places / sizeof places[0]; i++) run_pair(&p, places[i][0], places[i][1]);
  assert_seen(s, "eerrprprprpppp");
  assert_int_equal(demoted(p.consume), 1);
  run_pair(&p, 2, 4); /* it moved twice, then three times */
  assert_int_equal(demoted(p.consume), 1);
  run_pair(&p, 4, 3);
  assert_int_equal(demoted(p.consume), 2);
  run_pair(&p, 5, 0);
  assert_seen(s, "prprpp");
}

/* 76 test_skip_changing_cudagraph_managed_input: the other mode is to always run the function eagerly at that position,
 * even with the output for which there was a recording. */
SCENE_TEST(test_tr8_peer_76_skipped_for_good) {
  const pair p = make_pair(s, MAKE_CONSUMER(s, .demote_after = 1, .demotion = RONDO_DEMOTION_SKIP));
  for (uint32_t i = 0; i < 6; i++) run_pair(&p, i < 2 ? 0 : i % 2, OUTPUTS - 1);
  assert_seen(s, "eerrpppepepe");
  run_pair(&p, 0, OUTPUTS - 1);
  assert_seen(s, "pe");
  assert_skip(s->tree, MOVING_OUTPUT);
  assert_non_null(strstr(test_last_call(s->tree).message, "demote_after"));
  assert_int_equal(scene_info(s).skipped[RONDO_SKIP_MOVING_OUTPUT], 4);
  assert_int_equal(scene_info(s).recordings, 1);
  rondo_buffer *out; /* in another place it is recorded */
  SCENE_CALL(s, p.consume, &out, 1, scene_at(p.x), scene_at(p.x));
  assert_outcome(s->tree, RONDO_CALL_RECORDED);
  rondo_buffer_release(out);
}
SCENE_TEST(test_tr8_a_strict_tree_refuses_what_is_skipped) {
  SCENE_TREE(s, .strict = true);
  const pair p = make_pair(s, MAKE_CONSUMER(s, .demote_after = 1, .demotion = RONDO_DEMOTION_SKIP));
  for (uint32_t i = 0; i < 2; i++) run_pair(&p, 0, OUTPUTS - 1);
  rondo_buffer *outs[OUTPUTS], *out;
  scene_begin(s);
  SCENE_CALL(s, p.produce, outs, OUTPUTS, scene_at(p.x));
  const rondo_input inputs[] = {scene_of(outs[1]), scene_of(outs[2])};
  assert_error(rondo_function_call(p.consume, s->stream, inputs, 2, &out, 1), RONDO_UNSUPPORTED,
               RONDO_REASON_NOT_RECORDED);
  assert_message("MOVING_OUTPUT");
  for (uint32_t k = 0; k < OUTPUTS; k++) rondo_buffer_release(outs[k]);
  scene_end(s);
}

/* 77 test_managed_input_rerecord_compile_options: each function has its own limit and mode. */
SCENE_TEST(test_tr5_peer_77_options_of_functions) {
  pair p = make_pair(s, MAKE_CONSUMER(s, .demote_after = 0)); /* 5 */
  for (uint32_t i = 0; i < 7; i++) run_pair(&p, i == 0 ? 0 : i - 1, 0);
  assert_seen(s, "eerrprprprprpr");
  assert_int_equal(demoted(p.consume), 1);
  p.consume = MAKE_CONSUMER(s, .demote_after = 2, .demotion = RONDO_DEMOTION_SKIP);
  for (uint32_t i = 0; i < 5; i++) run_pair(&p, i == 0 ? 0 : i - 1, 0);
  assert_seen(s,
              "pepr"
              "prpepe");
  p.consume = MAKE_CONSUMER(s, .demote_after = 1, .demotion = RONDO_DEMOTION_NEVER);
  for (uint32_t i = 0; i < 8; i++) run_pair(&p, i == 0 ? 0 : (i - 1) % OUTPUTS, 0);
  assert_seen(s, "peprprprprprprpp");
  assert_int_equal(scene_info(s).demoted, 2);
  rondo_function *none = NULL;
  assert_invalid(
      rondo_function_create(s->tree,
                            &(rondo_function_options){RONDO_FUNCTION_OPTIONS_INIT, .name = "none",
                                                      .body = scene_body_combine, .demotion = (rondo_demotion)3},
                            &none),
      RONDO_REASON_BAD_OPTIONS);
  assert_message("'none': 3 is not a demotion");
  assert_null(none);
}

/* 79 test_does_not_demote_static_cudagraph_pool_input: inputs declared static keep their address: three recordings. */
SCENE_TEST(test_tr5_peer_79_static_inputs_are_not_demoted) {
  pair p = make_pair(s, NULL);
  p.consume = SCENE_FUNCTION(s, "consume", scene_body_combine, scene_work(s, 0, 0), .demote_after = 1,
                             RONDO_INPUTS(RONDO_INPUT_STATIC, RONDO_INPUT_MOVING));
  for (uint32_t i = 0; i < 7; i++) run_pair(&p, i == 0 ? 0 : (i - 1) % 3, OUTPUTS - 1);
  assert_seen(s, "eerrprprpppppp");
  assert_int_equal(scene_info(s).recordings, 4);
  assert_int_equal(scene_info(s).demoted, 0);
}

/* 80 test_does_not_demote_input_aliasing_mutated_managed_input: b += 1; out = a * 31 + b, where a may be b. It is
 * demoted where the two are different outputs, and is not where they are one; whether the write is declared or not. */
static rondo_status bump_body(rondo_call *call, void *user) {
  scene_enter(user);
  scene_change(call, scene_input(call, 1), 1, 1);
  scene_combine(call, 0, scene_input(call, 0), scene_input(call, 1));
  return RONDO_OK;
}
static void run_bump(const pair *p, uint32_t a, uint32_t b) {
  rondo_buffer *outs[OUTPUTS], *out;
  scene_begin(p->scene);
  SCENE_CALL(p->scene, p->produce, outs, OUTPUTS, scene_at(p->x));
  SCENE_CALL(p->scene, p->consume, &out, 1, scene_of(outs[a]), scene_of(outs[b]));
  const uint32_t step = 31 * (a + 2) + b + 2;
  assert_counts(p->scene, out, step + (a == b ? 32 : 1), step);
  for (uint32_t k = 0; k < OUTPUTS; k++) {
    assert_counts(p->scene, outs[k], k + 2 + (k == b), k + 2);
    rondo_buffer_release(outs[k]);
  }
  rondo_buffer_release(out);
  scene_end(p->scene);
}
SCENE_TEST(test_tr6_peer_80_inputs_next_to_a_written_one) {
  for (int is_declared = 0; is_declared < 2; is_declared++)
    for (int binding = RONDO_BINDING_AUTOMATIC; binding <= RONDO_BINDING_PATCH; binding++) {
      SCENE_TREE(s, .name = "bump");
      pair p = make_pair(s, NULL);
      p.consume = SCENE_FUNCTION(
          s, "bump", bump_body, scene_work(s, 0, 0), .demote_after = 1, .binding = (rondo_binding)binding,
          RONDO_INPUTS(RONDO_INPUT_MOVING,
                       is_declared != 0 ? RONDO_INPUT_MOVING | RONDO_INPUT_MUTATED : RONDO_INPUT_MOVING));
      for (uint32_t i = 0; i < 4; i++) run_bump(&p, i == 0 ? 0 : i - 1, 5);
      assert_seen(s, "eerrprpp");
      run_bump(&p, 5, 5);
      assert_seen(s, "pr");
      for (uint32_t i = 0; i < 4; i++) run_bump(&p, 2 + i, 5);
      assert_seen(s, "pppppppp");
      assert_int_equal(demoted(p.consume), 1);
      run_bump(&p, 1, 3); /* a written input moves, too: it is patched, or copied back */
      assert_seen(s, "pr");
      run_bump(&p, 4, 2);
      run_bump(&p, 0, 1);
      assert_seen(s, "pppp");
      assert_int_equal(demoted(p.consume), 2);
    }
}

/* 81 test_does_not_demote_or_skip_aliased_cudagraph_managed_input: an output that is the input is, in Rondo, the
 * caller's buffer wherever that is: so it may be demoted, and both hold the same memory. */
static rondo_status alias_body(rondo_call *call, void *user) {
  scene_enter(user);
  assert_ok(rondo_call_output_of_input(call, 0, 0, 0, SCENE_BYTES, NULL));
  scene_put(call, 1, scene_input(call, 0), 3, 0);
  return RONDO_OK;
}
SCENE_TEST(test_tr4_peer_81_outputs_that_are_the_input) {
  pair p = make_pair(s, NULL);
  p.consume =
      SCENE_FUNCTION(s, "alias", alias_body, scene_work(s, 0, 0), .demote_after = 1, RONDO_INPUTS(RONDO_INPUT_MOVING));
  rondo_function *next = scene_affine(s, "next", 5, 1);
  for (uint32_t i = 0; i < 9; i++) {
    rondo_buffer *outs[OUTPUTS], *both[2];
    const uint32_t a = i < 2 ? 0 : i % OUTPUTS;
    scene_begin(s);
    SCENE_CALL(s, p.produce, outs, OUTPUTS, scene_at(p.x));
    SCENE_CALL(s, p.consume, both, 2, scene_of(outs[a]));
    assert_ptr_equal(scene_address(both[0]), scene_address(outs[a]));
    for (uint32_t k = 0; k < OUTPUTS; k++) rondo_buffer_release(outs[k]);
    rondo_buffer *out = scene_call(s, next, scene_of(both[0]));
    assert_counts(s, both[0], a + 2, a + 2);
    assert_counts(s, both[1], 3 * (a + 2), 3 * (a + 2));
    assert_counts(s, out, 5 * (a + 2) + 1, 5 * (a + 2));
    for (int k = 0; k < 2; k++) rondo_buffer_release(both[k]);
    rondo_buffer_release(out);
    scene_end(s);
  }
  assert_int_equal(demoted(p.consume), 1);
  assert_outcome(s->tree, RONDO_CALL_RECORDED); /* of `next`, whose input was dead before */
}

/* An undeclared write to the demoted input is copied back to it. */
SCENE_TEST(test_tr6_demoted_inputs_that_are_written) {
  for (int binding = RONDO_BINDING_AUTOMATIC; binding <= RONDO_BINDING_PATCH; binding++) {
    SCENE_TREE(s, .name = "written");
    pair p = make_pair(s, NULL);
    p.consume = SCENE_FUNCTION(s, "bump", bump_body, scene_work(s, 0, 0), .demote_after = 1,
                               .binding = (rondo_binding)binding, RONDO_INPUTS(RONDO_INPUT_MOVING, RONDO_INPUT_MOVING));
    for (uint32_t i = 0; i < 8; i++) run_bump(&p, 0, i < 2 ? 1 : 1 + i % 5);
    assert_seen(s, "eerrprpppppppppp");
    assert_int_equal(demoted(p.consume), 1);
  }
}

/* Recordings that share execs, of which one must get its own to see what it writes; with host steps, whose inputs are
 * copied before the launch; and with found addresses. */
static rondo_status hop_body(rondo_call *call, void *user) {
  test_work *work = scene_enter(user);
  scene_change(call, scene_input(call, 1), 1, 1);
  assert_ok(rondo_call_host_step(call, test_host_count, &work->factor));
  scene_combine(call, 0, scene_input(call, 0), scene_input(call, 1));
  return RONDO_OK;
}
SCENE_TEST(test_tr5_demotion_of_all_kinds_of_recordings) {
  for (int kind = 0; kind < 3; kind++) {
    SCENE_TREE(s, .share_execs = kind == 0);
    test_work *work = scene_work(s, 0, 0);
    pair p = make_pair(s, NULL);
    p.consume = SCENE_FUNCTION(s, "bump", kind == 1 ? hop_body : bump_body, work, .demote_after = 3,
                               .find_inputs = kind == 2, RONDO_INPUTS(RONDO_INPUT_MOVING, RONDO_INPUT_MOVING));
    for (uint32_t i = 0; i < 12; i++) run_bump(&p, 0, i < 2 ? 1 : 1 + i % 5);
    assert_seen(s, "eerrprprprpppppppppppppp");
    assert_int_equal(demoted(p.consume), 1);
    if (kind == 1) assert_int_equal(work->factor, 12);
  }
}

/* The limit of recordings at a position applies before the function's own: the input is demoted then, and nothing is
 * skipped. */
SCENE_TEST(test_tr7_demotion_before_the_limit_of_a_place) {
  SCENE_TREE(s, .max_recordings_per_parent = 2);
  const pair p = make_pair(s, MAKE_CONSUMER(s, .demote_after = 100));
  for (uint32_t i = 0; i < 8; i++) run_pair(&p, i == 0 ? 0 : (i - 1) % OUTPUTS, OUTPUTS - 1);
  assert_seen(s, "eerrprprpppppppp");
  assert_int_equal(scene_info(s).skipped[RONDO_SKIP_RECORDING_LIMIT], 0);
}

/* With a small limit of recordings, those that show moves are freed; the moves still count. */
SCENE_TEST(test_tr7_moves_are_counted_over_evictions) {
  SCENE_TREE(s, .max_recordings = 2);
  const pair p = make_pair(s, MAKE_CONSUMER(s, .demote_after = 4));
  for (uint32_t i = 0; i < 10; i++) run_pair(&p, i == 0 ? 0 : (i - 1) % OUTPUTS, OUTPUTS - 1);
  assert_seen(s, "eerrprprprprpppppppp");
  assert_int_equal(scene_info(s).demoted, 1);
}

/* After another recording it counts again; a reset forgets; destroying a function removes its demotions. */
SCENE_TEST(test_tr5_demotions_end_with_their_place) {
  pair p = make_pair(s, MAKE_CONSUMER(s, .demote_after = 1));
  for (uint32_t i = 0; i < 4; i++) run_pair(&p, i == 0 ? 0 : i - 1, OUTPUTS - 1);
  assert_seen(s, "eerrprpp");
  const rondo_function *produce = p.produce;
  p.produce = make_producer(s);
  for (uint32_t i = 0; i < 4; i++) run_pair(&p, i == 0 ? 0 : i - 1, OUTPUTS - 1);
  assert_seen(s, "eerrprpp");
  assert_int_equal(demoted(p.consume), 2);
  assert_non_null(produce);
  assert_ok(rondo_tree_reset(s->tree));
  for (uint32_t i = 0; i < 3; i++) run_pair(&p, i, OUTPUTS - 1);
  assert_seen(s, "rrprpp");
  assert_ok(rondo_function_destroy(p.consume));
  p.consume = MAKE_CONSUMER(s, .demote_after = 1);
  for (uint32_t i = 0; i < 4; i++) run_pair(&p, i == 0 ? 0 : i - 1, OUTPUTS - 1);
  assert_seen(s,
              "pe"
              "pr"
              "prpp");
}

/* Preparing counts like calls, and uses demotions. */
static void prepare_pair(const pair *p, uint32_t a) {
  rondo_buffer *outs[OUTPUTS];
  scene_begin(p->scene);
  SCENE_CALL(p->scene, p->produce, outs, OUTPUTS, scene_at(p->x));
  const rondo_input inputs[] = {scene_of(outs[a]), scene_of(outs[OUTPUTS - 1])};
  assert_ok(rondo_function_prepare(p->consume, p->scene->stream, inputs, 2));
  for (uint32_t k = 0; k < OUTPUTS; k++) rondo_buffer_release(outs[k]);
  scene_end(p->scene);
}
SCENE_TEST(test_tr1_prepared_recordings_count) {
  const pair p = make_pair(s, MAKE_CONSUMER(s, .demote_after = 2));
  run_pair(&p, 0, OUTPUTS - 1);
  for (uint32_t i = 0; i < 4; i++) prepare_pair(&p, i);
  assert_int_equal(scene_info(s).prepared, 3);
  assert_int_equal(demoted(p.consume), 1);
  s->calls = 0;
  for (uint32_t i = 0; i < OUTPUTS; i++) run_pair(&p, i, OUTPUTS - 1);
  assert_seen(s, "pppppppppppp");
}

/* The caller's memory leads to the same recording. */
SCENE_TEST(test_tr5_demoted_inputs_and_memory_of_the_caller) {
  const pair p = make_pair(s, MAKE_CONSUMER(s, .demote_after = 1));
  const uint32_t *own = scene_words(s, 7);
  for (uint32_t i = 0; i < 3; i++) run_pair(&p, i / 2, OUTPUTS - 1);
  rondo_buffer *outs[OUTPUTS], *out;
  s->calls = 0;
  scene_begin(s);
  SCENE_CALL(s, p.produce, outs, OUTPUTS, scene_at(p.x));
  SCENE_CALL(s, p.consume, &out, 1, scene_at(own), scene_of(outs[OUTPUTS - 1]));
  assert_counts(s, out, 31 * 7 + OUTPUTS + 1, 31 + OUTPUTS + 1);
  for (uint32_t k = 0; k < OUTPUTS; k++) rondo_buffer_release(outs[k]);
  rondo_buffer_release(out);
  scene_end(s);
  assert_seen(s, "pp");
}

/* Demotions are reported, in the log and in both explanations. */
static void keep_line(void *user, rondo_log_level level, const char *area, const char *message) {
  char *line = user;
  if (level <= RONDO_LOG_INFO && strcmp(area, "tree") == 0 && strstr(message, "was a different output") != NULL)
    (void)strncpy(line, message, 255);
}
static void assert_explained(const test_scene *s, rondo_explain_format format, const char *expected) {
  char *text;
  assert_ok(rondo_tree_explain(s->tree, format, &text));
  if (strstr(text, expected) == NULL) print_error("%s\n", text);
  assert_non_null(strstr(text, expected));
  rondo_text_free(text);
}
SCENE_TEST(test_tr8_demotions_are_explained) {
  char line[256] = "";
  const pair p = make_pair(s, MAKE_CONSUMER(s, .demote_after = 2));
  rondo_log_set_sink(keep_line, line, RONDO_LOG_INFO);
  for (uint32_t i = 0; i < 4; i++) run_pair(&p, i == 0 ? 0 : i - 1, OUTPUTS - 1);
  rondo_log_set_sink(NULL, NULL, RONDO_LOG_ERROR);
  assert_non_null(strstr(line, "input 0 of 'consume'"));
  assert_non_null(strstr(line, "2 recordings after recording 1"));
  assert_explained(s, RONDO_EXPLAIN_TEXT,
                   "after 1 'produce': input 0, another output of the path for 2 recordings: bound");
  assert_explained(s, RONDO_EXPLAIN_TEXT, "; 1 demoted\n");
  assert_explained(s, RONDO_EXPLAIN_JSON, "\"demoted\":[{\"after\":1,\"input\":0,\"recordings\":2,\"way\":\"bound\"}]");
  assert_explained(s, RONDO_EXPLAIN_JSON, "\"demoted\":1}");
}
