/* SPDX-License-Identifier: MIT
 * Bodies that write to their inputs (TR-6, TR-8), after the tests of PyTorch's CUDAGraph Trees, whose names and numbers
 * the tests have. The peer finds mutation in the program that it compiles. Rondo finds it in the declarations of
 * kernels and in copies and fills, and a function declares which inputs it writes. In assert_seen, each letter is a
 * call: e eager, r recorded, p replayed.
 */
#include <string.h>

#include "support/test_scene.h"

static rondo_function *make_mutate(test_scene *s, uint32_t kind) {
  return SCENE_FUNCTION(s, "mutate", scene_body_mutate, scene_work(s, 0, 0), .inputs = &kind, .input_count = 1);
}

/* Calls it on words that count up from `first`. */
static void call_on_words(test_scene *s, rondo_function *f, uint32_t *words, uint32_t first) {
  scene_set(s, words, first);
  rondo_buffer *out = scene_call(s, f, scene_at(words));
  scene_assert_words(s, words, 2 * first + 1, 2);
  assert_counts(s, out, 6 * first + 3, 6);
  rondo_buffer_release(out);
}

/* 20 test_mutation_on_inp: an ordinary input that is written is the reason not to record; a static one is recorded and
 * right three times; a moving one that is declared is written back where it is at that call, which the peer has not. */
SCENE_TEST(test_tr6_peer_20_written_inputs) {
  if (!test_is_guarded(s->fixture)) { /* there the write itself is the finding */
    rondo_function *f = make_mutate(s, RONDO_INPUT_MOVING);
    for (uint32_t i = 0; i < 4; i++) call_on_words(s, f, scene_words(s, 0), 10 * i);
    assert_seen(s, "eeee");
    assert_int_equal(scene_info(s).skipped[RONDO_SKIP_MUTATED_INPUT], 3);
    assert_int_equal(scene_info(s).recordings, 0);
  }
  rondo_function *f = make_mutate(s, RONDO_INPUT_STATIC);
  uint32_t *words = scene_words(s, 0);
  for (uint32_t i = 0; i < 4; i++) call_on_words(s, f, words, 10 * i);
  assert_seen(s, "erpp");
  f = make_mutate(s, RONDO_INPUT_MOVING | RONDO_INPUT_MUTATED);
  for (uint32_t i = 0; i < 4; i++) call_on_words(s, f, scene_words(s, 0), 10 * i);
  assert_seen(s, "erpp");
}

/* 150 test_tensor_constant_mutation: a body that counts in its own memory, which is not an input. */
static rondo_status constant_body(rondo_call *call, void *user) {
  rondo_input constant;
  scene_enter(user);
  assert_ok(rondo_call_get_input(call, 0, &constant));
  scene_change(call, constant.address, 1, 1);
  scene_put(call, 0, constant.address, 1, 0);
  return RONDO_OK;
}
SCENE_TEST(test_tr6_peer_150_constants_are_counted_in) {
  rondo_function *f = SCENE_FUNCTION(s, "f", constant_body, scene_work(s, 0, 0), RONDO_INPUTS(RONDO_INPUT_OPAQUE));
  uint32_t *constant = scene_words(s, 0);
  for (uint32_t i = 1; i <= 4; i++) {
    rondo_buffer *out = scene_call(s, f, (rondo_input){.address = constant});
    assert_counts(s, out, i, 1);
    scene_assert_words(s, constant, i, 1);
    rondo_buffer_release(out);
  }
  assert_seen(s, "erpp");
}

/* 23 test_mutation_cudagraph_managed_tensors, 80 test_does_not_demote_input_aliasing_mutated_managed_input (its
 * values): an output of the path is written in place, visible to all who hold it and to later calls. On the caller's
 * memory, the same function runs eagerly, and the recordings continue to be replayed. */
SCENE_TEST(test_tr6_peer_23_80_written_outputs_of_the_path) {
  rondo_function *make = scene_affine(s, "make", 3, 1), *f = make_mutate(s, RONDO_INPUT_MOVING);
  uint32_t *x = scene_words(s, 0);
  for (uint32_t i = 0; i < 6; i++) {
    scene_set(s, x, i);
    if (i == 4 && !test_is_guarded(s->fixture)) {
      call_on_words(s, f, scene_words(s, 0), 3);
      assert_skip(s->tree, MUTATED_INPUT);
    }
    scene_begin(s);
    rondo_buffer *made = scene_call(s, make, scene_at(x)), *out = scene_call(s, f, scene_of(made));
    assert_counts(s, made, 6 * i + 3, 6);
    assert_counts(s, out, 18 * i + 9, 18);
    rondo_buffer *again = scene_call(s, make, scene_of(made));
    assert_counts(s, again, 18 * i + 10, 18);
    rondo_buffer_release(made);
    rondo_buffer_release(out);
    rondo_buffer_release(again);
    scene_end(s);
  }
  assert_seen(s, test_is_guarded(s->fixture) ? "eeerrrpppppppppppp" : "eeerrrppppppepppppp");
  assert_int_equal(scene_info(s).recordings, 3);
}

