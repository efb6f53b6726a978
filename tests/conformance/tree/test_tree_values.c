/* SPDX-License-Identifier: MIT
 * Values that change between calls without being inputs (TR-8): a learning rate in the caller's struct becomes an
 * argument of a kernel, so a recording would keep the value it had during the recording. The tree compares the
 * arguments of a body's launches and fills with those of the run before; a body whose arguments differ runs eagerly,
 * with the reason.
 */
#include "support/test_tree.h"

enum { LAST = TEST_CASE_WORDS - 1 };

/* out = input, scaled by the case's factor, and the last word set by a fill of `filled`. */
typedef struct rate {
  uint32_t filled;   /* of a fill, in the last word */
  uint32_t step;     /* added to the factor after each run of the body */
  uint32_t launches; /* that are first, and not part of the second run */
} rate;

static rondo_status rate_body(rondo_call *call, void *user) {
  test_tree_case *c = user;
  const rate *r = c->user;
  rondo_stream *stream = rondo_call_stream(call);
  uint32_t *out = test_body_copy(call, 0, 0);
  for (uint32_t i = 0; c->work.runs == 0 && i < r->launches; i++) test_affine(c->t, stream, out, LAST + 1, 1, 0);
  test_affine(c->t, stream, out, LAST + 1, c->work.factor, 0);
  const rondo_fill fill = {.dst = out + LAST, .value = r->filled, .element_bytes = 4, .width = 1};
  assert_ok(rondo_fill_async(stream, &fill));
  c->work.factor += r->step;
  c->work.runs++;
  return RONDO_OK;
}

static void begin(test_tree_case *c, rate *r, test_fixture *t, const rondo_tree_options *tree,
                  rondo_function_options options) {
  options.body = rate_body;
  test_tree_case_make(c, t, tree, &options, NULL);
  *r = (rate){.filled = 7};
  c->user = r;
}

/* The result uses the values at the time of the call. */
static void call(const test_tree_case *c) {
  uint32_t words[LAST + 1];
  const uint32_t factor = c->work.factor;
  const rate *r = c->user;
  rondo_buffer *out = test_call_words(c->t, c->function, c->words, LAST + 1);
  assert_ok(rondo_buffer_copy(out, c->t->stream, 0, words, sizeof words));
  assert_ok(rondo_stream_synchronize(c->t->stream));
  if (r->step == 0) assert_int_equal(words[1], factor);
  assert_int_equal(words[LAST], r->filled);
  rondo_buffer_release(out);
}

static void assert_changed(const test_tree_case *c, const char *text) {
  assert_skip(c->tree, CHANGED);
  test_assert_said(c->tree, text);
}

static const rondo_function_options usual = {RONDO_FUNCTION_OPTIONS_INIT};

/* The value changes between the warm-up and the recording, once: the next call is recorded with the new value. */
TREE_TEST(test_tr8_value_that_changed_since_the_warm_up) {
  rate r;
  test_tree_case c;
  begin(&c, &r, t, NULL, usual);
  call(&c);
  c.work.factor = 5;
  call(&c);
  assert_changed(&c, "argument 0 of kernel 'test_affine'");
  assert_changed(&c, "was 3 in the run before and is 5 now");
  assert_changed(&c, "RONDO_INPUT_SCALAR");
  call(&c);
  assert_outcome(c.tree, RONDO_CALL_RECORDED);
  call(&c);
  assert_outcome(c.tree, RONDO_CALL_REPLAYED);
}

TREE_TEST(test_tr8_value_of_a_fill) {
  rate r;
  test_tree_case c;
  begin(&c, &r, t, NULL, usual);
  call(&c);
  r.filled = 9;
  call(&c);
  assert_changed(&c, "the value of a fill was 7 in the run before and is 9 now");
}

/* The last word is written and waited for by memory operations. Their values are numbers, large ones too. */
static rondo_status write_body(rondo_call *call, void *user) {
  test_tree_case *c = user;
  uint32_t *out = test_body_copy(call, 0, 0);
  const rondo_memory_operation operations[] = {
      {.kind = RONDO_OPERATION_WRITE_32, .address = out + LAST, .value = c->work.factor},
      {.kind = RONDO_OPERATION_WAIT_32, .condition = RONDO_WAIT_EQUAL, .address = out + LAST, .value = c->work.factor}};
  c->work.runs++;
  return rondo_memory_operations_async(rondo_call_stream(call), operations, 2);
}

static void call_written(const test_tree_case *c) {
  uint32_t words[LAST + 1];
  rondo_buffer *out = test_call_words(c->t, c->function, c->words, LAST + 1);
  assert_ok(rondo_buffer_copy(out, c->t->stream, 0, words, sizeof words));
  assert_ok(rondo_stream_synchronize(c->t->stream));
  assert_int_equal(words[LAST], c->work.factor);
  rondo_buffer_release(out);
}

/* A kernel, a copy and a fill of as many words as the body finds in the caller's memory. */
typedef struct sized {
  test_fixture *t;
  uint32_t *from, *to;
  uint32_t blocks, copied, filled;
} sized;

static rondo_status sized_body(rondo_call *call, void *user) {
  const sized *s = user;
  rondo_stream *stream = rondo_call_stream(call);
  test_affine(s->t, stream, s->to, s->blocks, 1, 1);
  assert_ok(rondo_copy_async(stream, s->from, s->to, s->copied * sizeof(uint32_t)));
  return rondo_fill_async(stream, &(rondo_fill){.dst = s->to, .element_bytes = 4, .width = s->filled});
}

