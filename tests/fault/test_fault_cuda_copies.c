/* SPDX-License-Identifier: MIT
 * Lets every call of the CUDA driver, and every host allocation, fail while a function is created, recorded and
 * replayed whose graph copies the inputs with kernels, one of them also back (TR-6, TR-15). A call that succeeds has
 * the right result. Nothing is left and nothing is misused. If the device is not lost, the same tree can then do all of
 * the work.
 */
#include "fault/fault_cuda.h"
#include "support/test_effort.h"
#include "support/test_tree.h"

enum { WORDS = 40, BYTES = WORDS * 4, CALLS = 5 };

typedef struct work {
  test_allocator allocator;
  rondo_device *device;
  rondo_stream *stream;
  rondo_kernel *affine;
  uint32_t *places[2][2]; /* of the two inputs */
  rondo_tree *tree;
  rondo_function *function;
} work;

/* Input 1 = input 1 * 2 + 3, in place; output 0 = input 0 * 5 + 1. */
static rondo_status body(rondo_call *call, void *user) {
  const work *w = user;
  rondo_stream *stream = rondo_call_stream(call);
  const uint32_t numbers[] = {2, 3, 5, 1};
  void *written = rondo_call_input(call, 1), *out;
  const rondo_grid grid = {WORDS, 1, 1};
  TRY(rondo_launch(stream, w->affine, grid, RONDO_ARGS(&numbers[0], &numbers[1], &written)));
  TRY(rondo_call_output(call, 0, BYTES, NULL, &out));
  TRY(rondo_copy_async(stream, out, rondo_call_input(call, 0), BYTES));
  return rondo_launch(stream, w->affine, grid, RONDO_ARGS(&numbers[2], &numbers[3], &out));
}

static rondo_status make(work *w) {
  static const uint32_t kinds[] = {RONDO_INPUT_MOVING, RONDO_INPUT_MOVING | RONDO_INPUT_MUTATED};
  const rondo_device_options device = {RONDO_DEVICE_OPTIONS_INIT, .allocator = &w->allocator.table};
  const rondo_function_options options = {
      RONDO_FUNCTION_OPTIONS_INIT,  .name = "copied", .body = body, .user = w, .inputs = kinds, .input_count = 2,
      .binding = RONDO_BINDING_COPY};
  if (w->device == NULL) TRY(rondo_device_open("cuda:0", &device, &w->device));
  if (w->stream == NULL) TRY(rondo_stream_create(w->device, NULL, &w->stream));
  if (w->affine == NULL) TRY(rondo_kernel_create(w->device, test_kernel_options(TEST_KERNEL_AFFINE), &w->affine));
  for (int i = 0; i < 4; i++) {
    void **place = (void **)&w->places[i / 2][i % 2];
    if (*place == NULL) TRY(rondo_malloc(w->device, BYTES, NULL, place));
  }
  if (w->tree == NULL) TRY(rondo_tree_create(w->device, NULL, &w->tree));
  return w->function != NULL ? RONDO_OK : rondo_function_create(w->tree, &options, &w->function);
}

static rondo_status look(const work *w, rondo_buffer *out, const uint32_t *written, uint32_t first) {
  uint32_t words[2][WORDS];
  rondo_status status = rondo_buffer_copy(out, w->stream, 0, words[0], BYTES);
  if (status == RONDO_OK) status = rondo_copy_async(w->stream, words[1], written, BYTES);
  const rondo_status waited = rondo_stream_synchronize(w->stream); /* before the words are freed */
  TRY(status);
  TRY(waited);
  for (uint32_t i = 0; i < WORDS; i++) {
    assert_int_equal(words[0][i], (first + i) * 5 + 1);
    assert_int_equal(words[1][i], (first + i) * 2 + 3);
  }
  return RONDO_OK;
}

