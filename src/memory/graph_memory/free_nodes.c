/* SPDX-License-Identifier: MIT
 * Free nodes: whether one may be added, and which allocations have free nodes.
 *
 * A graph frees its own allocations, or those that another graph leaves allocated. An allocation is freed either by its
 * own graph or by another, because a launch that frees it itself leaves nothing to free (M6). So a space lists the
 * allocations of other spaces that its graphs free: by address, and by the serial of the other space, which may be
 * destroyed earlier. A graph may free an allocation itself while its clone leaves it to another graph; then launches
 * check.
 */
#include <inttypes.h>

#include "base/binary_search.h"
#include "base/error.h"
#include "graph/graph.h"
#include "memory/arena/arena.h"
#include "memory/graph_memory/free_nodes.h"
#include "memory/graph_memory/graph_allocation.h"
#include "memory/graph_memory/graph_view.h"
#include "memory/memory_errors.h"

/* Frees of other graphs' allocations ------------------------------------------------------------------------------ */

/* The index of the address in the space's outside frees, or the index at which it would be inserted. */
static size_t position_of(const rondo_address_space *space, const void *address) {
  size_t low = 0, high = space->outside_frees.count;
  RONDO_BINARY_SEARCH(low, high, middle, (uintptr_t)space->outside_frees.items[middle].address < (uintptr_t)address)
  return low;
}

static bool frees_outside(const rondo_address_space *space, const void *address) {
  const size_t at = position_of(space, address);
  return at < space->outside_frees.count && space->outside_frees.items[at].address == address;
}

static rondo_status note_outside(rondo_address_space *space, rondo_graph_allocation *record) {
  const rondo_outside_free free = {.address = record->base.address, .serial = record->space->serial};
  RONDO_TRY(rondo_array_reserve(&space->memory->allocator, &space->outside_frees, space->outside_frees.count + 1));
  rondo_array_insert(&space->outside_frees, position_of(space, free.address), free);
  record->freed_outside++;
  return RONDO_OK;
}

/* Decrements the record's count, unless its space was destroyed. */
static void forget_outside(const rondo_device_memory *memory, const rondo_outside_free *outside) {
  rondo_allocation *at = rondo_allocation_table_find(&memory->table, outside->address);
  for (; at != NULL; at = rondo_allocation_next(at)) {
    rondo_graph_allocation *record = (rondo_graph_allocation *)at;
    if (at->kind != RONDO_ALLOCATION_GRAPH || record->space->serial != outside->serial) continue;
    if (record->freed_outside == 0) continue;
    record->freed_outside--;
    return;
  }
}

void rondo_address_space_forget_outside_frees(rondo_address_space *space) {
  for (size_t i = 0; i < space->outside_frees.count; i++) forget_outside(space->memory, &space->outside_frees.items[i]);
  rondo_array_free(&space->memory->allocator, &space->outside_frees);
}

/* Claiming -------------------------------------------------------------------------------------------------------- */

static bool was_cloned(const rondo_graph_allocation *record) {
  return atomic_load_explicit(&record->space->clones, memory_order_relaxed) > 0;
}

static rondo_status fail_second_free(const rondo_graph *graph, const rondo_graph_allocation *record, uint32_t slot) {
  char label[RONDO_LABEL_BYTES], name[RONDO_ALLOCATION_LABEL];
  return rondo_fail_node(RONDO_INVALID_ARGUMENT, RONDO_REASON_DOUBLE_FREE, slot,
                         "%s has a free node of allocation %s already, node %" PRIu32 ": a graph frees it once",
                         rondo_graph_label(label, graph), rondo_allocation_label(name, &record->base), slot);
}

static rondo_status refuse_second_free(const rondo_graph *graph, const rondo_graph_allocation *record,
                                       const void *address) {
  for (size_t i = 0; i < graph->nodes.count; i++) {
    const rondo_graph_node *node = &graph->nodes.items[i];
    if (node->live && node->params.kind == RONDO_NODE_FREE && node->params.as.free_address == address)
      return fail_second_free(graph, record, (uint32_t)i);
  }
  return RONDO_OK;
}

