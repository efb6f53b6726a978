/* SPDX-License-Identifier: MIT
 * Memory inside graphs with Rondo. Addresses are chosen when nodes are created, from a profile of the same work, or
 * again when the graph is instantiated.
 */
#include <stdlib.h>

#include "bench/bench_kernels.h"
#include "bench/memory_work.h"
#include "common/tool.h"

typedef struct rondo_memory {
  rondo_device *device;
  const memory_work *work;
  bench_target *target;
  rondo_kernel *kernel;
  rondo_graph *graph;
  bool relocates;
  void **addresses; /* by buffer */
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

/* Records the graph again, with a profile of the first graph. */
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

static int fail(const rondo_memory *m) { return tool_fail_status("%s", m->work->name); }

static int trim(void *self) {
  const rondo_memory *m = self;
  return rondo_graph_memory_trim(m->device) ? fail(m) : TOOL_OK;
}

static int instantiate(void *self, void **out_exec) {
  const rondo_memory *m = self;
  const rondo_instantiate_options options = {RONDO_INSTANTIATE_OPTIONS_INIT, .relocate = m->relocates};
  rondo_exec *exec = NULL;
  const rondo_status status = rondo_instantiate(m->graph, &options, &exec);
  *out_exec = exec;
  return status ? fail(m) : TOOL_OK;
}

static int count(void *self, uint64_t *out_bytes, uint64_t *out_remaps) {
  const rondo_memory *m = self;
  rondo_memory_statistics statistics = {.struct_size = sizeof statistics};
  if (rondo_memory_get_statistics(m->device, &statistics)) return fail(m);
  *out_bytes = statistics.graph_reserved;
  *out_remaps = statistics.remaps;
  return TOOL_OK;
}

static int measure(rondo_memory *m, memory_placing placing, memory_times *out) {
  if (rondo_target_create(m->device, &bench_touch, 2, &m->target) != TOOL_OK) return TOOL_FAILURE;
  if (rondo_kernel_create(m->device, &bench_touch, &m->kernel) || record(m, NULL)) return fail(m);
  if (placing == MEMORY_PROFILED && record_again(m, &out->profile_us)) return fail(m);
  return memory_measure(&(memory_method){m->target, trim, instantiate, count, m}, out);
}

int memory_measure_rondo(rondo_device *device, const memory_work *work, memory_placing placing, memory_times *out) {
  rondo_memory m = {.device = device,
                    .work = work,
                    .relocates = placing == MEMORY_RELOCATED,
                    .addresses = calloc(work->list->count + 1, sizeof(void *))};
  if (!m.addresses) return tool_fail_memory("%zu buffers", work->list->count);
  int result = measure(&m, placing, out);
  if (rondo_graph_destroy(m.graph)) result = fail(&m);
  rondo_kernel_destroy(m.kernel);
  if (bench_target_destroy(m.target) != TOOL_OK) result = TOOL_FAILURE;
  if (rondo_graph_memory_trim(device)) result = fail(&m);
  free(m.addresses);
  return result;
}
