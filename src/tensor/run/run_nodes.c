/* SPDX-License-Identifier: MIT
 * Making the nodes of a run: edges are collected as pairs, sorted by what they lead to, and reduced.
 *
 * An arena that was planned for one order asks more of all others: where two values, or a workspace, share bytes, all
 * that uses the first must be over before what first writes the second begins. To find these pairs, the lives are
 * walked in the order of their beginnings, with a list of the stretches of the arena and who had each last. A life
 * comes after all uses of the stretches that it covers; earlier owners of the bytes are ordered through those.
 */
#include "tensor/run/run_nodes.h"

#include <assert.h>

#include "base/error.h"

/* `from` comes before `to`: nodes, or positions of the order, each that of the first operation of its kernel. */
typedef struct node_edge {
  uint32_t from, to;
} node_edge;

typedef RONDO_ARRAY(node_edge) edge_list;

/* Reuse of memory -------------------------------------------------------------------------------------------------- */

/* A value or workspace in the arena. */
typedef struct reuse_item {
  const rondo_place *place;
  uint32_t first_user, end_user; /* users[first_user] up to users[end_user] */
} reuse_item;

/* Bytes begin .. end of the arena, and the item that had them last. */
typedef struct stretch {
  size_t begin, end;
  uint32_t item;
} stretch;

typedef RONDO_ARRAY(stretch) stretch_list;

typedef struct reuse {
  const rondo_program *program;
  const rondo_allocator *allocator;
  const rondo_layout *layout;
  uint32_t *lead;    /* one a position: the first of its kernel */
  uint32_t *item_of; /* one a value: its item plus one, of what lies in the arena */
  reuse_item *items;
  uint32_t count, item_room;
  uint32_t *users;
  size_t user_room;
  uint32_t *sorted; /* items by their beginnings */
  stretch_list stretches, next;
  edge_list *edges;
} reuse;

/* Items ------------------------------------------------------------------------------------------------------------ */

static uint32_t add_reuse_item(reuse *r, const rondo_place *place) {
  assert(r->count < r->item_room && place->block == RONDO_BLOCK_ARENA);
  r->items[r->count].place = place;
  return ++r->count;
}

static void list_items(reuse *r) {
  const rondo_layout *layout = r->layout;
  for (uint32_t v = 0; v < layout->schedule.values; v++)
    if (layout->schedule.owners[v] == v && layout->places[v].block == RONDO_BLOCK_ARENA)
      r->item_of[v] = add_reuse_item(r, &layout->places[v]);
}

/* The items of the values that an operation reads and makes; the same one perhaps twice. */
static uint32_t list_touched(const reuse *r, uint32_t position, uint32_t items[]) {
  const rondo_schedule *schedule = &r->layout->schedule;
  const rondo_operation *operation = rondo_schedule_operation(r->program, schedule, schedule->order[position]);
  uint32_t count = 0;
  for (uint32_t k = 0; k < RONDO_MAX_OPERANDS; k++) {
    const uint32_t value = operation->inputs[k];
    if (value != RONDO_NO_VALUE && r->item_of[schedule->owners[value]] != 0)
      items[count++] = r->item_of[schedule->owners[value]] - 1;
  }
  for (uint32_t k = 0; k < operation->row->result_count; k++) {
    const uint32_t value = operation->results[k];
    if (value != RONDO_NO_VALUE && r->item_of[schedule->owners[value]] != 0)
      items[count++] = r->item_of[schedule->owners[value]] - 1;
  }
  return count;
}

enum { MOST_TOUCHED = RONDO_MAX_OPERANDS + RONDO_MAX_RESULTS };

/* Room for each item's users, then the users. */
static void list_users(reuse *r) {
  const uint32_t positions = r->layout->schedule.count;
  uint32_t touched[MOST_TOUCHED], room = 0;
  for (uint32_t p = 0; p < positions; p++) {
    const uint32_t count = list_touched(r, p, touched);
    for (uint32_t i = 0; i < count; i++) r->items[touched[i]].end_user++;
  }
  for (uint32_t i = 0; i < r->count; i++) {
    const uint32_t mine = r->items[i].end_user;
    r->items[i].first_user = r->items[i].end_user = room;
    room += mine;
  }
  for (uint32_t p = 0; p < positions; p++) {
    const uint32_t count = list_touched(r, p, touched);
    for (uint32_t i = 0; i < count; i++) r->users[r->items[touched[i]].end_user++] = r->lead[p];
  }
}

/* A workspace has one user. */
static void list_workspaces(reuse *r) {
  const rondo_layout *layout = r->layout;
  size_t at = r->user_room - layout->schedule.count; /* behind the values' users */
  for (uint32_t p = 0; p < layout->schedule.count; p++, at++) {
    const rondo_place *place = &layout->workspaces[layout->schedule.order[p]];
    if (place->block != RONDO_BLOCK_ARENA) continue;
    const uint32_t item = add_reuse_item(r, place) - 1;
    r->items[item].first_user = (uint32_t)at;
    r->items[item].end_user = (uint32_t)at + 1;
    r->users[at] = r->lead[p];
  }
}

/* By counting, so that what begins together stays in the order of the list. */
static rondo_status sort_items(reuse *r) {
  const size_t room = (size_t)r->layout->schedule.count + 2;
  uint32_t *start;
  RONDO_TRY(rondo_allocate_items(r->allocator, room, sizeof *start, &start));
  for (uint32_t i = 0; i < r->count; i++) start[r->items[i].place->first + 1]++;
  for (size_t p = 1; p < room; p++) start[p] += start[p - 1];
  for (uint32_t i = 0; i < r->count; i++) r->sorted[start[r->items[i].place->first]++] = i;
  rondo_release(r->allocator, start, room, sizeof *start);
  return RONDO_OK;
}

