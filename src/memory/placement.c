/* SPDX-License-Identifier: MIT
 * Giving alloc nodes their addresses.
 *
 * A graph's alloc and free nodes at one address alternate in the order of their making: an address is only given out
 * again when a free node of it is among the new node's ancestors, so that the free was there first. Which free belongs
 * to which alloc therefore follows from the slots alone, in a graph and in all its clones, and nothing has to be
 * remembered about it but the addresses in the nodes.
 */
#include <assert.h>
#include <inttypes.h>
#include <string.h>

#include "base/error.h"
#include "memory/arena_internal.h"
#include "memory/graph_view.h"
#include "memory/heap.h"
#include "memory/peers.h"

#define SMALLEST_SPACE (UINT64_C(64) << 20) /* what is wanted at least, and tried with when the system has no more */
#define NEEDED_TIMES                                                                               \
  8 /* of its first allocation, or of its profile's peak, a graph wants as many addresses at least \
     */
#define SPACE_ALIGNMENT ((size_t)2 << 20)

/* The range -------------------------------------------------------------------------------------------------------- */

/* Ranges of all devices of the process. */
static atomic_uint ranges;

void rondo_graph_addresses_uncount(void) { atomic_fetch_sub_explicit(&ranges, 1, memory_order_relaxed); }

/* In whole pages. The first graphs of a process get addresses for all of the device's memory; when there are many, each
 * further one gets its share of what is set aside: so the ranges together grow with the logarithm of their number. */
static size_t wanted_by(const rondo_device_memory *memory, size_t least) {
  const uint64_t whole = rondo_graph_addresses_wanted(memory);
  const uint64_t count = (uint64_t)atomic_load_explicit(&ranges, memory_order_relaxed) + 1;
  uint64_t share = RONDO_ADDRESS_SPACE_SHARED / count;
  if (share < SMALLEST_SPACE) share = SMALLEST_SPACE;
  if (share / NEEDED_TIMES < least) share = least < whole / NEEDED_TIMES ? least * NEEDED_TIMES : whole;
  return (size_t)((share < whole ? share : whole) / SPACE_ALIGNMENT * SPACE_ALIGNMENT);
}

rondo_status rondo_graph_addresses_reserve(rondo_device *device, size_t least, size_t wanted, char **out_base,
                                           size_t *out_bytes) {
  size_t bytes = wanted > least ? wanted : least;
  void *base;
  rondo_saved_error before;
  rondo_error_save(&before);
  rondo_status status = rondo_peers_reserve(device, bytes, SPACE_ALIGNMENT, &base);
  const bool at_once = status == RONDO_OK;
  while (status == RONDO_OUT_OF_MEMORY && bytes / 4 >= SMALLEST_SPACE && bytes / 4 >= least) {
    bytes /= 4;
    status = rondo_peers_reserve(device, bytes, SPACE_ALIGNMENT, &base);
  }
  if (status != RONDO_OK) {
    char size[RONDO_SIZE_TEXT];
    return rondo_fail_context(
        status, "addresses for graph memory of at least %s on %s, beside those of %u other graphs",
        rondo_size_text(size, bytes), device->name, atomic_load_explicit(&ranges, memory_order_relaxed));
  }
  atomic_fetch_add_explicit(&ranges, 1, memory_order_relaxed);
  if (!at_once) rondo_error_restore(&before);
  *out_base = base;
  *out_bytes = bytes;
  return RONDO_OK;
}

static rondo_status reserve_range(rondo_address_space *space, size_t least, size_t wanted) {
  rondo_device_memory *memory = space->memory;
  rondo_device *device = memory->device;
  rondo_retired_sweep(memory, false);
  pthread_mutex_lock(&memory->lock);
  const bool there = space->base != NULL;
  pthread_mutex_unlock(&memory->lock);
  if (there) return RONDO_OK;
  char *base = NULL;
  size_t bytes = 0;
  RONDO_TRY(rondo_graph_addresses_reserve(device, least, wanted, &base, &bytes));
  pthread_mutex_lock(&memory->lock);
  const bool first = space->base == NULL;
  if (first) {
    space->base = base;
    space->reserved = bytes;
    space->place = rondo_memory_note_own(memory, base, bytes);
  }
  pthread_mutex_unlock(&memory->lock);
  if (first) return RONDO_OK;
  rondo_graph_addresses_uncount();
  return rondo_peers_unreserve(device, base, bytes);
}

rondo_status rondo_address_space_reserve(rondo_address_space *space, size_t bytes) {
  size_t whole, wanted = (size_t)SMALLEST_SPACE;
  if (!rondo_checked_align(bytes, space->memory->page_bytes, &whole))
    return rondo_fail(RONDO_OUT_OF_MEMORY, RONDO_REASON_BAD_SIZE, "%zu bytes do not fit the address space", bytes);
  while (wanted / 4 < whole && wanted < (size_t)RONDO_ADDRESS_SPACE_LEAST) wanted *= 2;
  return reserve_range(space, whole, wanted);
}

/* Placing ---------------------------------------------------------------------------------------------------------- */

