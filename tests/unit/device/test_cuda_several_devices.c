/* SPDX-License-Identifier: MIT
 * Graphs of several devices on the fake driver (AD-8): contexts without an open device, and what the driver is asked
 * for.
 */
#define _GNU_SOURCE
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <time.h>

#include <rondo/rondo.h>

#include "fake_cuda/fake_fixture.h"
#include "fake_cuda/image.h"
#include "vendor/cuda_driver.h"

/* A graph of the driver with an empty kernel of the second GPU's primary context. */
typedef struct elsewhere {
  const cuda_api *api;
  cu_context context;
  cu_module module;
  cu_graph graph;
} elsewhere;

static elsewhere make_graph(void) {
  elsewhere e = {0};
  cu_kernel_params params = {.grid_x = 1, .grid_y = 1, .grid_z = 1, .block_x = 1, .block_y = 1, .block_z = 1};
  cu_graph_node node;
  char image[128];
  assert_ok(cuda_library_get(&e.api));
  (void)e.api->test_kernel("elsewhere", test_kernel_nothing, NULL, 0, NULL);
  (void)snprintf(image, sizeof image, "%selsewhere\n", FAKE_IMAGE_HEAD);
  assert_int_equal(e.api->primary_retain(&e.context, 1), CU_OK);
  assert_int_equal(e.api->context_set_current(e.context), CU_OK);
  assert_int_equal(e.api->module_load(&e.module, image, 0, NULL, NULL), CU_OK);
  assert_int_equal(e.api->module_get_function(&params.function, e.module, "elsewhere"), CU_OK);
  assert_int_equal(e.api->graph_create(&e.graph, 0), CU_OK);
  assert_int_equal(e.api->graph_add_kernel(&node, e.graph, NULL, 0, &params), CU_OK);
  assert_int_equal(e.api->context_set_current(NULL), CU_OK);
  return e;
}

static void end_graph(const elsewhere *e) {
  assert_int_equal(e->api->context_set_current(e->context), CU_OK);
  assert_int_equal(e->api->graph_destroy(e->graph), CU_OK);
  assert_int_equal(e->api->module_unload(e->module), CU_OK);
  assert_int_equal(e->api->context_set_current(NULL), CU_OK);
  assert_int_equal(e->api->primary_release(1), CU_OK);
}

/* A kernel's context is that of an open device, which the graph then keeps open. */
FAKE_TEST(ad8_kernels_of_contexts_without_a_device_are_not_imported) {
  rondo_device *other = NULL;
  rondo_graph *graph = NULL;
  rondo_node node;
  rondo_node_params params;
  size_t count = 1;
  const elsewhere e = make_graph();
  assert_error(rondo_graph_import(t->device, e.graph, NULL, &graph), RONDO_UNSUPPORTED, RONDO_REASON_OTHER_DEVICE);
  assert_null(graph);
  assert_message("of GPU 1, which is that of no open device");
  assert_message("rondo_device_open");
  assert_ok(rondo_device_open("cuda:1", NULL, &other));
  assert_ok(rondo_graph_import(t->device, e.graph, NULL, &graph));
  assert_ok(rondo_graph_nodes(graph, &node, &count));
  assert_ok(rondo_graph_get_params(graph, node, &params));
  assert_ptr_equal(params.device, other);
  rondo_exec *exec = test_instantiate(graph);
  test_launch(t, exec);
  assert_error(rondo_device_close(other), RONDO_INVALID_STATE, RONDO_REASON_STILL_IN_USE);
  rondo_exec_destroy(exec);
  assert_ok(rondo_graph_destroy(graph));
  assert_ok(rondo_device_close(other));
  end_graph(&e);
}

static atomic_int slow_phase; /* 1: the kernel runs; 2: it has ended */

static void run_slowly(rondo_blocks blocks, void *const *args) {
  const struct timespec delay = {.tv_nsec = 20 * 1000 * 1000};
  (void)blocks, (void)args;
  atomic_store(&slow_phase, 1);
  (void)nanosleep(&delay, NULL);
  atomic_store(&slow_phase, 2);
}

/* Work of a launch ends on all devices when the device of the launch is lost. So what the kernel uses on the other
 * device is freed without waiting for the lost one. */
