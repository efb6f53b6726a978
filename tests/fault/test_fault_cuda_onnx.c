/* SPDX-License-Identifier: MIT
 * Lets every call of the CUDA driver, and every host allocation, fail while a runner runs a model in a tree on a CUDA
 * device: eagerly, recorded, replayed at another address, and with another shape (ON-9). Either an error is returned or
 * the numbers are right, and nothing is left.
 */
#include <rondo/onnx.h>

#include "fault/fault_cuda_sweep.h"
#include "support/test_onnx.h"

enum { FLOAT = 1, ROWS = 3, CALLS = 4 };

#define NAMES(...) ((const char *[]){__VA_ARGS__, NULL})
#define DIMS(...) (const int64_t[]){__VA_ARGS__}, sizeof((const int64_t[]){__VA_ARGS__}) / sizeof(int64_t)

static test_allocator allocator;

static struct {
  rondo_device *device;
  rondo_stream *stream;
  rondo_onnx_model *model;
  rondo_onnx_runner *runner;
  rondo_tree *tree;
  void *memory[2];
  float results[CALLS][ROWS * 2];
} work;

/* y = relu(x w), with x [batch, 2]. */
static rondo_status parse(void) {
  static const float w[] = {1, 2, 3, 4};
  const rondo_onnx_options options = {RONDO_ONNX_OPTIONS_INIT, .allocator = &allocator.table};
  onnx_bytes graph = {0};
  onnx_add_input(&graph, "x", FLOAT, DIMS(-1, 2));
  onnx_add_initializer(&graph, "w", FLOAT, w, sizeof w, DIMS(2, 2));
  onnx_add_node(&graph, "MatMul", NAMES("x", "w"), NAMES("product"));
  onnx_add_node(&graph, "Relu", NAMES("product"), NAMES("y"));
  onnx_add_output(&graph, "y");
  const onnx_bytes bytes = onnx_model(&graph);
  return rondo_onnx_parse(bytes.bytes, bytes.count, &options, &work.model);
}

static rondo_status call(rondo_function *function, size_t number) {
  static const float x[ROWS * 2] = {1, -2, 3, 4, -5, 6};
  const size_t rows = number < 3 ? ROWS : 1;
  void *const address = work.memory[number % 2];
  const rondo_input input = {.address = address, .bytes = rows * 8, .rank = 2, .shape = {rows, 2}};
  rondo_buffer *output = NULL;
  TRY(rondo_copy_async(work.stream, address, x, rows * 8));
  TRY(rondo_function_call(function, work.stream, &input, 1, &output, 1));
  rondo_status status = rondo_buffer_copy(output, work.stream, 0, work.results[number], rows * 8);
  const rondo_status waited = rondo_stream_synchronize(work.stream);
  rondo_buffer_release(output);
  return status == RONDO_OK ? waited : status;
}

static rondo_status run(const char *device) {
  memset(&work, 0, sizeof work);
  const rondo_device_options options = {RONDO_DEVICE_OPTIONS_INIT, .allocator = &allocator.table};
  const rondo_onnx_runner_options runner = {RONDO_ONNX_RUNNER_OPTIONS_INIT, .allocator = &allocator.table};
  rondo_function *function = NULL;
  TRY(rondo_device_open(device, &options, &work.device));
  TRY(parse());
  TRY(rondo_stream_create(work.device, NULL, &work.stream));
  TRY(rondo_tree_create(work.device, NULL, &work.tree));
  for (size_t i = 0; i < 2; i++) TRY(rondo_malloc(work.device, ROWS * 8, NULL, &work.memory[i]));
  TRY(rondo_onnx_runner_create(work.model, work.stream, &runner, &work.runner));
  const rondo_function_options of = {RONDO_FUNCTION_OPTIONS_INIT, .name = "model", .body = rondo_onnx_run,
                                     .user = work.runner, RONDO_INPUTS(RONDO_INPUT_MOVING)};
  TRY(rondo_function_create(work.tree, &of, &function));
  for (size_t i = 0; i < CALLS; i++) TRY(call(function, i));
  return rondo_onnx_runner_synchronize(work.runner);
}

/* Teardown may return errors, too. The objects are destroyed in any case. */
static void tear_down(void) {
  rondo_status status = rondo_tree_destroy(work.tree);
  status = rondo_onnx_runner_destroy(work.runner);
  for (size_t i = 0; i < 2; i++)
    if (work.memory[i] != NULL) status = rondo_free(work.device, work.memory[i]);
  status = rondo_stream_destroy(work.stream);
  rondo_onnx_destroy(work.model);
  status = rondo_device_close(work.device);
  (void)status;
}

static fault_work tested = {.run = run,
                            .tear_down = tear_down,
                            .results = work.results,
                            .result_bytes = sizeof work.results,
                            .least = 60,
                            .stride = 3,
                            .memory = &allocator};
