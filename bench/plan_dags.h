/* SPDX-License-Identifier: MIT
 * Random DAGs for the benchmark of planning on a partial order, the same on every machine. A DAG has a shape, a number
 * of chains, a distribution of sizes and a seed. An error ends the program.
 *
 *   random      nodes are put on random chains, and half of them wait for a recent node
 *   fork-join   a trunk, in which some nodes fork into branches that the next node joins
 *   streams     nodes are put on the chains in turn, and one in thirty waits for another chain
 *   layered     each node waits for the previous one of its chain, and for up to two of recent layers
 */
#ifndef RONDO_BENCH_PLAN_DAGS_H
#define RONDO_BENCH_PLAN_DAGS_H

#include "bench_check.h"
#include "plan_items.h"

enum { MAX_CHAINS = 64, MAX_EDGES_PER_NODE = 4, MAX_ITEMS_PER_NODE = 3, SHAPES = 4, SIZES = 4 };

typedef struct dag {
  uint32_t chains;
  uint32_t node_count, edge_count;
  uint32_t *from, *to; /* edges */
  uint32_t *next;      /* of each node, the next on its chain; node_count: none */
  uint32_t *successor_start, *successors;
  rondo_plan_item *items;
  size_t count;
  size_t (*draw_bytes)(struct dag *d, uint32_t node);
  uint64_t state;
} dag;

static inline uint32_t draw(dag *d, uint32_t bound) { return (uint32_t)random_below(&d->state, bound); }

/* Sizes ------------------------------------------------------------------------------------------------------------ */

static inline size_t draw_powers(dag *d, uint32_t node) {
  (void)node;
  return random_bytes(&d->state, 12);
}

static inline size_t draw_uniform(dag *d, uint32_t node) {
  (void)node;
  return 512 * (1 + (size_t)draw(d, 2048));
}

/* Half are at least twice the minimum, a quarter four times, and so on, up to 8 MiB. */
static inline size_t draw_heavy(dag *d, uint32_t node) {
  (void)node;
  return 512 * ((size_t)16384 / (1 + (size_t)draw(d, 16384)));
}

/* Activations of few sizes, which halve a few times from the first node to the last, and sizes of weights and small
 * ones among them. */
static inline size_t draw_network(dag *d, uint32_t node) {
  const size_t activation = (size_t)4 << 20 >> (5 * (uint64_t)node / d->node_count);
  switch (draw(d, 8)) {
    case 0:
      return 512 * (1 + (size_t)draw(d, 16));
    case 1:
      return activation / 4 * (1 + (size_t)draw(d, 4));
    case 2:
      return 512 * 9 * (1 + (size_t)draw(d, 256));
    default:
      return activation;
  }
}

static size_t (*const size_makers[SIZES])(dag *d, uint32_t node) = {draw_powers, draw_uniform, draw_heavy,
                                                                    draw_network};
static const char *const size_names[SIZES] = {"powers", "uniform", "heavy", "network"};

/* Shapes ----------------------------------------------------------------------------------------------------------- */

static inline void add_edge(dag *d, uint32_t from, uint32_t to) {
  d->from[d->edge_count] = from;
  d->to[d->edge_count++] = to;
}

static inline void add_item(dag *d, uint32_t lower, uint32_t upper) {
  d->items[d->count++] =
      (rondo_plan_item){.bytes = d->draw_bytes(d, lower), .alignment = 512, .lower = lower, .upper = upper};
}

/* Appends a node to a chain. */
static inline void extend(dag *d, uint32_t *last, uint32_t node) {
  if (*last != d->node_count) {
    add_edge(d, *last, node);
    d->next[*last] = node;
  }
  *last = node;
}

/* The node waits for one of another chain, and may free an item of it. */
static inline void wait_for(dag *d, uint32_t other, uint32_t node) {
  add_edge(d, other, node);
  if (draw(d, 2) == 0) add_item(d, other, node);
}

static inline void make_random_dag(dag *d) {
  uint32_t last[MAX_CHAINS];
  for (uint32_t c = 0; c < d->chains; c++) last[c] = d->node_count;
  for (uint32_t v = 0; v < d->node_count; v++) {
    const uint32_t back = 1 + draw(d, 4 * d->chains);
    extend(d, &last[draw(d, d->chains)], v);
    if (back <= v && draw(d, 2) == 0) wait_for(d, v - back, v);
  }
}

