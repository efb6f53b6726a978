/* SPDX-License-Identifier: MIT
 * Standpoints: finding the one to build on, and keeping what is in the way of each up to date.
 */
#include "memory/graph_memory/live_before_node.h"

#include <stdlib.h>
#include <string.h>

#include "base/binary_search.h"
#include "memory/graph_memory/address_space.h"
#include "memory/graph_memory/graph_allocation.h"

/* How far back the roots of a standpoint are looked for before another is made. */
#define NEAR_NODES 4096

static const rondo_allocator *allocator_of(const rondo_address_space *space) { return &space->memory->allocator; }

bool rondo_standpoint_frees(const rondo_standpoint *point, const rondo_graph_allocation *record) {
  return !record->open && record->free_slot != RONDO_NO_NODE && point->marks.items[record->free_slot];
}

/* What is in the way ---------------------------------------------------------------------------------------------- */

/* Those at one address have an order too, so that each is found by halving. */
static bool stands_before(const rondo_graph_allocation *a, const rondo_graph_allocation *b) {
  return a->base.address != b->base.address ? a->base.address < b->base.address : (uintptr_t)a < (uintptr_t)b;
}

/* Where the record stands, or would. */
static size_t position_of(const rondo_standpoint *point, const rondo_graph_allocation *record) {
  size_t low = 0, high = point->busy.count;
  RONDO_BINARY_SEARCH(low, high, middle, stands_before(point->busy.items[middle], record))
  return low;
}

static bool is_at(const rondo_standpoint *point, size_t position, const rondo_graph_allocation *record) {
  return position < point->busy.count && point->busy.items[position] == record;
}

/* There is room. */
static void insert_busy(rondo_standpoint *point, rondo_graph_allocation *record) {
  const size_t position = position_of(point, record);
  if (is_at(point, position, record)) return;
  rondo_graph_allocation **at = point->busy.items + position;
  memmove(at + 1, at, (point->busy.count - position) * sizeof(rondo_graph_allocation *));
  *at = record;
  point->busy.count++;
  if (point->widest == SIZE_MAX) return;
  char *end = record->base.address + rondo_graph_allocation_rounded(record);
  if (record->base.address > point->end) point->widest = SIZE_MAX;
  if (end > point->end) point->end = end;
}

static void remove_busy(rondo_standpoint *point, const rondo_graph_allocation *record) {
  const size_t position = position_of(point, record);
  if (!is_at(point, position, record)) return;
  rondo_graph_allocation **at = point->busy.items + position;
  point->busy.count--;
  memmove(at, at + 1, (point->busy.count - position) * sizeof(rondo_graph_allocation *));
  point->widest = SIZE_MAX;
}

void rondo_standpoints_note(rondo_address_space *space, rondo_graph_allocation *record) {
  rondo_standpoints *points = &space->view.points;
  if (points->uses == 0) return; /* none stands anywhere */
  rondo_saved_error before;
  rondo_error_save(&before);
  if (rondo_array_push(allocator_of(space), &points->noted, &record) == RONDO_OK) return;
  rondo_standpoints_reset(space);
  rondo_error_restore(&before);
}

/* Marks ----------------------------------------------------------------------------------------------------------- */

/* Room for all slots; those that are new are zero. */
static rondo_status grow_to(const rondo_address_space *space, rondo_slot_bytes *bytes, size_t slots) {
  RONDO_TRY(rondo_array_reserve(allocator_of(space), bytes, slots));
  if (slots > bytes->count) memset(bytes->items + bytes->count, 0, slots - bytes->count);
  if (slots > bytes->count) bytes->count = slots;
  return RONDO_OK;
}

/* Marks the slot and notes it, unless it was marked. */
static rondo_status walk_to(rondo_address_space *space, uint8_t *marks, uint32_t slot) {
  if (marks[slot]) return RONDO_OK;
  RONDO_TRY(rondo_array_push(allocator_of(space), &space->view.points.walked, &slot));
  marks[slot] = 1;
  return RONDO_OK;
}

/* Marks the slots and what comes before them, stopping at what is marked; `walked` are then those that were not. */
static rondo_status spread_marks(rondo_address_space *space, const rondo_graph *graph, uint8_t *marks,
                                 const uint32_t *slots, size_t count) {
  rondo_slots *walked = &space->view.points.walked;
  walked->count = 0;
  for (size_t i = 0; i < count; i++) RONDO_TRY(walk_to(space, marks, slots[i]));
  for (size_t next = 0; next < walked->count; next++) {
    const rondo_slots *before = &rondo_graph_at(graph, walked->items[next])->dependencies;
    for (size_t i = 0; i < before->count; i++) RONDO_TRY(walk_to(space, marks, before->items[i]));
  }
  return RONDO_OK;
}