/* The same, where a call on memory of the caller's was refused before. */
SCENE_TEST(test_tr6_refused_once_is_not_refused_for_good) {
  if (test_is_guarded(s->fixture)) skip(); /* there the write itself is the finding */
  rondo_function *make = scene_affine(s, "make", 3, 1), *f = make_mutate(s, RONDO_INPUT_MOVING);
  uint32_t *x = scene_words(s, 0);
  for (uint32_t i = 0; i < 3; i++) call_on_words(s, f, scene_words(s, 0), i);
  for (uint32_t i = 0; i < 4; i++) {
    scene_set(s, x, i);
    scene_begin(s);
    rondo_buffer *made = scene_call(s, make, scene_at(x)), *out = scene_call(s, f, scene_of(made));
    assert_counts(s, out, 18 * i + 9, 18);
    rondo_buffer_release(made);
    rondo_buffer_release(out);
    scene_end(s);
  }
  call_on_words(s, f, scene_words(s, 0), 5);
  assert_skip(s->tree, MUTATED_INPUT);
  assert_seen(s, "eeeeerrppppe");
}

/* 15 test_mutation_reinplaced: copies and fills write, too; the message names input, function and remedy. */
static rondo_status copy_over_body(rondo_call *call, void *user) {
  scene_enter(user);
  const uint32_t *out = scene_put(call, 0, scene_input(call, 0), 2, 1);
  return rondo_copy_async(rondo_call_stream(call), scene_input(call, 1), out, SCENE_BYTES);
}
static rondo_status fill_over_body(rondo_call *call, void *user) {
  scene_enter(user);
  scene_put(call, 0, scene_input(call, 0), 2, 1);
  return rondo_fill_async(
      rondo_call_stream(call),
      &(rondo_fill){.dst = scene_input(call, 1), .value = 5, .element_bytes = 4, .width = SCENE_WORDS});
}
SCENE_TEST(test_tr8_peer_15_copies_and_fills_write) {
  const rondo_function_body bodies[] = {copy_over_body, fill_over_body};
  if (test_is_guarded(s->fixture)) skip(); /* there the write itself is the finding */
  const uint32_t *x = scene_words(s, 1), *y = scene_words(s, 1);
  for (int i = 0; i < 2; i++) {
    rondo_function *f = SCENE_FUNCTION(s, "writes", bodies[i], scene_work(s, 0, 0),
                                       RONDO_INPUTS(RONDO_INPUT_MOVING, RONDO_INPUT_MOVING));
    for (int k = 0; k < 3; k++) {
      rondo_buffer *out;
      SCENE_CALL(s, f, &out, 1, scene_at(x), scene_at(y));
      assert_counts(s, out, 3, 2);
      scene_assert_words(s, y, i == 0 ? 3 : 5, i == 0 ? 2 : 0);
      rondo_buffer_release(out);
    }
    assert_seen(s, "eee");
    assert_skip(s->tree, MUTATED_INPUT);
    assert_non_null(strstr(test_last_call(s->tree).message, "input 1 of 'writes'"));
    assert_non_null(strstr(test_last_call(s->tree).message, "RONDO_INPUT_MUTATED"));
  }
}

/* 24 test_mutation_cudagraph_managed_tensor_warn, 25 ..._warn_only_once: the log says it once a function at INFO, on
 * whichever path it is called. */
static void count_lines(void *user, rondo_log_level level, const char *area, const char *message) {
  if (level == RONDO_LOG_INFO && strcmp(area, "tree") == 0 && strstr(message, "MUTATED_INPUT") != NULL) ++*(int *)user;
}
SCENE_TEST(test_tr8_peer_24_25_reported_once) {
  if (test_is_guarded(s->fixture)) skip(); /* there the write itself is the finding */
  int lines = 0;
  rondo_function *make = scene_affine(s, "make", 3, 1), *f = make_mutate(s, RONDO_INPUT_MOVING);
  uint32_t *x = scene_words(s, 0), *y = scene_words(s, 0);
  rondo_log_set_sink(count_lines, &lines, RONDO_LOG_INFO);
  for (uint32_t i = 0; i < 6; i++) {
    scene_begin(s);
    rondo_buffer *made = NULL;
    if (i % 2 == 0) made = scene_call(s, make, scene_at(x));
    call_on_words(s, f, y, i);
    rondo_buffer_release(made);
    scene_end(s);
  }
  rondo_log_set_sink(NULL, NULL, RONDO_LOG_ERROR);
  assert_int_equal(lines, 1);
  assert_int_equal(test_function_info(f).skipped[RONDO_SKIP_MUTATED_INPUT], 5);
}

