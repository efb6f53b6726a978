/* SPDX-License-Identifier: MIT
 * How close to the lower bound memory is planned on a partial order, how fast, and with how much memory.
 *
 * DAGs are generated, on 2, 4 and 8 chains: nodes that wait for others at random, forks that are joined, and streams
 * that seldom wait for each other. Most items are short-lived, some live long, some are freed by another chain. A row
 * is a DAG planned with a budget; its memory is what planning had allocated at most. JSON goes to standard output, a
 * table to the standard error.
 *
 *   BENCH_PLAN_MS      list of budgets in milliseconds, beside the fast path; default 200
 *   BENCH_PLAN_NODES   list of sizes of the DAGs; default 10000,100000
 */
#define _GNU_SOURCE
#include <rondo/rondo.h>

#include "measure.h"
#include "plan_inputs.h"

enum { MOST_CHAINS = 8, MOST_EDGES_A_NODE = 3, MOST_ITEMS_A_NODE = 2 };

typedef struct dag {
  const char *name;
  uint32_t chains;
  uint32_t node_count, edge_count;
  uint32_t *from, *to; /* edges */
  uint32_t *next;      /* of each node, the one on its chain that comes behind; node_count: none */
  uint32_t *successor_start, *successors;
  rondo_plan_item *items;
  size_t count;
  uint64_t state;
} dag;

static void *allocate(size_t count, size_t size) {
  void *memory = calloc(count, size);
  if (memory == NULL) exit(EXIT_FAILURE);
  return memory;
}

/* Generators ------------------------------------------------------------------------------------------------------- */

static void add_edge(dag *d, uint32_t from, uint32_t to) {
  d->from[d->edge_count] = from;
  d->to[d->edge_count++] = to;
}

static void add_item(dag *d, uint32_t lower, uint32_t upper) {
  d->items[d->count++] =
      (rondo_plan_item){.bytes = random_bytes(&d->state, 12), .alignment = 512, .lower = lower, .upper = upper};
}

/* A new last node of a chain. */
static void extend(dag *d, uint32_t *last, uint32_t node) {
  if (*last != d->node_count) {
    add_edge(d, *last, node);
    d->next[*last] = node;
  }
  *last = node;
}

/* The node waits for one of an other chain, and may be who frees what that allocated. */
static void wait_for(dag *d, uint32_t other, uint32_t node) {
  add_edge(d, other, node);
  if (random_below(&d->state, 2) == 0) add_item(d, other, node);
}

static void make_random(dag *d) {
  uint32_t last[MOST_CHAINS];
  for (uint32_t c = 0; c < d->chains; c++) last[c] = d->node_count;
  for (uint32_t v = 0; v < d->node_count; v++) {
    const uint32_t back = 1 + (uint32_t)random_below(&d->state, 4 * d->chains);
    if (back <= v && random_below(&d->state, 2) == 0) wait_for(d, v - back, v);
    extend(d, &last[random_below(&d->state, d->chains)], v);
  }
}

/* A trunk, whose nodes are now and then followed by branches that the next one joins. */
static void make_fork_join(dag *d) {
  uint32_t trunk = d->node_count;
  for (uint32_t v = 0; v < d->node_count;) {
    const uint32_t length = 5 + (uint32_t)random_below(&d->state, 30);
    const uint32_t fork = v;
    extend(d, &trunk, v++);
    if (d->node_count - v <= length * d->chains) continue;
    uint32_t last[MOST_CHAINS];
    for (uint32_t c = 0; c < d->chains; c++) last[c] = fork;
    for (uint32_t i = 0; i < length * d->chains; i++) extend(d, &last[i % d->chains], v++);
    for (uint32_t c = 1; c < d->chains; c++) {
      add_edge(d, last[c], v);
      d->next[last[c]] = v;
    }
    trunk = last[0];
  }
}

static void make_streams(dag *d) {
  uint32_t last[MOST_CHAINS];
  for (uint32_t c = 0; c < d->chains; c++) last[c] = d->node_count;
  for (uint32_t v = 0; v < d->node_count; v++) {
    const uint32_t other = (uint32_t)random_below(&d->state, d->chains);
    const bool waits = other != v % d->chains && random_below(&d->state, 30) == 0;
    if (waits && last[other] != d->node_count) wait_for(d, last[other], v);
    extend(d, &last[v % d->chains], v);
  }
}

/* What each node allocates for those that follow on its chain: most of it for a few, some for hundreds. */
static void add_outputs(dag *d) {
  for (uint32_t v = 0; v < d->node_count; v++) {
    const bool is_long = random_below(&d->state, 16) == 0;
    uint32_t steps = 1 + (uint32_t)random_below(&d->state, is_long ? 200 : 8);
    uint32_t upper = v;
    for (; steps > 0 && d->next[upper] != d->node_count; steps--) upper = d->next[upper];
    if (upper != v) add_item(d, v, upper);
  }
}

static void list_successors(dag *d) {
  for (uint32_t e = 0; e < d->edge_count; e++) d->successor_start[d->from[e] + 2]++;
  for (uint32_t v = 0; v < d->node_count; v++) d->successor_start[v + 2] += d->successor_start[v + 1];
  for (uint32_t e = 0; e < d->edge_count; e++) d->successors[d->successor_start[d->from[e] + 1]++] = d->to[e];
}

