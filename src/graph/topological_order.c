/* SPDX-License-Identifier: MIT
 * Topological sorting (A. B. Kahn, "Topological sorting of large networks", CACM 5 (1962)). A heap yields the lowest
 * number first among the ready nodes, so the order depends only on the graph. Also finds a cycle if there is no order,
 * and which nodes come before others.
 */
#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "graph/edges.h"
#include "graph/graph.h"
#include "graph/node.h"
#include "graph/node_name.h"
#include "graph/topological_order.h"

#define LONGEST_PRINTED_CYCLE 8

/* A binary heap with the lowest number on top, and with capacity for every node. */
typedef struct slot_heap {
  uint32_t *items;
  size_t count;
} slot_heap;

static void heap_push(slot_heap *heap, uint32_t slot) {
  size_t hole = heap->count++;
  while (hole > 0 && heap->items[(hole - 1) / 2] > slot) {
    heap->items[hole] = heap->items[(hole - 1) / 2];
    hole = (hole - 1) / 2;
  }
  heap->items[hole] = slot;
}

static uint32_t heap_pop(slot_heap *heap) {
  assert(heap->count > 0);
  const uint32_t top = heap->items[0];
  const uint32_t slot = heap->items[--heap->count];
  size_t hole = 0;
  for (;;) {
    size_t next = 2 * hole + 1;
    if (next >= heap->count) break;
    if (next + 1 < heap->count && heap->items[next + 1] < heap->items[next]) next++;
    if (heap->items[next] >= slot) break;
    heap->items[hole] = heap->items[next];
    hole = next;
  }
  heap->items[hole] = slot;
  return top;
}

/* One of the slot's dependencies was ordered. */
static void count_down(uint32_t *waiting, slot_heap *ready, uint32_t slot) {
  assert(waiting[slot] > 0);
  if (--waiting[slot] == 0) heap_push(ready, slot);
}

/* The programmatic edges by the slots that they leave: to the slots enters[starts[slot] .. starts[slot + 1]). */
typedef struct programmatic_index {
  uint32_t *starts; /* NULL: there are none */
  uint32_t *enters;
} programmatic_index;

static uint32_t first_of(const programmatic_index *index, uint32_t slot) {
  return index->starts == NULL ? 0 : index->starts[slot];
}

static rondo_status index_programmatic(const rondo_graph *graph, rondo_scratch *scratch, programmatic_index *out) {
  const size_t count = graph->programmatic.count;
  const rondo_programmatic_edge *edges = graph->programmatic.items;
  if (count == 0) return RONDO_OK;
  RONDO_TRY(rondo_scratch_take(scratch, graph->nodes.count + 2, sizeof *out->starts, &out->starts));
  RONDO_TRY(rondo_scratch_take(scratch, count, sizeof *out->enters, &out->enters));
  uint32_t *const next = out->starts + 1; /* where each slot's list continues; at the end, where it ended */
  for (size_t i = 0; i < count; i++) next[edges[i].from + 1]++;
  for (size_t i = 1; i <= graph->nodes.count; i++) next[i] += next[i - 1];
  for (size_t i = 0; i < count; i++) out->enters[next[edges[i].from]++] = edges[i].to;
  return RONDO_OK;
}

/* Kahn's algorithm. Returns how many nodes were ordered; `waiting` has, for each slot, how many of its dependencies
 * were not. */
static size_t sort_slots(const rondo_graph *graph, const programmatic_index *index, uint32_t *waiting, slot_heap *ready,
                         uint32_t *order) {
  size_t sorted = 0;
  for (size_t i = 0; i < graph->nodes.count; i++) {
    const rondo_graph_node *node = &graph->nodes.items[i];
    if (node->live) waiting[i] = (uint32_t)node->dependencies.count;
  }
  for (size_t i = 0; i < graph->programmatic.count; i++) waiting[graph->programmatic.items[i].to]++;
  for (size_t i = 0; i < graph->nodes.count; i++)
    if (graph->nodes.items[i].live && waiting[i] == 0) heap_push(ready, (uint32_t)i);
  while (ready->count > 0) {
    const uint32_t slot = heap_pop(ready);
    const rondo_slots *dependents = &rondo_graph_at(graph, slot)->dependents;
    assert(sorted < graph->live_count);
    order[sorted++] = slot;
    for (size_t i = 0; i < dependents->count; i++) count_down(waiting, ready, dependents->items[i]);
    for (uint32_t i = first_of(index, slot); i < first_of(index, slot + 1); i++)
      count_down(waiting, ready, index->enters[i]);
  }
  return sorted;
}

/* A dependency of `slot` that was not ordered. A node that was not ordered always has one. */
static uint32_t waiting_dependency(const rondo_graph *graph, const uint32_t *waiting, uint32_t slot) {
  const rondo_slots *dependencies = &rondo_graph_at(graph, slot)->dependencies;
  for (size_t i = 0; i < dependencies->count; i++)
    if (waiting[dependencies->items[i]] > 0) return dependencies->items[i];
  size_t count, i = 0;
  const rondo_programmatic_edge *edges = rondo_graph_programmatic_to(graph, slot, &count);
  while (i < count && waiting[edges[i].from] == 0) i++;
  assert(i < count);
  return edges[i].from;
}

/* The lowest number on a cycle. Following dependencies as many times as there are nodes leads onto a cycle; then it
 * walks once around. */
