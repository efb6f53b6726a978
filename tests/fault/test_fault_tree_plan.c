/* SPDX-License-Identifier: MIT
 * Lets every host allocation fail while a path is warmed up, planned from that and recorded, and while it is planned
 * again and recorded with its plan (TR-3, TR-15). Each call returns OUT_OF_MEMORY or works without the allocation,
 * results are right, and the tree remains usable.
 */
#include "fault/tree_work.h"

enum { LINKS = 8, ROUNDS = 3 };

/* The size of each output in units of TREE_BYTES, so that successive outputs do not fit where the previous ones were.
 * */
static const size_t sizes[LINKS] = {1, 5, 2, 7, 3, 4, 8, 2};

typedef struct link_work {
  const tree_work *work;
  size_t bytes;
  rondo_function *function;
} link_work;

static link_work links[LINKS];
static rondo_buffer *held[LINKS];

static rondo_status link_body(rondo_call *call, void *user) {
  const link_work *link = user;
  void *out;
  TRY(rondo_call_output(call, 0, link->bytes, NULL, &out));
  TRY(rondo_copy_async(rondo_call_stream(call), out, rondo_call_input(call, 0), TREE_BYTES));
  return tree_change(link->work, rondo_call_stream(call), out, 3, 1);
}

static void release_all(void) {
  for (size_t i = 0; i < LINKS; i++) {
    rondo_buffer_release(held[i]);
    held[i] = NULL;
  }
}

/* Outputs die in the order in which they are created; the last one has x * 3^LINKS + (3^LINKS - 1) / 2. */
static rondo_status call_links(tree_work *w) {
  uint32_t words[TREE_WORDS], power = 1;
  for (size_t i = 0; i < LINKS; i++) {
    const rondo_input x = {
        .buffer = i == 0 ? NULL : held[i - 1], .address = i == 0 ? w->words : NULL, .bytes = i == 0 ? TREE_BYTES : 0};
    if (i >= 2) rondo_buffer_release(held[i - 2]);
    if (i >= 2) held[i - 2] = NULL;
    TRY(rondo_function_call(links[i].function, w->streams[0], &x, 1, &held[i], 1));
    power *= 3;
  }
  TRY(rondo_buffer_copy(held[LINKS - 1], w->streams[0], 0, words, sizeof words));
  TRY(rondo_stream_synchronize(w->streams[0]));
  for (uint32_t i = 0; i < TREE_WORDS; i++) assert_int_equal(words[i], (i + 1) * power + (power - 1) / 2);
  return RONDO_OK;
}

static rondo_status step(tree_work *w) {
  assert_ok(rondo_tree_step_begin(w->tree));
  const rondo_status status = call_links(w);
  release_all();
  assert_ok(rondo_tree_step_end(w->tree));
  return status;
}

static void make_links(tree_work *w) {
  const rondo_tree_options options = {RONDO_TREE_OPTIONS_INIT, .name = "fault", .no_plan_again = true, .plan_ms = 1};
  assert_ok(rondo_tree_create(w->device, &options, &w->tree));
  for (size_t i = 0; i < LINKS; i++) {
    static const uint32_t kind = RONDO_INPUT_MOVING;
    links[i] = (link_work){.work = w, .bytes = sizes[i] * TREE_BYTES};
    const rondo_function_options function = {RONDO_FUNCTION_OPTIONS_INIT, .name = "link",  .body = link_body,
                                             .user = &links[i],           .inputs = &kind, .input_count = 1};
    assert_ok(rondo_function_create(w->tree, &function, &links[i].function));
  }
}

static rondo_tree_info info_of(tree_work *w) { return test_tree_info(w->tree); }

/* Replays at the end, and frees everything. */
static void finish(tree_work *w, size_t at) {
  for (int i = 0; i < ROUNDS; i++) assert_ok(step(w));
  rondo_call_info last = {.struct_size = sizeof last};
  assert_ok(rondo_tree_get_last_call(w->tree, &last));
  assert_int_equal(last.outcome, RONDO_CALL_REPLAYED);
  tree_work_close(w, at);
}

/* Warmed up and recorded. What a failure kept from being noted is recorded without a plan. */
static bool run_first(size_t at, size_t *inout_errors) {
  static tree_work w;
  tree_work_open(&w, "cpu");
  make_links(&w);
  tree_fail_allocation(&w, at);
  rondo_status status = step(&w);
  if (status == RONDO_OK) status = step(&w);
  const bool has_failed = tree_end_failing(&w, at, status, inout_errors);
  for (int i = 0; i < ROUNDS; i++) assert_ok(step(&w));
  if (!has_failed) assert_int_equal(info_of(&w).warmed_up_paths, 1);
  finish(&w, at);
  return has_failed;
}

/* Recorded one after another, planned again, and recorded with the plan. */
static bool run_again(size_t at, size_t *inout_errors) {
  static tree_work w;
  tree_work_open(&w, "cpu");
  make_links(&w);
  assert_ok(step(&w));
  assert_ok(rondo_tree_reset(w.tree));
  for (int i = 0; i < ROUNDS; i++) assert_ok(step(&w));
  tree_fail_allocation(&w, at);
  rondo_status status = rondo_tree_plan_again(w.tree);
  if (status == RONDO_OK) status = step(&w);
  const bool has_failed = tree_end_failing(&w, at, status, inout_errors);
  assert_ok(rondo_tree_plan_again(w.tree));
  assert_ok(step(&w));
  assert_true(info_of(&w).planned_paths > 0);
  finish(&w, at);
  return has_failed;
}

UNIT_TEST(test_tr3_an_allocation_fails_while_a_path_is_first_recorded) { tree_sweep(run_first, 100, 10); }

UNIT_TEST(test_tr3_an_allocation_fails_while_a_path_is_planned_again) { tree_sweep(run_again, 100, 10); }
