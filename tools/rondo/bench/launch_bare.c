/* SPDX-License-Identifier: MIT
 * The CUDA driver without Rondo as what launches: the same objects as launch_rondo.c, by the driver's own calls, in the
 * device's primary context.
 */
#include <stdlib.h>

#include "bench/bare_driver.h"
#include "bench/bench_kernels.h"
#include "bench/launch_target.h"
#include "common/tool.h"

typedef struct bare_target {
  launch_target base;
  bare_device device;
  bare_stream streams[LAUNCH_STREAMS];
  bare_event fork, joins[LAUNCH_STREAMS];
  bare_event begin, end; /* with timing */
} bare_target;

static bare_target *of(launch_target *target) { return (bare_target *)target; }

/* Handing over ---------------------------------------------------------------------------------------------------- */

static int launch(launch_target *target, size_t stream) {
  const bare_target *t = of(target);
  return bare_check(
      t->device.driver.launch_kernel(t->device.kernel, 1, 1, 1, 1, 1, 1, 0, t->streams[stream], NULL, NULL),
      "launching a kernel");
}

static int fork_streams(launch_target *target) {
  const bare_target *t = of(target);
  return bare_check(t->device.driver.event_record(t->fork, t->streams[0]), "forking");
}

static int follow(launch_target *target, size_t stream) {
  const bare_target *t = of(target);
  return bare_check(t->device.driver.stream_wait_event(t->streams[stream], t->fork, 0), "forking");
}

static int join(launch_target *target, size_t stream) {
  const bare_target *t = of(target);
  const int code = t->device.driver.event_record(t->joins[stream], t->streams[stream]);
  return bare_check(code ? code : t->device.driver.stream_wait_event(t->streams[0], t->joins[stream], 0), "joining");
}

static int replay(launch_target *target, void *exec) {
  const bare_target *t = of(target);
  return bare_check(t->device.driver.graph_launch(exec, t->streams[0]), "launching a graph");
}

static int wait(launch_target *target) {
  const bare_target *t = of(target);
  return bare_check(t->device.driver.stream_synchronize(t->streams[0]), "waiting for a stream");
}

static int mark(launch_target *target, bool is_end) {
  const bare_target *t = of(target);
  return bare_check(t->device.driver.event_record(is_end ? t->end : t->begin, t->streams[0]), "recording an event");
}

static int elapsed(launch_target *target, double *out_us) {
  const bare_target *t = of(target);
  float ms = 0;
  const int code = t->device.driver.event_elapsed(&ms, t->begin, t->end);
  *out_us = (double)ms * 1e3;
  return bare_check(code, "the time between two events");
}

/* Recording ------------------------------------------------------------------------------------------------------- */

static int begin_capture(launch_target *target) {
  const bare_target *t = of(target);
  return bare_check(t->device.driver.begin_capture(t->streams[0], BARE_CAPTURE_THREAD), "beginning a capture");
}

static int end_capture(launch_target *target, void **out_exec) {
  const bare_target *t = of(target);
  bare_graph graph = NULL;
  bare_exec exec = NULL;
  bare_instantiate_params params = {.flags = BARE_UPLOAD, .upload_stream = t->streams[0]};
  if (bare_check(t->device.driver.end_capture(t->streams[0], &graph), "ending a capture") != TOOL_OK)
    return TOOL_FAILURE;
  const int result = bare_check(t->device.driver.instantiate(&exec, graph, &params), "instantiating");
  *out_exec = exec;
  const int destroyed = bare_check(t->device.driver.graph_destroy(graph), "destroying a graph");
  return result == TOOL_OK ? destroyed : result;
}

static void discard(launch_target *target, void *exec) { (void)of(target)->device.driver.exec_destroy(exec); }

/* Beginning and end ----------------------------------------------------------------------------------------------- */

static void destroy_objects(const bare_target *t) {
  const bare_driver *driver = &t->device.driver;
  for (size_t i = 0; i < LAUNCH_STREAMS; i++) {
    if (t->streams[i]) (void)driver->stream_destroy(t->streams[i]);
    if (t->joins[i]) (void)driver->event_destroy(t->joins[i]);
  }
  if (t->fork) (void)driver->event_destroy(t->fork);
  if (t->begin) (void)driver->event_destroy(t->begin);
  if (t->end) (void)driver->event_destroy(t->end);
}

static int destroy(launch_target *target) {
  bare_target *t = of(target);
  destroy_objects(t);
  bare_device_close(&t->device);
  free(t);
  return TOOL_OK;
}

static int make_objects(bare_target *t) {
  const bare_driver *driver = &t->device.driver;
  int code = driver->event_create(&t->begin, 0);
  if (!code) code = driver->event_create(&t->end, 0);
  if (!code) code = driver->event_create(&t->fork, BARE_NO_TIMING);
  for (size_t i = 0; i < LAUNCH_STREAMS && !code; i++) {
    code = driver->stream_create(&t->streams[i], BARE_NON_BLOCKING);
    if (!code) code = driver->event_create(&t->joins[i], BARE_NO_TIMING);
  }
  return bare_check(code, "making streams and events");
}

int launch_bare_create(const char *device_name, launch_target **out) {
  static const launch_calls calls = {launch, fork_streams, follow, join, begin_capture, end_capture,
                                     replay, discard,      wait,   mark, elapsed,       destroy};
  *out = NULL;
  if (!bare_is_cuda(device_name)) return TOOL_OK;
  bare_target *t = calloc(1, sizeof *t);
  if (!t) return tool_fail_memory("the benchmark");
  t->base.calls = &calls;
  if (bare_device_open(device_name, &bench_empty, &t->device) == TOOL_OK && make_objects(t) == TOOL_OK) {
    *out = &t->base;
    return TOOL_OK;
  }
  (void)destroy(&t->base);
  return TOOL_FAILURE;
}
