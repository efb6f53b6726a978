/* SPDX-License-Identifier: MIT
 * AD-5: Lets every call of the CUDA driver and every host allocation fail while regions are created, run eagerly,
 * captured, replayed, evicted, captured each time, divided by host steps, explained, nested, left and destroyed; also
 * allocations on a CPU device. Either an error is returned or the results are right. Nothing is left in the driver or
 * in host memory, and nothing is misused.
 */
#include "fault/fault_cuda_sweep.h"
#include "support/test_tree.h"

enum { WORDS = 8, BYTES = WORDS * sizeof(uint32_t), CALLS = 10, GROWN = 8, STEPPED = 6 };

static test_allocator allocator;

static struct {
  rondo_device *device;
  rondo_stream *stream;
  rondo_kernel *affine;
  void *words, *total;
  rondo_tree *tree;
  rondo_region *keyed, *always, *stepped;
  rondo_buffer *out;
  uint32_t read[CALLS + 1][WORDS];
} work;

static rondo_status change(void *words, size_t count, uint32_t factor, uint32_t term) {
  return rondo_launch(work.stream, work.affine, (rondo_grid){(uint32_t)count, 0, 0},
                      RONDO_ARGS(&factor, &term, &words));
}

static rondo_status make(const char *device) {
  static const uint32_t moving[] = {RONDO_INPUT_MOVING};
  const rondo_device_options options = {RONDO_DEVICE_OPTIONS_INIT, .workers = 1, .allocator = &allocator.table};
  const rondo_region_options keyed = {RONDO_REGION_OPTIONS_INIT, .name = "keyed", .inputs = moving,
                                      .input_count = 1,          .key_bytes = 4,  .max_recordings = 2};
  const rondo_region_options always = {RONDO_REGION_OPTIONS_INIT, .name = "always", .mode = RONDO_REGION_CAPTURE_ALWAYS,
                                       .max_recordings = 2};
  const rondo_region_options stepped = {RONDO_REGION_OPTIONS_INIT, .name = "stepped", .key_bytes = 4,
                                        .max_exec_bytes = 1};
  TRY(rondo_device_open(device, &options, &work.device));
  TRY(rondo_stream_create(work.device, NULL, &work.stream));
  TRY(rondo_kernel_create(work.device, test_kernel_options(TEST_KERNEL_AFFINE), &work.affine));
  TRY(rondo_malloc(work.device, 2 * BYTES, NULL, &work.words));
  TRY(rondo_malloc(work.device, BYTES, NULL, &work.total));
  const rondo_fill ones = {.dst = work.words, .value = 1, .element_bytes = 4, .width = 2 * WORDS};
  const rondo_fill zeros = {.dst = work.total, .value = 0, .element_bytes = 4, .width = WORDS};
  TRY(rondo_fill_async(work.stream, &ones));
  TRY(rondo_fill_async(work.stream, &zeros));
  TRY(rondo_tree_create(work.device, NULL, &work.tree));
  TRY(rondo_region_create(work.tree, &keyed, &work.keyed));
  TRY(rondo_region_create(work.tree, &always, &work.always));
  return rondo_region_create(work.tree, &stepped, &work.stepped);
}

/* Output 0 = input 0 * factor + 1. */
static rondo_status multiply(rondo_call *call, uint32_t factor) {
  void *out;
  TRY(rondo_call_output(call, 0, BYTES, NULL, &out));
  TRY(rondo_copy_async(work.stream, out, rondo_call_input(call, 0), BYTES));
  return change(out, WORDS, factor, 1);
}

static rondo_status call_keyed(size_t i, uint32_t factor) {
  const rondo_input input = {.address = (char *)work.words + i % 2 * BYTES, .bytes = BYTES};
  const rondo_region_arguments arguments = {.key = &factor,
                                            .key_bytes = sizeof factor,
                                            .inputs = &input,
                                            .input_count = 1,
                                            .outputs = &work.out,
                                            .output_count = 1};
  rondo_call *call;
  TRY(rondo_region_begin(work.keyed, work.stream, &arguments, &call));
  while (call != NULL) TRY(rondo_region_end(work.keyed, work.stream, multiply(call, factor), &call));
  const rondo_status status = rondo_buffer_copy(work.out, work.stream, 0, work.read[i], BYTES);
  rondo_buffer_release(work.out);
  work.out = NULL;
  return status;
}

