/* SPDX-License-Identifier: MIT
 * Lines of kernels by Rondo.
 */
#include "bench_check.h"
#include "line_target.h"

typedef struct rondo_target {
  line_target base;
  rondo_device *device;
  rondo_kernel *kernel;
  rondo_stream *stream;
} rondo_target;

static const rondo_grid one_block = {1, 1, 1};

static rondo_target *of(line_target *target) { return (rondo_target *)target; }

static uint64_t allocate(line_target *target, size_t bytes) {
  void *address;
  check(rondo_malloc(of(target)->device, bytes, "benchmark", &address));
  return (uint64_t)(uintptr_t)address;
}

static void build(line_target *target, const line_work *work, line_graph *out) {
  rondo_graph *graph = NULL;
  rondo_node last = {0};
  uint64_t values[2];
  check(rondo_graph_create(of(target)->device, NULL, &graph));
  for (uint32_t i = 0; i < work->nodes; i++) {
    work->arguments(work->user, i, values);
    check(rondo_graph_add_kernel(graph, &last, i > 0, of(target)->kernel, one_block, RONDO_ARGS(&values[0], &values[1]),
                                 &last));
    if (i - work->first_marked < work->marked) out->marked[i - work->first_marked].rondo = last;
  }
  out->graph = graph;
}

static void *instantiate(line_target *target, const line_graph *graph) {
  rondo_exec *exec = NULL;
  (void)target;
  check(rondo_instantiate(graph->graph, NULL, &exec));
  return exec;
}

static void discard_graph(line_target *target, const line_graph *graph) {
  (void)target;
  check(rondo_graph_destroy(graph->graph));
}

static void discard_exec(line_target *target, void *exec) {
  (void)target;
  rondo_exec_destroy(exec);
}

static void update(line_target *target, void *exec, const line_graph *graph) {
  (void)target;
  check(rondo_exec_update(exec, graph->graph, NULL));
}

static void set(line_target *target, void *exec, const line_graph *graph, size_t mark, const uint64_t values[2]) {
  const void *const args[] = {&values[0], &values[1]};
  const rondo_node_params params = {
      .kind = RONDO_NODE_KERNEL,
      .as.kernel = {.kernel = of(target)->kernel, .grid = one_block, .args = args, .arg_count = 2}};
  check(rondo_exec_set_params(exec, graph->marked[mark].rondo, &params));
}

static void copy(line_target *target, uint64_t dst, uint64_t src, size_t bytes) {
  check(rondo_copy_async(of(target)->stream, (void *)(uintptr_t)dst, (void *)(uintptr_t)src, bytes));
}

static void launch(line_target *target, void *exec) { check(rondo_exec_launch(exec, of(target)->stream)); }

static void wait(line_target *target) { check(rondo_stream_synchronize(of(target)->stream)); }

line_target *line_rondo_open(rondo_device *device, const rondo_kernel_options *kernel) {
  rondo_target *t = bench_allocate(1, sizeof *t);
  *t = (rondo_target){
      .base = {allocate, build, instantiate, discard_graph, discard_exec, update, set, copy, launch, wait},
      .device = device};
  check(rondo_kernel_create(device, kernel, &t->kernel));
  check(rondo_stream_create(device, NULL, &t->stream));
  return &t->base;
}

rondo_stream *line_rondo_stream(line_target *target) { return of(target)->stream; }
