/* SPDX-License-Identifier: MIT
 * Finding who has bytes after whom: the lives are walked in the order of their beginnings, with a list of the stretches
 * of the arena and who had each last. What a life lies over is put behind all uses of those; who had the bytes before
 * them is then ordered through them.
 */
#include "tensor/compile/arena_reuse.h"

#include <assert.h>
#include <stdlib.h>

#include "base/error.h"

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
  rondo_reuse_edges *edges;
} reuse;

/* Items ------------------------------------------------------------------------------------------------------------ */

static uint32_t add_item(reuse *r, const rondo_place *place) {
  r->items[r->count].place = place;
  return ++r->count;
}

static void list_items(reuse *r) {
  const rondo_layout *layout = r->layout;
  for (uint32_t v = 0; v < layout->schedule.values; v++)
    if (layout->schedule.owners[v] == v && layout->places[v].block == RONDO_BLOCK_ARENA)
      r->item_of[v] = add_item(r, &layout->places[v]);
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
    const uint32_t item = add_item(r, place) - 1;
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
    const rondo_reuse_edge edge = {r->users[u], to};
    assert(edge.from < edge.to);
    RONDO_TRY(rondo_array_push(r->allocator, r->edges, &edge));
  }
  return RONDO_OK;
}

static rondo_status keep(reuse *r, size_t begin, size_t end, uint32_t item) {
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
    RONDO_TRY(keep(r, s->begin, smaller(s->end, larger(begin, s->begin)), s->item));
    RONDO_TRY(keep(r, larger(s->begin, smaller(end, s->end)), s->end, s->item));
  }
  RONDO_TRY(keep(r, begin, end, number));
  const stretch_list spare = r->stretches;
  r->stretches = r->next;
  r->next = spare;
  return RONDO_OK;
}

/* The whole -------------------------------------------------------------------------------------------------------- */

static void find_leads(reuse *r) {
  const rondo_schedule *schedule = &r->layout->schedule;
  for (uint32_t first = 0; first < schedule->count; first += schedule->joined[first])
    for (uint32_t p = first; p < first + schedule->joined[first]; p++) r->lead[p] = first;
}

static rondo_status allocate(reuse *r) {
  const rondo_schedule *schedule = &r->layout->schedule;
  r->item_room = (uint32_t)schedule->values + schedule->count;
  r->user_room = (MOST_TOUCHED + (size_t)1) * schedule->count;
  RONDO_TRY(rondo_allocate_items(r->allocator, (size_t)schedule->count + 1, sizeof *r->lead, &r->lead));
  RONDO_TRY(rondo_allocate_items(r->allocator, schedule->values, sizeof *r->item_of, &r->item_of));
  RONDO_TRY(rondo_allocate_items(r->allocator, r->item_room, sizeof *r->items, &r->items));
  RONDO_TRY(rondo_allocate_items(r->allocator, r->user_room, sizeof *r->users, &r->users));
  return rondo_allocate_items(r->allocator, r->item_room, sizeof *r->sorted, &r->sorted);
}

static void release(reuse *r) {
  const rondo_schedule *schedule = &r->layout->schedule;
  rondo_release(r->allocator, r->lead, (size_t)schedule->count + 1, sizeof *r->lead);
  rondo_release(r->allocator, r->item_of, schedule->values, sizeof *r->item_of);
  rondo_release(r->allocator, r->items, r->item_room, sizeof *r->items);
  rondo_release(r->allocator, r->users, r->user_room, sizeof *r->users);
  rondo_release(r->allocator, r->sorted, r->item_room, sizeof *r->sorted);
  rondo_array_free(r->allocator, &r->stretches);
  rondo_array_free(r->allocator, &r->next);
}

static rondo_status list_edges(reuse *r) {
  RONDO_TRY(allocate(r));
  find_leads(r);
  list_items(r);
  list_users(r);
  list_workspaces(r);
  RONDO_TRY(sort_items(r));
  for (uint32_t i = 0; i < r->count; i++) RONDO_TRY(take_bytes(r, r->sorted[i]));
  return RONDO_OK;
}

rondo_status rondo_reuse_list(const rondo_program *program, const rondo_layout *layout,
                              rondo_reuse_edges *inout_edges) {
  reuse r = {.program = program, .allocator = &program->allocator, .layout = layout, .edges = inout_edges};
  const rondo_status status = list_edges(&r);
  release(&r);
  return status;
}
