/* SPDX-License-Identifier: MIT
 * Values that change between calls without being inputs (TR-8): a learning rate in the caller's struct becomes an
 * argument of a kernel, so a recording would keep the value it had during the recording. The tree compares the
 * arguments of a body's launches and fills with those of the run before; a body whose arguments differ runs eagerly,
 * with the reason.
 */
#include <string.h>

#include "support/test_tree.h"

enum { WORDS = 16 };

/* out = input, scaled by `factor` and set by a fill of `filled`. */
typedef struct rate_work {
  test_fixture *t;
  uint32_t factor;   /* of a kernel */
  uint32_t filled;   /* of a fill, in the last word */
  uint32_t step;     /* added to the factor after each run of the body */
  uint32_t launches; /* that are first, and not part of the second run */
  uint32_t runs;
} rate_work;

static rondo_status rate_body(rondo_call *call, void *user) {
  rate_work *work = user;
  rondo_stream *stream = rondo_call_stream(call);
  uint32_t *out = test_body_copy(call, 0, 0);
  for (uint32_t i = 0; work->runs == 0 && i < work->launches; i++) test_affine(work->t, stream, out, WORDS, 1, 0);
  test_affine(work->t, stream, out, WORDS, work->factor, 0);
  const rondo_fill fill = {.dst = out + WORDS - 1, .value = work->filled, .element_bytes = 4, .width = 1};
  assert_ok(rondo_fill_async(stream, &fill));
  work->factor += work->step;
  work->runs++;
  return RONDO_OK;
}

typedef struct rate_case {
  rate_work work;
  rondo_tree *tree;
  rondo_function *function;
  uint32_t *words;
} rate_case;

static const rondo_tree_options usual_tree = {RONDO_TREE_OPTIONS_INIT};
static const rondo_function_options usual = {RONDO_FUNCTION_OPTIONS_INIT};

static void make_case(test_fixture *t, rate_case *c, rondo_tree_options tree, rondo_function_options options) {
  static const uint32_t moving = RONDO_INPUT_MOVING;
  uint32_t values[WORDS];
  for (uint32_t i = 0; i < WORDS; i++) values[i] = 1;
  *c = (rate_case){.work = {.t = t, .factor = 3, .filled = 7}, .words = test_words(t, WORDS)};
  test_write(t, c->words, values, sizeof values);
  c->tree = test_tree(t, &tree);
  options.name = "step";
  options.body = rate_body;
  options.user = &c->work;
  options.inputs = &moving;
  options.input_count = 1;
  assert_ok(rondo_function_create(c->tree, &options, &c->function));
}

/* The result uses the values at the time of the call. */
static void call_case(rate_case *c) {
  uint32_t words[WORDS];
  const uint32_t factor = c->work.factor;
  rondo_buffer *out = test_call_words(c->work.t, c->function, c->words, WORDS);
  assert_ok(rondo_buffer_copy(out, c->work.t->stream, 0, words, sizeof words));
  assert_ok(rondo_stream_synchronize(c->work.t->stream));
  if (c->work.step == 0) assert_int_equal(words[0], factor);
  assert_int_equal(words[WORDS - 1], c->work.filled);
  rondo_buffer_release(out);
}

static void assert_changed(rate_case *c, const char *text) {
  const rondo_call_info info = test_last_call(c->tree);
  assert_int_equal(info.outcome, RONDO_CALL_EAGER);
  assert_string_equal(rondo_skip_name(info.skip), "CHANGED");
  if (strstr(info.message, text) == NULL) print_error("message: %s\n", info.message);
  assert_non_null(strstr(info.message, text));
}

/* The value changes between the warm-up and the recording, once: the next call is recorded with the new value. */
TREE_TEST(test_tr8_value_that_changed_since_the_warm_up) {
  rate_case c;
  make_case(t, &c, usual_tree, usual);
  call_case(&c);
  c.work.factor = 5;
  call_case(&c);
  assert_changed(&c, "argument 0 of kernel 'test_affine'");
  assert_changed(&c, "was 3 in the run before and is 5 now");
  assert_changed(&c, "RONDO_INPUT_SCALAR");
  call_case(&c);
  assert_outcome(c.tree, RONDO_CALL_RECORDED);
  call_case(&c);
  assert_outcome(c.tree, RONDO_CALL_REPLAYED);
}

TREE_TEST(test_tr8_value_of_a_fill) {
  rate_case c;
  make_case(t, &c, usual_tree, usual);
  call_case(&c);
  c.work.filled = 9;
  call_case(&c);
  assert_changed(&c, "the value of a fill was 7 in the run before and is 9 now");
}

/* A learning rate that decays at each call is never recorded, and always right. */
TREE_TEST(test_tr8_value_that_changes_at_each_call) {
  for (uint32_t warm_ups = 1; warm_ups <= 2; warm_ups++) {
    rate_case c;
    make_case(t, &c, usual_tree, (rondo_function_options){RONDO_FUNCTION_OPTIONS_INIT, .warm_ups = warm_ups});
    for (uint32_t i = 0; i < 8; i++) {
      c.work.factor = 100 - i;
      call_case(&c);
      if (i >= warm_ups + 2) assert_changed(&c, "'test_affine'");
    }
    assert_int_equal(test_tree_info(c.tree).recordings, 0);
  }
}

TREE_TEST(test_tr8_find_inputs_sees_it_too) {
  rate_case c;
  make_case(t, &c, usual_tree, (rondo_function_options){RONDO_FUNCTION_OPTIONS_INIT, .find_inputs = true});
  call_case(&c);
  c.work.factor = 5;
  call_case(&c);
  assert_changed(&c, "was 3 in the run before and is 5 now");
}

TREE_TEST(test_tr8_strict_trees_refuse_it) {
  rate_case c;
  make_case(t, &c, (rondo_tree_options){RONDO_TREE_OPTIONS_INIT, .strict = true}, usual);
  call_case(&c);
  c.work.factor = 5;
  const rondo_input input = {.address = c.words, .bytes = WORDS * sizeof(uint32_t)};
  rondo_buffer *out;
  assert_error(rondo_function_call(c.function, t->stream, &input, 1, &out, 1), RONDO_UNSUPPORTED,
               RONDO_REASON_NOT_RECORDED);
  assert_message("argument 0 of kernel 'test_affine'");
}

/* A counter that only grows with the runs of the body. */
TREE_TEST(test_tr8_value_that_changes_in_the_body) {
  rate_case c;
  make_case(t, &c, usual_tree, usual);
  c.work.step = 1;
  for (uint32_t i = 0; i < 5; i++) call_case(&c);
  assert_changed(&c, "argument 0 of kernel 'test_affine'");
  assert_int_equal(test_tree_info(c.tree).recordings, 0);
}

/* Who knows that a value changes and does not mind says so. */
TREE_TEST(test_values_may_be_frozen_on_purpose) {
  rate_case c;
  make_case(t, &c, usual_tree, (rondo_function_options){RONDO_FUNCTION_OPTIONS_INIT, .freezes_values = true});
  c.work.step = 1;
  for (uint32_t i = 0; i < 3; i++) call_case(&c);
  assert_outcome(c.tree, RONDO_CALL_REPLAYED);
}

/* Work that only a first run does is not compared with that of later runs. */
TREE_TEST(test_work_of_the_first_run_alone) {
  rate_case c;
  make_case(t, &c, usual_tree, usual);
  c.work.launches = 2;
  call_case(&c);
  call_case(&c);
  assert_outcome(c.tree, RONDO_CALL_RECORDED);
}
