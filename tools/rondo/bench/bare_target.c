/* SPDX-License-Identifier: MIT
 * The CUDA driver without Rondo as a target of benchmarks: the same objects as in rondo_target.c, made with the
 * driver's own calls in the device's primary context. The structure of a kernel's parameters is prepared once; only the
 * arguments that it points to change.
 */
#include <stdlib.h>
#include <string.h>

#include "bench/bench_target.h"
#include "common/tool.h"

typedef struct bare_target {
  bench_target base;
  bare_device device;
  bare_stream streams[TARGET_STREAMS];
  bare_event fork, joins[TARGET_STREAMS];
  bare_event begin, end; /* with timing */
  uint64_t values[2];
  void *args[2];
  bare_kernel_params params;
} bare_target;

static bare_target *of(bench_target *target) { return (bare_target *)target; }

static const bare_driver *driver_of(bench_target *target) { return &of(target)->device.driver; }

/* Streams --------------------------------------------------------------------------------------------------------- */

static int enqueue(bench_target *target, size_t stream) {
  const bare_target *t = of(target);
  return bare_check(
      t->device.driver.launch_kernel(t->device.kernel, 1, 1, 1, 1, 1, 1, 0, t->streams[stream], NULL, NULL),
      "launching a kernel");
}

static int enqueue_line(bench_target *target, const target_line *line) {
  bare_target *t = of(target);
  int code = 0;
  for (uint32_t i = 0; i < line->nodes && !code; i++) {
    line->arguments(line->user, i, t->values);
    code = t->device.driver.launch_kernel(t->device.kernel, 1, 1, 1, 1, 1, 1, 0, t->streams[0], t->args, NULL);
  }
  return bare_check(code, "launching a line of kernels");
}

static int fork_streams(bench_target *target) {
  return bare_check(driver_of(target)->event_record(of(target)->fork, of(target)->streams[0]), "forking");
}

static int follow(bench_target *target, size_t stream) {
  return bare_check(driver_of(target)->stream_wait_event(of(target)->streams[stream], of(target)->fork, 0), "forking");
}

static int join(bench_target *target, size_t stream) {
  const bare_target *t = of(target);
  const int code = t->device.driver.event_record(t->joins[stream], t->streams[stream]);
  return bare_check(code ? code : t->device.driver.stream_wait_event(t->streams[0], t->joins[stream], 0), "joining");
}

static int wait(bench_target *target, size_t stream) {
  return bare_check(driver_of(target)->stream_synchronize(of(target)->streams[stream]), "waiting for a stream");
}

static int mark(bench_target *target, bool is_end) {
  const bare_target *t = of(target);
  return bare_check(t->device.driver.event_record(is_end ? t->end : t->begin, t->streams[0]), "recording an event");
}

static int elapsed(bench_target *target, double *out_us) {
  float ms = 0;
  const int code = driver_of(target)->event_elapsed(&ms, of(target)->begin, of(target)->end);
  *out_us = (double)ms * 1e3;
  return bare_check(code, "reading the time between two events");
}

static int allocate(bench_target *target, size_t bytes, uint64_t *out_address) {
  const int code = driver_of(target)->mem_alloc_async(out_address, bytes, of(target)->streams[0]);
  return code ? bare_check(code, "allocating memory") : wait(target, 0);
}

static int copy(bench_target *target, uint64_t dst, uint64_t src, size_t bytes) {
  return bare_check(driver_of(target)->copy_async(dst, src, bytes, of(target)->streams[0]), "copying");
}

/* Graphs ---------------------------------------------------------------------------------------------------------- */

static int begin_capture(bench_target *target) {
  return bare_check(driver_of(target)->begin_capture(of(target)->streams[0], BARE_CAPTURE_THREAD),
                    "beginning a capture");
}

static int end_capture(bench_target *target, target_graph *out) {
  bare_graph graph = NULL;
  const int code = driver_of(target)->end_capture(of(target)->streams[0], &graph);
  out->graph = graph;
  return bare_check(code, "ending a capture");
}

static int build(bench_target *target, const target_line *line, target_graph *out) {
  bare_target *t = of(target);
  bare_graph graph = NULL;
  bare_node last = NULL;
  int code = t->device.driver.graph_create(&graph, 0);
  for (uint32_t i = 0; i < line->nodes && !code; i++) {
    const bare_node before = last;
    line->arguments(line->user, i, t->values);
    code = t->device.driver.graph_add_kernel(&last, graph, &before, i > 0, &t->params);
    if (i - line->first_marked < line->marked) out->marked[i - line->first_marked].bare = last;
  }
  out->graph = graph;
  return bare_check(code, "creating a graph");
}

