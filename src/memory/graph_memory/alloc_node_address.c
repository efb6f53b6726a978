/* SPDX-License-Identifier: MIT
 * The addresses of alloc nodes.
 *
 * A graph's alloc and free nodes at one address alternate in the order of their numbers: an address is reused only when
 * its free node is among the new node's ancestors, so the free node has a lower number. So the numbers alone tell which
 * free belongs to which alloc, in a graph and in all its clones, and only the addresses in the nodes have to be stored.
 */
#include <assert.h>
#include <inttypes.h>
#include <string.h>

#include "base/error.h"
#include "graph/graph.h"
#include "memory/arena/arena_internal.h"
#include "memory/graph_memory/address_ranges.h"
#include "memory/graph_memory/alloc_node_address.h"
#include "memory/graph_memory/graph_allocation.h"
#include "memory/graph_memory/graph_view.h"
#include "memory/memory_check.h"

/* Placing ---------------------------------------------------------------------------------------------------------- */

static void note_gap(rondo_gap_search *search, char *begin, size_t gap, size_t bytes) {
  if (gap > search->widest) search->widest = gap;
  if (gap < bytes || gap >= search->best_bytes) return;
  search->best = begin;
  search->best_bytes = gap;
}

void rondo_gaps_search(const rondo_address_range *range, rondo_graph_allocation *const *records, size_t count,
                       const rondo_graph_point *freed_before, size_t bytes, rondo_gap_search *search) {
  char *cursor = range->base;
  for (size_t i = 0; i < count; i++) {
    const rondo_graph_allocation *record = records[i];
    assert(i == 0 || records[i - 1]->base.address <= record->base.address);
    if (!rondo_address_range_has(range, record->base.address)) continue;
    if (freed_before != NULL && rondo_graph_point_frees(freed_before, record)) continue;
    if (record->base.address > cursor) note_gap(search, cursor, (size_t)(record->base.address - cursor), bytes);
    char *end = record->base.address + rondo_graph_allocation_rounded(record);
    if (end > cursor) cursor = end;
  }
  search->end = cursor;
  search->left = rondo_address_range_bytes(range) - (size_t)(cursor - range->base);
}

bool rondo_range_is_free(rondo_graph_allocation *const *records, size_t count, const char *begin, size_t bytes) {
  for (size_t i = 0; i < count; i++) {
    const char *at = records[i]->base.address;
    if (at < begin + bytes && at + rondo_graph_allocation_rounded(records[i]) > begin) return false;
  }
  return true;
}

/* Best fit among the gaps between the allocations that are live at the point; `pass_freed`: also on the bytes of those
 * that are freed before it. Without a gap that fits: the address after all of them; NULL if the last range is full. */
static char *find_gap(const rondo_address_space *space, rondo_graph_point *point, size_t bytes, bool pass_freed) {
  rondo_gap_search search = {.best_bytes = SIZE_MAX};
  const rondo_graph_point *freed = pass_freed ? point : NULL;
  const rondo_address_range *range = &space->first, *next = rondo_address_range_next(range);
  rondo_gaps_search(range, point->live.items, point->live.count, freed, bytes, &search);
  for (; next != NULL; next = rondo_address_range_next(range)) {
    note_gap(&search, search.end, search.left, bytes);
    range = next;
    rondo_gaps_search(range, point->live.items, point->live.count, freed, bytes, &search);
  }
  point->end = search.end;
  point->widest = pass_freed || range != &space->first ? SIZE_MAX : search.widest;
  return search.best == NULL && bytes <= search.left ? search.end : search.best;
}

/* The same, but skips the search if it is known that no gap is wide enough. */
static char *find_address(const rondo_address_space *space, rondo_graph_point *point, size_t bytes) {
  const bool is_known = point->widest != SIZE_MAX && rondo_address_range_next(&space->first) == NULL;
  if (is_known && point->widest < bytes)
    return bytes <= space->first.bytes - (size_t)(point->end - space->first.base) ? point->end : NULL;
  return find_gap(space, point, bytes, false);
}

static char *place_online(const rondo_address_space *space, rondo_graph_point *point, size_t bytes) {
  char *address = find_address(space, point, bytes);
  return address == NULL && space->relocate ? find_gap(space, point, bytes, true) : address;
}

