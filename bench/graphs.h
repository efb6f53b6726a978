/* SPDX-License-Identifier: MIT
 * The graphs and bodies that Rondo and each peer replay. Header only, in C that C++ accepts too.
 *
 * A graph has its nodes in a topological order and its edges in both directions in CSR format: the successors of node
 * i are successors[successor_start[i]] .. successors[successor_start[i + 1] - 1]. A node calls its body with its
 * argument once for each block.
 */
#ifndef RONDO_BENCH_GRAPHS_H
#define RONDO_BENCH_GRAPHS_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/timing.h"

typedef void (*bench_body)(void *argument, uint32_t block);

typedef struct bench_node {
  bench_body body;
  void *argument; /* the node's number */
  uint32_t blocks;
} bench_node;

typedef struct bench_graph {
  const char *name;
  uint32_t count, edge_count;
  bench_node *nodes;
  uint32_t *successor_start, *successors;
  uint32_t *predecessor_start, *predecessors;
} bench_graph;

/* A benchmark without memory reports nothing. */
static inline void *bench_zeroed(size_t count, size_t bytes) {
  void *memory = calloc(count, bytes);
  if (memory == NULL) {
    fprintf(stderr, "out of memory\n");
    exit(EXIT_FAILURE);
  }
  return memory;
}

/* Bodies ---------------------------------------------------------------------------------------------------------- */

/* Steps of the busy loop for one microsecond and for a block, measured once; see bench_calibrate. */
typedef struct bench_steps {
  uint32_t microsecond, block;
} bench_steps;

static inline bench_steps *bench_busy_steps(void) {
  static bench_steps steps;
  return &steps;
}

static inline void bench_spin(uint32_t steps) {
  uint64_t x = 88172645463325252u;
  for (uint32_t i = 0; i < steps; i++) {
    x ^= x << 13;
    x ^= x >> 7;
    x ^= x << 17;
    __asm__ volatile("" : "+r"(x));
  }
}

static inline void bench_empty(void *argument, uint32_t block) { __asm__ volatile("" : : "r"(argument), "r"(block)); }

static inline void bench_microsecond(void *argument, uint32_t block) {
  bench_empty(argument, block);
  bench_spin(bench_busy_steps()->microsecond);
}

static inline void bench_block(void *argument, uint32_t block) {
  bench_empty(argument, block);
  bench_spin(bench_busy_steps()->block);
}

/* The shortest of many runs, in nanoseconds. */
static inline double bench_body_ns(bench_body body) {
  double best = 1e18;
  for (int i = 0; i < 30; i++) {
    const uint64_t start = clock_ns();
    for (uint32_t k = 0; k < 20; k++) body(NULL, k);
    const double each = (double)(clock_ns() - start) / 20;
    if (each < best) best = each;
  }
  return best;
}

/* Sets the lengths of the busy loops: from the environment, so that all programs of a run do the same work, or by
 * measuring this machine. */
static inline void bench_calibrate(void) {
  bench_steps *steps = bench_busy_steps();
  const char *microsecond = getenv("BENCH_STEPS_MICROSECOND"), *block = getenv("BENCH_STEPS_BLOCK");
  if (microsecond != NULL && block != NULL) {
    steps->microsecond = (uint32_t)atol(microsecond);
    steps->block = (uint32_t)atol(block);
    return;
  }
  steps->microsecond = 1000;
  const double ns_per_step = bench_body_ns(bench_microsecond) / 1000;
  steps->microsecond = (uint32_t)(1000 / ns_per_step);
  steps->block = (uint32_t)(200 / ns_per_step);
}

/* The checking body asserts that each node and each block runs once, after all predecessors. */
typedef struct bench_check_state {
  const bench_graph *graph;
  uint32_t replay, wrong;
  uint32_t *stamps; /* the replay in which the node ran */
  uint32_t *counts; /* blocks that ran in this replay */
} bench_check_state;

static inline bench_check_state *bench_check(void) {
  static bench_check_state state;
  return &state;
}

static inline void bench_checking(void *argument, uint32_t block) {
  bench_check_state *check = bench_check();
  const bench_graph *graph = check->graph;
  const uint32_t node = (uint32_t)(uintptr_t)argument;
  (void)block;
  for (uint32_t k = graph->predecessor_start[node]; k < graph->predecessor_start[node + 1]; k++) {
    const uint32_t stamp = __atomic_load_n(&check->stamps[graph->predecessors[k]], __ATOMIC_ACQUIRE);
    if (stamp != check->replay) __atomic_fetch_add(&check->wrong, 1, __ATOMIC_RELAXED);
  }
  const uint32_t done = __atomic_add_fetch(&check->counts[node], 1, __ATOMIC_ACQ_REL);
  if (done == graph->nodes[node].blocks) __atomic_store_n(&check->stamps[node], check->replay, __ATOMIC_RELEASE);
}

/* The body of sources and sinks when the time from the first start to the last end is measured. */
static inline uint64_t **bench_span_stamps(void) {
  static uint64_t *stamps;
  return &stamps;
}

static inline void bench_stamping(void *argument, uint32_t block) {
  (void)block;
  __atomic_store_n(&(*bench_span_stamps())[(uintptr_t)argument], clock_ns(), __ATOMIC_RELAXED);
}

static inline int bench_is_source(const bench_graph *graph, uint32_t node) {
  return graph->predecessor_start[node] == graph->predecessor_start[node + 1];
}

