/* SPDX-License-Identifier: MIT
 * Making the nodes of a run: edges are collected as pairs, sorted by the node that they lead to, and reduced.
 *
 * An arena that was planned for one order restricts all other orders. Where two items share bytes, everything that uses
 * the first must end before the first write of the second. To find these pairs, the items are walked in the order in
 * which they become live, with a list of the arena's byte ranges and the last owner of each. An item comes after all
 * uses of the ranges that it covers; these order it after earlier owners of the bytes.
 */
#include "tensor/run/run_nodes.h"

#include <assert.h>

#include "base/allocation.h"
#include "base/error.h"

/* `from` comes before `to`: nodes, or positions of the order, each the first of its kernel. */
typedef struct node_edge {
  uint32_t from, to;
} node_edge;

typedef RONDO_ARRAY(node_edge) edge_list;

/* Reuse of memory -------------------------------------------------------------------------------------------------- */

/* Bytes begin .. end of the arena, and the last item that had them. */
typedef struct byte_range {
  size_t begin, end;
  uint32_t item;
} byte_range;

typedef RONDO_ARRAY(byte_range) range_list;

typedef struct reuse {
  const rondo_allocator *allocator;
  const rondo_layout *layout;
  range_list ranges, next;
  edge_list *edges;
} reuse;

/* Adds an edge from each user of the item before to the first user of the item. */
static rondo_status follow_users(reuse *r, uint32_t before, const rondo_location *location) {
  const rondo_schedule *schedule = &r->layout->schedule;
  const rondo_edges *users = &r->layout->users;
  for (uint32_t u = users->start[before]; u < users->start[before + 1]; u++) {
    const node_edge edge = {rondo_kernel_first(schedule, users->items[u]),
                            rondo_kernel_first(schedule, location->first)};
    assert(edge.from < edge.to);
    RONDO_TRY(rondo_array_push(r->allocator, r->edges, &edge));
  }
  return RONDO_OK;
}

static rondo_status keep_range(reuse *r, size_t begin, size_t end, uint32_t item) {
  const byte_range part = {begin, end, item};
  return begin < end ? rondo_array_push(r->allocator, &r->next, &part) : RONDO_OK;
}

static size_t smaller(size_t a, size_t b) { return a < b ? a : b; }
static size_t larger(size_t a, size_t b) { return a > b ? a : b; }

static rondo_status take_bytes(reuse *r, uint32_t item) {
  const rondo_location *location = rondo_layout_location(r->layout, item);
  const size_t begin = location->offset, end = begin + location->bytes;
  r->next.count = 0;
  for (size_t i = 0; i < r->ranges.count; i++) {
    const byte_range *range = &r->ranges.items[i];
    if (range->begin < end && begin < range->end) RONDO_TRY(follow_users(r, range->item, location));
    RONDO_TRY(keep_range(r, range->begin, smaller(range->end, larger(begin, range->begin)), range->item));
    RONDO_TRY(keep_range(r, larger(range->begin, smaller(end, range->end)), range->end, range->item));
  }
  RONDO_TRY(keep_range(r, begin, end, item));
  const range_list spare = r->ranges;
  r->ranges = r->next;
  r->next = spare;
  return RONDO_OK;
}

/* The items of the arena in the order in which they become live. A counting sort, so that items of one position stay in
 * the order of their numbers. */
static rondo_status sort_items(const rondo_layout *layout, rondo_scratch *scratch, uint32_t **out,
                               uint32_t *out_count) {
  const uint32_t count = layout->users.count;
  uint32_t *start;
  RONDO_TRY(rondo_scratch_take(scratch, (size_t)layout->schedule.count + 2, sizeof *start, &start));
  RONDO_TRY(rondo_scratch_take(scratch, count, sizeof **out, out));
  for (uint32_t i = 0; i < count; i++) {
    const rondo_location *location = rondo_layout_location(layout, i);
    if (location != NULL) start[location->first + 1]++;
  }
  for (uint32_t p = 0; p <= layout->schedule.count; p++) start[p + 1] += start[p];
  *out_count = start[layout->schedule.count + 1];
  for (uint32_t i = 0; i < count; i++) {
    const rondo_location *location = rondo_layout_location(layout, i);
    if (location != NULL) (*out)[start[location->first]++] = i;
  }
  return RONDO_OK;
}

/* Adds edges between positions that, with the schedule's dependencies, imply all others; some edges twice. */
static rondo_status list_reuse(const rondo_layout *layout, rondo_scratch *scratch, edge_list *inout_edges) {
  reuse r = {.allocator = scratch->allocator, .layout = layout, .edges = inout_edges};
  uint32_t *sorted, count;
  RONDO_TRY(sort_items(layout, scratch, &sorted, &count));
  rondo_status status = RONDO_OK;
  for (uint32_t i = 0; i < count && status == RONDO_OK; i++) status = take_bytes(&r, sorted[i]);
  rondo_array_free(r.allocator, &r.ranges);
  rondo_array_free(r.allocator, &r.next);
  return status;
}

/* The maker -------------------------------------------------------------------------------------------------------- */

typedef struct node_maker {
  const rondo_program *program;
  rondo_scratch scratch;
  const rondo_layout *layout;
  const rondo_compiled *compiled;
  rondo_run_nodes *nodes;
  uint32_t *node_of; /* by position */
  edge_list edges;   /* between nodes */
} node_maker;

