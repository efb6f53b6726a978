/* SPDX-License-Identifier: MIT
 * The plan by segments: chains of nodes (each the only successor of its only predecessor) become one segment, so that a
 * straight line costs nothing to schedule. Nodes are laid out segment by segment, in the order of the segments' first
 * nodes; that is a topological order too, since all but a chain's first node have their only predecessor in the chain,
 * so the plain loop runs over the same array. An event-wait node is a segment of its own.
 */
#include "device/cpu/cpu.h"

#include "device/cpu/cpu_segments.h"

typedef struct chains {
  const rondo_lowered_graph *graph;
  uint32_t *predecessors;    /* how many, a node */
  uint32_t *one_predecessor; /* the last one seen, a node */
  uint32_t *segment_of;
} chains;

static uint32_t successor_count(const rondo_lowered_graph *graph, size_t node) {
  return graph->successor_start[node + 1] - graph->successor_start[node];
}

static bool is_wait(const rondo_lowered_graph *graph, size_t node) {
  return graph->nodes[node].params->kind == RONDO_NODE_EVENT_WAIT;
}

static bool follows_in_chain(const chains *c, size_t node) {
  if (c->predecessors[node] != 1 || is_wait(c->graph, node)) return false;
  const uint32_t before = c->one_predecessor[node];
  return successor_count(c->graph, before) == 1 && !is_wait(c->graph, before);
}

static void count_predecessors(chains *c) {
  for (size_t i = 0; i < c->graph->node_count; i++) {
    for (uint32_t k = c->graph->successor_start[i]; k < c->graph->successor_start[i + 1]; k++) {
      const uint32_t to = c->graph->successors[k];
      c->predecessors[to]++;
      c->one_predecessor[to] = (uint32_t)i;
    }
  }
}

/* Lays a chain out from its first node. */
static void add_segment(cpu_executable *executable, chains *c, size_t head, uint32_t *next_position) {
  const uint32_t number = executable->segment_count++;
  cpu_segment *segment = &executable->segments[number];
  segment->first = *next_position;
  segment->predecessors = c->predecessors[head];
  segment->wait = CPU_NO_WAIT;
  atomic_init(&segment->pending, segment->predecessors);
  for (size_t node = head;; node = c->graph->successors[c->graph->successor_start[node]]) {
    executable->position[node] = (*next_position)++;
    c->segment_of[node] = number;
    segment->count++;
    if (successor_count(c->graph, node) != 1) break;
    if (!follows_in_chain(c, c->graph->successors[c->graph->successor_start[node]])) break;
  }
  if (segment->predecessors == 0) executable->source_count++;
}

/* Edges between segments: those of each chain's last node. */
static void link_segments(cpu_executable *executable, const chains *c) {
  for (size_t node = 0; node < c->graph->node_count; node++) {
    cpu_segment *segment = &executable->segments[c->segment_of[node]];
    if (executable->position[node] != segment->first + segment->count - 1) continue;
    segment->successors_first = executable->successor_count;
    for (uint32_t k = c->graph->successor_start[node]; k < c->graph->successor_start[node + 1]; k++)
      executable->successors[executable->successor_count++] = c->segment_of[c->graph->successors[k]];
    segment->successors_end = executable->successor_count;
    if (segment->successors_first == segment->successors_end) executable->sink_count++;
  }
  executable->sources_first = executable->successor_count;
  for (uint32_t i = 0, k = executable->sources_first; i < executable->segment_count; i++) {
    if (executable->segments[i].predecessors == 0) executable->successors[k++] = i;
  }
}

static rondo_status allocate_arrays(cpu_executable *executable, const rondo_lowered_graph *graph) {
  const rondo_allocator *allocator = &executable->device->base.allocator;
  const size_t count = graph->node_count;
  void *memory;
  RONDO_TRY(rondo_allocate_aligned(allocator, count, sizeof *executable->segments, RONDO_CACHE_LINE, &memory));
  executable->segments = memory;
  RONDO_TRY(rondo_allocate(allocator, count, sizeof *executable->position, &memory));
  executable->position = memory;
  RONDO_TRY(rondo_allocate(allocator, executable->edge_count + count, sizeof *executable->successors, &memory));
  executable->successors = memory;
  return RONDO_OK;
}

rondo_status cpu_segments_build(cpu_executable *executable, const rondo_lowered_graph *graph) {
  const rondo_allocator *allocator = &executable->device->base.allocator;
  const size_t count = graph->node_count;
  executable->edge_count = graph->successor_start[count];
  void *memory;
  RONDO_TRY(rondo_allocate(allocator, count, 3 * sizeof(uint32_t), &memory));
  rondo_status status = allocate_arrays(executable, graph);
  if (status == RONDO_OK && count > 0) {
    uint32_t *numbers = memory;
    chains c = {graph, numbers, numbers + count, numbers + 2 * count};
    uint32_t next_position = 0;
    count_predecessors(&c);
    for (size_t node = 0; node < count; node++) {
      if (!follows_in_chain(&c, node)) add_segment(executable, &c, node, &next_position);
    }
    link_segments(executable, &c);
  }
  rondo_release(allocator, memory, count, 3 * sizeof(uint32_t));
  return status;
}

void cpu_segments_free(cpu_executable *executable) {
  const rondo_allocator *allocator = &executable->device->base.allocator;
  const size_t count = executable->node_count;
  rondo_release(allocator, executable->segments, count, sizeof *executable->segments);
  rondo_release(allocator, executable->position, count, sizeof *executable->position);
  rondo_release(allocator, executable->successors, executable->edge_count + count, sizeof *executable->successors);
}
