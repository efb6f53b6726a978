/* SPDX-License-Identifier: MIT
 * Shapes of empty kernels, and one measurement of each way to launch them.
 */
#include "launch_rig.h"

#include <stdlib.h>

#include "tool.h"

static void empty(rondo_blocks blocks, void *const *args) {
  (void)blocks;
  (void)args;
}

static const rondo_grid one_block = {1, 1, 1};

static rondo_status create_streams(launch_rig *rig) {
  for (size_t i = 0; i < LAUNCH_STREAMS; i++) {
    TOOL_TRY(rondo_stream_create(rig->device, NULL, &rig->streams[i]));
    TOOL_TRY(rondo_event_create(rig->device, NULL, &rig->joins[i]));
  }
  return rondo_event_create(rig->device, NULL, &rig->fork);
}

rondo_status launch_rig_create(rondo_device *device, launch_rig *out) {
  *out = (launch_rig){.device = device};
  const rondo_kernel_options kernel = {RONDO_KERNEL_OPTIONS_INIT, .name = "empty", .cpu = empty, .block_threads = 1,
                                       .cuda_source = "extern \"C\" __global__ void empty(void) {}"};
  const rondo_event_options timing = {RONDO_EVENT_OPTIONS_INIT, .timing = true};
  TOOL_TRY(rondo_kernel_create(device, &kernel, &out->kernel));
  TOOL_TRY(rondo_event_create(device, &timing, &out->begin));
  TOOL_TRY(rondo_event_create(device, &timing, &out->end));
  return create_streams(out);
}

rondo_status launch_rig_destroy(launch_rig *rig) {
  rondo_status result = RONDO_OK;
  for (size_t i = 0; i < LAUNCH_STREAMS; i++) {
    const rondo_status status = rondo_stream_destroy(rig->streams[i]);
    if (status && !result) result = status;
    rondo_event_destroy(rig->joins[i]);
  }
  rondo_event_destroy(rig->fork);
  rondo_event_destroy(rig->begin);
  rondo_event_destroy(rig->end);
  rondo_kernel_destroy(rig->kernel);
  return result;
}

/* Shapes ---------------------------------------------------------------------------------------------------------- */

static rondo_status launch_on(const launch_rig *rig, size_t stream) {
  return rondo_launch(rig->streams[stream], rig->kernel, one_block, RONDO_NO_ARGS);
}

static rondo_status fork_to(const launch_rig *rig, size_t stream) {
  return rondo_stream_wait_event(rig->streams[stream], rig->fork);
}

static rondo_status join_from(const launch_rig *rig, size_t stream) {
  TOOL_TRY(rondo_event_record(rig->joins[stream], rig->streams[stream]));
  return rondo_stream_wait_event(rig->streams[0], rig->joins[stream]);
}

static rondo_status enqueue_line(const launch_rig *rig, uint32_t nodes) {
  for (uint32_t i = 0; i < nodes; i++) TOOL_TRY(launch_on(rig, 0));
  return RONDO_OK;
}

static rondo_status enqueue_branches(const launch_rig *rig, uint32_t nodes) {
  TOOL_TRY(rondo_event_record(rig->fork, rig->streams[0]));
  TOOL_TRY(fork_to(rig, 1));
  for (uint32_t i = 0; i < nodes; i++) TOOL_TRY(launch_on(rig, i % 2));
  return join_from(rig, 1);
}

/* One kernel, `nodes` - 2 side by side, one kernel. */
static rondo_status enqueue_fork(const launch_rig *rig, uint32_t nodes) {
  TOOL_TRY(launch_on(rig, 0));
  TOOL_TRY(rondo_event_record(rig->fork, rig->streams[0]));
  TOOL_TRY(launch_on(rig, 0));
  for (size_t stream = 1; stream < nodes - 2; stream++) {
    TOOL_TRY(fork_to(rig, stream));
    TOOL_TRY(launch_on(rig, stream));
    TOOL_TRY(join_from(rig, stream));
  }
  return launch_on(rig, 0);
}

const launch_shape launch_shapes[LAUNCH_SHAPES] = {
    [SHAPE_LINE] = {"line of 32", 32, 1, enqueue_line},
    [SHAPE_BRANCHES] = {"two branches of 16", 32, 2, enqueue_branches},
    [SHAPE_FORK] = {"fork 30 and join", 32, LAUNCH_STREAMS, enqueue_fork},
    [SHAPE_LINE_320] = {"line of 320", 320, 1, enqueue_line},
    [SHAPE_LINE_3200] = {"line of 3200", 3200, 1, enqueue_line},
    [SHAPE_LINE_10000] = {"line of 10,000", 10000, 1, enqueue_line},
};