static dag make_dag(const char *name, void (*make)(dag *d), uint32_t nodes, uint32_t chains) {
  dag d = {.name = name, .chains = chains, .node_count = nodes, .state = chains};
  d.from = allocate((size_t)MOST_EDGES_A_NODE * nodes, sizeof *d.from);
  d.to = allocate((size_t)MOST_EDGES_A_NODE * nodes, sizeof *d.to);
  d.next = allocate(nodes, sizeof *d.next);
  d.successor_start = allocate((size_t)nodes + 2, sizeof *d.successor_start);
  d.successors = allocate((size_t)MOST_EDGES_A_NODE * nodes, sizeof *d.successors);
  d.items = allocate((size_t)MOST_ITEMS_A_NODE * nodes, sizeof *d.items);
  for (uint32_t v = 0; v < nodes; v++) d.next[v] = nodes;
  make(&d);
  add_outputs(&d);
  list_successors(&d);
  return d;
}

static void free_dag(dag *d) {
  free(d->from);
  free(d->to);
  free(d->next);
  free(d->successor_start);
  free(d->successors);
  free(d->items);
}

/* Rows ------------------------------------------------------------------------------------------------------------- */

static void report(const dag *d, uint32_t budget_ms, const rondo_plan_info *info, size_t bytes, double check_ms) {
  const double ratio = info->lower_bound == 0 ? 1 : (double)info->peak / (double)info->lower_bound;
  char way[32] = "fast";
  if (budget_ms > 0) snprintf(way, sizeof way, "%ums", budget_ms);
  fprintf(stderr, "%-10s %6u %9u %9zu %-8s %9.6f %10.2f %7zu %10.2f  %-18s %s\n", d->name, d->chains, d->node_count,
          d->count, way, ratio, (double)info->nanoseconds / 1e6, bytes >> 10, check_ms, info->method,
          info->optimal ? "optimal" : "");
  fprintf(bench_reporting()->out,
          "{\"measure\":\"plan %s DAG, %u nodes on %u chains %s\",\"unit\":\"ns\",\"samples\":1,\"median\":%" PRIu64
          ",\"ratio\":%.6f,\"nodes\":%u,\"edges\":%u,\"chains\":%u,\"buffers\":%zu,\"budget_ms\":%u,"
          "\"lower_bound\":%zu,\"peak\":%zu,\"bytes\":%zu,\"check_ms\":%.3f,\"method\":\"%s\",\"optimal\":%s}\n",
          d->name, d->node_count, d->chains, way, info->nanoseconds, ratio, d->node_count, d->edge_count, d->chains,
          d->count, budget_ms, info->lower_bound, info->peak, bytes, check_ms, info->method,
          info->optimal ? "true" : "false");
}

static void plan(const dag *d, uint32_t budget_ms) {
  const rondo_plan_order order = {d->node_count, d->successor_start, d->successors};
  const rondo_plan_problem problem = {RONDO_PLAN_PROBLEM_INIT, .items = d->items, .count = d->count, .order = &order};
  counter counted = {0};
  const rondo_allocator allocator = {&counted, count_allocation, count_release};
  const rondo_plan_options options = {RONDO_PLAN_OPTIONS_INIT, .budget_ms = budget_ms, .fast_only = budget_ms == 0,
                                      .allocator = &allocator};
  rondo_plan *made = NULL;
  rondo_plan_info info = {.struct_size = sizeof info};
  check(rondo_plan_make(&problem, &options, &made));
  check(rondo_plan_get_info(made, &info));
  const uint64_t start = bench_now_ns();
  check(rondo_plan_check(NULL, &problem, rondo_plan_offsets(made)));
  report(d, budget_ms, &info, counted.most, (double)(bench_now_ns() - start) / 1e6);
  rondo_plan_destroy(made);
}

/* In a process of its own: what one DAG leaves in the heap would flatter the next. */
static void measure(dag *d) {
  if (bench_child()) {
    const char *budgets = text_setting("BENCH_PLAN_MS", "200");
    plan(d, 0);
    while (*budgets != '\0') plan(d, (uint32_t)next_number(&budgets));
    bench_child_end();
  }
  free_dag(d);
}

static void measure_all(uint32_t nodes) {
  static void (*const makers[])(dag * d) = {make_random, make_fork_join, make_streams};
  static const char *const names[] = {"random", "fork-join", "streams"};
  for (size_t i = 0; i < sizeof makers / sizeof makers[0]; i++) {
    for (uint32_t chains = 2; chains <= MOST_CHAINS; chains *= 2) {
      dag d = make_dag(names[i], makers[i], nodes, chains);
      measure(&d);
    }
  }
}

int main(void) {
  bench_begin("bench_plan_order", RONDO_VERSION_STRING);
  fprintf(stderr, "%-10s %6s %9s %9s %-8s %9s %10s %7s %10s  %s\n", "DAG", "chains", "nodes", "buffers", "budget",
          "ratio", "ms", "KiB", "check ms", "method");
  const char *sizes = text_setting("BENCH_PLAN_NODES", "10000,100000");
  while (*sizes != '\0') measure_all((uint32_t)next_number(&sizes));
  return bench_end();
}