static rondo_status take_step(void *user) {
  (void)user;
  return RONDO_OK;
}

/* Adds 1 before a host step and 1 after it. */
static rondo_status add_in_steps(rondo_call *call) {
  TRY(change(work.total, WORDS, 1, 1));
  TRY(rondo_call_host_step(call, take_step, NULL));
  return change(work.total, WORDS, 1, 1);
}

static rondo_status call_stepped(uint32_t key) {
  const rondo_region_arguments arguments = {.key = &key, .key_bytes = sizeof key};
  rondo_call *call;
  TRY(rondo_region_begin(work.stepped, work.stream, &arguments, &call));
  while (call != NULL) TRY(rondo_region_end(work.stepped, work.stream, add_in_steps(call), &call));
  return RONDO_OK;
}

static rondo_status explain(void) {
  char *text;
  TRY(rondo_tree_explain(work.tree, RONDO_EXPLAIN_TEXT, &text));
  rondo_text_free(text);
  return RONDO_OK;
}

/* A region that is begun inside another one is refused. */
static void nest(void) {
  rondo_call *call;
  assert_int_not_equal(rondo_region_begin(work.stepped, work.stream, NULL, &call), RONDO_OK);
}

static rondo_status grow(size_t length, bool leaves) {
  rondo_call *call;
  TRY(rondo_region_begin(work.always, work.stream, NULL, &call));
  while (call != NULL) {
    rondo_status done = RONDO_OK;
    void *const words = leaves ? work.words : work.total; /* what is left may have run, or not */
    for (size_t i = 0; i < length && done == RONDO_OK; i++) done = change(words, WORDS, 1, 1);
    if (leaves) nest();
    if (leaves) return RONDO_OK;
    TRY(rondo_region_end(work.always, work.stream, done, &call));
  }
  return RONDO_OK;
}

static rondo_status run_all(void) {
  for (size_t i = 0; i < CALLS; i++) TRY(call_keyed(i, 2 + (uint32_t)i / 3));
  for (size_t i = 0; i < GROWN; i++) TRY(grow(1 + i % 3, false));
  for (uint32_t i = 0; i < STEPPED; i++) TRY(call_stepped(i / 3));
  TRY(explain());
  TRY(grow(1, true));
  rondo_region_abandon(work.always);
  return rondo_copy_async(work.stream, work.read[CALLS], work.total, BYTES);
}

static rondo_status run(const char *device) {
  memset(&work, 0, sizeof work);
  TRY(make(device));
  TRY(run_all());
  return rondo_stream_synchronize(work.stream);
}

/* Teardown may return errors, too. The objects are destroyed in any case. */
static void tear_down(void) {
  rondo_buffer_release(work.out);
  rondo_status status = rondo_region_destroy(work.keyed);
  status = rondo_tree_destroy(work.tree);
  status = rondo_free(work.device, work.total);
  status = rondo_free(work.device, work.words);
  rondo_kernel_destroy(work.affine);
  status = rondo_stream_destroy(work.stream);
  status = rondo_device_close(work.device);
  (void)status;
}

static void assert_whole(void) {
  rondo_tree_info info = test_tree_info(work.tree);
  assert_true(info.recorded > 5 && info.replayed > 0 && info.evicted > 0 && info.rolled_back == 1);
  for (size_t i = 0; i < CALLS; i++) assert_int_equal(work.read[i][WORDS - 1], 3 + i / 3);
  assert_int_equal(work.read[CALLS][0], 1 + 2 + 3 + 1 + 2 + 3 + 1 + 2 + 2 * STEPPED);
}

static fault_work tested = {.run = run,
                            .tear_down = tear_down,
                            .assert_whole = assert_whole,
                            .results = work.read,
                            .result_bytes = sizeof work.read,
                            .least = 100,
                            .other = "cpu",
                            .memory = &allocator};
