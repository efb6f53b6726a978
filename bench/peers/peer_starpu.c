/* SPDX-License-Identifier: MIT
 * StarPU: tasks with explicit dependencies, created again in every replay. launch = create, declare dependencies,
 * submit; wait = starpu_task_wait_for_all. StarPU runs tasks on its own threads, and the host only waits. The grid is
 * not measured, because StarPU has no blocks.
 */
#define _GNU_SOURCE
#include <starpu.h>

#include "measure.h"

enum { MOST_PREDECESSORS = 32 };

typedef struct starpu_peer {
  bench_graph *graph;
  struct starpu_task **tasks;
} starpu_peer;

static void run_node(void *buffers[], void *argument) {
  const bench_node *node = argument;
  (void)buffers;
  node->body(node->argument, 0);
}

static struct starpu_codelet codelet = {.cpu_funcs = {run_node}, .cpu_funcs_name = {"run_node"}, .nbuffers = 0};

static void create_task(starpu_peer *self, uint32_t i) {
  const bench_graph *graph = self->graph;
  struct starpu_task *task = starpu_task_create(), *before[MOST_PREDECESSORS];
  unsigned count = 0;
  task->cl = &codelet;
  task->cl_arg = &self->graph->nodes[i];
  for (uint32_t k = graph->predecessor_start[i]; k < graph->predecessor_start[i + 1]; k++) {
    before[count++] = self->tasks[graph->predecessors[k]];
  }
  if (count > 0) starpu_task_declare_deps_array(task, count, before);
  self->tasks[i] = task;
}

static void launch(void *argument) {
  starpu_peer *self = argument;
  for (uint32_t i = 0; i < self->graph->count; i++) create_task(self, i);
  for (uint32_t i = 0; i < self->graph->count; i++) {
    if (starpu_task_submit(self->tasks[i]) != 0) exit(EXIT_FAILURE);
  }
}

static void wait_for_all(void *self) {
  (void)self;
  starpu_task_wait_for_all();
}

static void measure(int threads, int shape) {
  struct starpu_conf conf;
  starpu_conf_init(&conf);
  conf.ncpus = threads;
  conf.ncuda = 0;
  conf.nopencl = 0;
  setenv("STARPU_WORKERS_NOBIND", "1", 0); /* the harness binds threads */
  if (starpu_init(&conf) != 0) {
    fprintf(stderr, "StarPU cannot be started\n");
    exit(EXIT_FAILURE);
  }
  starpu_peer self = {.graph = bench_graph_create(shape)};
  self.tasks = bench_zeroed(self.graph->count, sizeof *self.tasks);
  const bench_engine engine = {
      .name = "starpu", .threads = threads, .batch = 1, .self = &self, .launch = launch, .wait = wait_for_all};
  bench_measure(&engine, self.graph);
  bench_child_end();
}

int main(void) {
  char version[32];
  snprintf(version, sizeof version, "%d.%d.%d", STARPU_MAJOR_VERSION, STARPU_MINOR_VERSION, STARPU_RELEASE_VERSION);
  bench_begin("peer_starpu", version);
  for (int shape = 0; shape < BENCH_GRID4096; shape++) {
    for (int threads = 1; threads <= 2; threads++) {
      if (bench_wants(shape, "starpu") && bench_child()) measure(threads, shape);
    }
  }
  return bench_end();
}
