/* SPDX-License-Identifier: MIT
 * Memory inside graphs by the CUDA driver without Rondo: the same work captured from its stream-ordered allocator,
 * which leaves the driver's own memory nodes. Bytes held are what the driver says it has reserved for graphs.
 */
#include <stdlib.h>

#include "bench/bare_driver.h"
#include "bench/bench_kernels.h"
#include "bench/memory_work.h"
#include "common/tool.h"

typedef struct bare_memory {
  bare_device device;
  const memory_work *work;
  bare_stream streams[2];
  bare_graph graph;
  uint64_t *addresses; /* of the buffers */
} bare_memory;

/* Recording ------------------------------------------------------------------------------------------------------- */

static int take_step(bare_memory *m, memory_step step) {
  const bare_driver *driver = &m->device.driver;
  uint64_t *address = &m->addresses[step.buffer];
  if (!step.is_alloc) return driver->mem_free_async(*address, m->streams[0]);
  const int code = driver->mem_alloc_async(address, m->work->list->items[step.buffer].bytes, m->streams[0]);
  void *args[] = {address};
  return code ? code : driver->launch_kernel(m->device.kernel, 1, 1, 1, 1, 1, 1, 0, m->streams[0], args, NULL);
}

static int record(bare_memory *m) {
  const bare_driver *driver = &m->device.driver;
  int code = driver->begin_capture(m->streams[0], BARE_CAPTURE_THREAD);
  if (code) return code;
  for (size_t i = 0; i < m->work->step_count && !code; i++) code = take_step(m, m->work->steps[i]);
  const int ended = driver->end_capture(m->streams[0], &m->graph);
  return code ? code : ended;
}

/* Measuring ------------------------------------------------------------------------------------------------------- */

static int launch(const bare_memory *m, bare_exec exec, bare_stream stream, samples *times) {
  const uint64_t begin = clock_ns();
  const int code = m->device.driver.graph_launch(exec, stream);
  samples_add(times, (double)(clock_ns() - begin) / 1e3);
  return code ? code : m->device.driver.stream_synchronize(stream);
}

/* The driver keeps what graphs freed until it is trimmed. */
static int trim(const bare_memory *m) {
  uint64_t none = 0;
  if (!m->device.driver.graph_mem_trim || !m->device.driver.graph_mem_set) return 0;
  const int code = m->device.driver.graph_mem_trim(m->device.device);
  return code ? code : m->device.driver.graph_mem_set(m->device.device, BARE_GRAPH_MEMORY_HIGH, &none);
}

static int measure_exec(const bare_memory *m, bare_exec exec, memory_times *out) {
  const bare_driver *driver = &m->device.driver;
  int code = launch(m, exec, m->streams[0], &out->first);
  if (!code && driver->graph_mem_get)
    code = driver->graph_mem_get(m->device.device, BARE_GRAPH_MEMORY_HIGH, &out->bytes);
  for (size_t i = 0; i < MEMORY_LAUNCHES && !code; i++) code = launch(m, exec, m->streams[0], &out->again);
  for (size_t i = 0; i < MEMORY_LAUNCHES && !code; i++) code = launch(m, exec, m->streams[i % 2], &out->alternating);
  return code;
}

static int measure_round(const bare_memory *m, memory_times *out) {
  const bare_driver *driver = &m->device.driver;
  bare_instantiate_params params = {0};
  bare_exec exec;
  int code = trim(m);
  const uint64_t begin = clock_ns();
  if (!code) code = driver->instantiate(&exec, m->graph, &params);
  if (code) return code;
  samples_add(&out->instantiate, (double)(clock_ns() - begin) / 1e3);
  code = measure_exec(m, exec, out);
  (void)driver->exec_destroy(exec);
  return code;
}

static int measure(bare_memory *m, memory_times *out) {
  int code = 0;
  for (size_t i = 0; i < 2 && !code; i++) code = m->device.driver.stream_create(&m->streams[i], BARE_NON_BLOCKING);
  if (!code) code = record(m);
  for (size_t i = 0; i < MEMORY_ROUNDS && !code; i++) code = measure_round(m, out);
  return bare_check(code, m->work->name);
}

static void take_down(bare_memory *m) {
  if (m->graph) (void)m->device.driver.graph_destroy(m->graph);
  if (m->device.context) (void)trim(m);
  for (size_t i = 0; i < 2; i++) {
    if (m->streams[i]) (void)m->device.driver.stream_destroy(m->streams[i]);
  }
  bare_device_close(&m->device);
  free(m->addresses);
}

int memory_measure_bare(const char *device_name, const memory_work *work, memory_times *out) {
  bare_memory m = {.work = work, .addresses = calloc(work->list->count + 1, sizeof *m.addresses)};
  if (!m.addresses) return tool_fail_memory("%zu buffers", work->list->count);
  int result = bare_device_open(device_name, &bench_touch, &m.device);
  if (result == TOOL_OK) result = measure(&m, out);
  take_down(&m);
  return result;
}
