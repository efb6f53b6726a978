/* SPDX-License-Identifier: MIT
 * Views and points. Nodes are viewed in order, and each open allocation becomes the first record at its address. A
 * point is made from the nearest existing one.
 */
#include "memory/graph_memory/graph_view.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/binary_search.h"
#include "memory/graph_memory/address_space.h"
#include "memory/graph_memory/graph_allocation.h"

/* How many nodes are searched for the roots of a point before an empty point is taken. */
#define NEAR_NODES 4096

/* Views ----------------------------------------------------------------------------------------------------------- */

rondo_graph_allocation *rondo_graph_view_find_open(const rondo_address_space *space, const void *address) {
  rondo_allocation *at = rondo_allocation_starts_find(space->starts, address);
  for (; at != NULL; at = rondo_allocation_next(at)) {
    if (at->kind != RONDO_ALLOCATION_GRAPH) continue;
    rondo_graph_allocation *record = (rondo_graph_allocation *)at;
    if (record->space == space && record->open) return record;
  }
  return NULL;
}

static void view_node(rondo_address_space *space, uint32_t slot, const rondo_node_params *params) {
  const bool is_alloc = params->kind == RONDO_NODE_ALLOC;
  if (!is_alloc && params->kind != RONDO_NODE_FREE) return;
  rondo_graph_allocation *record = is_alloc ? rondo_graph_allocation_find(space, &params->as.alloc)
                                            : rondo_graph_view_find_open(space, params->as.free_address);
  if (record == NULL) return;
  record->open = is_alloc;
  record->free_slot = is_alloc ? RONDO_NO_NODE : slot;
  if (!is_alloc) return;
  rondo_graph_points_note(space, record);
  rondo_allocation_starts_touch(space->starts, &record->base);
}

static void reset_view(rondo_address_space *space, uint32_t serial) {
  space->view.serial = serial;
  space->view.viewed = 0;
  rondo_graph_points_reset(space);
  for (size_t i = 0; i < space->allocations.count; i++) {
    rondo_graph_allocation *record = space->allocations.items[i];
    record->open = record->role == RONDO_RECORD_BLOCK;
    record->free_slot = RONDO_NO_NODE;
  }
}

void rondo_graph_view_refresh(rondo_address_space *space, const rondo_graph *graph) {
  rondo_graph_view *view = &space->view;
  if (view->serial != graph->serial) reset_view(space, graph->serial);
  for (; view->viewed < graph->nodes.count; view->viewed++) {
    const rondo_graph_node *node = &graph->nodes.items[view->viewed];
    if (node->live) view_node(space, (uint32_t)view->viewed, &node->params);
  }
}

void rondo_address_space_note_removal(const rondo_graph *graph) {
  rondo_address_space *space = rondo_address_space_of(graph);
  if (space == NULL) return;
  pthread_mutex_lock(&space->memory->lock);
  if (space->view.serial == graph->serial) reset_view(space, 0);
  pthread_mutex_unlock(&space->memory->lock);
}

static const rondo_allocator *allocator_of(const rondo_address_space *space) { return &space->memory->allocator; }

bool rondo_graph_point_frees(const rondo_graph_point *point, const rondo_graph_allocation *record) {
  if (record->open || record->free_slot == RONDO_NO_NODE) return false;
  assert(record->free_slot < point->marks.count);
  return point->marks.items[record->free_slot];
}

/* Live allocations ------------------------------------------------------------------------------------------------ */

/* The index of the record in the live ones, or the index at which it would be inserted. */
static size_t position_of(const rondo_graph_point *point, const rondo_graph_allocation *record) {
  size_t low = 0, high = point->live.count;
  RONDO_BINARY_SEARCH(low, high, middle, rondo_graph_allocation_compare(&point->live.items[middle], &record) < 0)
  return low;
}

static bool is_at(const rondo_graph_point *point, size_t position, const rondo_graph_allocation *record) {
  return position < point->live.count && point->live.items[position] == record;
}

/* The array has the capacity. */
static void insert_live(rondo_graph_point *point, rondo_graph_allocation *record) {
  const size_t position = position_of(point, record);
  if (is_at(point, position, record)) return;
  rondo_array_insert(&point->live, position, record);
  if (point->widest == SIZE_MAX) return;
  char *end = record->base.address + rondo_graph_allocation_rounded(record);
  if (record->base.address > point->end) point->widest = SIZE_MAX;
  if (end > point->end) point->end = end;
}