static rondo_status call(const work *w, uint32_t first) {
  uint32_t words[WORDS], *const in = w->places[0][first % 2], *const written = w->places[1][first / 2 % 2];
  const rondo_input inputs[] = {{.address = in, .bytes = BYTES}, {.address = written, .bytes = BYTES}};
  rondo_buffer *out = NULL;
  for (uint32_t i = 0; i < WORDS; i++) words[i] = first + i;
  rondo_status status = rondo_copy_async(w->stream, in, words, BYTES);
  if (status == RONDO_OK) status = rondo_copy_async(w->stream, written, words, BYTES);
  const rondo_status waited = rondo_stream_synchronize(w->stream);
  TRY(status);
  TRY(waited);
  TRY(rondo_function_call(w->function, w->stream, inputs, 2, &out, 1));
  status = look(w, out, written, first);
  rondo_buffer_release(out);
  return status;
}

static rondo_status do_all(work *w) {
  TRY(make(w));
  for (uint32_t i = 0; i < CALLS; i++) TRY(call(w, i));
  return RONDO_OK;
}

static void assert_copied_by_kernels(const work *w) {
  rondo_tree_info info = test_tree_info(w->tree);
  assert_true(info.replayed >= 2 && info.copied_inputs >= 4 && info.patched_inputs == 0);
  assert_true(fake->calls("cuGraphExecKernelNodeSetParams") >= 2);
}

/* On a lost device, every call reports that. */
static void tear_down(work *w, bool is_lost) {
  rondo_status statuses[8] = {RONDO_OK};
  statuses[0] = rondo_tree_destroy(w->tree);
  for (int i = 0; i < 4; i++)
    if (w->places[i / 2][i % 2] != NULL) statuses[1 + i] = rondo_free(w->device, w->places[i / 2][i % 2]);
  rondo_kernel_destroy(w->affine);
  if (w->stream != NULL) statuses[5] = rondo_stream_destroy(w->stream);
  if (w->device != NULL) statuses[6] = rondo_device_close(w->device);
  for (int i = 0; i < 8; i++)
    if (statuses[i] != RONDO_OK && !is_lost) fail_msg("taking down, step %d: %s", i, rondo_last_error()->message);
}

/* Fails the `at`-th call of the driver, or with `code` 0 the `at`-th allocation. Returns false when there are fewer. */
static bool run(size_t at, unsigned code) {
  static work w;
  const bool is_lost = code == LAUNCH_FAILED;
  memset(&w, 0, sizeof w);
  test_allocator_init(&w.allocator);
  fake->forget();
  if (code != 0)
    fake->fail_call(NULL, at, code, false);
  else
    atomic_store(&w.allocator.fail_at, at);
  const rondo_status status = do_all(&w);
  const bool failed = code != 0 ? fake->failed() != NULL : atomic_load(&w.allocator.calls) >= at;
  const char *what = fake->failed() != NULL ? fake->failed() : "allocation";
  const bool is_kept = failed && code != 0 && !is_lost && fault_cuda_gives_back(what);
  fake->fail_call(NULL, 0, 0, false);
  atomic_store(&w.allocator.fail_at, 0);
  if (status != RONDO_OK && !failed) fail_msg("nothing failed, but: %s", rondo_last_error()->message);
  if (!is_lost || !failed) assert_ok(do_all(&w));
  if (!failed) assert_copied_by_kernels(&w);
  tear_down(&w, is_lost);
  fault_cuda_assert_clean(&w.allocator, is_kept ? SIZE_MAX : 0, what, at);
  if (is_kept) fake->reset();
  return failed;
}

static void sweep(unsigned code) {
  size_t at = 1, count = 0;
  fake->reset();
  for (; run(at, code); at += code != 0 ? test_failure_step() : 1) count++;
  assert_true(count > 100 / test_failure_step());
}

FAULT_CUDA_TEST(test_tr15_each_call_is_refused) { sweep(REFUSED); }

FAULT_CUDA_TEST(test_tr15_each_call_runs_out_of_memory) { sweep(NO_MEMORY); }

FAULT_CUDA_TEST(test_tr15_each_call_loses_the_device) { sweep(LAUNCH_FAILED); }

FAULT_CUDA_TEST(test_tr15_each_allocation_fails) { sweep(0); }
