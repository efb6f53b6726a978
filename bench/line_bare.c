/* SPDX-License-Identifier: MIT
 * Lines of kernels by the CUDA driver, without Rondo. The structure of a kernel's parameters stays ready; only the two
 * arguments that it points to change.
 */
#include <string.h>

#include "bench_check.h"
#include "line_target.h"

typedef struct bare_target {
  line_target base;
  bare_device device;
  bare_stream stream;
  uint64_t values[2];
  void *args[2];
  bare_kernel_params params;
} bare_target;

static bare_target *of(line_target *target) { return (bare_target *)target; }

static const bare_driver *driver_of(line_target *target) { return &of(target)->device.driver; }

static uint64_t allocate(line_target *target, size_t bytes) {
  uint64_t address = 0;
  check_bare(driver_of(target)->mem_alloc_async(&address, bytes, of(target)->stream));
  check_bare(driver_of(target)->stream_synchronize(of(target)->stream));
  return address;
}

static void build(line_target *target, const line_work *work, line_graph *out) {
  bare_graph graph = NULL;
  bare_node last = NULL;
  check_bare(driver_of(target)->graph_create(&graph, 0));
  for (uint32_t i = 0; i < work->nodes; i++) {
    const bare_node before = last;
    work->arguments(work->user, i, of(target)->values);
    check_bare(driver_of(target)->graph_add_kernel(&last, graph, &before, i > 0, &of(target)->params));
    if (i - work->first_marked < work->marked) out->marked[i - work->first_marked].bare = last;
  }
  out->graph = graph;
}

static void *instantiate(line_target *target, const line_graph *graph) {
  bare_instantiate_params params = {0};
  bare_exec exec = NULL;
  check_bare(driver_of(target)->instantiate(&exec, graph->graph, &params));
  return exec;
}

static void discard_graph(line_target *target, const line_graph *graph) {
  check_bare(driver_of(target)->graph_destroy(graph->graph));
}

static void discard_exec(line_target *target, void *exec) { check_bare(driver_of(target)->exec_destroy(exec)); }

static void update(line_target *target, void *exec, const line_graph *graph) {
  bare_update_result result;
  check_bare(driver_of(target)->exec_update(exec, graph->graph, &result));
}

static void set(line_target *target, void *exec, const line_graph *graph, size_t mark, const uint64_t values[2]) {
  memcpy(of(target)->values, values, sizeof of(target)->values);
  check_bare(driver_of(target)->exec_set_kernel(exec, graph->marked[mark].bare, &of(target)->params));
}

static void copy(line_target *target, uint64_t dst, uint64_t src, size_t bytes) {
  check_bare(driver_of(target)->copy_async(dst, src, bytes, of(target)->stream));
}

static void launch(line_target *target, void *exec) {
  check_bare(driver_of(target)->graph_launch(exec, of(target)->stream));
}

static void wait(line_target *target) { check_bare(driver_of(target)->stream_synchronize(of(target)->stream)); }

line_target *line_bare_open(const char *device_name, const rondo_kernel_options *kernel) {
  if (!bare_is_cuda(device_name)) return NULL;
  bare_target *t = bench_allocate(1, sizeof *t);
  t->base = (line_target){allocate, build, instantiate, discard_graph, discard_exec, update, set, copy, launch, wait};
  check_tool(bare_device_open(device_name, kernel, &t->device));
  check_bare(t->device.driver.stream_create(&t->stream, BARE_NON_BLOCKING));
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
  return &t->base;
}