static uint32_t count_nodes(const node_maker *m) {
  const rondo_schedule *schedule = &m->layout->schedule;
  const rondo_feeds *feeds = &m->compiled->feeds;
  uint32_t count = (uint32_t)(feeds->inputs.count + (feeds->inputs.count > 0) + feeds->outputs.count);
  for (uint32_t p = 0; p < schedule->count; p += schedule->joined[p]) count++;
  return count;
}

static uint32_t add_node(node_maker *m, rondo_run_node_kind kind, uint32_t first, uint32_t end) {
  assert(first <= end);
  m->nodes->items[m->nodes->count] = (rondo_run_node){.kind = kind, .first = first, .end = end};
  return m->nodes->count++;
}

static rondo_status add_edge(node_maker *m, uint32_t from, uint32_t to) {
  const node_edge edge = {from, to};
  assert(from <= to);
  return from == to ? RONDO_OK : rondo_array_push(m->scratch.allocator, &m->edges, &edge);
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

/* Steps are in the schedule's order, under the number of the first operation of their kernel. A kernel may have none.
 */
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
  RONDO_TRY(list_reuse(m->layout, &m->scratch, &m->edges));
  for (size_t i = before; i < m->edges.count; i++) {
    node_edge *edge = &m->edges.items[i];
    *edge = (node_edge){m->node_of[edge->from], m->node_of[edge->to]};
  }
  return RONDO_OK;
}

/* An operator comes after the copies of the staged inputs that it reads. */
static rondo_status add_reads(node_maker *m) {
  const rondo_schedule *schedule = &m->layout->schedule;
  const rondo_feeds *feeds = &m->compiled->feeds;
  for (uint32_t p = 0; feeds->inputs.count > 0 && p < schedule->count; p++) {
    const rondo_operation *operation = rondo_schedule_operation(m->program, schedule, schedule->order[p]);
    RONDO_EACH_INPUT(k, operation) {
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

/* Closes the gaps that edges leave which were there twice. */
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
  RONDO_TRY(rondo_edges_make(m->scratch.allocator, count, m->edges.count, before));
  RONDO_TRY(rondo_scratch_take(&m->scratch, count, sizeof *end, &end));
  for (size_t i = 0; i < m->edges.count; i++) before->start[m->edges.items[i].to + 1]++;
  for (uint32_t p = 0; p < count; p++) before->start[p + 1] += before->start[p];
  for (uint32_t p = 0; p < count; p++) end[p] = before->start[p];
  for (size_t i = 0; i < m->edges.count; i++) {
    const node_edge *edge = &m->edges.items[i];
    rondo_edges_insert(before, edge->to, &end[edge->to], edge->from);
  }
  close_gaps(before, end);
  return rondo_edges_reduce(m->scratch.allocator, before);
}

/* The whole -------------------------------------------------------------------------------------------------------- */

static rondo_status make_nodes(node_maker *m, uint32_t capacity) {
  RONDO_TRY(rondo_allocate_items(m->scratch.allocator, capacity, sizeof *m->nodes->items, &m->nodes->items));
  RONDO_TRY(rondo_scratch_take(&m->scratch, m->layout->schedule.count, sizeof *m->node_of, &m->node_of));
  RONDO_TRY(add_inputs(m));
  add_operators(m);
  RONDO_TRY(add_dependencies(m));
  RONDO_TRY(add_reuse(m));
  RONDO_TRY(add_reads(m));
  RONDO_TRY(add_outputs(m));
  assert(m->nodes->count == capacity);
  return sort_edges(m);
}

rondo_status rondo_run_nodes_make(const rondo_program *program, const rondo_layout *layout,
                                  const rondo_compiled *compiled, rondo_run_nodes *out) {
  node_maker m = {.program = program,
                  .scratch = {.allocator = &compiled->allocator},
                  .layout = layout,
                  .compiled = compiled,
                  .nodes = out};
  *out = (rondo_run_nodes){.items = NULL};
  const uint32_t capacity = count_nodes(&m);
  const rondo_status status = make_nodes(&m, capacity);
  out->count = capacity; /* as allocated, also after a failure */
  rondo_array_free(&compiled->allocator, &m.edges);
  rondo_scratch_free(&m.scratch);
  return status;
}

void rondo_run_nodes_free(const rondo_allocator *allocator, rondo_run_nodes *nodes) {
  rondo_release(allocator, nodes->items, nodes->count, sizeof *nodes->items);
  rondo_edges_free(allocator, &nodes->before);
  *nodes = (rondo_run_nodes){.items = NULL};
}

/* Enqueuing -------------------------------------------------------------------------------------------------------- */

rondo_status rondo_run_node_enqueue(rondo_compiled *compiled, const rondo_run_node *node, rondo_stream *stream) {
  switch (node->kind) {
    case RONDO_RUN_INPUT:
      return rondo_feeds_enqueue_input(&compiled->feeds.inputs.items[node->first], stream);
    case RONDO_RUN_TAKEN:
      return rondo_event_record(compiled->feeds.taken, stream);
    case RONDO_RUN_OUTPUT:
      return rondo_feeds_fetch(&compiled->feeds.outputs.items[node->first], stream);
    case RONDO_RUN_STEPS:
      break;
  }
  for (uint32_t i = node->first; i < node->end; i++)
    RONDO_TRY(rondo_compiled_enqueue_step(compiled, &compiled->steps.items[i], stream));
  return RONDO_OK;
}
