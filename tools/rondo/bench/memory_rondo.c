/* SPDX-License-Identifier: MIT
 * Memory inside graphs by Rondo: addresses given as nodes are made, from a profile of the same work, or afresh when the
 * graph is instantiated.
 */
#include <stdlib.h>

#include "bench/bench_kernels.h"
#include "bench/memory_work.h"
#include "common/tool.h"

typedef struct rondo_memory {
  rondo_device *device;
  const memory_work *work;
  rondo_kernel *kernel;
  rondo_stream *streams[2];
  rondo_graph *graph;
  void **addresses; /* of the buffers */
} rondo_memory;

/* Recording ------------------------------------------------------------------------------------------------------- */

static rondo_status add_alloc(rondo_memory *m, size_t buffer, rondo_node *last) {
  const size_t bytes = m->work->list->items[buffer].bytes;
  rondo_node node;
  TOOL_TRY(rondo_graph_add_alloc(m->graph, last, last->id != 0, bytes, NULL, &m->addresses[buffer], &node));
  return rondo_graph_add_kernel(m->graph, &node, 1, m->kernel, (rondo_grid){1, 1, 1}, RONDO_ARGS(&m->addresses[buffer]),
                                last);
}

static rondo_status record(rondo_memory *m, rondo_profile *profile) {
  const rondo_graph_options options = {RONDO_GRAPH_OPTIONS_INIT, .name = m->work->name, .profile = profile};
  rondo_node last = {0};
  TOOL_TRY(rondo_graph_create(m->device, &options, &m->graph));
  for (size_t i = 0; i < m->work->step_count; i++) {
    const memory_step step = m->work->steps[i];
    if (step.is_alloc)
      TOOL_TRY(add_alloc(m, step.buffer, &last));
    else
      TOOL_TRY(rondo_graph_add_free(m->graph, &last, 1, m->addresses[step.buffer], &last));
  }
  return RONDO_OK;
}

/* The graph again, with a profile of itself. */
static rondo_status record_again(rondo_memory *m, double *out_profile_us) {
  rondo_profile *profile;
  const uint64_t begin = clock_ns();
  TOOL_TRY(rondo_profile_create(m->graph, NULL, &profile));
  *out_profile_us = (double)(clock_ns() - begin) / 1e3;
  rondo_status status = rondo_graph_destroy(m->graph);
  m->graph = NULL;
  if (!status) status = record(m, profile);
  rondo_profile_destroy(profile);
  return status;
}

/* Measuring ------------------------------------------------------------------------------------------------------- */

static rondo_status launch(rondo_exec *exec, rondo_stream *stream, samples *times) {
  const uint64_t begin = clock_ns();
  TOOL_TRY(rondo_exec_launch(exec, stream));
  samples_add(times, (double)(clock_ns() - begin) / 1e3);
  return rondo_stream_synchronize(stream);
}

/* On the first `count` streams in turn; *most becomes what was mapped again, when that is more. */
static rondo_status launch_on(const rondo_memory *m, rondo_exec *exec, size_t count, samples *times, uint64_t *most) {
  rondo_memory_statistics before = {.struct_size = sizeof before}, after = {.struct_size = sizeof after};
  TOOL_TRY(rondo_memory_get_statistics(m->device, &before));
  for (size_t i = 0; i < MEMORY_LAUNCHES; i++) TOOL_TRY(launch(exec, m->streams[i % count], times));
  TOOL_TRY(rondo_memory_get_statistics(m->device, &after));
  if (after.remaps - before.remaps > *most) *most = after.remaps - before.remaps;
  return RONDO_OK;
}

static rondo_status measure_exec(const rondo_memory *m, rondo_exec *exec, memory_times *out) {
  rondo_memory_statistics statistics = {.struct_size = sizeof statistics};
  TOOL_TRY(launch(exec, m->streams[0], &out->first));
  TOOL_TRY(rondo_memory_get_statistics(m->device, &statistics));
  out->bytes = statistics.graph_reserved;
  TOOL_TRY(launch_on(m, exec, 1, &out->again, &out->remaps));
  return launch_on(m, exec, 2, &out->alternating, &out->moves);
}

static rondo_status measure_round(const rondo_memory *m, bool relocate, memory_times *out) {
  const rondo_instantiate_options options = {RONDO_INSTANTIATE_OPTIONS_INIT, .relocate = relocate};
  rondo_exec *exec;
  TOOL_TRY(rondo_graph_memory_trim(m->device));
  const uint64_t begin = clock_ns();
  TOOL_TRY(rondo_instantiate(m->graph, &options, &exec));
  samples_add(&out->instantiate, (double)(clock_ns() - begin) / 1e3);
  const rondo_status status = measure_exec(m, exec, out);
  rondo_exec_destroy(exec);
  return status;
}

static rondo_status measure(rondo_memory *m, memory_placing placing, memory_times *out) {
  TOOL_TRY(rondo_kernel_create(m->device, &bench_touch, &m->kernel));
  for (size_t i = 0; i < 2; i++) TOOL_TRY(rondo_stream_create(m->device, NULL, &m->streams[i]));
  TOOL_TRY(record(m, NULL));
  if (placing == MEMORY_PROFILED) TOOL_TRY(record_again(m, &out->profile_us));
  for (size_t i = 0; i < MEMORY_ROUNDS; i++) TOOL_TRY(measure_round(m, placing == MEMORY_RELOCATED, out));
  return RONDO_OK;
}

static int take_down(rondo_memory *m) {
  int result = rondo_graph_destroy(m->graph) ? tool_fail_status("%s: the graph", m->work->name) : TOOL_OK;
  for (size_t i = 0; i < 2; i++) {
    if (rondo_stream_destroy(m->streams[i])) result = tool_fail_status("%s: a stream", m->work->name);
  }
  rondo_kernel_destroy(m->kernel);
  if (rondo_graph_memory_trim(m->device)) result = tool_fail_status("%s: trimming", m->work->name);
  free(m->addresses);
  return result;
}

int memory_measure_rondo(rondo_device *device, const memory_work *work, memory_placing placing, memory_times *out) {
  rondo_memory m = {.device = device, .work = work, .addresses = calloc(work->list->count + 1, sizeof(void *))};
  if (!m.addresses) return tool_fail_memory("%zu buffers", work->list->count);
  const int result = measure(&m, placing, out) ? tool_fail_status("%s", work->name) : TOOL_OK;
  const int taken_down = take_down(&m);
  return result == TOOL_OK ? taken_down : result;
}