static void set_departed(rondo_address_space *space, bool departed) {
  const uint64_t by = departed ? 1 : UINT64_MAX;
  assert(space->planned.departed != departed);
  space->planned.departed = departed;
  atomic_fetch_add_explicit(&space->planned.profile->departures, by, memory_order_relaxed);
  atomic_fetch_add_explicit(&space->memory->departures, by, memory_order_relaxed);
}

/* The planned address of the graph's next alloc node. NULL without a plan, or when the graph departs from its profile.
 */
static char *take_planned(rondo_address_space *space, const rondo_graph *graph, const rondo_graph_point *point,
                          size_t bytes) {
  rondo_planned_addresses *planned = &space->planned;
  if (planned->profile == NULL || planned->serial != graph->serial || planned->departed) return NULL;
  if (planned->next < planned->profile->allocs.count) {
    const rondo_planned_alloc *at = &planned->profile->allocs.items[planned->next];
    char *address = space->first.base + at->offset;
    const size_t limit = rondo_address_range_bytes(&space->first);
    const bool fits = at->offset <= limit && bytes <= limit - at->offset;
    const bool is_next = at->bytes == bytes && fits;
    if (is_next && rondo_range_is_free(point->live.items, point->live.count, address, bytes)) return address;
  }
  planned->departed_slot = graph->nodes.count;
  set_departed(space, true);
  return NULL;
}

/* Counts an allocation that follows the profile (1), or takes back one that was not made (-1). */
static void count_planned(rondo_address_space *space, int by) {
  assert(by > 0 || space->planned.next > 0);
  space->planned.next += (size_t)by;
  atomic_fetch_add_explicit(&space->planned.profile->placed, (uint64_t)by, memory_order_relaxed);
  atomic_fetch_add_explicit(&space->memory->profiled, (uint64_t)by, memory_order_relaxed);
}

/* A guard page precedes the pages, and another one must fit after them. The allocation ends where the pages end. */
char *rondo_address_space_take_fresh(rondo_address_space *space, size_t bytes) {
  const rondo_address_range *last = rondo_address_range_last(space);
  const size_t page = space->memory->page_bytes, whole = (bytes + page - 1) / page * page;
  if (space->fresh < last->offset) space->fresh = last->offset;
  const size_t left = last->offset + last->bytes - space->fresh;
  if (left < whole || left - whole < 2 * page) return NULL;
  space->fresh += page + whole;
  return rondo_address_space_at(space, space->fresh - bytes);
}

/* *out is NULL when the space is full. A guarded device reuses no addresses, so the order does not matter there. */
static rondo_status choose_address(rondo_address_space *space, const rondo_graph *graph, const uint32_t *slots,
                                   size_t count, size_t rounded, char **out, bool *out_planned) {
  rondo_graph_point *point;
  *out_planned = false;
  if (space->memory->device->ops->guard != NULL) {
    *out = rondo_address_space_take_fresh(space, rounded);
    return RONDO_OK;
  }
  RONDO_TRY(rondo_graph_point_find(space, graph, slots, count, &point));
  *out = take_planned(space, graph, point, rounded);
  *out_planned = *out != NULL;
  if (!*out_planned) *out = place_online(space, point, rounded);
  return RONDO_OK;
}

/* In these recordings, addresses are chosen without the lock. */
static bool is_guarded_recording(const rondo_address_space *space) {
  return space->arena != NULL && space->memory->device->ops->guard != NULL;
}

/* The node's address is NULL when the space is full. */
static rondo_status place_locked(rondo_address_space *space, const rondo_graph *graph, const uint32_t *slots,
                                 size_t count, size_t rounded, rondo_alloc_node *node) {
  char *address = node->address;
  bool planned = false;
  rondo_graph_allocation *record;
  rondo_graph_view_refresh(space, graph);
  if (!is_guarded_recording(space)) RONDO_TRY(choose_address(space, graph, slots, count, rounded, &address, &planned));
  node->address = address;
  if (address == NULL) return RONDO_OK;
  RONDO_TRY(rondo_graph_allocation_of(space, node, &record));
  record->alloc_nodes++;
  if (planned) count_planned(space, 1);
  return RONDO_OK;
}

