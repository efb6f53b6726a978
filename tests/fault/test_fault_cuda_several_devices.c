/* SPDX-License-Identifier: MIT
 * AD-8: Lets every call of the CUDA driver and every host allocation fail while graphs of two devices are built,
 * captured, cloned, instantiated, updated and launched; also allocations on CPU devices. A run
 * that succeeds has the right words on both devices.
 */
#include <stdio.h>
#include <string.h>

#include "fault/fault_cuda_sweep.h"

enum { WORDS = 4, BYTES = WORDS * sizeof(uint32_t) };

static test_allocator allocator;

static struct {
  rondo_device *devices[2];
  rondo_stream *streams[2];
  rondo_event *events[2];
  rondo_kernel *kernels[2];
  rondo_graph *built, *child, *clone, *captured;
  rondo_exec *exec, *captured_exec;
  uint32_t *words[2];
  uint32_t read[WORDS];
} work;

static rondo_status open_device(const char *name, int i) {
  const rondo_device_options options = {RONDO_DEVICE_OPTIONS_INIT, .workers = 1, .allocator = &allocator.table};
  char numbered[32];
  void *words = NULL;
  (void)snprintf(numbered, sizeof numbered, "%.*s:%d", (int)strcspn(name, ":"), name, i);
  TRY(rondo_device_open(numbered, &options, &work.devices[i]));
  TRY(rondo_stream_create(work.devices[i], NULL, &work.streams[i]));
  TRY(rondo_event_create(work.devices[i], NULL, &work.events[i]));
  TRY(rondo_kernel_create(work.devices[i], test_kernel_options(TEST_KERNEL_AFFINE), &work.kernels[i]));
  TRY(rondo_malloc(work.devices[i], BYTES, NULL, &words));
  work.words[i] = words;
  return RONDO_OK;
}

static rondo_status add(rondo_graph *graph, rondo_node *last, int i, uint32_t factor, uint32_t term) {
  const bool is_first = last->id == 0;
  return rondo_graph_add_kernel(graph, last, !is_first, work.kernels[i], (rondo_grid){WORDS, 0, 0},
                                RONDO_ARGS(&factor, &term, &work.words[i]), last);
}

/* words[1] = 4; words[0] = words[1]; words[0] = words[0] * 2 + 1, the last one in a child graph of the other device */
static rondo_status build(void) {
  rondo_node last = {0}, inner = {0};
  TRY(rondo_graph_create(work.devices[0], NULL, &work.built));
  TRY(rondo_graph_create(work.devices[1], NULL, &work.child));
  TRY(add(work.child, &inner, 0, 2, 1));
  TRY(add(work.built, &last, 1, 0, 4));
  rondo_node_params copy = {.kind = RONDO_NODE_COPY,
                            .device = work.devices[1],
                            .as.copy = {.dst = work.words[0], .src = work.words[1], .width = BYTES}};
  TRY(rondo_graph_add(work.built, &last, 1, &copy, &last));
  TRY(rondo_graph_add_child(work.built, &last, 1, work.child, &last));
  TRY(rondo_graph_add_event_record(work.built, &last, 1, work.events[1], &last));
  TRY(rondo_graph_clone(work.built, &work.clone));
  return rondo_instantiate(work.clone, NULL, &work.exec);
}

/* words[0] = (words[0] + 1) * 3 there, and back */
static rondo_status capture_inside(void) {
  const uint32_t one = 1, three = 3, zero = 0;
  TRY(rondo_launch(work.streams[0], work.kernels[0], (rondo_grid){WORDS, 0, 0},
                   RONDO_ARGS(&one, &one, &work.words[0])));
  TRY(rondo_event_record(work.events[0], work.streams[0]));
  TRY(rondo_stream_wait_event(work.streams[1], work.events[0]));
  TRY(rondo_copy_async(work.streams[1], work.words[1], work.words[0], BYTES));
  TRY(rondo_launch(work.streams[1], work.kernels[1], (rondo_grid){WORDS, 0, 0},
                   RONDO_ARGS(&three, &zero, &work.words[1])));
  TRY(rondo_event_record(work.events[1], work.streams[1]));
  TRY(rondo_stream_wait_event(work.streams[0], work.events[1]));
  return rondo_copy_async(work.streams[0], work.words[0], work.words[1], BYTES);
}

static rondo_status capture(void) {
  TRY(rondo_capture_begin(work.streams[0], RONDO_CAPTURE_THREAD_LOCAL));
  const rondo_status status = capture_inside();
  const rondo_status ended = rondo_capture_end(work.streams[0], &work.captured);
  TRY(status);
  TRY(ended);
  return rondo_instantiate(work.captured, NULL, &work.captured_exec);
}

static rondo_status launch(void) {
  TRY(rondo_exec_launch(work.exec, work.streams[0]));
  TRY(rondo_exec_update(work.exec, work.built, NULL));
  TRY(rondo_exec_launch(work.exec, work.streams[0]));
  TRY(rondo_exec_launch(work.captured_exec, work.streams[0])); /* 9: 10: 30 */
  TRY(rondo_event_record(work.events[0], work.streams[0]));
  TRY(rondo_stream_wait_event(work.streams[1], work.events[0]));
  TRY(rondo_copy_async(work.streams[1], work.read, work.words[0], BYTES));
  return rondo_stream_synchronize(work.streams[1]);
}

static rondo_status run(const char *name) {
  memset(&work, 0, sizeof work);
  for (int i = 0; i < 2; i++) TRY(open_device(name, i));
  for (int i = 0; i < 2; i++) TRY(rondo_memory_set_access(work.devices[i], work.devices[1 - i], true));
  TRY(build());
  TRY(capture());
  TRY(launch());
  /* The second device's stream does not report that the first device is lost; that one's does. */
  if (work.read[0] != 30) {
    assert_int_equal(rondo_stream_synchronize(work.streams[0]), RONDO_DEVICE_LOST);
    return RONDO_DEVICE_LOST;
  }
  for (int i = 0; i < WORDS; i++) assert_int_equal(work.read[i], 30);
  return RONDO_OK;
}

static void tear_down(void) {
  rondo_status status = RONDO_OK;
  rondo_exec_destroy(work.captured_exec);
  rondo_exec_destroy(work.exec);
  rondo_graph *const graphs[] = {work.captured, work.clone, work.built, work.child};
  for (int i = 0; i < 2 && work.streams[i] != NULL; i++) status = rondo_stream_synchronize(work.streams[i]);
  for (size_t i = 0; i < sizeof graphs / sizeof *graphs; i++) assert_ok(rondo_graph_destroy(graphs[i]));
  for (int i = 0; i < 2; i++) {
    rondo_event_destroy(work.events[i]);
    rondo_kernel_destroy(work.kernels[i]);
  }
  for (int i = 0; i < 2; i++) {
    if (work.words[i] != NULL) status = rondo_free(work.devices[i], work.words[i]);
    status = rondo_stream_destroy(work.streams[i]);
  }
  for (int i = 2; i-- > 0;) status = rondo_device_close(work.devices[i]);
  (void)status;
}

static fault_work tested = {.run = run, .tear_down = tear_down, .least = 60, .other = "cpu", .memory = &allocator};