/* 21 test_input_storage_mutation_skips_cudagraphs: instead of changing an input's storage, the body here drops an
 * input that it does not own: nothing happens. */
static rondo_status drop_body(rondo_call *call, void *user) {
  scene_enter(user);
  assert_ok(rondo_call_drop_input(call, 0));
  scene_put(call, 0, scene_input(call, 0), 2, 1);
  return RONDO_OK;
}
SCENE_TEST(test_tr6_peer_21_inputs_that_were_not_given) {
  rondo_function *make = scene_affine(s, "make", 3, 1);
  rondo_function *f = SCENE_FUNCTION(s, "f", drop_body, scene_work(s, 0, 0), RONDO_INPUTS(RONDO_INPUT_MOVING));
  const uint32_t *x = scene_words(s, 1);
  for (int i = 0; i < 4; i++) {
    scene_begin(s);
    rondo_buffer *made = scene_call(s, make, scene_at(x)), *out = scene_call(s, f, scene_of(made));
    assert_counts(s, out, 9, 6);
    assert_counts(s, made, 4, 3);
    rondo_buffer_release(out);
    /* Given, but another holds it, too. */
    rondo_buffer_retain(made);
    out = scene_call(s, f, scene_given(made));
    assert_counts(s, out, 9, 6);
    assert_counts(s, made, 4, 3);
    rondo_buffer_release(made);
    rondo_buffer_release(out);
    scene_end(s);
  }
  assert_outcome(s->tree, RONDO_CALL_REPLAYED);
}

/* A written input that is an output of the previous step, whose memory the new output uses: the written value is
 * dropped, and must not overwrite the output. */
SCENE_TEST(test_tr6_written_outputs_of_the_step_before) {
  for (int binding = RONDO_BINDING_AUTOMATIC; binding <= RONDO_BINDING_PATCH; binding++) {
    rondo_function *f =
        SCENE_FUNCTION(s, "mutate", scene_body_mutate, scene_work(s, 0, 0), .binding = (rondo_binding)binding,
                       RONDO_INPUTS(RONDO_INPUT_MOVING | RONDO_INPUT_MUTATED));
    rondo_buffer *now = NULL;
    uint32_t first = 1, step = 1;
    for (int i = 0; i < 6; i++) {
      rondo_buffer *next = scene_call(s, f, i == 0 ? scene_at(scene_words(s, 1)) : scene_of(now));
      rondo_buffer_release(now);
      now = next;
      first = (first * 2 + 1) * 3;
      step *= 6;
      assert_counts(s, now, first, step);
    }
    rondo_buffer_release(now);
    assert_seen(s, "erpppp");
  }
}

/* An undeclared write of a body with host steps is found in whichever segment it is. */
static rondo_status late_body(rondo_call *call, void *user) {
  test_work *work = scene_enter(user);
  scene_put(call, 0, scene_input(call, 0), 1, 0);
  for (uint32_t i = 0; i < 3; i++) {
    if (i == work->factor) scene_change(call, scene_input(call, 0), 2, 1);
    if (i == 2) break;
    const rondo_status status = rondo_call_host_step(call, test_host_nothing, NULL);
    if (status != RONDO_OK) return status;
  }
  return RONDO_OK;
}
SCENE_TEST(test_tr8_writes_between_host_steps) {
  if (test_is_guarded(s->fixture)) skip(); /* there the write itself is the finding */
  for (uint32_t at = 0; at < 3; at++) {
    rondo_function *f = SCENE_FUNCTION(s, "late", late_body, scene_work(s, at, 0), RONDO_INPUTS(RONDO_INPUT_MOVING));
    uint32_t *words = scene_words(s, 0);
    for (uint32_t i = 0; i < 4; i++) {
      scene_set(s, words, i);
      rondo_buffer_release(scene_call(s, f, scene_at(words)));
      scene_assert_words(s, words, 2 * i + 1, 2);
    }
    assert_seen(s, "eeee");
    assert_skip(s->tree, MUTATED_INPUT);
  }
}
