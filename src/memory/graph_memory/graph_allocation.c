/* SPDX-License-Identifier: MIT
 * Records of graph allocations, and the hash table that finds the record of an alloc node.
 */
#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/hash.h"
#include "memory/arena/arena_internal.h"
#include "memory/graph_memory/address_space.h"
#include "memory/graph_memory/graph_allocation.h"

#define FIRST_BUCKETS 16

const char *rondo_allocation_label(char buffer[RONDO_ALLOCATION_LABEL], const rondo_allocation *allocation) {
  return rondo_named_size(buffer, allocation->name, allocation->bytes);
}

size_t rondo_graph_allocation_rounded(const rondo_graph_allocation *record) {
  return rondo_pool_rounded(record->base.bytes);
}

int rondo_graph_allocation_compare(const void *a, const void *b) {
  const rondo_graph_allocation *x = *(const rondo_graph_allocation *const *)a;
  const rondo_graph_allocation *y = *(const rondo_graph_allocation *const *)b;
  if (x->base.address != y->base.address) return (uintptr_t)x->base.address < (uintptr_t)y->base.address ? -1 : 1;
  return ((uintptr_t)x > (uintptr_t)y) - ((uintptr_t)x < (uintptr_t)y);
}

/* Records by alloc node ------------------------------------------------------------------------------------------- */

/* NULL when the space has no buckets yet. */
static rondo_graph_allocation **bucket_of(const rondo_address_space *space, const void *address, size_t bytes,
                                          const char *name) {
  uint64_t hash = rondo_hash_u64(RONDO_HASH_START, (uint64_t)(uintptr_t)address);
  hash = rondo_hash_text(rondo_hash_u64(hash, bytes), name);
  return space->alike.count == 0 ? NULL : &space->alike.items[(size_t)hash & (space->alike.count - 1)];
}

static rondo_graph_allocation **bucket_of_record(const rondo_address_space *space, const rondo_graph_allocation *at) {
  return bucket_of(space, at->base.address, at->base.bytes, at->base.name);
}

static void enter_alike(rondo_address_space *space, rondo_graph_allocation *record) {
  rondo_graph_allocation **bucket = bucket_of_record(space, record);
  record->next_alike = *bucket;
  *bucket = record;
}

static void leave_alike(rondo_address_space *space, const rondo_graph_allocation *record) {
  rondo_graph_allocation **at = bucket_of_record(space, record);
  while (*at != record) at = &(*at)->next_alike;
  *at = record->next_alike;
}

/* At least as many buckets as records. */
static rondo_status grow_alike(rondo_address_space *space) {
  const size_t old = space->alike.count, buckets = old == 0 ? FIRST_BUCKETS : old * 2;
  if (space->allocations.count < old) return RONDO_OK;
  RONDO_TRY(rondo_array_reserve(&space->memory->allocator, &space->alike, buckets));
  space->alike.count = buckets;
  for (size_t i = 0; i < buckets; i++) space->alike.items[i] = NULL;
  for (size_t i = 0; i < space->allocations.count; i++)
    if (space->allocations.items[i]->role == RONDO_RECORD_NODES) enter_alike(space, space->allocations.items[i]);
  return RONDO_OK;
}

rondo_graph_allocation *rondo_graph_allocation_find(const rondo_address_space *space, const rondo_alloc_node *node) {
  const char *name = node->name == NULL ? "" : node->name;
  rondo_graph_allocation **bucket = bucket_of(space, node->address, node->bytes, name);
  rondo_graph_allocation *at = bucket == NULL ? NULL : *bucket;
  while (at != NULL &&
         (at->base.address != node->address || at->base.bytes != node->bytes || strcmp(at->base.name, name) != 0))
    at = at->next_alike;
  return at;
}

/* Creating and forgetting ----------------------------------------------------------------------------------------- */

/* A record and its name are one block. */
static size_t record_bytes(const char *name) { return sizeof(rondo_graph_allocation) + strlen(name) + 1; }

/* The record is in no table yet; the space's array of allocations has the capacity for it. */
static rondo_status make_record(rondo_address_space *space, char *address, size_t bytes, const char *name,
                                rondo_graph_allocation **out) {
  const rondo_allocator *allocator = &space->memory->allocator;
  void *state;
  RONDO_TRY(rondo_array_reserve(allocator, &space->allocations, space->allocations.count + 1));
  RONDO_TRY(rondo_allocate(allocator, 1, record_bytes(name), &state));
  rondo_graph_allocation *record = state;
  record->base = (rondo_allocation){
      .address = address, .bytes = bytes, .name = (char *)(record + 1), .kind = RONDO_ALLOCATION_GRAPH};
  memcpy(record->base.name, name, strlen(name) + 1);
  record->space = space;
  record->free_slot = RONDO_NO_NODE;
  *out = record;
  return RONDO_OK;
}

