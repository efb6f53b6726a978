/* SPDX-License-Identifier: MIT
 * OpenMP tasks with depend clauses, created again in every replay, because OpenMP 5 records nothing; taskloop for the
 * grid. Built once with gcc (libgomp) and once with clang (libomp).
 *
 *   omp-<compiler>-task     one parallel region around the whole measurement; the host creates the tasks (launch)
 *                           and runs some of them in taskwait (wait); with one thread, it runs all
 *   omp-<compiler>-region   a parallel region opened and closed in every replay, all in the wait: the cost for a
 *                           library that ordinary code calls
 */
#define _GNU_SOURCE
#include <omp.h>

#include "measure.h"

#ifdef __clang__
#define COMPILER "clang"
#else
#define COMPILER "gcc"
#endif

enum { TASK, REGION, VARIANTS };
static const char *const names[VARIANTS] = {"omp-" COMPILER "-task", "omp-" COMPILER "-region"};

typedef struct openmp {
  const bench_graph *graph;
  int threads;
  char *tokens; /* a depend clause names one byte for each node */
} openmp;

static void make_task(const openmp *self, uint32_t i) {
  const bench_node *node = &self->graph->nodes[i];
  const uint32_t *predecessors = self->graph->predecessors;
  const uint32_t first = self->graph->predecessor_start[i], last = self->graph->predecessor_start[i + 1];
  char *tokens = self->tokens;
  (void)tokens;
  (void)predecessors;
  if (first == last) {
#pragma omp task firstprivate(node) depend(out : tokens[i])
    node->body(node->argument, 0);
  } else if (last == first + 1) {
#pragma omp task firstprivate(node) depend(in : tokens[predecessors[first]]) depend(out : tokens[i])
    node->body(node->argument, 0);
  } else {
#pragma omp task firstprivate(node) depend(iterator(k = first                    \
                                                    : last),                     \
                                           in                                    \
                                           : tokens[predecessors[k]]) depend(out \
                                                                             : tokens[i])
    node->body(node->argument, 0);
  }
}

static void make_tasks(const openmp *self) {
  for (uint32_t i = 0; i < self->graph->count; i++) make_task(self, i);
}

static void task_launch(void *self) {
  if (((const openmp *)self)->graph->count > 1) make_tasks(self);
}

static void task_wait(void *argument) {
  const openmp *self = argument;
  const bench_node *node = self->graph->nodes;
  if (self->graph->count > 1) {
#pragma omp taskwait
  } else {
#pragma omp taskloop grainsize(16)
    for (uint32_t block = 0; block < node->blocks; block++) node->body(node->argument, block);
  }
}

static void region_launch(void *self) { (void)self; }

static void region_wait(void *argument) {
  const openmp *self = argument;
  const bench_node *node = self->graph->nodes;
  if (self->graph->count > 1) {
#pragma omp parallel num_threads(self->threads)
#pragma omp single
    make_tasks(self);
  } else {
#pragma omp parallel for schedule(dynamic, 16) num_threads(self->threads)
    for (uint32_t block = 0; block < node->blocks; block++) node->body(node->argument, block);
  }
}

static void measure(int variant, int threads, int shape) {
  bench_graph *graph = bench_graph_create(shape);
  openmp self = {.graph = graph, .threads = threads, .tokens = bench_zeroed(graph->count, 1)};
  bench_engine engine = {.name = names[variant], .threads = threads, .batch = 1, .self = &self};
  engine.launch = variant == TASK ? task_launch : region_launch;
  engine.wait = variant == TASK ? task_wait : region_wait;
  if (variant == REGION) {
    bench_measure(&engine, graph);
  } else {
#pragma omp parallel num_threads(threads)
#pragma omp single
    bench_measure(&engine, graph);
  }
  bench_child_end();
}

int main(void) {
  char version[32];
  snprintf(version, sizeof version, "OpenMP %d", _OPENMP);
  bench_begin("peer_openmp_" COMPILER, version);
  for (int shape = 0; shape < BENCH_SHAPE_COUNT; shape++) {
    for (int variant = 0; variant < VARIANTS; variant++) {
      for (int threads = 1; threads <= 2; threads++) {
        if (bench_wants(shape, names[variant]) && bench_child()) measure(variant, threads, shape);
      }
    }
  }
  return bench_end();
}