/* The allocation whose last free node this is comes out of the way. */
static void pass_free(rondo_address_space *space, rondo_standpoint *point, const void *address, uint32_t slot) {
  rondo_allocation *at = rondo_allocation_starts_find(space->starts, address);
  for (; at != NULL; at = rondo_allocation_next(at)) {
    if (at->kind != RONDO_ALLOCATION_GRAPH) continue;
    const rondo_graph_allocation *record = (const rondo_graph_allocation *)at;
    if (record->space != space || record->free_slot != slot) continue;
    remove_busy(point, record);
    return;
  }
}

/* Those whose free nodes have been walked to. */
static void pass_frees(rondo_address_space *space, rondo_standpoint *point, const rondo_graph *graph) {
  const rondo_slots *walked = &space->view.points.walked;
  for (size_t i = 0; i < walked->count && !space->relocate; i++) {
    const rondo_node_params *params = &rondo_graph_at(graph, walked->items[i])->params;
    if (params->kind == RONDO_NODE_FREE) pass_free(space, point, params->as.free_address, walked->items[i]);
  }
}

/* What was noted since the standpoint was used last comes into the way. */
static rondo_status catch_up(rondo_address_space *space, rondo_standpoint *point) {
  const rondo_standpoints *points = &space->view.points;
  RONDO_TRY(rondo_array_reserve(allocator_of(space), &point->busy, space->allocations.count));
  for (; point->noted < points->noted.count; point->noted++) {
    rondo_graph_allocation *record = points->noted.items[point->noted];
    if (space->relocate || !rondo_standpoint_frees(point, record)) insert_busy(point, record);
  }
  return RONDO_OK;
}

/* Standing -------------------------------------------------------------------------------------------------------- */

/* There is room for the roots. */
static void stand_behind(rondo_standpoints *points, rondo_standpoint *point, const uint32_t *slots, size_t count) {
  const uint8_t own = (uint8_t)(point - points->items + 1);
  uint8_t *root_of = points->root_of.items;
  for (size_t i = 0; i < point->roots.count; i++)
    if (root_of[point->roots.items[i]] == own) root_of[point->roots.items[i]] = 0;
  if (count > 0) memcpy(point->roots.items, slots, count * sizeof *slots);
  point->roots.count = count;
  for (size_t i = 0; i < count; i++) root_of[slots[i]] = own;
}

static void stand_nowhere(rondo_standpoints *points, rondo_standpoint *point) {
  stand_behind(points, point, NULL, 0);
  if (point->marks.count > 0) memset(point->marks.items, 0, point->marks.count);
  point->busy.count = 0;
  point->used = 0;
}

/* Going back from the slots, node by node: the first standpoint of which all roots are met; NULL when there is none
 * near. Behind a root nothing more is looked at. */
static rondo_status meet_roots(rondo_address_space *space, const rondo_graph *graph, const uint32_t *slots,
                               size_t count, rondo_standpoint **out) {
  rondo_standpoints *points = &space->view.points;
  const rondo_slots *walked = &points->walked;
  size_t met[RONDO_STANDPOINTS] = {0};
  points->walked.count = 0;
  for (size_t i = 0; i < count; i++) RONDO_TRY(walk_to(space, points->seen.items, slots[i]));
  for (size_t next = 0; next < walked->count && next < NEAR_NODES && *out == NULL; next++) {
    const uint8_t of = points->root_of.items[walked->items[next]];
    const rondo_slots *before = &rondo_graph_at(graph, walked->items[next])->dependencies;
    if (of != 0 && ++met[of - 1] == points->items[of - 1].roots.count) *out = &points->items[of - 1];
    for (size_t i = 0; i < before->count && of == 0; i++)
      RONDO_TRY(walk_to(space, points->seen.items, before->items[i]));
  }
  return RONDO_OK;
}