/* Best fit among the gaps between the allocations that are in the way, where those that are freed before may be passed
 * over; behind them when none fits; NULL when there is no room. */
static char *find_gap(const rondo_address_space *space, rondo_standpoint *point, size_t bytes, bool pass_freed) {
  char *cursor = space->base, *best = NULL;
  size_t best_bytes = SIZE_MAX, widest = 0;
  for (size_t i = 0; i < point->busy.count; i++) {
    const rondo_graph_allocation *record = point->busy.items[i];
    if (pass_freed && rondo_standpoint_frees(point, record)) continue;
    const size_t gap = record->base.address > cursor ? (size_t)(record->base.address - cursor) : 0;
    if (gap >= bytes && gap < best_bytes) {
      best = cursor;
      best_bytes = gap;
    }
    if (gap > widest) widest = gap;
    char *end = record->base.address + rondo_graph_allocation_rounded(record);
    if (end > cursor) cursor = end;
  }
  point->end = cursor;
  point->widest = pass_freed ? SIZE_MAX : widest;
  return best == NULL && bytes <= space->reserved - (size_t)(cursor - space->base) ? cursor : best;
}

/* The same, where looking at them all can be left out when no gap is wide enough. */
static char *find_room(const rondo_address_space *space, rondo_standpoint *point, size_t bytes) {
  if (point->widest != SIZE_MAX && point->widest < bytes)
    return bytes <= space->reserved - (size_t)(point->end - space->base) ? point->end : NULL;
  return find_gap(space, point, bytes, false);
}

static rondo_status place_online(const rondo_address_space *space, rondo_standpoint *point, size_t bytes, char **out) {
  *out = find_room(space, point, bytes);
  if (*out == NULL && space->relocate) *out = find_gap(space, point, bytes, true);
  if (*out != NULL) return RONDO_OK;
  char asked[RONDO_SIZE_TEXT], whole[RONDO_SIZE_TEXT], used[RONDO_SIZE_TEXT];
  return rondo_fail(RONDO_OUT_OF_MEMORY, RONDO_REASON_ADDRESS_SPACE,
                    "an alloc node of %s does not fit the graph's address space of %s, of which %s are in use: free "
                    "memory inside the graph, before the node, make a large allocation its first, or destroy other "
                    "graphs before it is made",
                    rondo_size_text(asked, bytes), rondo_size_text(whole, space->reserved),
                    rondo_size_text(used, (uint64_t)(point->end - space->base)));
}

/* Whether nothing is in the way there. */
static bool is_free_range(const rondo_standpoint *point, const char *begin, size_t bytes) {
  for (size_t i = 0; i < point->busy.count; i++) {
    const rondo_graph_allocation *record = point->busy.items[i];
    if (record->base.address >= begin + bytes) return true;
    if (record->base.address + rondo_graph_allocation_rounded(record) > begin) return false;
  }
  return true;
}

/* The planned address of the graph's next alloc node; NULL when it has none or departs from its profile here. */
static char *take_planned(rondo_address_space *space, const rondo_graph *graph, const rondo_standpoint *point,
                          size_t bytes) {
  rondo_planned_addresses *planned = &space->planned;
  if (planned->profile == NULL || planned->serial != graph->serial || planned->departed) return NULL;
  if (planned->next < planned->profile->allocs.count) {
    const rondo_planned_alloc *at = &planned->profile->allocs.items[planned->next];
    char *address = space->base + at->offset;
    const bool fits = at->offset <= space->reserved && bytes <= space->reserved - at->offset;
    if (at->bytes == bytes && fits && is_free_range(point, address, bytes)) return address;
  }
  planned->departed = true;
  planned->departed_slot = graph->nodes.count;
  atomic_fetch_add_explicit(&planned->profile->departures, 1, memory_order_relaxed);
  atomic_fetch_add_explicit(&space->memory->departures, 1, memory_order_relaxed);
  return NULL;
}

static void count_planned(rondo_address_space *space) {
  space->planned.next++;
  atomic_fetch_add_explicit(&space->planned.profile->placed, 1, memory_order_relaxed);
  atomic_fetch_add_explicit(&space->memory->profiled, 1, memory_order_relaxed);
}

static void uncount_planned(rondo_address_space *space) {
  space->planned.next--;
  atomic_fetch_sub_explicit(&space->planned.profile->placed, 1, memory_order_relaxed);
  atomic_fetch_sub_explicit(&space->memory->profiled, 1, memory_order_relaxed);
}

/* On a guarded device: pages that no allocation of the space has had, behind a page that nothing has; as far back on
 * them as the alignment allows. The space goes on behind its last guard page by one more. */
