/* SPDX-License-Identifier: MIT
 * Memory inside graphs with the CUDA driver alone: the same work, captured from the driver's stream-ordered allocator,
 * gives the driver's own memory nodes. The bytes held are those that the driver reports as reserved for graphs.
 */
#include <stdlib.h>

#include "bench/bench_kernels.h"
#include "bench/memory_work.h"
#include "common/tool.h"

typedef struct bare_memory {
  bench_target *target;
  const memory_work *work;
  target_graph graph;
  uint64_t *addresses; /* by buffer */
} bare_memory;

/* Recording ------------------------------------------------------------------------------------------------------- */

static int take_step(const bare_memory *m, memory_step step) {
  const bare_device *device = bare_target_device(m->target);
  const bare_stream stream = bare_target_stream(m->target);
  uint64_t *address = &m->addresses[step.buffer];
  if (!step.is_alloc) return device->driver.mem_free_async(*address, stream);
  const int code = device->driver.mem_alloc_async(address, m->work->list->items[step.buffer].bytes, stream);
  void *args[] = {address};
  return code ? code : device->driver.launch_kernel(device->kernel, 1, 1, 1, 1, 1, 1, 0, stream, args, NULL);
}

static int record(bare_memory *m) {
  int code = 0;
  if (m->target->calls->begin_capture(m->target) != TOOL_OK) return TOOL_FAILURE;
  for (size_t i = 0; i < m->work->step_count && !code; i++) code = take_step(m, m->work->steps[i]);
  const int result = bare_check(code, m->work->name), ended = m->target->calls->end_capture(m->target, &m->graph);
  return result == TOOL_OK ? ended : result;
}

/* Measuring ------------------------------------------------------------------------------------------------------- */

/* The driver keeps the freed memory of graphs until a trim. */
static int trim(void *self) {
  const bare_memory *m = self;
  const bare_device *device = bare_target_device(m->target);
  uint64_t none = 0;
  if (!device->driver.graph_mem_trim || !device->driver.graph_mem_set) return TOOL_OK;
  const int code = device->driver.graph_mem_trim(device->device);
  return bare_check(code ? code : device->driver.graph_mem_set(device->device, BARE_GRAPH_MEMORY_HIGH, &none),
                    "trimming");
}

static int instantiate(void *self, void **out_exec) {
  const bare_memory *m = self;
  return m->target->calls->instantiate(m->target, &m->graph, false, out_exec);
}

/* The driver does not report how often it maps memory again. */
static int count(void *self, uint64_t *out_bytes, uint64_t *out_remaps) {
  const bare_device *device = bare_target_device(((const bare_memory *)self)->target);
  *out_bytes = *out_remaps = 0;
  return device->driver.graph_mem_get
             ? bare_check(device->driver.graph_mem_get(device->device, BARE_GRAPH_MEMORY_HIGH, out_bytes), "counting")
             : TOOL_OK;
}

int memory_measure_bare(const char *device_name, const memory_work *work, memory_times *out) {
  bare_memory m = {.work = work, .addresses = calloc(work->list->count + 1, sizeof *m.addresses)};
  if (!m.addresses) return tool_fail_memory("%zu buffers", work->list->count);
  int result = bare_target_create(device_name, &bench_touch, 2, &m.target);
  if (result == TOOL_OK) result = record(&m);
  if (result == TOOL_OK) result = memory_measure(&(memory_method){m.target, trim, instantiate, count, &m}, out);
  if (m.target) {
    (void)m.target->calls->discard_graph(m.target, &m.graph);
    (void)trim(&m);
  }
  (void)bench_target_destroy(m.target);
  free(m.addresses);
  return result;
}