static void expect_size_is_found(rondo_tree *tree, sized *s, rondo_function *function, uint32_t *size,
                                 const char *text) {
  assert_ok(rondo_function_call(function, s->t->stream, NULL, 0, NULL, 0));
  ++*size;
  assert_ok(rondo_function_call(function, s->t->stream, NULL, 0, NULL, 0));
  assert_skip(tree, CHANGED);
  test_assert_said(tree, text);
  assert_ok(rondo_function_call(function, s->t->stream, NULL, 0, NULL, 0));
  assert_outcome(tree, RONDO_CALL_RECORDED);
}

/* A size that the body reads from the caller's memory would be frozen: a recording is of the size that stayed. */
TREE_TEST(test_tr8_sizes_that_changed_since_the_warm_up) {
  sized s = {.t = t, .from = test_words(t, 16), .to = test_words(t, 16), .blocks = 2, .copied = 3, .filled = 4};
  uint32_t *const sizes[] = {&s.blocks, &s.copied, &s.filled};
  const char *const texts[] = {"grid.x of kernel 'test_affine' was 2 in the run before and is 3 now",
                               "width of a copy was 12 in the run before and is 16 now",
                               "width of a fill was 4 in the run before and is 5 now"};
  for (size_t i = 0; i < 3; i++) {
    const rondo_function_options options = {RONDO_FUNCTION_OPTIONS_INIT, .name = "sized", .body = sized_body,
                                            .user = &s};
    rondo_function *function;
    rondo_tree *tree = test_tree(t, NULL);
    assert_ok(rondo_function_create(tree, &options, &function));
    expect_size_is_found(tree, &s, function, sizes[i], texts[i]);
  }
}

TREE_TEST(test_tr8_ad8_values_of_memory_operations) {
  test_tree_case c;
  test_tree_case_make(&c, t, NULL, TEST_FUNCTION_OPTIONS(.body = write_body), NULL);
  c.work.factor = 70000;
  call_written(&c);
  c.work.factor = 90000;
  call_written(&c);
  assert_changed(&c, "the value of memory operation 0 was 70000 in the run before and is 90000 now");
  assert_changed(&c, "outside of the body");
  call_written(&c);
  assert_outcome(c.tree, RONDO_CALL_RECORDED);
  call_written(&c);
  assert_outcome(c.tree, RONDO_CALL_REPLAYED);
}

/* A learning rate that decays at each call is never recorded, and always right. */
TREE_TEST(test_tr8_value_that_changes_at_each_call) {
  for (uint32_t warm_ups = 1; warm_ups <= 2; warm_ups++) {
    rate r;
    test_tree_case c;
    begin(&c, &r, t, NULL, (rondo_function_options){RONDO_FUNCTION_OPTIONS_INIT, .warm_ups = warm_ups});
    for (uint32_t i = 0; i < 8; i++) {
      c.work.factor = 100 - i;
      call(&c);
      if (i >= warm_ups + 2) assert_changed(&c, "'test_affine'");
    }
    assert_int_equal(test_tree_info(c.tree).recordings, 0);
  }
}

TREE_TEST(test_tr8_find_inputs_sees_it_too) {
  rate r;
  test_tree_case c;
  begin(&c, &r, t, NULL, (rondo_function_options){RONDO_FUNCTION_OPTIONS_INIT, .find_inputs = true});
  call(&c);
  c.work.factor = 5;
  call(&c);
  assert_changed(&c, "was 3 in the run before and is 5 now");
}

TREE_TEST(test_tr8_strict_trees_refuse_it) {
  rate r;
  test_tree_case c;
  begin(&c, &r, t, TEST_TREE_OPTIONS(.strict = true), usual);
  call(&c);
  c.work.factor = 5;
  rondo_buffer *out;
  assert_error(test_tree_case_try(&c, &out), RONDO_UNSUPPORTED, RONDO_REASON_NOT_RECORDED);
  assert_message("argument 0 of kernel 'test_affine'");
}

/* A counter that only grows with the runs of the body. */
TREE_TEST(test_tr8_value_that_changes_in_the_body) {
  rate r;
  test_tree_case c;
  begin(&c, &r, t, NULL, usual);
  r.step = 1;
  for (uint32_t i = 0; i < 5; i++) call(&c);
  assert_changed(&c, "argument 0 of kernel 'test_affine'");
  assert_int_equal(test_tree_info(c.tree).recordings, 0);
}

/* Who knows that a value changes and does not mind says so. */
TREE_TEST(test_values_may_be_frozen_on_purpose) {
  rate r;
  test_tree_case c;
  begin(&c, &r, t, NULL, (rondo_function_options){RONDO_FUNCTION_OPTIONS_INIT, .freezes_values = true});
  r.step = 1;
  for (uint32_t i = 0; i < 3; i++) call(&c);
  assert_outcome(c.tree, RONDO_CALL_REPLAYED);
}

/* Work that only a first run does is not compared with that of later runs. */
TREE_TEST(test_work_of_the_first_run_alone) {
  rate r;
  test_tree_case c;
  begin(&c, &r, t, NULL, usual);
  r.launches = 2;
  call(&c);
  call(&c);
  assert_outcome(c.tree, RONDO_CALL_RECORDED);
}
