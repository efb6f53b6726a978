/* SPDX-License-Identifier: MIT
 * Rondo as a target of benchmarks, and what all targets share.
 */
#include <stdlib.h>

#include "bench/bench_target.h"
#include "common/tool.h"

typedef struct rondo_target {
  bench_target base;
  rondo_device *device;
  rondo_kernel *kernel;
  size_t stream_count;
  rondo_stream *streams[TARGET_STREAMS];
  rondo_event *fork, *joins[TARGET_STREAMS];
  rondo_event *begin, *end; /* with timing */
} rondo_target;

static const rondo_grid one_block = {1, 1, 1};

static int check(rondo_status status, const char *what) { return status ? tool_fail_status("%s", what) : TOOL_OK; }

static rondo_target *of(bench_target *target) { return (rondo_target *)target; }

/* Streams --------------------------------------------------------------------------------------------------------- */

static int enqueue(bench_target *target, size_t stream) {
  const rondo_target *t = of(target);
  return check(rondo_launch(t->streams[stream], t->kernel, one_block, RONDO_NO_ARGS), "launching a kernel");
}

static int enqueue_line(bench_target *target, const target_line *line) {
  const rondo_target *t = of(target);
  rondo_status status = RONDO_OK;
  for (uint32_t i = 0; i < line->nodes && !status; i++) {
    uint64_t values[2];
    line->arguments(line->user, i, values);
    status = rondo_launch(t->streams[0], t->kernel, one_block, RONDO_ARGS(&values[0], &values[1]));
  }
  return check(status, "launching a line of kernels");
}

static int fork_streams(bench_target *target) {
  return check(rondo_event_record(of(target)->fork, of(target)->streams[0]), "forking");
}

static int follow(bench_target *target, size_t stream) {
  return check(rondo_stream_wait_event(of(target)->streams[stream], of(target)->fork), "forking");
}

static int join(bench_target *target, size_t stream) {
  const rondo_target *t = of(target);
  if (rondo_event_record(t->joins[stream], t->streams[stream])) return tool_fail_status("joining");
  return check(rondo_stream_wait_event(t->streams[0], t->joins[stream]), "joining");
}

static int wait(bench_target *target, size_t stream) {
  return check(rondo_stream_synchronize(of(target)->streams[stream]), "waiting for a stream");
}

static int mark(bench_target *target, bool is_end) {
  const rondo_target *t = of(target);
  return check(rondo_event_record(is_end ? t->end : t->begin, t->streams[0]), "recording an event");
}

static int elapsed(bench_target *target, double *out_us) {
  return check(rondo_event_elapsed(of(target)->begin, of(target)->end, out_us), "reading the time between two events");
}

static int allocate(bench_target *target, size_t bytes, uint64_t *out_address) {
  void *address = NULL;
  const rondo_status status = rondo_malloc(of(target)->device, bytes, "benchmark", &address);
  *out_address = (uint64_t)(uintptr_t)address;
  return check(status, "allocating memory");
}

static int copy(bench_target *target, uint64_t dst, uint64_t src, size_t bytes) {
  return check(rondo_copy_async(of(target)->streams[0], (void *)(uintptr_t)dst, (void *)(uintptr_t)src, bytes),
               "copying");
}

/* Graphs ---------------------------------------------------------------------------------------------------------- */

static int begin_capture(bench_target *target) {
  return check(rondo_capture_begin(of(target)->streams[0], RONDO_CAPTURE_THREAD_LOCAL), "beginning a capture");
}

static int end_capture(bench_target *target, target_graph *out) {
  rondo_graph *graph = NULL;
  const rondo_status status = rondo_capture_end(of(target)->streams[0], &graph);
  out->graph = graph;
  return check(status, "ending a capture");
}

static rondo_status add_line(const rondo_target *t, const target_line *line, target_graph *out) {
  rondo_node last = {0};
  uint64_t values[2];
  for (uint32_t i = 0; i < line->nodes; i++) {
    line->arguments(line->user, i, values);
    TOOL_TRY(rondo_graph_add_kernel(out->graph, &last, i > 0, t->kernel, one_block, RONDO_ARGS(&values[0], &values[1]),
                                    &last));
    if (i - line->first_marked < line->marked) out->marked[i - line->first_marked].rondo = last;
  }
  return RONDO_OK;
}