/* The space's array of allocations has the capacity. */
static void enter_record(rondo_address_space *space, rondo_graph_allocation *record) {
  const rondo_allocator *allocator = &space->memory->allocator;
  record->position = space->allocations.count;
  space->allocations.items[space->allocations.count++] = record;
  if (space->arena == NULL) {
    rondo_allocation_table_insert(allocator, &space->memory->table, &record->base);
    return;
  }
  const size_t top = (size_t)(record->base.address - space->first.base) + rondo_graph_allocation_rounded(record);
  assert(top <= space->arena->reserved);
  if (top > space->top) space->top = top;
  rondo_allocation_starts_enter(allocator, &space->own, &record->base);
}

void rondo_graph_allocation_leave_table(rondo_graph_allocation *record) {
  rondo_address_space *space = record->space;
  if (space->arena == NULL)
    rondo_allocation_table_remove(&space->memory->table, &record->base);
  else
    rondo_allocation_starts_leave(&space->own, &record->base);
}

rondo_status rondo_graph_allocation_add(rondo_address_space *space, rondo_record_role role, char *address, size_t bytes,
                                        const char *name) {
  rondo_graph_allocation *record;
  RONDO_TRY(make_record(space, address, bytes, name == NULL ? "" : name, &record));
  record->role = role;
  record->references = 1;
  record->open = role == RONDO_RECORD_BLOCK;
  enter_record(space, record);
  return RONDO_OK;
}

static rondo_status make_record_of(rondo_address_space *space, const rondo_alloc_node *node,
                                   rondo_graph_allocation **out) {
  RONDO_TRY(grow_alike(space));
  RONDO_TRY(make_record(space, node->address, node->bytes, node->name, out));
  enter_alike(space, *out);
  rondo_graph_points_note(space, *out);
  enter_record(space, *out);
  return RONDO_OK;
}

rondo_status rondo_graph_allocation_of(rondo_address_space *space, const rondo_alloc_node *node,
                                       rondo_graph_allocation **out) {
  *out = rondo_graph_allocation_find(space, node);
  if (*out == NULL) RONDO_TRY(make_record_of(space, node, out));
  (*out)->references++;
  (*out)->peers |= node->peers;
  if (space->arena != NULL) rondo_arena_share(space->arena, node->peers);
  return RONDO_OK;
}

void rondo_graph_allocation_destroy(rondo_graph_allocation *record) {
  const rondo_allocator *allocator = &record->space->memory->allocator;
  assert(!rondo_graph_allocation_in_use(record));
  if (record->freed_event != NULL) record->freed_event->ops->destroy(record->freed_event);
  rondo_release(allocator, record, 1, record_bytes(record->base.name));
}

/* A clone may have a node of the record, which is not counted, so records of spaces with clones stay. Records whose
 * free may not be complete stay too. */
static bool is_forgettable(const rondo_graph_allocation *record) {
  return record->references == 0 && atomic_load_explicit(&record->space->clones, memory_order_relaxed) == 0 &&
         !rondo_graph_allocation_in_use(record) && record->freed_event == NULL;
}

void rondo_graph_allocation_release(rondo_graph_allocation *record) {
  assert(record->references > 0);
  record->references--;
  if (!is_forgettable(record)) return;
  rondo_address_space *space = record->space;
  rondo_graph_points_reset(space);
  assert(record->role == RONDO_RECORD_NODES && space->allocations.items[record->position] == record);
  leave_alike(space, record);
  rondo_graph_allocation *last = space->allocations.items[--space->allocations.count];
  space->allocations.items[record->position] = last;
  last->position = record->position;
  rondo_graph_allocation_leave_table(record);
  rondo_graph_allocation_destroy(record);
}

rondo_graph_allocation *rondo_graph_allocation_at(const rondo_device_memory *memory, const void *address) {
  rondo_graph_allocation *latest = NULL;
  rondo_allocation *at = rondo_allocation_table_find(&memory->table, address);
  for (; at != NULL; at = rondo_allocation_next(at)) {
    if (at->kind != RONDO_ALLOCATION_GRAPH) continue;
    rondo_graph_allocation *record = (rondo_graph_allocation *)at;
    if (atomic_load_explicit(&record->life, memory_order_acquire) == RONDO_LIFE_LIVE) return record;
    if (latest == NULL) latest = record;
  }
  return latest;
}