static void remove_live(rondo_graph_point *point, const rondo_graph_allocation *record) {
  const size_t position = position_of(point, record);
  if (!is_at(point, position, record)) return;
  rondo_array_remove(&point->live, position);
  point->widest = SIZE_MAX;
}

void rondo_graph_points_note(rondo_address_space *space, rondo_graph_allocation *record) {
  rondo_graph_points *points = &space->view.points;
  if (points->uses == 0) return; /* all points are empty */
  rondo_saved_error before;
  rondo_error_save(&before);
  if (rondo_array_push(allocator_of(space), &points->noted, &record) == RONDO_OK) return;
  rondo_graph_points_reset(space);
  rondo_error_restore(&before);
}

/* Marks ----------------------------------------------------------------------------------------------------------- */

/* Grows the array to the number of slots; new bytes are zero. */
static rondo_status grow_to(const rondo_address_space *space, rondo_slot_bytes *bytes, size_t slots) {
  RONDO_TRY(rondo_array_reserve(allocator_of(space), bytes, slots));
  if (slots > bytes->count) memset(bytes->items + bytes->count, 0, slots - bytes->count);
  if (slots > bytes->count) bytes->count = slots;
  return RONDO_OK;
}

/* Marks the slot and adds it to `walked`, unless it was marked. */
static rondo_status walk_to(rondo_address_space *space, uint8_t *marks, uint32_t slot) {
  if (marks[slot]) return RONDO_OK;
  RONDO_TRY(rondo_array_push(allocator_of(space), &space->view.points.walked, &slot));
  marks[slot] = 1;
  return RONDO_OK;
}

/* Marks the slots and all nodes before them. Stops at marked nodes. `walked` are the newly marked nodes. */
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

/* Removes the allocation whose last free node is `slot` from the live ones. */
static void pass_free(rondo_address_space *space, rondo_graph_point *point, const void *address, uint32_t slot) {
  rondo_allocation *at = rondo_allocation_starts_find(space->starts, address);
  for (; at != NULL; at = rondo_allocation_next(at)) {
    if (at->kind != RONDO_ALLOCATION_GRAPH) continue;
    const rondo_graph_allocation *record = (const rondo_graph_allocation *)at;
    if (record->space != space || record->free_slot != slot) continue;
    remove_live(point, record);
    return;
  }
}

/* The same for all free nodes in `walked`. */
static void pass_frees(rondo_address_space *space, rondo_graph_point *point, const rondo_graph *graph) {
  const rondo_slots *walked = &space->view.points.walked;
  for (size_t i = 0; i < walked->count && !space->relocate; i++) {
    const rondo_node_params *params = &rondo_graph_at(graph, walked->items[i])->params;
    if (params->kind == RONDO_NODE_FREE) pass_free(space, point, params->as.free_address, walked->items[i]);
  }
}

/* Adds the records that were noted since the point was last used. */
static rondo_status catch_up(rondo_address_space *space, rondo_graph_point *point) {
  const rondo_graph_points *points = &space->view.points;
  RONDO_TRY(rondo_array_reserve(allocator_of(space), &point->live, space->allocations.count));
  for (; point->noted < points->noted.count; point->noted++) {
    rondo_graph_allocation *record = points->noted.items[point->noted];
    if (space->relocate || !rondo_graph_point_frees(point, record)) insert_live(point, record);
  }
  return RONDO_OK;
}

/* Points ---------------------------------------------------------------------------------------------------------- */

/* The array of roots has the capacity. */
static void set_roots(rondo_graph_points *points, rondo_graph_point *point, const uint32_t *slots, size_t count) {
  const uint8_t own = (uint8_t)(point - points->items + 1);
  uint8_t *root_of = points->root_of.items;
  for (size_t i = 0; i < point->roots.count; i++)
    if (root_of[point->roots.items[i]] == own) root_of[point->roots.items[i]] = 0;
  if (count > 0) memcpy(point->roots.items, slots, count * sizeof *slots);
  point->roots.count = count;
  for (size_t i = 0; i < count; i++) root_of[slots[i]] = own;
}

static void clear_point(rondo_graph_points *points, rondo_graph_point *point) {
  set_roots(points, point, NULL, 0);
  if (point->marks.count > 0) memset(point->marks.items, 0, point->marks.count);
  point->live.count = 0;
  point->used = 0;
}

/* Walks back from the slots to the first point whose roots are all found; NULL if none is near. Does not walk past
 * roots. */