static inline int bench_is_sink(const bench_graph *graph, uint32_t node) {
  return graph->successor_start[node] == graph->successor_start[node + 1];
}

static inline void bench_set_bodies(bench_graph *graph, bench_body body) {
  for (uint32_t i = 0; i < graph->count; i++) {
    graph->nodes[i].body = body;
    graph->nodes[i].argument = (void *)(uintptr_t)i;
  }
}

/* Shapes ---------------------------------------------------------------------------------------------------------- */

enum {
  BENCH_LINE32,     /* a chain of 32 nodes */
  BENCH_BRANCH2X16, /* two chains of 16 */
  BENCH_FORK30,     /* 1, then 30 side by side, then 1 */
  BENCH_LINE1000,
  BENCH_DAG10K,   /* 100 layers of 100 nodes, each with 1 to 3 random predecessors in the layer before */
  BENCH_GRID4096, /* one node of 4096 blocks */
  BENCH_SHAPE_COUNT
};

static inline const char *bench_shape_name(int shape) {
  static const char *const names[BENCH_SHAPE_COUNT] = {"line32",   "branch2x16", "fork30",
                                                       "line1000", "dag10k",     "grid4096"};
  return names[shape];
}

/* The edges of one direction in CSR format: `key` of each edge is its row, `value` the other node. */
static inline void bench_fill_rows(uint32_t count, const uint32_t *keys, const uint32_t *values, uint32_t edge_count,
                                   uint32_t *start, uint32_t *rows) {
  uint32_t *filled = (uint32_t *)bench_zeroed(count, sizeof *filled);
  for (uint32_t k = 0; k < edge_count; k++) start[keys[k] + 1]++;
  for (uint32_t i = 0; i < count; i++) start[i + 1] += start[i];
  for (uint32_t k = 0; k < edge_count; k++) rows[start[keys[k]] + filled[keys[k]]++] = values[k];
  free(filled);
}

typedef struct bench_edges {
  uint32_t count;
  uint32_t from[30000], to[30000];
} bench_edges;

static inline void bench_add_edge(bench_edges *edges, uint32_t from, uint32_t to) {
  edges->from[edges->count] = from;
  edges->to[edges->count++] = to;
}

static inline void bench_add_line(bench_edges *edges, uint32_t first, uint32_t last) {
  for (uint32_t i = first + 1; i <= last; i++) bench_add_edge(edges, i - 1, i);
}

/* Knuth's linear congruential generator (MMIX): the same graph everywhere. */
static inline uint32_t bench_random_below(uint64_t *state, uint32_t bound) {
  *state = *state * 6364136223846793005u + 1442695040888963407u;
  return (uint32_t)(*state >> 33) % bound;
}

static inline void bench_add_layers(bench_edges *edges, uint32_t count) {
  uint64_t random = 20240601;
  for (uint32_t i = 100; i < count; i++) {
    uint32_t before[3], found = 0;
    const uint32_t wanted = 1 + bench_random_below(&random, 3);
    while (found < wanted) {
      const uint32_t candidate = (i / 100 - 1) * 100 + bench_random_below(&random, 100);
      int known = 0;
      for (uint32_t k = 0; k < found; k++) known |= before[k] == candidate;
      if (known) continue;
      before[found++] = candidate;
      bench_add_edge(edges, candidate, i);
    }
  }
}

static inline uint32_t bench_add_shape(bench_edges *edges, int shape) {
  switch (shape) {
    case BENCH_LINE32:
      bench_add_line(edges, 0, 31);
      return 32;
    case BENCH_BRANCH2X16:
      bench_add_line(edges, 0, 15);
      bench_add_line(edges, 16, 31);
      return 32;
    case BENCH_FORK30:
      for (uint32_t i = 1; i < 31; i++) bench_add_edge(edges, 0, i);
      for (uint32_t i = 1; i < 31; i++) bench_add_edge(edges, i, 31);
      return 32;
    case BENCH_LINE1000:
      bench_add_line(edges, 0, 999);
      return 1000;
    case BENCH_DAG10K:
      bench_add_layers(edges, 10000);
      return 10000;
    default:
      return 1;
  }
}

static inline bench_graph *bench_graph_create(int shape) {
  bench_edges *edges = (bench_edges *)bench_zeroed(1, sizeof *edges);
  bench_graph *graph = (bench_graph *)bench_zeroed(1, sizeof *graph);
  const uint32_t count = bench_add_shape(edges, shape);
  graph->name = bench_shape_name(shape);
  graph->count = count;
  graph->edge_count = edges->count;
  graph->nodes = (bench_node *)bench_zeroed(count, sizeof *graph->nodes);
  for (uint32_t i = 0; i < count; i++) graph->nodes[i].blocks = shape == BENCH_GRID4096 ? 4096 : 1;
  graph->successor_start = (uint32_t *)bench_zeroed(count + 1, sizeof(uint32_t));
  graph->predecessor_start = (uint32_t *)bench_zeroed(count + 1, sizeof(uint32_t));
  graph->successors = (uint32_t *)bench_zeroed(edges->count + 1, sizeof(uint32_t));
  graph->predecessors = (uint32_t *)bench_zeroed(edges->count + 1, sizeof(uint32_t));
  bench_fill_rows(count, edges->from, edges->to, edges->count, graph->successor_start, graph->successors);
  bench_fill_rows(count, edges->to, edges->from, edges->count, graph->predecessor_start, graph->predecessors);
  free(edges);
  return graph;
}

#endif
