/* SPDX-License-Identifier: MIT
 * Looking up an address for verification. Results are copied, because another thread may free the allocation.
 */
#include "memory/allocation_lookup.h"

#include <stdio.h>

#include "memory/arena/arena_internal.h"
#include "memory/arena/arena_recording.h"
#include "memory/graph_memory/graph_allocation.h"
#include "memory/memory_errors.h"
#include "memory/peer_access.h"

/* Under the lock. If several graph allocations begin at the address: the one that a free would free. */
static const rondo_allocation *find_allocation(const rondo_device_memory *memory, const void *address) {
  const rondo_graph_allocation *graph = rondo_graph_allocation_at(memory, address);
  if (graph != NULL) return &graph->base;
  const rondo_allocation *at = rondo_allocation_table_find(&memory->table, address);
  if (at == NULL) at = rondo_allocation_table_around(&memory->table, address);
  return at == NULL ? rondo_allocation_table_around(&memory->host, address) : at;
}

/* Memory of another device. */
static bool find_peer(const rondo_device *device, const void *address, rondo_known_range *out) {
  rondo_peer_memory memory;
  if (!rondo_peers_others_have_memory(device) || !rondo_peers_find(device, address, &memory)) return false;
  if (memory.begin == NULL) return false;
  out->begin = memory.begin;
  out->bytes = memory.bytes;
  snprintf(out->name, sizeof out->name, "%s", memory.name);
  if (!memory.allowed) snprintf(out->no_access, sizeof out->no_access, "%s", memory.owner->name);
  return true;
}

/* Not for graph memory, which a launch may allocate again. */
static bool find_freed(rondo_device_memory *memory, const void *address, rondo_known_range *out) {
  const rondo_freed *freed = rondo_memory_find_freed(memory, address, 1, NULL);
  if (freed == NULL || freed->kind == RONDO_ALLOCATION_GRAPH || freed->kind == RONDO_ALLOCATION_SPACE) return false;
  *out = (rondo_known_range){.begin = freed->address, .bytes = freed->bytes, .is_dead = true, .was_freed = true};
  snprintf(out->name, sizeof out->name, "%s", freed->name);
  return true;
}

bool rondo_memory_find_range(rondo_device_memory *memory, const void *address, rondo_known_range *out) {
  *out = (rondo_known_range){.begin = NULL};
  pthread_mutex_lock(&memory->lock);
  const rondo_allocation *at = find_allocation(memory, address);
  const bool freed = at == NULL && find_freed(memory, address, out);
  if (at != NULL) {
    out->begin = at->address;
    out->bytes = at->bytes;
    out->is_graph_memory = at->kind == RONDO_ALLOCATION_GRAPH;
    snprintf(out->name, sizeof out->name, "%s", at->name == NULL ? "" : at->name);
  }
  pthread_mutex_unlock(&memory->lock);
  return at != NULL || freed || find_peer(memory->device, address, out);
}

/* Recordings ------------------------------------------------------------------------------------------------------- */

rondo_status rondo_memory_list_held(const rondo_graph *graph, const rondo_allocator *allocator,
                                    rondo_known_ranges *list) {
  if (rondo_arena_of(graph) == NULL) return RONDO_OK;
  const rondo_address_space *space = rondo_address_space_of(graph);
  RONDO_TRY(rondo_array_reserve(allocator, list, list->count + space->held_count));
  pthread_mutex_lock(&space->memory->lock);
  for (size_t i = 0; i < space->held_count; i++) {
    const rondo_graph_allocation *record = space->allocations.items[i];
    rondo_known_range *range = &list->items[list->count++];
    *range = (rondo_known_range){.begin = record->base.address,
                                 .bytes = record->base.bytes,
                                 .is_graph_memory = record->role == RONDO_RECORD_BLOCK};
    snprintf(range->name, sizeof range->name, "%s", record->base.name);
  }
  pthread_mutex_unlock(&space->memory->lock);
  return RONDO_OK;
}

bool rondo_memory_find_dead(const rondo_graph *graph, const void *address, rondo_known_range *out) {
  const rondo_arena *arena = rondo_arena_of(graph);
  if (arena == NULL || !rondo_arena_owns(arena, address)) return false;
  *out = (rondo_known_range){.begin = rondo_arena_base(arena), .bytes = arena->reserved, .is_dead = true};
  snprintf(out->name, sizeof out->name, "%s", arena->allocation.name);
  return true;
}
