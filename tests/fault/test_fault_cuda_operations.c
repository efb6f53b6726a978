/* SPDX-License-Identifier: MIT
 * AD-8: Lets every call of the CUDA driver and every host allocation fail while memory operations are enqueued,
 * captured, added, changed, updated and dumped; also allocations on a CPU device. Either an error is returned or the
 * results are right. Nothing is left in the driver or in host memory, and nothing is misused.
 */
#include "fault/fault_cuda_sweep.h"

enum { WORDS = 4, BYTES = WORDS * sizeof(uint32_t) };

static test_allocator allocator;

static struct {
  rondo_device *device;
  rondo_stream *stream;
  void *words;
  rondo_graph *built, *captured, *read;
  rondo_exec *exec;
  char *text;
  uint32_t out[WORDS];
} work;

/* Writes a value to a word, and waits until it is there. */
static void make_pair(rondo_memory_operation out[2], size_t word, uint32_t value) {
  void *address = (uint32_t *)work.words + word;
  out[0] = (rondo_memory_operation){.kind = RONDO_OPERATION_WRITE_32, .address = address, .value = value};
  out[1] = (rondo_memory_operation){
      .kind = RONDO_OPERATION_WAIT_32, .condition = RONDO_WAIT_EQUAL, .address = address, .value = value};
}

static rondo_status make(const char *device) {
  const rondo_device_options options = {RONDO_DEVICE_OPTIONS_INIT, .workers = 1, .allocator = &allocator.table};
  TRY(rondo_device_open(device, &options, &work.device));
  TRY(rondo_stream_create(work.device, NULL, &work.stream));
  TRY(rondo_malloc(work.device, BYTES, NULL, &work.words));
  return rondo_fill_async(work.stream, &(rondo_fill){.dst = work.words, .element_bytes = 4, .width = WORDS});
}

static rondo_status build(void) {
  rondo_memory_operation operations[2];
  rondo_node node;
  make_pair(operations, 1, 2);
  TRY(rondo_graph_create(work.device, NULL, &work.built));
  TRY(rondo_graph_add_memory_operations(work.built, NULL, 0, operations, 2, &node));
  TRY(rondo_instantiate(work.built, NULL, &work.exec));
  TRY(rondo_exec_launch(work.exec, work.stream));
  make_pair(operations, 2, 3);
  const rondo_node_params params = {.kind = RONDO_NODE_MEMORY_OPERATIONS,
                                    .as.memory_operations = {.operations = operations, .count = 2}};
  TRY(rondo_exec_set_params(work.exec, node, &params));
  TRY(rondo_graph_set_params(work.built, node, &params));
  TRY(rondo_exec_launch(work.exec, work.stream));
  TRY(rondo_graph_to_json(work.built, false, &work.text));
  return rondo_graph_from_json(work.text, strlen(work.text), &work.read);
}

static rondo_status capture_and_update(void) {
  rondo_memory_operation operations[2];
  make_pair(operations, 3, 4);
  TRY(rondo_capture_begin(work.stream, RONDO_CAPTURE_THREAD_LOCAL));
  TRY(rondo_memory_operations_async(work.stream, operations, 2));
  TRY(rondo_capture_end(work.stream, &work.captured));
  TRY(rondo_exec_update(work.exec, work.captured, NULL));
  return rondo_exec_launch(work.exec, work.stream);
}

static rondo_status run(const char *device) {
  rondo_memory_operation operations[2];
  memset(&work, 0, sizeof work);
  TRY(make(device));
  make_pair(operations, 0, 1);
  TRY(rondo_memory_operations_async(work.stream, operations, 2));
  TRY(build());
  TRY(capture_and_update());
  TRY(rondo_copy_async(work.stream, work.out, work.words, BYTES));
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
  status = rondo_graph_destroy(work.read);
  if (work.words != NULL) status = rondo_free(work.device, work.words);
  status = rondo_device_close(work.device);
  (void)status;
}

static void assert_whole(void) {
  for (uint32_t i = 0; i < WORDS; i++) assert_int_equal(work.out[i], i + 1);
}

static fault_work tested = {.run = run,
                            .tear_down = tear_down,
                            .assert_whole = assert_whole,
                            .results = work.out,
                            .result_bytes = sizeof work.out,
                            .least = 20,
                            .other = "cpu",
                            .memory = &allocator};
