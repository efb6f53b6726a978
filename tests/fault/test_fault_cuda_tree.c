/* SPDX-License-Identifier: MIT
 * Lets every call of the CUDA driver fail, with its own error, with out of memory, or with the loss of the device,
 * while functions of a tree are created, warmed up, recorded, replayed, cloned, reset and destroyed (TR-15). Nothing is
 * left in the driver or in host memory and nothing is misused. If the device is not lost, the same tree can then do all
 * of the work. Memory that a stream fails to free is kept while its work may still run, and freed later.
 */
#include "fault/fault_cuda.h"
#include "fault/tree_work.h"
#include "support/test_effort.h"

static size_t heard; /* failures that were returned as a status */

/* Without a failure, the work reads its inputs in every mode, and replays. */
static void assert_whole(const tree_work *w) {
  rondo_tree_info info = test_tree_info(w->tree);
  assert_true(info.patched_inputs > 0 && info.copied_inputs > 0);
  assert_true(info.recorded > 0 && info.replayed > 0 && info.clones > 0);
}

static void tear_down(tree_work *w, bool is_lost, size_t at) {
  if (!is_lost)
    tree_work_close(w, at);
  else if (tree_tear_down(w) != RONDO_OK && rondo_last_error()->status != RONDO_DEVICE_LOST)
    fail_msg("taking down, failure %zu: %s", at, rondo_last_error()->message);
}

/* No more is left than the driver refused to take back; when every call is refused, that may be everything. */
static void assert_nothing_left(const tree_work *w, const char *call, bool is_lost, bool all, size_t at) {
  const bool is_kept = call != NULL && !is_lost && (all || fault_cuda_gives_back(call));
  fault_cuda_assert_clean(&w->allocator, is_kept ? SIZE_MAX : 0, call == NULL ? "no call" : call, at);
  if (is_kept) fake->reset();
}

/* Returns false when the work makes fewer calls of that name, or of any name (NULL). */
static bool run(const char *name, size_t at, unsigned code, bool onward) {
  static tree_work w;
  const bool is_lost = code == LAUNCH_FAILED;
  fake->forget();
  tree_work_open(&w, "cuda:0");
  fake->fail_call(name, at, code, onward);
  const rondo_status status = tree_do_all(&w);
  const char *call = fake->failed();
  fake->fail_call(NULL, 0, 0, false);
  heard += status != RONDO_OK;
  if (status != RONDO_OK && call == NULL) fail_msg("nothing failed, but: %s", rondo_last_error()->message);
  if (call == NULL)
    assert_whole(&w);
  else if (!is_lost)
    tree_assert_usable(&w);
  tear_down(&w, is_lost, at);
  assert_nothing_left(&w, call, is_lost, onward && name == NULL, at);
  return call != NULL;
}

static void sweep(unsigned code, bool onward, size_t step, size_t least_heard) {
  size_t at = 1, count = 0;
  heard = 0;
  fake->reset();
  for (; run(NULL, at, code, onward); at += step) count++;
  assert_true(count > 500 / step);
  assert_true(heard > least_heard / step);
}

FAULT_CUDA_TEST(test_tr15_each_call_is_refused) { sweep(REFUSED, false, test_failure_step(), 50); }

/* Until the work has ended: memory that could not be unmapped is not mapped again before that. */
FAULT_CUDA_TEST(test_tr15_each_call_and_all_after_it_are_refused) {
  sweep(REFUSED, true, 2 * test_failure_step(), 100);
}

/* Every second call fails as if it was refused, unless it allocates memory. */
FAULT_CUDA_TEST(test_tr15_each_call_runs_out_of_memory) { sweep(NO_MEMORY, false, 2 * test_failure_step(), 40); }

FAULT_CUDA_TEST(test_tr15_each_call_loses_the_device) { sweep(LAUNCH_FAILED, false, test_failure_step(), 500); }

/* Without events, nothing is freed in stream order. */
FAULT_CUDA_TEST(test_tr15_each_event_and_all_after_it_are_refused) {
  size_t at = 1;
  fake->reset();
  while (run("cuEventRecord", at, REFUSED, true)) at++;
  assert_true(at > 5);
}

/* What a stream does not take back --------------------------------------------------------------------------------- */

static bool is_free_refused;

/* The caller must free the output. */
static rondo_status failing_body(rondo_call *call, void *user) {
  void *out;
  (void)user;
  TRY(rondo_call_output(call, 0, TREE_BYTES, NULL, &out));
  if (is_free_refused) fake->fail_call("cuEventRecord", 1, REFUSED, false);
  return RONDO_INVALID_STATE;
}

static uint32_t live_allocations(const tree_work *w) {
  rondo_memory_statistics statistics = {.struct_size = sizeof statistics};
  assert_ok(rondo_memory_get_statistics(w->device, &statistics));
  return statistics.live_allocations;
}

/* Freed in the next call, or when the tree is destroyed. */
static void run_refused_free(bool has_next_call) {
  static tree_work w;
  const rondo_function_options options = {RONDO_FUNCTION_OPTIONS_INIT, .name = "failing", .body = failing_body};
  rondo_function *failing;
  rondo_buffer *out = NULL;
  fake->reset();
  fake->forget();
  tree_work_open(&w, "cuda:0");
  assert_ok(tree_make_all(&w));
  assert_ok(rondo_function_create(w.tree, &options, &failing));
  const uint32_t before = live_allocations(&w);
  is_free_refused = true;
  assert_int_equal(rondo_function_call(failing, w.streams[0], NULL, 0, &out, 1), RONDO_INVALID_STATE);
  assert_non_null(fake->failed());
  assert_int_equal(live_allocations(&w), before + 1);
  is_free_refused = false;
  if (has_next_call) {
    assert_int_equal(rondo_function_call(failing, w.streams[1], NULL, 0, &out, 1), RONDO_INVALID_STATE);
    assert_int_equal(live_allocations(&w), before);
  }
  tree_work_close(&w, 0);
  assert_nothing_left(&w, NULL, false, false, 0);
}

FAULT_CUDA_TEST(test_tr15_what_is_not_taken_back_is_freed_later) {
  run_refused_free(true);
  run_refused_free(false);
}