rondo_status launch_rig_record(const launch_rig *rig, const launch_shape *shape, rondo_exec **out_exec) {
  rondo_graph *graph = NULL;
  TOOL_TRY(rondo_capture_begin(rig->streams[0], RONDO_CAPTURE_THREAD_LOCAL));
  const rondo_status enqueued = shape->enqueue(rig, shape->nodes);
  const rondo_status ended = rondo_capture_end(rig->streams[0], &graph);
  rondo_status status = enqueued ? enqueued : ended;
  const rondo_instantiate_options options = {RONDO_INSTANTIATE_OPTIONS_INIT, .upload_stream = rig->streams[0]};
  if (!status) status = rondo_instantiate(graph, &options, out_exec);
  const rondo_status destroyed = rondo_graph_destroy(graph);
  return status ? status : destroyed;
}

/* Measuring ------------------------------------------------------------------------------------------------------- */

bool launch_times_create(launch_times *times, size_t capacity) {
  *times = (launch_times){0};
  if (samples_create(&times->host, capacity) && samples_create(&times->device, capacity) &&
      samples_create(&times->total, capacity)) {
    return true;
  }
  launch_times_destroy(times);
  return false;
}

void launch_times_destroy(launch_times *times) {
  samples_destroy(&times->host);
  samples_destroy(&times->device);
  samples_destroy(&times->total);
}

static rondo_status hand_over(const launch_rig *rig, const launch_shape *shape, rondo_exec *exec) {
  return exec ? rondo_exec_launch(exec, rig->streams[0]) : shape->enqueue(rig, shape->nodes);
}

static rondo_status measure_host(const launch_rig *rig, const launch_shape *shape, rondo_exec *exec,
                                 launch_times *times) {
  const uint64_t begin = clock_ns();
  TOOL_TRY(hand_over(rig, shape, exec));
  const uint64_t queued = clock_ns();
  TOOL_TRY(rondo_stream_synchronize(rig->streams[0]));
  const uint64_t end = clock_ns();
  samples_add(&times->host, (double)(queued - begin) / 1e3);
  samples_add(&times->total, (double)(end - begin) / 1e3);
  return RONDO_OK;
}

static rondo_status measure_device(const launch_rig *rig, const launch_shape *shape, rondo_exec *exec,
                                   launch_times *times) {
  double us = 0;
  TOOL_TRY(rondo_event_record(rig->begin, rig->streams[0]));
  TOOL_TRY(hand_over(rig, shape, exec));
  TOOL_TRY(rondo_event_record(rig->end, rig->streams[0]));
  TOOL_TRY(rondo_stream_synchronize(rig->streams[0]));
  TOOL_TRY(rondo_event_elapsed(rig->begin, rig->end, &us));
  samples_add(&times->device, us);
  return RONDO_OK;
}

rondo_status launch_rig_measure(const launch_rig *rig, const launch_shape *shape, rondo_exec *exec, uint32_t repeats,
                                launch_times *times) {
  for (uint32_t i = 0; i < repeats; i++) TOOL_TRY(measure_host(rig, shape, exec, times));
  for (uint32_t i = 0; i < repeats; i++) TOOL_TRY(measure_device(rig, shape, exec, times));
  return RONDO_OK;
}

typedef struct launch_call {
  rondo_cpu_function function;
  void *const *args;
} launch_call;

void launch_measure_loop(uint32_t nodes, samples *times) {
  enum { CALLS = 10000 };
  static launch_call calls[CALLS];              /* as a graph holds them: a function and its arguments a node */
  rondo_cpu_function volatile function = empty; /* volatile: the compiler is not to know whom it calls */
  for (uint32_t i = 0; i < nodes; i++) calls[i] = (launch_call){.function = function};
  const rondo_blocks blocks = {.first = 0, .last = 1, .grid = one_block};
  const uint32_t loops = nodes < 1000 ? 10000 / nodes : 1; /* else shorter than reading the clock */
  const uint64_t begin = clock_ns();
  for (uint32_t loop = 0; loop < loops; loop++) {
    for (uint32_t i = 0; i < nodes; i++) calls[i].function(blocks, calls[i].args);
  }
  samples_add(times, (double)(clock_ns() - begin) / 1e3 / loops);
}
