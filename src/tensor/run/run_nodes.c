/* SPDX-License-Identifier: MIT
 * Making the nodes of a run: edges are collected as pairs, sorted by what they lead to, and reduced.
 */
#include "tensor/run/run_nodes.h"

#include <assert.h>

#include "base/error.h"
#include "tensor/compile/arena_reuse.h"

typedef struct node_maker {
  const rondo_program *program;
  const rondo_allocator *allocator;
  const rondo_layout *layout;
  const rondo_compiled *compiled;
  rondo_run_nodes *nodes;
  uint32_t *node_of;       /* one a position */
  rondo_reuse_edges edges; /* between nodes */
} node_maker;

static uint32_t count_nodes(const node_maker *m) {
  const rondo_schedule *schedule = &m->layout->schedule;
  const rondo_feeds *feeds = &m->compiled->feeds;
  uint32_t count = (uint32_t)(feeds->inputs.count + (feeds->inputs.count > 0) + feeds->outputs.count);
  for (uint32_t p = 0; p < schedule->count; p += schedule->joined[p]) count++;
  return count;
}

static uint32_t add_node(node_maker *m, rondo_run_node_kind kind, uint32_t first, uint32_t end) {
  m->nodes->items[m->nodes->count] = (rondo_run_node){.kind = kind, .first = first, .end = end};
  return m->nodes->count++;
}

static rondo_status add_edge(node_maker *m, uint32_t from, uint32_t to) {
  const rondo_reuse_edge edge = {from, to};
  assert(from <= to);
  return from == to ? RONDO_OK : rondo_array_push(m->allocator, &m->edges, &edge);
}

/* Nodes ------------------------------------------------------------------------------------------------------------ */

static rondo_status add_inputs(node_maker *m) {
  const uint32_t count = (uint32_t)m->compiled->feeds.inputs.count;
  for (uint32_t i = 0; i < count; i++) (void)add_node(m, RONDO_RUN_INPUT, i, i + 1);
  if (count == 0) return RONDO_OK;
  const uint32_t taken = add_node(m, RONDO_RUN_TAKEN, 0, 0);
  for (uint32_t i = 0; i < count; i++) RONDO_TRY(add_edge(m, i, taken));
  return RONDO_OK;
}

/* Steps stand in the schedule's order, under the number of their kernel's first operation; one may have none. */
static void add_operators(node_maker *m) {
  const rondo_schedule *schedule = &m->layout->schedule;
  const rondo_compiled *compiled = m->compiled;
  uint32_t end = 0;
  for (uint32_t first = 0; first < schedule->count; first += schedule->joined[first]) {
    const uint32_t begin = end;
    while (end < compiled->steps.count && compiled->steps.items[end].operation == schedule->order[first]) end++;
    const uint32_t node = add_node(m, RONDO_RUN_STEPS, begin, end);
    for (uint32_t p = first; p < first + schedule->joined[first]; p++) m->node_of[p] = node;
  }
  assert(end == compiled->steps.count);
}

/* Edges ------------------------------------------------------------------------------------------------------------ */

static rondo_status add_dependencies(node_maker *m) {
  const rondo_edges *before = &m->layout->schedule.before;
  for (uint32_t p = 0; p < before->count; p++)
    for (uint32_t e = before->start[p]; e < before->start[p + 1]; e++)
      RONDO_TRY(add_edge(m, m->node_of[before->items[e]], m->node_of[p]));
  return RONDO_OK;
}

static rondo_status add_reuse(node_maker *m) {
  const size_t before = m->edges.count;
  if (m->layout->has_branches) return RONDO_OK;
  RONDO_TRY(rondo_reuse_list(m->program, m->layout, &m->edges));
  for (size_t i = before; i < m->edges.count; i++) {
    rondo_reuse_edge *edge = &m->edges.items[i];
    *edge = (rondo_reuse_edge){m->node_of[edge->from], m->node_of[edge->to]};
  }
  return RONDO_OK;
}

/* An operator comes behind the copies of the staged inputs that it reads. */
static rondo_status add_reads(node_maker *m) {
  const rondo_schedule *schedule = &m->layout->schedule;
  const rondo_feeds *feeds = &m->compiled->feeds;
  for (uint32_t p = 0; feeds->inputs.count > 0 && p < schedule->count; p++) {
    const rondo_operation *operation = rondo_schedule_operation(m->program, schedule, schedule->order[p]);
    for (uint32_t k = 0; k < RONDO_MAX_OPERANDS; k++) {
      if (operation->inputs[k] == RONDO_NO_VALUE) continue;
      const rondo_staged_input *input = rondo_feeds_input(feeds, schedule->owners[operation->inputs[k]]);
      if (input != NULL) RONDO_TRY(add_edge(m, (uint32_t)(input - feeds->inputs.items), m->node_of[p]));
    }
  }
  return RONDO_OK;
}

