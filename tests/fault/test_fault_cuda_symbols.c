/* SPDX-License-Identifier: MIT
 * AD-8: Lets every call of the CUDA driver and every host allocation fail while a kernel with symbols is made, and its
 * symbols are copied to and from, in streams, graphs and execs, dumped and read; also allocations on a CPU device.
 * Either an error is returned or the results are right. Nothing is left in the driver or in host memory, and nothing is
 * misused.
 */
#include "fault/fault_cuda_sweep.h"

enum { WORDS = 8, BYTES = WORDS * sizeof(uint32_t) };

static test_allocator allocator;
static uint32_t fault_symbol_table[WORDS];

static const rondo_symbol symbols[] = {
    {.name = "fault_symbol_table", .cpu = fault_symbol_table, .bytes = sizeof fault_symbol_table}};

static struct {
  rondo_device *device;
  rondo_stream *stream;
  rondo_kernel *kernel;
  void *table, *words;
  rondo_graph *graph, *read;
  rondo_exec *exec;
  char *text;
  uint32_t in[WORDS], eager[WORDS], out[WORDS];
} work;

static rondo_status make(const char *device) {
  const rondo_device_options options = {RONDO_DEVICE_OPTIONS_INIT, .workers = 1, .allocator = &allocator.table};
  const rondo_kernel_options kernel = {
      RONDO_KERNEL_OPTIONS_INIT,  .name = "test_symbols",
      .cpu = test_kernel_nothing, .cuda_source = "extern \"C\" __global__ void test_symbols() {}\n",
      .symbols = symbols,         .symbol_count = 1};
  TRY(rondo_device_open(device, &options, &work.device));
  TRY(rondo_stream_create(work.device, NULL, &work.stream));
  TRY(rondo_kernel_create(work.device, &kernel, &work.kernel));
  TRY(rondo_malloc(work.device, BYTES, NULL, &work.words));
  return rondo_kernel_symbol(work.kernel, "fault_symbol_table", &work.table, NULL);
}

static rondo_status copy_eagerly(void) {
  for (uint32_t i = 0; i < WORDS; i++) work.in[i] = i + 1;
  TRY(rondo_copy_async(work.stream, work.table, work.in, BYTES));
  TRY(rondo_copy_async(work.stream, work.eager, work.table, BYTES));
  return rondo_copy_async(work.stream, work.words, work.table, BYTES);
}

static rondo_status build(rondo_node *out) {
  const rondo_copy copy = {.dst = work.words, .src = work.table, .width = BYTES};
  TRY(rondo_graph_create(work.device, NULL, &work.graph));
  TRY(rondo_graph_add_copy(work.graph, NULL, 0, &copy, out));
  TRY(rondo_instantiate(work.graph, NULL, &work.exec));
  TRY(rondo_graph_to_json(work.graph, false, &work.text));
  return rondo_graph_from_json(work.text, strlen(work.text), &work.read);
}

/* The exec keeps the code. */
static rondo_status run(const char *device) {
  rondo_node node;
  memset(&work, 0, sizeof work);
  TRY(make(device));
  TRY(copy_eagerly());
  TRY(build(&node));
  const rondo_node_params back = {.kind = RONDO_NODE_COPY,
                                  .as.copy = {.dst = work.table, .src = work.words, .width = BYTES / 2}};
  TRY(rondo_exec_set_params(work.exec, node, &back));
  TRY(rondo_graph_set_params(work.graph, node, &back));
  rondo_kernel_destroy(work.kernel);
  work.kernel = NULL;
  TRY(rondo_exec_launch(work.exec, work.stream));
  TRY(rondo_copy_async(work.stream, work.out, work.table, BYTES));
  return rondo_stream_synchronize(work.stream);
}

/* Teardown may return errors, too. The objects are destroyed in any case. */
static void tear_down(void) {
  rondo_status status;
  rondo_text_free(work.text);
  rondo_exec_destroy(work.exec);
  status = work.stream == NULL ? RONDO_OK : rondo_stream_destroy(work.stream);
  status = rondo_graph_destroy(work.graph);
  status = rondo_graph_destroy(work.read);
  if (work.words != NULL) status = rondo_free(work.device, work.words);
  rondo_kernel_destroy(work.kernel);
  status = rondo_device_close(work.device);
  (void)status;
}

static void assert_whole(void) {
  assert_memory_equal(work.eager, work.in, BYTES);
  assert_memory_equal(work.out, work.in, BYTES);
}

static fault_work tested = {.run = run,
                            .tear_down = tear_down,
                            .assert_whole = assert_whole,
                            .results = work.out,
                            .result_bytes = sizeof work.out,
                            .least = 20,
                            .other = "cpu",
                            .memory = &allocator};
