/* SPDX-License-Identifier: MIT
 * A kernel that faults, on a CUDA device: the first synchronization and every later call report that the device is
 * lost, with the driver's code; all objects can be destroyed; the CPU device remains usable. A GPU's driver may be
 * unusable in the process afterwards, so this is a separate program with one test.
 */
#include <stdio.h>
#include <string.h>

#include "support/rondo_test.h"

enum { SKIPPED = 77 };

static const rondo_grid one_block = {.x = 1};

/* The fake driver recognizes the kernel's name; on a GPU, the kernel writes to address 8, where nothing is mapped. */
static const rondo_kernel_options *fault_here(void) {
  static rondo_kernel_options options = {
      RONDO_KERNEL_OPTIONS_INIT, .name = "fault_here",
      .cuda_source = "extern \"C\" __global__ void fault_here() { *(volatile int *)8 = 1; }\n"};
  options.cpu = test_kernel_options(TEST_KERNEL_EMPTY)->cpu;
  return &options;
}

static void assert_lost(rondo_status status) {
  assert_fails(status, RONDO_DEVICE_LOST);
  assert_message(test_device_name());
  assert_true(rondo_last_error()->driver_code > 0);
  assert_non_null(strstr(rondo_last_error()->driver_name, "CUDA_ERROR_"));
}

static void assert_lost_in_the_graph(rondo_status status) {
  assert_lost(status);
  assert_message("graph 'faulty' on stream");
}

static void assert_cpu_works(void) {
  rondo_device *device;
  rondo_stream *stream;
  rondo_kernel *kernel;
  assert_ok(rondo_device_open("cpu", NULL, &device));
  assert_ok(rondo_stream_create(device, NULL, &stream));
  assert_ok(rondo_kernel_create(device, test_kernel_options(TEST_KERNEL_EMPTY), &kernel));
  assert_ok(rondo_launch(stream, kernel, one_block, RONDO_NO_ARGS));
  assert_ok(rondo_stream_destroy(stream));
  rondo_kernel_destroy(kernel);
  assert_ok(rondo_device_close(device));
}

UNIT_TEST(test_a_fault_in_a_kernel_loses_the_device) {
  rondo_device *device;
  rondo_stream *stream;
  rondo_kernel *kernel;
  rondo_graph *graph;
  rondo_exec *second;
  rondo_node node;
  void *memory;
  assert_ok(rondo_device_open(test_device_name(), NULL, &device));
  assert_ok(rondo_stream_create(device, NULL, &stream));
  assert_ok(rondo_kernel_create(device, fault_here(), &kernel));
  assert_ok(rondo_malloc(device, 1000, "memory", &memory));
  assert_ok(rondo_graph_create(device, &(rondo_graph_options){RONDO_GRAPH_OPTIONS_INIT, .name = "faulty"}, &graph));
  assert_ok(rondo_graph_add_kernel(graph, NULL, 0, kernel, one_block, RONDO_NO_ARGS, &node));
  rondo_exec *exec = test_instantiate(graph);
  assert_ok(rondo_exec_launch(exec, stream));
  assert_lost_in_the_graph(rondo_stream_synchronize(stream));
  assert_lost_in_the_graph(rondo_exec_launch(exec, stream));
  assert_lost(rondo_launch(stream, kernel, one_block, RONDO_NO_ARGS));
  assert_lost(rondo_instantiate(graph, NULL, &second));
  assert_null(second);
  assert_cpu_works();
  rondo_exec_destroy(exec);
  assert_ok(rondo_graph_destroy(graph));
  rondo_kernel_destroy(kernel);
  assert_ok(rondo_free(device, memory));
  assert_lost(rondo_stream_destroy(stream));
  assert_lost(rondo_device_close(device));
  assert_cpu_works();
}

int main(void) {
  if (!test_device_is("cuda")) {
    fprintf(stderr, "skipped: device %s cannot be lost\n", test_device_name());
    return SKIPPED;
  }
  return test_run_registered();
}