static int instantiate(bench_target *target, const target_graph *graph, bool uploads, void **out_exec) {
  bare_instantiate_params params = {.flags = uploads ? BARE_UPLOAD : 0,
                                    .upload_stream = uploads ? of(target)->streams[0] : NULL};
  bare_exec exec = NULL;
  const int code = driver_of(target)->instantiate(&exec, graph->graph, &params);
  *out_exec = exec;
  return bare_check(code, "instantiating");
}

static int update(bench_target *target, void *exec, const target_graph *graph) {
  bare_update_result result;
  return bare_check(driver_of(target)->exec_update(exec, graph->graph, &result), "updating");
}

static int set(bench_target *target, void *exec, const target_graph *graph, size_t mark, const uint64_t values[2]) {
  bare_target *t = of(target);
  memcpy(t->values, values, sizeof t->values);
  return bare_check(t->device.driver.exec_set_kernel(exec, graph->marked[mark].bare, &t->params),
                    "setting kernel arguments");
}

static int launch(bench_target *target, void *exec, size_t stream) {
  return bare_check(driver_of(target)->graph_launch(exec, of(target)->streams[stream]), "launching a graph");
}

static int discard_graph(bench_target *target, const target_graph *graph) {
  return graph->graph ? bare_check(driver_of(target)->graph_destroy(graph->graph), "destroying a graph") : TOOL_OK;
}

static int discard_exec(bench_target *target, void *exec) {
  return exec ? bare_check(driver_of(target)->exec_destroy(exec), "destroying an exec") : TOOL_OK;
}

/* Create and destroy ---------------------------------------------------------------------------------------------- */

static void destroy_event(const bare_target *t, bare_event event) {
  if (event) (void)t->device.driver.event_destroy(event);
}

static int destroy(bench_target *target) {
  bare_target *t = of(target);
  for (size_t i = 0; i < TARGET_STREAMS; i++) {
    if (t->streams[i]) (void)t->device.driver.stream_destroy(t->streams[i]);
    destroy_event(t, t->joins[i]);
  }
  destroy_event(t, t->fork);
  destroy_event(t, t->begin);
  destroy_event(t, t->end);
  bare_device_close(&t->device);
  free(t);
  return TOOL_OK;
}

static int make_objects(bare_target *t, size_t streams) {
  const bare_driver *driver = &t->device.driver;
  t->args[0] = &t->values[0];
  t->args[1] = &t->values[1];
  t->params = (bare_kernel_params){.function = t->device.kernel,
                                   .grid_x = 1,
                                   .grid_y = 1,
                                   .grid_z = 1,
                                   .block_x = 1,
                                   .block_y = 1,
                                   .block_z = 1,
                                   .params = t->args};
  int code = driver->event_create(&t->begin, 0);
  if (!code) code = driver->event_create(&t->end, 0);
  if (!code) code = driver->event_create(&t->fork, BARE_NO_TIMING);
  for (size_t i = 0; i < streams && !code; i++) {
    code = driver->stream_create(&t->streams[i], BARE_NON_BLOCKING);
    if (!code) code = driver->event_create(&t->joins[i], BARE_NO_TIMING);
  }
  return bare_check(code, "creating streams and events");
}

int bare_target_create(const char *device_name, const rondo_kernel_options *kernel, size_t streams,
                       bench_target **out) {
  static const target_calls calls = {enqueue,       enqueue_line, fork_streams,  follow,       join,
                                     wait,          mark,         elapsed,       allocate,     copy,
                                     begin_capture, end_capture,  build,         instantiate,  update,
                                     set,           launch,       discard_graph, discard_exec, destroy};
  *out = NULL;
  if (!bare_is_cuda(device_name)) return TOOL_OK;
  bare_target *t = calloc(1, sizeof *t);
  if (!t) return tool_fail_memory("the benchmark");
  t->base.calls = &calls;
  if (bare_device_open(device_name, kernel, &t->device) == TOOL_OK && make_objects(t, streams) == TOOL_OK) {
    *out = &t->base;
    return TOOL_OK;
  }
  (void)destroy(&t->base);
  return TOOL_FAILURE;
}

const bare_device *bare_target_device(bench_target *target) { return &of(target)->device; }

bare_stream bare_target_stream(bench_target *target) { return of(target)->streams[0]; }