static uint32_t find_on_cycle(const rondo_graph *graph, const uint32_t *waiting, size_t *out_length) {
  uint32_t at = 0;
  while (waiting[at] == 0) at++;
  for (uint32_t i = 0; i < graph->live_count; i++) at = waiting_dependency(graph, waiting, at);
  const uint32_t start = at;
  uint32_t lowest = start;
  *out_length = 0;
  do {
    at = waiting_dependency(graph, waiting, at);
    if (at < lowest) lowest = at;
    (*out_length)++;
  } while (at != start);
  return lowest;
}

/* "3 -> 5 -> 3", in the direction of the edges. */
static void print_cycle(const rondo_graph *graph, const uint32_t *waiting, uint32_t start, size_t length, char *buffer,
                        size_t capacity) {
  uint32_t back[LONGEST_PRINTED_CYCLE];
  assert(length <= LONGEST_PRINTED_CYCLE);
  uint32_t at = start;
  for (size_t i = 0; i < length; i++) back[i] = at = waiting_dependency(graph, waiting, at);
  size_t used = (size_t)snprintf(buffer, capacity, "%" PRIu32, start);
  for (size_t i = length - 1; i-- > 0;)
    used += (size_t)snprintf(buffer + used, capacity - used, " -> %" PRIu32, back[i]);
  snprintf(buffer + used, capacity - used, " -> %" PRIu32, start);
}

/* The numbers of the cycle are those of the graph that has it, also where that is a child graph. */
static rondo_status fail_cycle(const rondo_graph *graph, const rondo_graph *root, const uint32_t *waiting) {
  size_t length;
  const uint32_t slot = find_on_cycle(graph, waiting, &length);
  char label[RONDO_LABEL_BYTES], node_label[RONDO_LABEL_BYTES], path[16 * (LONGEST_PRINTED_CYCLE + 1)];
  if (length <= LONGEST_PRINTED_CYCLE)
    print_cycle(graph, waiting, slot, length, path, sizeof path);
  else
    snprintf(path, sizeof path, "%zu nodes around", length);
  return rondo_fail_node(RONDO_INVALID_GRAPH, RONDO_REASON_CYCLE, rondo_graph_outer_number(graph, root, slot),
                         "%s: %s is on a cycle (%s): remove one of its edges", rondo_graph_label(label, root),
                         rondo_node_label_in(node_label, graph, root, slot), path);
}

/* Whether every node has a higher number than its dependencies, as when edges are added with the nodes. That is then
 * the order. */
static bool is_ascending(const rondo_graph *graph) {
  for (size_t i = 0; i < graph->nodes.count; i++) {
    const rondo_slots *dependencies = &graph->nodes.items[i].dependencies;
    if (dependencies->count > 0 && dependencies->items[dependencies->count - 1] > i) return false;
  }
  for (size_t i = 0; i < graph->programmatic.count; i++)
    if (graph->programmatic.items[i].from > graph->programmatic.items[i].to) return false;
  return true;
}

static rondo_status order_by_number(const rondo_graph *graph, uint32_t **out) {
  size_t count = 0;
  RONDO_TRY(rondo_allocate_items(&graph->allocator, graph->live_count, sizeof **out, out));
  for (uint32_t i = 0; i < graph->nodes.count; i++)
    if (graph->nodes.items[i].live) (*out)[count++] = i;
  return RONDO_OK;
}

rondo_status rondo_graph_order_in(const rondo_graph *graph, const rondo_graph *root, uint32_t **out) {
  *out = NULL;
  if (is_ascending(graph)) return order_by_number(graph, out);
  rondo_scratch scratch = {.allocator = &graph->allocator};
  slot_heap ready = {0};
  programmatic_index index = {0};
  uint32_t *waiting;
  rondo_status status = rondo_scratch_take(&scratch, graph->live_count, sizeof *ready.items, &ready.items);
  if (status == RONDO_OK) status = rondo_scratch_take(&scratch, graph->nodes.count, sizeof *waiting, &waiting);
  if (status == RONDO_OK) status = index_programmatic(graph, &scratch, &index);
  if (status == RONDO_OK) status = rondo_allocate_items(&graph->allocator, graph->live_count, sizeof **out, out);
  if (status == RONDO_OK && sort_slots(graph, &index, waiting, &ready, *out) < graph->live_count) {
    status = fail_cycle(graph, root, waiting);
    rondo_release(&graph->allocator, *out, graph->live_count, sizeof **out);
    *out = NULL;
  }
  rondo_scratch_free(&scratch);
  return status;
}

rondo_status rondo_graph_mark_ancestors(const rondo_graph *graph, const uint32_t *from, size_t count, bool *marks) {
  uint32_t *stack;
  size_t depth = 0;
  RONDO_TRY(rondo_allocate_items(&graph->allocator, graph->live_count, sizeof *stack, &stack));
  for (size_t i = 0; i < count; i++) {
    if (marks[from[i]]) continue;
    marks[from[i]] = true;
    stack[depth++] = from[i];
    while (depth > 0) {
      const rondo_slots *dependencies = &rondo_graph_at(graph, stack[--depth])->dependencies;
      for (size_t d = 0; d < dependencies->count; d++) {
        const uint32_t slot = dependencies->items[d];
        if (marks[slot]) continue;
        marks[slot] = true;
        stack[depth++] = slot;
      }
    }
  }
  rondo_release(&graph->allocator, stack, graph->live_count, sizeof *stack);
  return RONDO_OK;
}