rondo_status rondo_address_space_take_fresh(rondo_address_space *space, size_t bytes, char **out) {
  const size_t page = space->memory->page_bytes, whole = (bytes + page - 1) / page * page;
  const size_t left = space->reserved - space->fresh;
  char asked[RONDO_SIZE_TEXT], used[RONDO_SIZE_TEXT];
  *out = NULL;
  if (left < whole || left - whole < 2 * page)
    return rondo_fail(RONDO_OUT_OF_MEMORY, RONDO_REASON_ADDRESS_SPACE,
                      "an alloc node of %s does not fit the graph's address space, of which %s are in use: %s gives no "
                      "address out twice. Make the graph anew, or use a device that does not check",
                      rondo_size_text(asked, bytes), rondo_size_text(used, space->fresh), space->memory->device->name);
  space->fresh += page + whole;
  *out = space->base + space->fresh - bytes;
  return RONDO_OK;
}

/* On a device that gives no address out twice nothing is asked of the order. */
static rondo_status choose_address(rondo_address_space *space, const rondo_graph *graph, const uint32_t *slots,
                                   size_t count, size_t rounded, char **out, bool *out_planned) {
  rondo_standpoint *point;
  *out_planned = false;
  if (space->memory->device->ops->guard != NULL) return rondo_address_space_take_fresh(space, rounded, out);
  RONDO_TRY(rondo_standpoints_find(space, graph, slots, count, &point));
  *out = take_planned(space, graph, point, rounded);
  *out_planned = *out != NULL;
  return *out_planned ? RONDO_OK : place_online(space, point, rounded, out);
}

/* Its addresses are had without the lock. */
static bool is_guarded_recording(const rondo_address_space *space) {
  return space->arena != NULL && space->memory->device->ops->guard != NULL;
}

static rondo_status place_locked(rondo_address_space *space, const rondo_graph *graph, const uint32_t *slots,
                                 size_t count, size_t rounded, rondo_alloc_node *node) {
  char *address = node->address;
  bool planned = false;
  rondo_graph_allocation *record;
  rondo_graph_view_refresh(space, graph);
  if (!is_guarded_recording(space)) RONDO_TRY(choose_address(space, graph, slots, count, rounded, &address, &planned));
  node->address = address;
  RONDO_TRY(rondo_graph_allocation_of(space, node, &record));
  record->alloc_nodes++;
  if (planned) count_planned(space);
  return RONDO_OK;
}

/* A node that is not made has not departed. */
static void take_back_departure(rondo_address_space *space, const rondo_graph *graph) {
  rondo_planned_addresses *planned = &space->planned;
  if (!planned->departed || planned->serial != graph->serial || planned->departed_slot != graph->nodes.count) return;
  planned->departed = false;
  atomic_fetch_sub_explicit(&planned->profile->departures, 1, memory_order_relaxed);
  atomic_fetch_sub_explicit(&space->memory->departures, 1, memory_order_relaxed);
}

static rondo_status place_behind(const rondo_graph *graph, const rondo_node *dependencies, size_t count,
                                 uint32_t *slots, size_t rounded, rondo_alloc_node *node) {
  rondo_address_space *space = rondo_address_space_of(graph);
  for (size_t i = 0; i < count; i++) RONDO_TRY(rondo_graph_find(graph, dependencies[i], &slots[i]));
  pthread_mutex_lock(&space->memory->lock);
  const rondo_status status = place_locked(space, graph, slots, count, rounded, node);
  if (status != RONDO_OK) take_back_departure(space, graph);
  pthread_mutex_unlock(&space->memory->lock);
  return status;
}

/* In whole pages. */
size_t rondo_graph_addresses_wanted(const rondo_device_memory *memory) {
  if (memory->limit_bytes >= RONDO_ADDRESS_SPACE_MOST / 2) return (size_t)RONDO_ADDRESS_SPACE_MOST;
  const uint64_t twice = memory->limit_bytes * 2 / SPACE_ALIGNMENT * SPACE_ALIGNMENT;
  return (size_t)(twice > RONDO_ADDRESS_SPACE_LEAST ? twice : RONDO_ADDRESS_SPACE_LEAST);
}

rondo_status rondo_address_space_place(const rondo_graph *graph, const rondo_node *dependencies, size_t count,
                                       rondo_alloc_node *node) {
  rondo_address_space *space = rondo_address_space_of(graph);
  size_t rounded, whole;
  if (!rondo_pool_round(node->bytes, &rounded) || !rondo_checked_align(rounded, space->memory->page_bytes, &whole))
    return rondo_fail(RONDO_OUT_OF_MEMORY, RONDO_REASON_BAD_SIZE,
                      "an alloc node of %zu bytes does not fit the address space", node->bytes);
  const rondo_profile *planned = space->planned.profile;
  const size_t known = planned != NULL && planned->plan.peak > whole ? (size_t)planned->plan.peak : whole;
  RONDO_TRY(reserve_range(space, whole, wanted_by(space->memory, known)));
  if (is_guarded_recording(space)) {
    char *address;
    RONDO_TRY(rondo_arena_take_guarded(space, rounded, &address));
    node->address = address;
  }
  void *slots;
  RONDO_TRY(rondo_allocate(&graph->allocator, count, sizeof(uint32_t), &slots));
  const rondo_status status = place_behind(graph, dependencies, count, slots, rounded, node);
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
  if (counted) uncount_planned(space);
  take_back_departure(space, graph);
  forget_locked(space, node);
  pthread_mutex_unlock(&space->memory->lock);
}