static int build(bench_target *target, const target_line *line, target_graph *out) {
  rondo_graph *graph = NULL;
  rondo_status status = rondo_graph_create(of(target)->device, NULL, &graph);
  out->graph = graph;
  if (!status) status = add_line(of(target), line, out);
  return check(status, "creating a graph");
}

static int instantiate(bench_target *target, const target_graph *graph, bool uploads, void **out_exec) {
  const rondo_instantiate_options options = {RONDO_INSTANTIATE_OPTIONS_INIT,
                                             .upload_stream = uploads ? of(target)->streams[0] : NULL};
  rondo_exec *exec = NULL;
  const int result = check(rondo_instantiate(graph->graph, &options, &exec), "instantiating");
  *out_exec = exec;
  return result;
}

static int update(bench_target *target, void *exec, const target_graph *graph) {
  (void)target;
  return check(rondo_exec_update(exec, graph->graph, NULL), "updating");
}

static int set(bench_target *target, void *exec, const target_graph *graph, size_t mark, const uint64_t values[2]) {
  const void *const args[] = {&values[0], &values[1]};
  const rondo_node_params params = {
      .kind = RONDO_NODE_KERNEL,
      .as.kernel = {.kernel = of(target)->kernel, .grid = one_block, .args = args, .arg_count = 2}};
  return check(rondo_exec_set_params(exec, graph->marked[mark].rondo, &params), "setting kernel arguments");
}

static int launch(bench_target *target, void *exec, size_t stream) {
  return check(rondo_exec_launch(exec, of(target)->streams[stream]), "launching a graph");
}

static int discard_graph(bench_target *target, const target_graph *graph) {
  (void)target;
  return check(rondo_graph_destroy(graph->graph), "destroying a graph");
}

static int discard_exec(bench_target *target, void *exec) {
  (void)target;
  rondo_exec_destroy(exec);
  return TOOL_OK;
}

/* Create and destroy ---------------------------------------------------------------------------------------------- */

static int destroy(bench_target *target) {
  rondo_target *t = of(target);
  int result = TOOL_OK;
  for (size_t i = 0; i < t->stream_count; i++) {
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

static rondo_status make_objects(rondo_target *t, const rondo_kernel_options *kernel) {
  const rondo_event_options timing = {RONDO_EVENT_OPTIONS_INIT, .timing = true};
  TOOL_TRY(rondo_kernel_create(t->device, kernel, &t->kernel));
  TOOL_TRY(rondo_event_create(t->device, &timing, &t->begin));
  TOOL_TRY(rondo_event_create(t->device, &timing, &t->end));
  TOOL_TRY(rondo_event_create(t->device, NULL, &t->fork));
  for (size_t i = 0; i < t->stream_count; i++) {
    TOOL_TRY(rondo_stream_create(t->device, NULL, &t->streams[i]));
    TOOL_TRY(rondo_event_create(t->device, NULL, &t->joins[i]));
  }
  return RONDO_OK;
}

int rondo_target_create(rondo_device *device, const rondo_kernel_options *kernel, size_t streams, bench_target **out) {
  static const target_calls calls = {enqueue,       enqueue_line, fork_streams,  follow,       join,
                                     wait,          mark,         elapsed,       allocate,     copy,
                                     begin_capture, end_capture,  build,         instantiate,  update,
                                     set,           launch,       discard_graph, discard_exec, destroy};
  rondo_target *t = calloc(1, sizeof *t);
  *out = NULL;
  if (!t) return tool_fail_memory("the benchmark");
  *t = (rondo_target){.base = {&calls}, .device = device, .stream_count = streams};
  if (!make_objects(t, kernel)) {
    *out = &t->base;
    return TOOL_OK;
  }
  const int result = tool_fail_status("the benchmark's kernels and streams");
  (void)destroy(&t->base); /* only the first failure is reported */
  return result;
}

rondo_stream *rondo_target_stream(bench_target *target) { return of(target)->streams[0]; }

int bench_target_destroy(bench_target *target) { return target ? target->calls->destroy(target) : TOOL_OK; }

void target_input_arguments(const void *inputs, uint32_t index, uint64_t values[2]) {
  const target_inputs *all = inputs;
  values[0] = all->inputs[index < all->readers ? 0 : 1 + index % (TARGET_INPUTS - 1)];
  values[1] = all->out;
}