static inline void make_fork_join(dag *d) {
  uint32_t trunk = d->node_count;
  for (uint32_t v = 0; v < d->node_count;) {
    const uint32_t length = 5 + draw(d, 30);
    const uint32_t fork = v;
    extend(d, &trunk, v++);
    if (d->node_count - v <= length * d->chains) continue;
    uint32_t last[MAX_CHAINS];
    for (uint32_t c = 0; c < d->chains; c++) last[c] = fork;
    for (uint32_t i = 0; i < length * d->chains; i++) extend(d, &last[i % d->chains], v++);
    for (uint32_t c = 1; c < d->chains; c++) {
      add_edge(d, last[c], v);
      d->next[last[c]] = v;
    }
    trunk = last[0];
  }
}

static inline void make_streams(dag *d) {
  uint32_t last[MAX_CHAINS];
  for (uint32_t c = 0; c < d->chains; c++) last[c] = d->node_count;
  for (uint32_t v = 0; v < d->node_count; v++) {
    const uint32_t other = draw(d, d->chains);
    const bool waits = other != v % d->chains && draw(d, 30) == 0;
    const uint32_t source = last[other];
    extend(d, &last[v % d->chains], v);
    if (waits && source != d->node_count) wait_for(d, source, v);
  }
}

static inline void make_layered(dag *d) {
  uint32_t last[MAX_CHAINS];
  for (uint32_t c = 0; c < d->chains; c++) last[c] = d->node_count;
  for (uint32_t v = 0; v < d->node_count; v++) {
    const uint32_t layer = v / d->chains * d->chains;
    const uint32_t waits = v < 4 * d->chains ? 0 : draw(d, 3);
    for (uint32_t i = 0; i < waits; i++) wait_for(d, layer - 1 - draw(d, 3 * d->chains), v);
    extend(d, &last[v % d->chains], v);
  }
}

static void (*const shape_makers[SHAPES])(dag *d) = {make_random_dag, make_fork_join, make_streams, make_layered};
static const char *const shape_names[SHAPES] = {"random", "fork-join", "streams", "layered"};

/* The whole -------------------------------------------------------------------------------------------------------- */

static inline void list_successors(dag *d) {
  for (uint32_t e = 0; e < d->edge_count; e++) d->successor_start[d->from[e] + 2]++;
  for (uint32_t v = 0; v < d->node_count; v++) d->successor_start[v + 2] += d->successor_start[v + 1];
  for (uint32_t e = 0; e < d->edge_count; e++) d->successors[d->successor_start[d->from[e] + 1]++] = d->to[e];
}

/* The next node of the chain or, if there is none, the first successor. */
static inline uint32_t follow(const dag *d, uint32_t node) {
  if (d->next[node] != d->node_count) return d->next[node];
  const uint32_t first = d->successor_start[node];
  return first < d->successor_start[node + 1] ? d->successors[first] : d->node_count;
}

/* Items that nodes allocate for later ones: most live for a few nodes, some for hundreds. */
static inline void add_outputs(dag *d) {
  for (uint32_t v = 0; v < d->node_count; v++) {
    const bool is_long = draw(d, 16) == 0;
    uint32_t steps = 1 + draw(d, is_long ? 200 : 8);
    uint32_t upper = v;
    for (; steps > 0 && follow(d, upper) != d->node_count; steps--) upper = follow(d, upper);
    if (upper != v) add_item(d, v, upper);
  }
}

static inline dag make_dag(int shape, int sizes, uint32_t nodes, uint32_t chains, uint64_t seed) {
  dag d = {.chains = chains, .node_count = nodes, .draw_bytes = size_makers[sizes]};
  d.state = seed * 1000003 + chains;
  d.from = bench_allocate((size_t)MAX_EDGES_PER_NODE * nodes, sizeof *d.from);
  d.to = bench_allocate((size_t)MAX_EDGES_PER_NODE * nodes, sizeof *d.to);
  d.next = bench_allocate(nodes, sizeof *d.next);
  d.successor_start = bench_allocate((size_t)nodes + 2, sizeof *d.successor_start);
  d.successors = bench_allocate((size_t)MAX_EDGES_PER_NODE * nodes, sizeof *d.successors);
  d.items = bench_allocate((size_t)MAX_ITEMS_PER_NODE * nodes, sizeof *d.items);
  for (uint32_t v = 0; v < nodes; v++) d.next[v] = nodes;
  shape_makers[shape](&d);
  list_successors(&d);
  add_outputs(&d);
  return d;
}

static inline void free_dag(dag *d) {
  free(d->from);
  free(d->to);
  free(d->next);
  free(d->successor_start);
  free(d->successors);
  free(d->items);
}

#endif
