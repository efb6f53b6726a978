/* SPDX-License-Identifier: MIT
 * Lets every host allocation fail while calls are prepared, padded to buckets and recorded separately, and while
 * callables are created and called (TR-7, TR-11, TR-12). The error is OUT_OF_MEMORY, inputs that a preparation writes
 * have their values, and nothing is left.
 */
#include "fault/tree_work.h"

static rondo_status call_rows(tree_work *w, rondo_tree *tree) {
  static const uint32_t kind = RONDO_INPUT_MOVING | RONDO_INPUT_ROWS;
  static const size_t bucket = TREE_WORDS;
  rondo_function *rows = NULL;
  const rondo_function_options options = {RONDO_FUNCTION_OPTIONS_INIT,
                                          .name = "rows",
                                          .body = tree_triple_body,
                                          .user = w,
                                          .inputs = &kind,
                                          .input_count = 1,
                                          .buckets = &bucket,
                                          .bucket_count = 1};
  TRY(rondo_function_create(tree, &options, &rows));
  for (size_t i = 0; i < 3; i++) {
    rondo_buffer *out = NULL;
    const rondo_input input = {.address = w->words, .bytes = TREE_BYTES - 16, .rank = 1, .shape = {TREE_WORDS - 4}};
    TRY(rondo_function_call(rows, w->streams[0], &input, 1, &out, 1));
    rondo_buffer_release(out);
  }
  return RONDO_OK;
}

static rondo_status use_tree(tree_work *w, rondo_tree *tree) {
  const rondo_input x = {.address = w->words, .bytes = TREE_BYTES};
  w->tree = tree;
  TRY(tree_make(w, "triple", tree_triple_body, RONDO_INPUT_MOVING, RONDO_BINDING_AUTOMATIC, &w->triple));
  TRY(tree_make(w, "hop", tree_hop_body, RONDO_INPUT_MOVING | RONDO_INPUT_MUTATED, RONDO_BINDING_AUTOMATIC, &w->hop));
  TRY(rondo_function_prepare(w->hop, w->streams[0], &x, 1));
  TRY(rondo_function_prepare(w->triple, w->streams[1], &x, 1));
  TRY(rondo_function_call(w->triple, w->streams[0], &x, 1, &w->held[0], 1));
  TRY(rondo_function_call(w->triple, w->streams[0], &x, 1, &w->held[1], 1));
  return call_rows(w, tree);
}

static rondo_status use_trees(tree_work *w) {
  rondo_tree *tree = NULL;
  const rondo_tree_options options = {RONDO_TREE_OPTIONS_INIT, .outputs = RONDO_OUTPUTS_CLONE};
  TRY(rondo_tree_create(w->device, &options, &tree));
  w->triple = w->hop = NULL;
  const rondo_status status = use_tree(w, tree);
  tree_drop_held(w);
  assert_ok(rondo_tree_destroy(tree));
  w->tree = NULL;
  return status;
}

static rondo_status use_callables(tree_work *w) {
  static const uint32_t kinds[] = {RONDO_INPUT_MOVING | RONDO_INPUT_MUTATED, RONDO_INPUT_MOVING};
  const rondo_input x = {.address = w->words, .bytes = TREE_BYTES};
  const rondo_callable parts[2] = {{.name = "hop",
                                    .user = w,
                                    .forward = tree_hop_body,
                                    .inputs = &kinds[0],
                                    .samples = &x,
                                    .input_count = 1,
                                    .output_count = 1,
                                    .backward = tree_triple_body,
                                    .gradients = &kinds[1],
                                    .gradient_samples = &x,
                                    .gradient_count = 1,
                                    .backward_output_count = 1},
                                   {.name = "triple",
                                    .user = w,
                                    .forward = tree_triple_body,
                                    .inputs = &kinds[1],
                                    .samples = &x,
                                    .input_count = 1,
                                    .output_count = 1}};
  const rondo_callables_options options = {RONDO_CALLABLES_OPTIONS_INIT, .warm_ups = 1, .callables = parts,
                                           .callable_count = 2};
  rondo_callables *callables = NULL;
  TRY(rondo_callables_create(w->device, w->streams[0], &options, &callables));
  rondo_status status = rondo_callables_forward(callables, 1, w->streams[0], &x, 1, NULL, 0);
  assert_int_equal(status, RONDO_INVALID_STATE);
  status = rondo_callables_restart(callables);
  assert_ok(rondo_callables_destroy(callables));
  return status;
}

static bool run(size_t at, size_t *inout_errors) {
  static tree_work w;
  uint32_t words[TREE_WORDS];
  tree_work_open(&w, "cpu");
  tree_fail_allocation(&w, at);
  rondo_status status = use_trees(&w);
  if (status == RONDO_OK) status = use_callables(&w);
  const bool is_unrecorded = status == RONDO_UNSUPPORTED && rondo_last_error()->reason == RONDO_REASON_NOT_RECORDED;
  const bool has_failed = tree_end_failing(&w, at, is_unrecorded ? RONDO_OUT_OF_MEMORY : status, inout_errors);
  assert_ok(rondo_copy_async(w.streams[0], words, w.words, sizeof words));
  assert_ok(rondo_stream_synchronize(w.streams[0]));
  for (uint32_t i = 0; i < TREE_WORDS; i++) assert_int_equal(words[i], i + 1);
  assert_ok(tree_free_late(&w));
  tree_work_close(&w, at);
  return has_failed;
}

UNIT_TEST(test_tr12_an_allocation_fails) { tree_sweep(run, 200, 20); }