FAKE_TEST(ad8_a_lost_device_waits_for_kernels_of_the_other) {
  rondo_device *launching = NULL;
  rondo_stream *stream = NULL;
  rondo_kernel *kernel = NULL;
  rondo_node node;
  rondo_graph *graph = NULL;
  rondo_exec *exec = NULL;
  const rondo_kernel_options options = {RONDO_KERNEL_OPTIONS_INIT, .name = "run_slowly", .cpu = run_slowly,
                                        .cuda_source = "extern \"C\" __global__ void run_slowly() {}"};
  assert_ok(rondo_device_open("cuda:1", NULL, &launching));
  assert_ok(rondo_stream_create(launching, NULL, &stream));
  assert_ok(rondo_kernel_create(t->device, &options, &kernel));
  assert_ok(rondo_graph_create(launching, NULL, &graph));
  assert_ok(rondo_graph_add_kernel(graph, NULL, 0, kernel, one_block, RONDO_NO_ARGS, &node));
  assert_ok(rondo_instantiate(graph, NULL, &exec));
  atomic_store(&slow_phase, 0);
  assert_ok(rondo_exec_launch(exec, stream));
  while (atomic_load(&slow_phase) == 0) (void)sched_yield();
  fake->lose(1, CU_LAUNCH_FAILED);
  assert_int_equal(atomic_load(&slow_phase), 2);
  assert_int_equal(rondo_stream_synchronize(stream), RONDO_DEVICE_LOST);
  rondo_exec_destroy(exec);
  assert_ok(rondo_graph_destroy(graph));
  rondo_kernel_destroy(kernel);
  assert_int_equal(rondo_stream_destroy(stream), RONDO_DEVICE_LOST);
  assert_int_equal(rondo_device_close(launching), RONDO_DEVICE_LOST);
}

/* The driver fails in the context of the stream that captures: the device of the capture is not lost. */
FAKE_TEST(ad8_a_capture_loses_the_device_of_the_stream) {
  rondo_device *other = NULL;
  rondo_stream *stream = NULL;
  rondo_kernel *kernel = NULL;
  rondo_graph *graph;
  rondo_event *fork = test_event(t);
  const char *const question = "cuStreamGetCaptureInfo";
  assert_ok(rondo_device_open("cuda:1", NULL, &other));
  assert_ok(rondo_stream_create(other, NULL, &stream));
  assert_ok(rondo_kernel_create(other, test_kernel_options(TEST_KERNEL_EMPTY), &kernel));
  assert_ok(rondo_capture_begin(t->stream, RONDO_CAPTURE_THREAD_LOCAL));
  assert_ok(rondo_event_record(fork, t->stream));
  assert_ok(rondo_stream_wait_event(stream, fork));
  const uint64_t before = fake->calls(question);
  assert_ok(rondo_launch(stream, kernel, one_block, RONDO_NO_ARGS));
  const uint64_t asked = fake->calls(question) - before; /* by one launch, last for the kernel's node */
  assert_true(asked > 0);
  fake->fail_call(question, asked, CU_LAUNCH_FAILED, false);
  assert_int_equal(rondo_launch(stream, kernel, one_block, RONDO_NO_ARGS), RONDO_DEVICE_LOST);
  assert_true(rondo_capture_end(t->stream, &graph) != RONDO_OK);
  assert_ok(rondo_stream_synchronize(t->stream));
  rondo_kernel_destroy(kernel);
  assert_int_equal(rondo_stream_destroy(stream), RONDO_DEVICE_LOST);
  assert_int_equal(rondo_device_close(other), RONDO_DEVICE_LOST);
}

/* A graph of one device asks the driver for nothing more. */
FAKE_TEST(ad8_a_launch_of_one_device_records_no_event) {
  rondo_graph *graph = test_graph(t);
  uint32_t *word = test_words(t, 1);
  (void)add_set(t, graph, NULL, 0, 5, word);
  rondo_exec *exec = test_instantiate(graph);
  test_launch(t, exec);
  const uint64_t records = fake->calls("cuEventRecord"), uploads = fake->calls("cuGraphUpload");
  launch_and_expect(t, exec, word, 5);
  rondo_exec_destroy(exec);
  assert_int_equal(fake->calls("cuEventRecord"), records);
  assert_int_equal(fake->calls("cuGraphUpload"), uploads);
}

/* Launches of two devices cost no more calls. The end of the launches is marked when the exec is destroyed. */
FAKE_TEST(ad8_a_launch_of_two_devices_is_one_call) {
  rondo_device *other = NULL;
  rondo_kernel *kernel = NULL;
  rondo_node node;
  rondo_graph *graph = test_graph(t);
  assert_ok(rondo_device_open("cuda:1", NULL, &other));
  assert_ok(rondo_kernel_create(other, test_kernel_options(TEST_KERNEL_EMPTY), &kernel));
  assert_ok(rondo_graph_add_kernel(graph, NULL, 0, kernel, one_block, RONDO_NO_ARGS, &node));
  rondo_kernel_destroy(kernel);
  rondo_exec *exec = test_instantiate(graph);
  const uint64_t launches = fake->calls("cuGraphLaunch"), records = fake->calls("cuEventRecord");
  for (int i = 0; i < 3; i++) assert_ok(rondo_exec_launch(exec, t->stream));
  assert_int_equal(fake->calls("cuGraphLaunch") - launches, 3);
  assert_int_equal(fake->calls("cuEventRecord"), records);
  assert_ok(rondo_stream_synchronize(t->stream));
  rondo_exec_destroy(exec);
  assert_int_equal(fake->calls("cuEventRecord"), records + 1);
  assert_ok(rondo_graph_destroy(graph));
  assert_ok(rondo_device_close(other));
}
