/* SPDX-License-Identifier: MIT
 * Programs of the fake driver: graphs flattened for execution. A child graph lies between two empty nodes, its entry
 * and its exit. A launch runs nodes one at a time, each after all nodes before it: the node that has been ready longest
 * first or, with a seed, a random one. Waits for events and values that are not complete let other nodes go first.
 */
#include <stdlib.h>
#include <string.h>

#include "fake_cuda/fake.h"

static const size_t none = SIZE_MAX;

typedef struct flattening {
  fake_program *program;
  size_t *from, *to;
} flattening;

static size_t count_nodes(const fake_graph *graph) {
  size_t count = 0;
  for (size_t i = 0; i < graph->count; i++)
    count += graph->nodes[i]->child != NULL ? 2 + count_nodes(graph->nodes[i]->child) : 1;
  return count;
}

/* Its own, and two for each node of a child. */
static size_t count_edges(const fake_graph *graph) {
  size_t count = graph->edge_count;
  for (size_t i = 0; i < graph->count; i++) {
    const fake_graph *child = graph->nodes[i]->child;
    if (child != NULL) count += count_edges(child) + 2 * child->count + 1;
  }
  return count;
}

static size_t add_node(flattening *f, uint64_t handle, cu_node_type type, fake_work *work) {
  fake_program *p = f->program;
  fake_work_retain(work);
  p->nodes[p->count] = handle;
  p->types[p->count] = type;
  p->works[p->count] = work;
  return p->count++;
}

static void add_edge(flattening *f, size_t from, size_t to) {
  if (from == none || to == none) return;
  f->from[f->program->edge_count] = from;
  f->to[f->program->edge_count++] = to;
}

/* Adds the graph's nodes after `above` and before `below`, which may be none. */
static void flatten(flattening *f, const fake_graph *graph, size_t above, size_t below) {
  size_t *entries = fake_allocate(graph->count, sizeof *entries), *exits = fake_allocate(graph->count, sizeof *exits);
  for (size_t i = 0; i < graph->count; i++) {
    const fake_node *node = graph->nodes[i];
    entries[i] = exits[i] = add_node(f, node->object.handle, node->type, node->work);
    if (node->child != NULL) {
      exits[i] = add_node(f, 0, CU_NODE_EMPTY, NULL);
      add_edge(f, entries[i], exits[i]);
      flatten(f, node->child, entries[i], exits[i]);
    }
    add_edge(f, above, entries[i]);
    add_edge(f, exits[i], below);
  }
  for (size_t i = 0; i < graph->edge_count; i++)
    add_edge(f, exits[graph->edges[i].from->index], entries[graph->edges[i].to->index]);
  free(entries);
  free(exits);
}

static void sort_edges(const flattening *f) {
  fake_program *p = f->program;
  for (size_t i = 0; i < p->edge_count; i++) {
    p->start[f->from[i] + 1]++;
    p->before[f->to[i]]++;
  }
  for (size_t i = 0; i < p->count; i++) p->start[i + 1] += p->start[i];
  size_t *next = fake_copy_of(p->start, (p->count + 1) * sizeof *next);
  for (size_t i = 0; i < p->edge_count; i++) p->successors[next[f->from[i]]++] = f->to[i];
  free(next);
}

static fake_program *new_program(size_t nodes, size_t edges) {
  fake_program *p = fake_allocate(1, sizeof *p);
  p->references = 1;
  p->nodes = fake_allocate(nodes, sizeof *p->nodes);
  p->types = fake_allocate(nodes, sizeof *p->types);
  p->works = fake_allocate(nodes, sizeof(fake_work *));
  p->is_disabled = fake_allocate(nodes, sizeof *p->is_disabled);
  p->start = fake_allocate(nodes + 1, sizeof *p->start);
  p->before = fake_allocate(nodes, sizeof *p->before);
  p->successors = fake_allocate(edges, sizeof *p->successors);
  return p;
}

/* A node on a cycle, or after one; none when every node can run. */
static size_t find_stuck(const fake_program *p) {
  size_t *missing = fake_copy_of(p->before, p->count * sizeof *missing);
  size_t *ready = fake_allocate(p->count, sizeof *ready), count = 0, stuck = none;
  for (size_t i = 0; i < p->count; i++) {
    if (missing[i] == 0) ready[count++] = i;
  }
  for (size_t next = 0; next < count; next++) {
    for (size_t k = p->start[ready[next]]; k < p->start[ready[next] + 1]; k++) {
      if (--missing[p->successors[k]] == 0) ready[count++] = p->successors[k];
    }
  }
  for (size_t i = 0; i < p->count && stuck == none; i++) {
    if (missing[i] > 0 && p->nodes[i] != 0) stuck = i;
  }
  free(missing);
  free(ready);
  return stuck;
}