/* NULL when there is none. */
static rondo_status find_near(rondo_address_space *space, const rondo_graph *graph, const uint32_t *slots, size_t count,
                              rondo_standpoint **out) {
  rondo_standpoints *points = &space->view.points;
  *out = NULL;
  for (size_t i = 0; i < RONDO_STANDPOINTS && count == 0 && *out == NULL; i++)
    if (points->items[i].used != 0 && points->items[i].roots.count == 0) *out = &points->items[i];
  if (count == 0) return RONDO_OK;
  const rondo_status status = meet_roots(space, graph, slots, count, out);
  for (size_t i = 0; i < points->walked.count; i++) points->seen.items[points->walked.items[i]] = 0;
  return status;
}

/* One that stands nowhere, else the one that was not used for longest. */
static rondo_standpoint *take_unused(rondo_standpoints *points) {
  rondo_standpoint *oldest = &points->items[0];
  for (size_t i = 1; i < RONDO_STANDPOINTS; i++)
    if (points->items[i].used < oldest->used) oldest = &points->items[i];
  if (oldest->used != 0) stand_nowhere(points, oldest);
  return oldest;
}

static int compare_records(const void *a, const void *b) {
  const rondo_graph_allocation *x = *(const rondo_graph_allocation *const *)a;
  const rondo_graph_allocation *y = *(const rondo_graph_allocation *const *)b;
  return x == y ? 0 : stands_before(x, y) ? -1 : 1;
}

/* All that is in the way of a standpoint with marks. */
static rondo_status collect_busy(rondo_address_space *space, rondo_standpoint *point) {
  RONDO_TRY(rondo_array_reserve(allocator_of(space), &point->busy, space->allocations.count));
  for (size_t i = 0; i < space->allocations.count; i++) {
    rondo_graph_allocation *record = space->allocations.items[i];
    if (space->relocate || !rondo_standpoint_frees(point, record)) point->busy.items[point->busy.count++] = record;
  }
  if (point->busy.count > 1)
    qsort(point->busy.items, point->busy.count, sizeof(rondo_graph_allocation *), compare_records);
  point->widest = SIZE_MAX;
  point->noted = space->view.points.noted.count;
  return RONDO_OK;
}

/* With the nodes that the standpoint is not behind yet. */
static rondo_status move_behind(rondo_address_space *space, rondo_standpoint *point, const rondo_graph *graph,
                                const uint32_t *slots, size_t count) {
  rondo_standpoints *points = &space->view.points;
  const bool fresh = point->used == 0;
  RONDO_TRY(rondo_array_reserve(allocator_of(space), &point->roots, count));
  RONDO_TRY(grow_to(space, &point->marks, graph->nodes.count));
  RONDO_TRY(spread_marks(space, graph, point->marks.items, slots, count));
  if (!fresh) pass_frees(space, point, graph);
  RONDO_TRY(fresh ? collect_busy(space, point) : catch_up(space, point));
  stand_behind(points, point, slots, count);
  point->used = ++points->uses;
  return RONDO_OK;
}

rondo_status rondo_standpoints_find(rondo_address_space *space, const rondo_graph *graph, const uint32_t *slots,
                                    size_t count, rondo_standpoint **out) {
  rondo_standpoints *points = &space->view.points;
  RONDO_TRY(grow_to(space, &points->root_of, graph->nodes.count));
  RONDO_TRY(grow_to(space, &points->seen, graph->nodes.count));
  RONDO_TRY(find_near(space, graph, slots, count, out));
  if (*out == NULL) *out = take_unused(points);
  const rondo_status status = move_behind(space, *out, graph, slots, count);
  if (status != RONDO_OK) stand_nowhere(points, *out);
  return status;
}

void rondo_standpoints_reset(rondo_address_space *space) {
  rondo_standpoints *points = &space->view.points;
  for (size_t i = 0; i < RONDO_STANDPOINTS; i++)
    if (points->items[i].used != 0) stand_nowhere(points, &points->items[i]);
  points->noted.count = 0;
  points->uses = 0;
}

void rondo_standpoints_free(rondo_address_space *space) {
  const rondo_allocator *allocator = allocator_of(space);
  rondo_standpoints *points = &space->view.points;
  for (size_t i = 0; i < RONDO_STANDPOINTS; i++) {
    rondo_array_free(allocator, &points->items[i].roots);
    rondo_array_free(allocator, &points->items[i].marks);
    rondo_array_free(allocator, &points->items[i].busy);
  }
  rondo_array_free(allocator, &points->root_of);
  rondo_array_free(allocator, &points->seen);
  rondo_array_free(allocator, &points->walked);
  rondo_array_free(allocator, &points->noted);
}
