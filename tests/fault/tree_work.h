/* SPDX-License-Identifier: MIT
 * Work on a tree in which anything may fail. Functions are warmed up, recorded and replayed on two streams, with
 * scratch memory, a host step, an input that is written, and outputs that are returned, cloned and held over steps. An
 * input moves and is demoted, the tree is reset, and a function is destroyed. A call that succeeds has the right
 * result, whatever failed inside. After a failure, the same tree must be able to do all of it.
 */
#ifndef RONDO_TESTS_FAULT_TREE_WORK_H
#define RONDO_TESTS_FAULT_TREE_WORK_H

#include <rondo/rondo.h>
#include <string.h>

#include "support/test_effort.h"
#include "support/test_tree.h"

enum { TREE_WORDS = 48, TREE_BYTES = 4 * TREE_WORDS, TREE_ROUNDS = 3 };

typedef struct tree_work {
  test_allocator allocator;
  rondo_device *device;
  rondo_stream *streams[2];
  rondo_kernel *affine;
  void *words; /* that count up from 1 */
  rondo_tree *tree;
  rondo_function *triple, *hop, *gone, *pick;
  rondo_buffer *held[3];
  void *unfreed; /* by a body whose free failed */
  bool is_in_step;
  uint32_t steps;
  uint32_t kept; /* objects */
} tree_work;

static inline rondo_status tree_change(const tree_work *w, rondo_stream *stream, void *words, uint32_t factor,
                                       uint32_t term) {
  return rondo_launch(stream, w->affine, (rondo_grid){TREE_WORDS, 0, 0}, RONDO_ARGS(&factor, &term, &words));
}

/* A free that failed is repeated later, except in a capture, which it ends. */
static inline rondo_status tree_free(tree_work *w, rondo_stream *stream, void *address) {
  const rondo_status status = rondo_free_async(stream, address);
  rondo_capture_info info = {.struct_size = sizeof info};
  if (status != RONDO_OK && rondo_capture_get_info(stream, &info) == RONDO_OK && info.state == RONDO_CAPTURE_NONE)
    w->unfreed = address;
  return status;
}

static inline rondo_status tree_free_late(tree_work *w) {
  void *address = w->unfreed;
  w->unfreed = NULL;
  return address == NULL ? RONDO_OK : rondo_free(w->device, address);
}

/* Bodies return their errors and free their memory. */
static inline rondo_status tree_triple_body(rondo_call *call, void *user) {
  tree_work *w = user;
  rondo_stream *stream = rondo_call_stream(call);
  void *scratch, *out;
  TRY(rondo_malloc_async(stream, TREE_BYTES, NULL, &scratch));
  rondo_status status = rondo_copy_async(stream, scratch, rondo_call_input(call, 0), TREE_BYTES);
  if (status == RONDO_OK) status = tree_change(w, stream, scratch, 3, 1);
  if (status == RONDO_OK) status = rondo_call_output(call, 0, TREE_BYTES, NULL, &out);
  if (status == RONDO_OK) status = rondo_copy_async(stream, out, scratch, TREE_BYTES);
  const rondo_status freed = tree_free(w, stream, scratch);
  return status == RONDO_OK ? freed : status;
}

static inline rondo_status tree_count_step(void *user) {
  ++*(uint32_t *)user;
  return RONDO_OK;
}

static inline void tree_release_kept(void *user) { --*(uint32_t *)user; }

/* A recording retains an object. */
static inline rondo_status tree_keep(tree_work *w, rondo_stream *stream) {
  rondo_capture_info info = {.struct_size = sizeof info};
  rondo_user_object *object;
  TRY(rondo_capture_get_info(stream, &info));
  if (info.graph == NULL) return RONDO_OK;
  TRY(rondo_user_object_create(&w->kept, tree_release_kept, 1, &w->allocator.table, &object));
  w->kept++;
  const rondo_status status = rondo_graph_retain_object(info.graph, object, 1, true);
  if (status != RONDO_OK) assert_ok(rondo_user_object_release(object, 1));
  return status;
}