fake_program *fake_program_new(const fake_graph *graph, cu_graph_node *out_error) {
  const size_t nodes = count_nodes(graph), edges = count_edges(graph);
  flattening f = {new_program(nodes, edges), fake_allocate(edges, sizeof(size_t)),
                  fake_allocate(edges, sizeof(size_t))};
  *out_error = NULL;
  flatten(&f, graph, none, none);
  sort_edges(&f);
  free(f.from);
  free(f.to);
  const size_t stuck = find_stuck(f.program);
  if (stuck == none) return f.program;
  *out_error = (cu_graph_node)(uintptr_t)f.program->nodes[stuck];
  fake_program_release(f.program);
  return NULL;
}

fake_program *fake_program_copy(const fake_program *from) {
  fake_program *p = new_program(from->count, from->edge_count);
  p->count = from->count;
  p->edge_count = from->edge_count;
  memcpy(p->nodes, from->nodes, p->count * sizeof *p->nodes);
  memcpy(p->types, from->types, p->count * sizeof *p->types);
  memcpy(p->works, from->works, p->count * sizeof(fake_work *));
  memcpy(p->is_disabled, from->is_disabled, p->count * sizeof *p->is_disabled);
  memcpy(p->start, from->start, (p->count + 1) * sizeof *p->start);
  memcpy(p->before, from->before, p->count * sizeof *p->before);
  memcpy(p->successors, from->successors, p->edge_count * sizeof *p->successors);
  for (size_t i = 0; i < p->count; i++) fake_work_retain(p->works[i]);
  return p;
}

void fake_program_release(fake_program *p) {
  if (--p->references > 0) return;
  for (size_t i = 0; i < p->count; i++) fake_work_release(p->works[i]);
  free(p->nodes);
  free(p->types);
  free(p->works);
  free(p->is_disabled);
  free(p->start);
  free(p->before);
  free(p->successors);
  free(p);
}

/* Nodes that are ready, in the order in which they became so. */
typedef struct ready_list {
  size_t *nodes, count;
  uint64_t random;
  size_t *done; /* for each node: how many of its memory operations have run */
} ready_list;

/* Memory operations and semaphores run here, as far as they get. */
static bool is_waiting(const fake_program *p, const ready_list *ready, size_t node, fake_marker *const *markers) {
  if (p->types[node] == CU_NODE_BATCH_MEMORY_OPERATION) return !fake_operations_run(p->works[node], &ready->done[node]);
  if (p->types[node] == CU_NODE_SEMAPHORE_SIGNAL || p->types[node] == CU_NODE_SEMAPHORE_WAIT)
    return !fake_semaphores_run(p->works[node], &ready->done[node]);
  if (p->types[node] != CU_NODE_EVENT_WAIT || fake_marker_is_reached(markers[node])) return false;
  fake_marker_want(markers[node]);
  return true;
}

/* The place of the next one to run; none while all wait for events or values. */
static size_t pick(const fake_program *p, ready_list *ready, fake_marker *const *markers) {
  size_t first = 0;
  if (fake_seed != 0) {
    ready->random = ready->random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    first = (size_t)(ready->random >> 33) % ready->count;
  }
  for (size_t i = 0; i < ready->count; i++) {
    const size_t place = (first + i) % ready->count, node = ready->nodes[place];
    if (!is_waiting(p, ready, node, markers)) return place;
  }
  return none;
}

static void run_node(const fake_program *p, size_t node, fake_context *launching, fake_marker *marker) {
  const fake_work *work = p->works[node];
  if (p->types[node] == CU_NODE_EVENT_RECORD) fake_marker_reach(marker);
  if (work != NULL && !p->is_disabled[node] && fake_context_works(work->context)) fake_work_run(work, launching);
}

void fake_program_run(const fake_program *p, fake_context *context, fake_marker *const *markers) {
  size_t *missing = fake_copy_of(p->before, p->count * sizeof *missing);
  ready_list ready = {fake_allocate(p->count, sizeof *ready.nodes), 0, fake_seed,
                      fake_allocate(p->count, sizeof *ready.done)};
  for (size_t i = 0; i < p->count; i++) {
    if (missing[i] == 0) ready.nodes[ready.count++] = i;
  }
  while (ready.count > 0 && fake_context_works(context)) {
    const size_t place = pick(p, &ready, markers);
    if (place == none) {
      fake_wait_short();
      continue;
    }
    const size_t node = ready.nodes[place];
    memmove(&ready.nodes[place], &ready.nodes[place + 1], (--ready.count - place) * sizeof node);
    run_node(p, node, context, markers[node]);
    for (size_t k = p->start[node]; k < p->start[node + 1]; k++) {
      if (--missing[p->successors[k]] == 0) ready.nodes[ready.count++] = p->successors[k];
    }
  }
  free(missing);
  free(ready.nodes);
  free(ready.done);
}
