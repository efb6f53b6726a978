/* SPDX-License-Identifier: MIT
 * Rondo as what launches: a kernel, streams and events of a device.
 */
#include <stdlib.h>

#include "bench/bench_kernels.h"
#include "bench/launch_target.h"
#include "common/tool.h"

typedef struct rondo_target {
  launch_target base;
  rondo_device *device;
  rondo_kernel *kernel;
  rondo_stream *streams[LAUNCH_STREAMS];
  rondo_event *fork, *joins[LAUNCH_STREAMS];
  rondo_event *begin, *end; /* with timing */
} rondo_target;

static int check(rondo_status status, const char *what) { return status ? tool_fail_status("%s", what) : TOOL_OK; }

static rondo_target *of(launch_target *target) { return (rondo_target *)target; }

/* Handing over ---------------------------------------------------------------------------------------------------- */

static int launch(launch_target *target, size_t stream) {
  const rondo_target *t = of(target);
  return check(rondo_launch(t->streams[stream], t->kernel, (rondo_grid){1, 1, 1}, RONDO_NO_ARGS), "launching a kernel");
}

static int fork_streams(launch_target *target) {
  return check(rondo_event_record(of(target)->fork, of(target)->streams[0]), "forking");
}

static int follow(launch_target *target, size_t stream) {
  return check(rondo_stream_wait_event(of(target)->streams[stream], of(target)->fork), "forking");
}

static int join(launch_target *target, size_t stream) {
  const rondo_target *t = of(target);
  if (rondo_event_record(t->joins[stream], t->streams[stream])) return tool_fail_status("joining");
  return check(rondo_stream_wait_event(t->streams[0], t->joins[stream]), "joining");
}

static int replay(launch_target *target, void *exec) {
  return check(rondo_exec_launch(exec, of(target)->streams[0]), "launching a graph");
}

static int wait(launch_target *target) {
  return check(rondo_stream_synchronize(of(target)->streams[0]), "waiting for a stream");
}

static int mark(launch_target *target, bool is_end) {
  const rondo_target *t = of(target);
  return check(rondo_event_record(is_end ? t->end : t->begin, t->streams[0]), "recording an event");
}

static int elapsed(launch_target *target, double *out_us) {
  return check(rondo_event_elapsed(of(target)->begin, of(target)->end, out_us), "the time between two events");
}

/* Recording ------------------------------------------------------------------------------------------------------- */

static int begin_capture(launch_target *target) {
  return check(rondo_capture_begin(of(target)->streams[0], RONDO_CAPTURE_THREAD_LOCAL), "beginning a capture");
}

static int end_capture(launch_target *target, void **out_exec) {
  const rondo_target *t = of(target);
  rondo_graph *graph = NULL;
  rondo_exec *exec = NULL;
  const rondo_instantiate_options options = {RONDO_INSTANTIATE_OPTIONS_INIT, .upload_stream = t->streams[0]};
  if (rondo_capture_end(t->streams[0], &graph)) return tool_fail_status("ending a capture");
  const int result = check(rondo_instantiate(graph, &options, &exec), "instantiating");
  *out_exec = exec;
  const int destroyed = check(rondo_graph_destroy(graph), "destroying a graph");
  return result == TOOL_OK ? destroyed : result;
}

static void discard(launch_target *target, void *exec) {
  (void)target;
  rondo_exec_destroy(exec);
}

/* Beginning and end ----------------------------------------------------------------------------------------------- */

static int destroy(launch_target *target) {
  rondo_target *t = of(target);
  int result = TOOL_OK;
  for (size_t i = 0; i < LAUNCH_STREAMS; i++) {
    if (rondo_stream_destroy(t->streams[i])) result = tool_fail_status("the benchmark's streams");
    rondo_event_destroy(t->joins[i]);
  }
  rondo_event_destroy(t->fork);
  rondo_event_destroy(t->begin);
  rondo_event_destroy(t->end);
  rondo_kernel_destroy(t->kernel);
  free(t);
  return result;
}

static rondo_status make_objects(rondo_target *t) {
  const rondo_event_options timing = {RONDO_EVENT_OPTIONS_INIT, .timing = true};
  TOOL_TRY(rondo_kernel_create(t->device, &bench_empty, &t->kernel));
  TOOL_TRY(rondo_event_create(t->device, &timing, &t->begin));
  TOOL_TRY(rondo_event_create(t->device, &timing, &t->end));
  TOOL_TRY(rondo_event_create(t->device, NULL, &t->fork));
  for (size_t i = 0; i < LAUNCH_STREAMS; i++) {
    TOOL_TRY(rondo_stream_create(t->device, NULL, &t->streams[i]));
    TOOL_TRY(rondo_event_create(t->device, NULL, &t->joins[i]));
  }
  return RONDO_OK;
}

int launch_rondo_create(rondo_device *device, launch_target **out) {
  static const launch_calls calls = {launch, fork_streams, follow, join, begin_capture, end_capture,
                                     replay, discard,      wait,   mark, elapsed,       destroy};
  rondo_target *t = calloc(1, sizeof *t);
  *out = NULL;
  if (!t) return tool_fail_memory("the benchmark");
  t->base.calls = &calls;
  t->device = device;
  if (!make_objects(t)) {
    *out = &t->base;
    return TOOL_OK;
  }
  const int result = tool_fail_status("the benchmark's kernels and streams");
  (void)destroy(&t->base); /* the first failure is the one that is said */
  return result;
}