static rondo_status meet_roots(rondo_address_space *space, const rondo_graph *graph, const uint32_t *slots,
                               size_t count, rondo_graph_point **out) {
  rondo_graph_points *points = &space->view.points;
  const rondo_slots *walked = &points->walked;
  size_t met[RONDO_GRAPH_POINTS] = {0};
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

/* *out is NULL when there is none. */
static rondo_status find_near(rondo_address_space *space, const rondo_graph *graph, const uint32_t *slots, size_t count,
                              rondo_graph_point **out) {
  rondo_graph_points *points = &space->view.points;
  *out = NULL;
  for (size_t i = 0; i < RONDO_GRAPH_POINTS && count == 0 && *out == NULL; i++)
    if (points->items[i].used != 0 && points->items[i].roots.count == 0) *out = &points->items[i];
  if (count == 0) return RONDO_OK;
  const rondo_status status = meet_roots(space, graph, slots, count, out);
  for (size_t i = 0; i < points->walked.count; i++) points->seen.items[points->walked.items[i]] = 0;
  return status;
}

/* An empty point, otherwise the least recently used one. */
static rondo_graph_point *take_unused(rondo_graph_points *points) {
  rondo_graph_point *oldest = &points->items[0];
  for (size_t i = 1; i < RONDO_GRAPH_POINTS; i++)
    if (points->items[i].used < oldest->used) oldest = &points->items[i];
  if (oldest->used != 0) clear_point(points, oldest);
  return oldest;
}

/* Collects the live allocations of a point that was empty. */
static rondo_status collect_live(rondo_address_space *space, rondo_graph_point *point) {
  RONDO_TRY(rondo_array_reserve(allocator_of(space), &point->live, space->allocations.count));
  for (size_t i = 0; i < space->allocations.count; i++) {
    rondo_graph_allocation *record = space->allocations.items[i];
    if (space->relocate || !rondo_graph_point_frees(point, record)) point->live.items[point->live.count++] = record;
  }
  if (point->live.count > 1)
    qsort(point->live.items, point->live.count, sizeof *point->live.items, rondo_graph_allocation_compare);
  point->widest = SIZE_MAX;
  point->noted = space->view.points.noted.count;
  return RONDO_OK;
}

/* Moves the point forward so that it depends on the slots. */
static rondo_status move_point(rondo_address_space *space, rondo_graph_point *point, const rondo_graph *graph,
                               const uint32_t *slots, size_t count) {
  rondo_graph_points *points = &space->view.points;
  const bool fresh = point->used == 0;
  RONDO_TRY(rondo_array_reserve(allocator_of(space), &point->roots, count));
  RONDO_TRY(grow_to(space, &point->marks, graph->nodes.count));
  RONDO_TRY(spread_marks(space, graph, point->marks.items, slots, count));
  if (!fresh) pass_frees(space, point, graph);
  RONDO_TRY(fresh ? collect_live(space, point) : catch_up(space, point));
  set_roots(points, point, slots, count);
  point->used = ++points->uses;
  return RONDO_OK;
}

rondo_status rondo_graph_point_find(rondo_address_space *space, const rondo_graph *graph, const uint32_t *slots,
                                    size_t count, rondo_graph_point **out) {
  rondo_graph_points *points = &space->view.points;
  RONDO_TRY(grow_to(space, &points->root_of, graph->nodes.count));
  RONDO_TRY(grow_to(space, &points->seen, graph->nodes.count));
  RONDO_TRY(find_near(space, graph, slots, count, out));
  if (*out == NULL) *out = take_unused(points);
  const rondo_status status = move_point(space, *out, graph, slots, count);
  if (status != RONDO_OK) clear_point(points, *out);
  return status;
}

void rondo_graph_points_reset(rondo_address_space *space) {
  rondo_graph_points *points = &space->view.points;
  for (size_t i = 0; i < RONDO_GRAPH_POINTS; i++)
    if (points->items[i].used != 0) clear_point(points, &points->items[i]);
  points->noted.count = 0;
  points->uses = 0;
}

void rondo_graph_points_free(rondo_address_space *space) {
  const rondo_allocator *allocator = allocator_of(space);
  rondo_graph_points *points = &space->view.points;
  for (size_t i = 0; i < RONDO_GRAPH_POINTS; i++) {
    rondo_array_free(allocator, &points->items[i].roots);
    rondo_array_free(allocator, &points->items[i].marks);
    rondo_array_free(allocator, &points->items[i].live);
  }
  rondo_array_free(allocator, &points->root_of);
  rondo_array_free(allocator, &points->seen);
  rondo_array_free(allocator, &points->walked);
  rondo_array_free(allocator, &points->noted);
}