/* In place, with a host step and a kept object: in * 2; out = in + 5. */
static inline rondo_status tree_hop_body(rondo_call *call, void *user) {
  tree_work *w = user;
  void *out;
  TRY(tree_change(w, rondo_call_stream(call), rondo_call_input(call, 0), 2, 0));
  TRY(tree_keep(w, rondo_call_stream(call)));
  TRY(rondo_call_host_step(call, tree_count_step, &w->steps));
  TRY(rondo_call_output(call, 0, TREE_BYTES, NULL, &out));
  TRY(rondo_copy_async(rondo_call_stream(call), out, rondo_call_input(call, 0), TREE_BYTES));
  return tree_change(w, rondo_call_stream(call), out, 1, 5);
}

static inline void tree_work_open(tree_work *w, const char *device) {
  uint32_t values[TREE_WORDS];
  memset(w, 0, sizeof *w);
  test_allocator_init(&w->allocator);
  const rondo_device_options options = {RONDO_DEVICE_OPTIONS_INIT, .workers = 1, .allocator = &w->allocator.table};
  assert_ok(rondo_device_open(device, &options, &w->device));
  for (int i = 0; i < 2; i++) assert_ok(rondo_stream_create(w->device, NULL, &w->streams[i]));
  assert_ok(rondo_kernel_create(w->device, test_kernel_options(TEST_KERNEL_AFFINE), &w->affine));
  assert_ok(rondo_malloc(w->device, TREE_BYTES, NULL, &w->words));
  for (uint32_t i = 0; i < TREE_WORDS; i++) values[i] = i + 1;
  assert_ok(rondo_copy_async(w->streams[0], w->words, values, sizeof values));
  assert_ok(rondo_stream_synchronize(w->streams[0]));
}

static inline rondo_status tree_make(tree_work *w, const char *name, rondo_function_body body, uint32_t kind,
                                     rondo_binding binding, rondo_function **out) {
  const rondo_function_options options = {
      RONDO_FUNCTION_OPTIONS_INIT, .name = name,     .body = body, .user = w, .inputs = &kind, .input_count = 1,
      .binding = binding,          .demote_after = 1};
  return *out != NULL ? RONDO_OK : rondo_function_create(w->tree, &options, out);
}

/* In addition to the input that moves and is demoted, inputs whose address does not change. */
static inline rondo_status tree_make_pick(tree_work *w) {
  static const uint32_t kinds[] = {RONDO_INPUT_MOVING, RONDO_INPUT_MOVING, RONDO_INPUT_STATIC};
  const rondo_function_options options = {RONDO_FUNCTION_OPTIONS_INIT,
                                          .name = "pick",
                                          .body = tree_triple_body,
                                          .user = w,
                                          .inputs = kinds,
                                          .input_count = 3,
                                          .demote_after = 1};
  return w->pick != NULL ? RONDO_OK : rondo_function_create(w->tree, &options, &w->pick);
}

static inline rondo_status tree_make_all(tree_work *w) {
  const rondo_tree_options options = {RONDO_TREE_OPTIONS_INIT, .name = "fault", .outputs = RONDO_OUTPUTS_CLONE};
  if (w->tree == NULL) TRY(rondo_tree_create(w->device, &options, &w->tree));
  TRY(tree_make(w, "triple", tree_triple_body, RONDO_INPUT_MOVING, RONDO_BINDING_PATCH, &w->triple));
  TRY(tree_make(w, "hop", tree_hop_body, RONDO_INPUT_MOVING | RONDO_INPUT_MUTATED, RONDO_BINDING_AUTOMATIC, &w->hop));
  TRY(tree_make_pick(w));
  return tree_make(w, "gone", tree_triple_body, RONDO_INPUT_MOVING, RONDO_BINDING_COPY, &w->gone);
}

static inline void tree_drop_held(tree_work *w) {
  for (int i = 0; i < 3; i++) {
    rondo_buffer_release(w->held[i]);
    w->held[i] = NULL;
  }
}