/* A free node in a recording, of an address at which no open allocation or block begins. */
static rondo_status refuse_in_arena(const rondo_address_space *space, const rondo_graph *graph, const void *address) {
  char label[RONDO_ALLOCATION_LABEL];
  rondo_allocation *at = rondo_allocation_starts_find(space->starts, address);
  for (; at != NULL; at = rondo_allocation_next(at)) {
    const rondo_graph_allocation *record = (const rondo_graph_allocation *)at;
    if (record->role == RONDO_RECORD_SLOT)
      return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_FOREIGN_ADDRESS,
                        "a free node of slot %s, which the recording needs until it ends: leave it out",
                        rondo_allocation_label(label, at));
    RONDO_TRY(refuse_second_free(graph, record, address));
  }
  return rondo_memory_refuse_free_node(space->memory, address);
}

/* A free node of memory that another graph allocates. */
static rondo_status claim_outside(rondo_address_space *space, const rondo_graph *graph, const void *address) {
  if (space->arena != NULL && rondo_arena_owns(space->arena, address)) return refuse_in_arena(space, graph, address);
  rondo_graph_allocation *record = rondo_graph_allocation_at(space->memory, address);
  char label[RONDO_ALLOCATION_LABEL];
  if (record == NULL) return rondo_memory_refuse_free_node(space->memory, address);
  if (record->space == space || frees_outside(space, address)) RONDO_TRY(refuse_second_free(graph, record, address));
  if (!was_cloned(record) && record->free_nodes >= record->alloc_nodes && record->alloc_nodes > 0)
    return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_DOUBLE_FREE,
                      "a free node of allocation %s at %p, which its own graph frees already",
                      rondo_allocation_label(label, &record->base), address);
  return note_outside(space, record);
}

static rondo_status claim_own(const rondo_graph *graph, rondo_graph_allocation *record) {
  char label[RONDO_LABEL_BYTES], name[RONDO_ALLOCATION_LABEL];
  if (record->freed_outside > 0 && !was_cloned(record))
    return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_DOUBLE_FREE,
                      "a free node in %s of its own allocation %s, which a free node of another graph frees already: "
                      "remove that one first, or let that graph free it",
                      rondo_graph_label(label, graph), rondo_allocation_label(name, &record->base));
  record->free_nodes++;
  return RONDO_OK;
}

rondo_status rondo_address_space_claim_free(const rondo_graph *graph, const void *address) {
  rondo_address_space *space = rondo_address_space_of(graph);
  pthread_mutex_lock(&space->memory->lock);
  rondo_graph_view_refresh(space, graph);
  rondo_graph_allocation *own = rondo_graph_view_find_open(space, address);
  const rondo_status status = own != NULL ? claim_own(graph, own) : claim_outside(space, graph, address);
  pthread_mutex_unlock(&space->memory->lock);
  return status;
}

/* Forgetting ------------------------------------------------------------------------------------------------------ */

static void forget_own(const rondo_address_space *space, const void *address) {
  rondo_allocation *at = rondo_allocation_starts_find(space->starts, address);
  for (; at != NULL; at = rondo_allocation_next(at)) {
    rondo_graph_allocation *record = (rondo_graph_allocation *)at;
    if (at->kind != RONDO_ALLOCATION_GRAPH || record->space != space || record->free_nodes == 0) continue;
    record->free_nodes--;
    return;
  }
}

void rondo_address_space_forget_free(const rondo_graph *graph, const void *address) {
  rondo_address_space *space = rondo_address_space_of(graph);
  pthread_mutex_lock(&space->memory->lock);
  if (frees_outside(space, address)) {
    const size_t position = position_of(space, address);
    forget_outside(space->memory, &space->outside_frees.items[position]);
    rondo_array_remove(&space->outside_frees, position);
  } else {
    forget_own(space, address);
  }
  pthread_mutex_unlock(&space->memory->lock);
}
