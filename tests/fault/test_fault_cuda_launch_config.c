/* SPDX-License-Identifier: MIT
 * AD-3: Lets every call of the CUDA driver and every host allocation fail while a kernel is launched, captured, built,
 * changed and updated with one launch configuration after another; also allocations on a CPU device. Either an error is
 * returned or the results are right. Nothing is left in the driver or in host memory, and nothing is misused.
 */
#include "fault/fault_cuda_sweep.h"

enum { WORDS = 64, HEAD = 4, BYTES = (HEAD + WORDS) * sizeof(uint32_t), RESULTS = 6 };

static test_allocator allocator;

static const rondo_launch_config configs[] = {
    {.block = {8, 8, 1}, .shared_bytes = 256, .cluster = {1, 1, 1}, .priority = -1, .cooperative = true},
    {.block = {4, 4, 4}, .shared_bytes = 64 << 10, .memory_domain = RONDO_MEMORY_DOMAIN_REMOTE, .programmatic = true},
    {.block = {64, 1, 1}, .shared_bytes = 4096, .shared_percent = 50}};

static struct {
  rondo_device *device;
  rondo_stream *stream;
  rondo_kernel *reverse;
  void *in, *out;
  rondo_graph *built, *captured;
  rondo_exec *exec;
  char *text;
  uint32_t read[RESULTS][HEAD + WORDS];
} work;

static rondo_status make(const char *device) {
  const rondo_device_options options = {RONDO_DEVICE_OPTIONS_INIT, .workers = 1, .allocator = &allocator.table};
  const rondo_fill fill = {.value = 5, .element_bytes = 4, .width = WORDS};
  rondo_fill filled = fill;
  TRY(rondo_device_open(device, &options, &work.device));
  TRY(rondo_stream_create(work.device, NULL, &work.stream));
  TRY(rondo_kernel_create(work.device, test_kernel_options(TEST_KERNEL_REVERSE), &work.reverse));
  TRY(rondo_malloc(work.device, BYTES, NULL, &work.in));
  TRY(rondo_malloc(work.device, BYTES, NULL, &work.out));
  filled.dst = work.in;
  return rondo_fill_async(work.stream, &filled);
}

static rondo_status launch(const rondo_launch_config *config) {
  const rondo_launch_options options = {RONDO_LAUNCH_OPTIONS_INIT, .config = config};
  return rondo_launch_with(work.stream, work.reverse, (rondo_grid){1, 1, 1}, RONDO_ARGS(&work.in, &work.out), &options);
}

static rondo_status fetch(size_t result) { return rondo_copy_async(work.stream, work.read[result], work.out, BYTES); }

static rondo_node_params params_of(const rondo_launch_config *config, const void *const *args) {
  return (rondo_node_params){
      .kind = RONDO_NODE_KERNEL,
      .as.kernel = {.kernel = work.reverse, .grid = {1, 1, 1}, .args = args, .arg_count = 2, .config = config}};
}

static rondo_status build_and_change(void) {
  const void *const args[] = {&work.in, &work.out};
  rondo_node_params params = params_of(&configs[0], args);
  rondo_node node;
  TRY(rondo_graph_create(work.device, NULL, &work.built));
  TRY(rondo_graph_add(work.built, NULL, 0, &params, &node));
  TRY(rondo_instantiate(work.built, NULL, &work.exec));
  TRY(rondo_exec_launch(work.exec, work.stream));
  TRY(fetch(1));
  for (size_t i = 1; i < 3; i++) {
    params = params_of(&configs[i], args);
    TRY(rondo_exec_set_params(work.exec, node, &params));
    TRY(rondo_graph_set_params(work.built, node, &params));
    TRY(rondo_exec_launch(work.exec, work.stream));
    TRY(fetch(1 + i));
  }
  return rondo_graph_to_json(work.built, false, &work.text);
}

static rondo_status capture_and_update(void) {
  rondo_update_result result = {.struct_size = sizeof result};
  TRY(rondo_capture_begin(work.stream, RONDO_CAPTURE_THREAD_LOCAL));
  TRY(launch(&configs[1]));
  TRY(rondo_capture_end(work.stream, &work.captured));
  TRY(rondo_exec_update(work.exec, work.captured, &result));
  TRY(rondo_exec_launch(work.exec, work.stream));
  TRY(fetch(4));
  return rondo_exec_launch(work.exec, work.stream);
}

static rondo_status run(const char *device) {
  memset(&work, 0, sizeof work);
  TRY(make(device));
  TRY(launch(&configs[1]));
  TRY(fetch(0));
  TRY(build_and_change());
  TRY(capture_and_update());
  TRY(launch(NULL));
  TRY(fetch(5));
  return rondo_stream_synchronize(work.stream);
}

/* Teardown may return errors, too. The objects are destroyed in any case. */
static void tear_down(void) {
  rondo_status status;
  rondo_text_free(work.text);
  rondo_exec_destroy(work.exec);
  status = work.stream == NULL ? RONDO_OK : rondo_stream_destroy(work.stream);
  status = rondo_graph_destroy(work.captured);
  status = rondo_graph_destroy(work.built);
  if (work.out != NULL) status = rondo_free(work.device, work.out);
  if (work.in != NULL) status = rondo_free(work.device, work.in);
  rondo_kernel_destroy(work.reverse);
  status = rondo_device_close(work.device);
  (void)status;
}

/* Each result has the block of the launch. */
static void assert_whole(void) {
  static const size_t of[] = {1, 0, 1, 2, 1};
  for (size_t i = 0; i < 5; i++) {
    assert_int_equal(work.read[i][0], configs[of[i]].block.x);
    assert_int_equal(work.read[i][3], configs[of[i]].shared_bytes);
    assert_int_equal(work.read[i][HEAD], 5);
  }
  assert_int_equal(work.read[5][0], 1);
}

static fault_work tested = {.run = run,
                            .tear_down = tear_down,
                            .assert_whole = assert_whole,
                            .results = work.read,
                            .result_bytes = sizeof work.read,
                            .least = 30,
                            .other = "cpu",
                            .memory = &allocator};