/* The words of buffer k of the held ones are a[k] * i + b[k]. */
static inline rondo_status tree_look(const tree_work *w, rondo_stream *stream) {
  static const uint32_t a[3] = {9, 3, 6}, b[3] = {13, 4, 13};
  uint32_t words[3][TREE_WORDS];
  rondo_status status = RONDO_OK;
  for (int k = 0; k < 3 && status == RONDO_OK; k++)
    status = rondo_buffer_copy(w->held[k], stream, 0, words[k], sizeof words[k]);
  const rondo_status waited = rondo_stream_synchronize(stream); /* before the words are freed */
  TRY(status);
  TRY(waited);
  for (int k = 0; k < 3; k++)
    for (uint32_t i = 0; i < TREE_WORDS; i++) assert_int_equal(words[k][i], a[k] * i + b[k]);
  return RONDO_OK;
}

/* x -> triple: 3 i + 4 -> gone, by a clone: 9 i + 13; the first -> hop: 6 i + 8, and 6 i + 13. */
static inline rondo_status tree_round(tree_work *w, rondo_stream *stream) {
  const rondo_input x = {.address = w->words, .bytes = TREE_BYTES};
  rondo_buffer *first = NULL;
  TRY(rondo_tree_step_begin(w->tree));
  w->is_in_step = true;
  TRY(rondo_function_call(w->triple, stream, &x, 1, &first, 1));
  tree_drop_held(w);
  rondo_status status = rondo_buffer_clone(first, stream, &w->held[1]);
  const rondo_input cloned = {.buffer = w->held[1]};
  if (status == RONDO_OK) status = rondo_function_call(w->gone, stream, &cloned, 1, &w->held[0], 1);
  if (status != RONDO_OK) {
    rondo_buffer_release(first);
    return status;
  }
  const rondo_input given = {.buffer = first, .give = true};
  TRY(rondo_function_call(w->hop, stream, &given, 1, &w->held[2], 1));
  TRY(tree_look(w, stream));
  w->is_in_step = false;
  return rondo_tree_step_end(w->tree);
}

/* x -> triple: 3 i + 4 -> triple: 9 i + 13; one of the two -> pick. */
static inline rondo_status tree_pick(tree_work *w, rondo_buffer *made[3], uint32_t which) {
  const rondo_input x = {.address = w->words, .bytes = TREE_BYTES};
  uint32_t words[TREE_WORDS];
  TRY(rondo_function_call(w->triple, w->streams[0], &x, 1, &made[0], 1));
  TRY(rondo_function_call(w->triple, w->streams[0], &(rondo_input){.buffer = made[0]}, 1, &made[1], 1));
  TRY(rondo_function_call(w->pick, w->streams[0], (rondo_input[]){{.buffer = made[which]}, x, x}, 3, &made[2], 1));
  const rondo_status status = rondo_buffer_copy(made[2], w->streams[0], 0, words, sizeof words);
  const rondo_status waited = rondo_stream_synchronize(w->streams[0]); /* before the words are freed */
  TRY(status);
  TRY(waited);
  for (uint32_t i = 0; i < TREE_WORDS; i++) assert_int_equal(words[i], which == 0 ? 9 * i + 13 : 27 * i + 40);
  return RONDO_OK;
}

static inline rondo_status tree_move(tree_work *w, uint32_t which) {
  rondo_buffer *made[3] = {NULL, NULL, NULL};
  TRY(rondo_tree_step_begin(w->tree));
  w->is_in_step = true;
  const rondo_status status = tree_pick(w, made, which);
  for (int i = 0; i < 3; i++) rondo_buffer_release(made[i]);
  TRY(status);
  w->is_in_step = false;
  return rondo_tree_step_end(w->tree);
}

static inline rondo_status tree_do_all(tree_work *w) {
  TRY(tree_make_all(w));
  for (int i = 0; i < TREE_ROUNDS; i++) TRY(tree_round(w, w->streams[i % 2]));
  TRY(tree_look(w, w->streams[(TREE_ROUNDS - 1) % 2]));
  for (uint32_t i = 0; i < 6; i++) TRY(tree_move(w, i < 3 ? 0 : i % 2));
  TRY(rondo_tree_reset(w->tree));
  TRY(tree_round(w, w->streams[0]));
  rondo_function *gone = w->gone;
  w->gone = NULL;
  return rondo_function_destroy(gone);
}