/* Stretches -------------------------------------------------------------------------------------------------------- */

static rondo_status put_behind(reuse *r, const reuse_item *before, const reuse_item *item) {
  const uint32_t to = r->lead[item->place->first];
  for (uint32_t u = before->first_user; u < before->end_user; u++) {
    const node_edge edge = {r->users[u], to};
    assert(edge.from < edge.to);
    RONDO_TRY(rondo_array_push(r->allocator, r->edges, &edge));
  }
  return RONDO_OK;
}

static rondo_status keep_stretch(reuse *r, size_t begin, size_t end, uint32_t item) {
  const stretch part = {begin, end, item};
  return begin < end ? rondo_array_push(r->allocator, &r->next, &part) : RONDO_OK;
}

static size_t smaller(size_t a, size_t b) { return a < b ? a : b; }
static size_t larger(size_t a, size_t b) { return a > b ? a : b; }

static rondo_status take_bytes(reuse *r, uint32_t number) {
  const reuse_item *item = &r->items[number];
  const size_t begin = item->place->offset, end = begin + item->place->bytes;
  r->next.count = 0;
  for (size_t i = 0; i < r->stretches.count; i++) {
    const stretch *s = &r->stretches.items[i];
    if (s->begin < end && begin < s->end) RONDO_TRY(put_behind(r, &r->items[s->item], item));
    RONDO_TRY(keep_stretch(r, s->begin, smaller(s->end, larger(begin, s->begin)), s->item));
    RONDO_TRY(keep_stretch(r, larger(s->begin, smaller(end, s->end)), s->end, s->item));
  }
  RONDO_TRY(keep_stretch(r, begin, end, number));
  const stretch_list spare = r->stretches;
  r->stretches = r->next;
  r->next = spare;
  return RONDO_OK;
}

/* Reuse as edges --------------------------------------------------------------------------------------------------- */

static void find_leads(reuse *r) {
  const rondo_schedule *schedule = &r->layout->schedule;
  for (uint32_t first = 0; first < schedule->count; first += schedule->joined[first])
    for (uint32_t p = first; p < first + schedule->joined[first]; p++) r->lead[p] = first;
}

static rondo_status allocate_reuse(reuse *r) {
  const rondo_schedule *schedule = &r->layout->schedule;
  r->item_room = (uint32_t)schedule->values + schedule->count;
  r->user_room = (MOST_TOUCHED + (size_t)1) * schedule->count;
  RONDO_TRY(rondo_allocate_items(r->allocator, (size_t)schedule->count + 1, sizeof *r->lead, &r->lead));
  RONDO_TRY(rondo_allocate_items(r->allocator, schedule->values, sizeof *r->item_of, &r->item_of));
  RONDO_TRY(rondo_allocate_items(r->allocator, r->item_room, sizeof *r->items, &r->items));
  RONDO_TRY(rondo_allocate_items(r->allocator, r->user_room, sizeof *r->users, &r->users));
  return rondo_allocate_items(r->allocator, r->item_room, sizeof *r->sorted, &r->sorted);
}

static void release_reuse(reuse *r) {
  const rondo_schedule *schedule = &r->layout->schedule;
  rondo_release(r->allocator, r->lead, (size_t)schedule->count + 1, sizeof *r->lead);
  rondo_release(r->allocator, r->item_of, schedule->values, sizeof *r->item_of);
  rondo_release(r->allocator, r->items, r->item_room, sizeof *r->items);
  rondo_release(r->allocator, r->users, r->user_room, sizeof *r->users);
  rondo_release(r->allocator, r->sorted, r->item_room, sizeof *r->sorted);
  rondo_array_free(r->allocator, &r->stretches);
  rondo_array_free(r->allocator, &r->next);
}

static rondo_status list_reuse_edges(reuse *r) {
  RONDO_TRY(allocate_reuse(r));
  find_leads(r);
  list_items(r);
  list_users(r);
  list_workspaces(r);
  RONDO_TRY(sort_items(r));
  for (uint32_t i = 0; i < r->count; i++) RONDO_TRY(take_bytes(r, r->sorted[i]));
  return RONDO_OK;
}

/* Adds edges between positions that, with the schedule's dependencies, imply all others; an edge perhaps twice. */
static rondo_status list_reuse(const rondo_program *program, const rondo_layout *layout, edge_list *inout_edges) {
  reuse r = {.program = program, .allocator = &program->allocator, .layout = layout, .edges = inout_edges};
  const rondo_status status = list_reuse_edges(&r);
  release_reuse(&r);
  return status;
}

/* The maker -------------------------------------------------------------------------------------------------------- */

typedef struct node_maker {
  const rondo_program *program;
  const rondo_allocator *allocator;
  const rondo_layout *layout;
  const rondo_compiled *compiled;
  rondo_run_nodes *nodes;
  uint32_t *node_of; /* one a position */
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
  RONDO_TRY(list_reuse(m->program, m->layout, &m->edges));
  for (size_t i = before; i < m->edges.count; i++) {
    node_edge *edge = &m->edges.items[i];
    *edge = (node_edge){m->node_of[edge->from], m->node_of[edge->to]};
  }
  return RONDO_OK;
}

/* An operator comes behind the copies of the staged inputs that it reads. */
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