/* Undoes a departure if the node that departed was not made. */
static void take_back_departure(rondo_address_space *space, const rondo_graph *graph) {
  const rondo_planned_addresses *planned = &space->planned;
  if (planned->departed && planned->serial == graph->serial && planned->departed_slot == graph->nodes.count)
    set_departed(space, false);
}

/* The node's address is NULL when the space is full. *out_last is its last range. */
static rondo_status place(const rondo_graph *graph, const uint32_t *slots, size_t count, size_t rounded,
                          rondo_alloc_node *node, const rondo_address_range **out_last) {
  rondo_address_space *space = rondo_address_space_of(graph);
  pthread_mutex_lock(&space->memory->lock);
  *out_last = rondo_address_range_last(space);
  const rondo_status status = place_locked(space, graph, slots, count, rounded, node);
  if (status != RONDO_OK) take_back_departure(space, graph);
  if (space->allocations.count <= RONDO_CHECKED_MEMBERS) rondo_address_space_check(space);
  pthread_mutex_unlock(&space->memory->lock);
  return status;
}

static rondo_status place_growing(const rondo_graph *graph, const rondo_node *dependencies, size_t count,
                                  uint32_t *slots, size_t rounded, rondo_alloc_node *node) {
  rondo_address_space *space = rondo_address_space_of(graph);
  const rondo_address_range *last = NULL;
  RONDO_TRY(rondo_graph_find_all(graph, "dependencies", dependencies, count, slots));
  RONDO_TRY(place(graph, slots, count, rounded, node, &last));
  while (node->address == NULL) {
    RONDO_TRY(rondo_address_space_grow(space, last, rounded));
    RONDO_TRY(place(graph, slots, count, rounded, node, &last));
  }
  return RONDO_OK;
}

rondo_status rondo_address_space_place(const rondo_graph *graph, const rondo_node *dependencies, size_t count,
                                       rondo_alloc_node *node) {
  rondo_address_space *space = rondo_address_space_of(graph);
  size_t rounded, whole;
  if (!rondo_pool_round(node->bytes, &rounded) || !rondo_checked_align(rounded, space->memory->page_bytes, &whole))
    return rondo_fail(RONDO_OUT_OF_MEMORY, RONDO_REASON_BAD_SIZE,
                      "an alloc node of %zu bytes does not fit the address space", node->bytes);
  RONDO_TRY(rondo_address_space_begin(space, whole));
  if (is_guarded_recording(space)) {
    char *address;
    RONDO_TRY(rondo_arena_take_guarded(space, rounded, &address));
    node->address = address;
  }
  void *slots;
  RONDO_TRY(rondo_allocate(&graph->allocator, count, sizeof(uint32_t), &slots));
  const rondo_status status = place_growing(graph, dependencies, count, slots, rounded, node);
  rondo_release(&graph->allocator, slots, count, sizeof(uint32_t));
  return status;
}

static void forget_locked(rondo_address_space *space, const rondo_alloc_node *node) {
  rondo_graph_allocation *record = rondo_graph_allocation_find(space, node);
  if (record == NULL || record->alloc_nodes == 0) return;
  record->alloc_nodes--;
  rondo_graph_allocation_release(record);
}

void rondo_address_space_forget(const rondo_graph *graph, const rondo_alloc_node *node) {
  rondo_address_space *space = rondo_address_space_of(graph);
  pthread_mutex_lock(&space->memory->lock);
  forget_locked(space, node);
  pthread_mutex_unlock(&space->memory->lock);
}

void rondo_address_space_unplace(const rondo_graph *graph, const rondo_alloc_node *node) {
  rondo_address_space *space = rondo_address_space_of(graph);
  const rondo_planned_addresses *planned = &space->planned;
  pthread_mutex_lock(&space->memory->lock);
  const bool counted = planned->profile != NULL && planned->serial == graph->serial && !planned->departed;
  if (counted) count_planned(space, -1);
  take_back_departure(space, graph);
  forget_locked(space, node);
  pthread_mutex_unlock(&space->memory->lock);
}