/* The failures have ended. The tree does all of the work, and replays at the end unless the driver refused a recording.
 * */
static inline void tree_assert_usable(tree_work *w) {
  if (w->is_in_step) assert_ok(rondo_tree_step_end(w->tree));
  w->is_in_step = false;
  assert_ok(tree_free_late(w));
  assert_ok(tree_do_all(w));
  for (int i = 0; i < 3; i++) {
    assert_ok(tree_make_all(w));
    assert_ok(tree_round(w, w->streams[0]));
  }
  rondo_call_info info = {.struct_size = sizeof info};
  assert_ok(rondo_tree_get_last_call(w->tree, &info));
  if (info.skip == RONDO_SKIP_OTHER_WORK) return; /* a recording that the driver refused is not tried again */
  rondo_tree_info tree = {.struct_size = sizeof tree};
  assert_int_equal(info.outcome, RONDO_CALL_REPLAYED);
  assert_ok(rondo_tree_get_info(w->tree, &tree));
  assert_true(tree.demoted > 0 || tree.skipped[RONDO_SKIP_OTHER_WORK] > 0);
}

/* Half of what is held is freed before the tree, half after it. Returns the first error. */
static inline rondo_status tree_tear_down(tree_work *w) {
  rondo_buffer_release(w->held[0]);
  w->held[0] = NULL;
  rondo_status status = rondo_tree_destroy(w->tree);
  const rondo_status late = tree_free_late(w);
  tree_drop_held(w);
  const rondo_status freed = rondo_free(w->device, w->words);
  rondo_kernel_destroy(w->affine);
  const rondo_status destroyed[] = {rondo_stream_destroy(w->streams[0]), rondo_stream_destroy(w->streams[1])};
  const rondo_status ends[] = {late, destroyed[0], destroyed[1], freed, rondo_device_close(w->device)};
  for (size_t i = 0; i < sizeof ends / sizeof ends[0] && status == RONDO_OK; i++) status = ends[i];
  assert_int_equal(w->kept, 0);
  return status;
}

/* After the failure number `at`. */
static inline void tree_work_close(tree_work *w, size_t at) {
  if (tree_tear_down(w) != RONDO_OK) fail_msg("taking down, failure %zu: %s", at, rondo_last_error()->message);
  if (!test_allocator_is_clean(&w->allocator)) fail_msg("failure %zu: host memory is left", at);
}

/* Failing allocations ---------------------------------------------------------------------------------------------- */

/* From here on, allocation `at` (1, 2, ...) fails. */
static inline void tree_fail_allocation(tree_work *w, size_t at) {
  atomic_store(&w->allocator.calls, 0);
  atomic_store(&w->allocator.fail_at, at);
}

/* From here on, nothing fails. The status of the work must be OK or OUT_OF_MEMORY; errors are counted. Returns whether
 * the work made allocation `at`. */
static inline bool tree_end_failing(tree_work *w, size_t at, rondo_status status, size_t *inout_errors) {
  const bool has_failed = atomic_load(&w->allocator.calls) >= at;
  atomic_store(&w->allocator.fail_at, 0);
  if (status != RONDO_OK && status != RONDO_OUT_OF_MEMORY)
    fail_msg("allocation %zu: %s: %s", at, rondo_status_name(status), rondo_last_error()->message);
  *inout_errors += status != RONDO_OK;
  return has_failed;
}

/* Runs the work again and again with the next allocation failing, until it makes fewer allocations than that. Of more
 * than `least_count` failures, more than `least_errors` must return an error. */
static inline void tree_sweep(bool (*run)(size_t at, size_t *inout_errors), size_t least_count, size_t least_errors) {
  size_t errors = 0, count = 0;
  for (size_t at = 1; run(at, &errors); at += test_failure_step()) count++;
  assert_true(count > least_count / test_failure_step());
  assert_true(errors > least_errors / test_failure_step());
}

#endif