static rondo_status add_outputs(node_maker *m) {
  const rondo_schedule *schedule = &m->layout->schedule;
  const rondo_feeds *feeds = &m->compiled->feeds;
  for (uint32_t i = 0; i < feeds->outputs.count; i++) {
    const uint32_t node = add_node(m, RONDO_RUN_OUTPUT, i, i + 1);
    for (uint32_t p = 0; p < schedule->count; p++)
      if (schedule->order[p] == feeds->outputs.items[i].operation) RONDO_TRY(add_edge(m, m->node_of[p], node));
  }
  return RONDO_OK;
}

/* Into its node's list, which rises; once. */
static void insert(rondo_edges *before, uint32_t *end, uint32_t from, uint32_t to) {
  uint32_t at = end[to];
  while (at > before->start[to] && before->items[at - 1] > from) at--;
  if (at > before->start[to] && before->items[at - 1] == from) return;
  for (uint32_t i = end[to]; i > at; i--) before->items[i] = before->items[i - 1];
  before->items[at] = from;
  end[to]++;
}

/* Moves the lists together, where edges were there twice. */
static void close_gaps(rondo_edges *before, const uint32_t *end) {
  uint32_t kept = 0;
  for (uint32_t p = 0; p < before->count; p++) {
    const uint32_t first = before->start[p];
    before->start[p] = kept;
    for (uint32_t i = first; i < end[p]; i++) before->items[kept++] = before->items[i];
  }
  before->start[before->count] = kept;
}

static rondo_status sort_edges(node_maker *m) {
  rondo_edges *before = &m->nodes->before;
  const uint32_t count = m->nodes->count;
  uint32_t *end;
  RONDO_TRY(rondo_edges_make(m->allocator, count, m->edges.count, before));
  RONDO_TRY(rondo_allocate_items(m->allocator, count, sizeof *end, &end));
  for (size_t i = 0; i < m->edges.count; i++) before->start[m->edges.items[i].to + 1]++;
  for (uint32_t p = 0; p < count; p++) before->start[p + 1] += before->start[p];
  for (uint32_t p = 0; p < count; p++) end[p] = before->start[p];
  for (size_t i = 0; i < m->edges.count; i++) insert(before, end, m->edges.items[i].from, m->edges.items[i].to);
  close_gaps(before, end);
  rondo_release(m->allocator, end, count, sizeof *end);
  return rondo_edges_reduce(m->allocator, before);
}

/* The whole -------------------------------------------------------------------------------------------------------- */

static rondo_status make_nodes(node_maker *m) {
  const size_t positions = m->layout->schedule.count;
  RONDO_TRY(rondo_allocate_items(m->allocator, count_nodes(m), sizeof *m->nodes->items, &m->nodes->items));
  RONDO_TRY(rondo_allocate_items(m->allocator, positions, sizeof *m->node_of, &m->node_of));
  RONDO_TRY(add_inputs(m));
  add_operators(m);
  RONDO_TRY(add_dependencies(m));
  RONDO_TRY(add_reuse(m));
  RONDO_TRY(add_reads(m));
  RONDO_TRY(add_outputs(m));
  return sort_edges(m);
}

rondo_status rondo_run_nodes_make(const rondo_program *program, const rondo_layout *layout,
                                  const rondo_compiled *compiled, rondo_run_nodes *out) {
  node_maker m = {
      .program = program, .allocator = &compiled->allocator, .layout = layout, .compiled = compiled, .nodes = out};
  *out = (rondo_run_nodes){.items = NULL};
  const uint32_t room = count_nodes(&m);
  const rondo_status status = make_nodes(&m);
  out->count = room; /* as they are allocated */
  rondo_release(m.allocator, m.node_of, layout->schedule.count, sizeof *m.node_of);
  rondo_array_free(m.allocator, &m.edges);
  return status;
}

void rondo_run_nodes_free(const rondo_allocator *allocator, rondo_run_nodes *nodes) {
  rondo_release(allocator, nodes->items, nodes->count, sizeof *nodes->items);
  rondo_edges_free(allocator, &nodes->before);
  *nodes = (rondo_run_nodes){.items = NULL};
}

/* Playing ---------------------------------------------------------------------------------------------------------- */

static rondo_status play_output(const rondo_staged_output *output, rondo_stream *stream) {
  RONDO_TRY(rondo_feeds_play_output(output, stream));
  return rondo_event_record(output->ready, stream);
}

rondo_status rondo_run_node_play(rondo_compiled *compiled, const rondo_run_node *node, rondo_stream *stream) {
  switch (node->kind) {
    case RONDO_RUN_INPUT:
      return rondo_feeds_play_input(&compiled->feeds.inputs.items[node->first], stream);
    case RONDO_RUN_TAKEN:
      return rondo_event_record(compiled->feeds.taken, stream);
    case RONDO_RUN_OUTPUT:
      return play_output(&compiled->feeds.outputs.items[node->first], stream);
    case RONDO_RUN_STEPS:
      break;
  }
  for (uint32_t i = node->first; i < node->end; i++)
    RONDO_TRY(rondo_compiled_play(compiled, &compiled->steps.items[i], stream));
  return RONDO_OK;
}
