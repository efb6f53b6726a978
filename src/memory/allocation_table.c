/* SPDX-License-Identifier: MIT
 * The table of allocations: a hash table with chains, the range index, and the ring of freed allocations.
 */
#include "memory/allocation_table.h"

#include <assert.h>
#include <string.h>

#include "base/error.h"
#include "base/hash.h"
#include "base/linked_list.h"

#define FIRST_BUCKETS 64

/* Records by where they begin -------------------------------------------------------------------------------------- */

static size_t bucket_of(const rondo_allocation_starts *starts, const void *address) {
  return (size_t)rondo_hash_u64(RONDO_HASH_START, (uint64_t)(uintptr_t)address) & (starts->bucket_count - 1);
}

rondo_status rondo_allocation_starts_init(const rondo_allocator *allocator, rondo_allocation_starts *starts) {
  *starts = (rondo_allocation_starts){0};
  void *buckets;
  RONDO_TRY(rondo_allocate(allocator, FIRST_BUCKETS, sizeof *starts->buckets, &buckets));
  starts->buckets = buckets;
  starts->bucket_count = FIRST_BUCKETS;
  return RONDO_OK;
}

void rondo_allocation_starts_deinit(const rondo_allocator *allocator, rondo_allocation_starts *starts) {
  assert(starts->count == 0);
  rondo_release(allocator, starts->buckets, starts->bucket_count, sizeof *starts->buckets);
}

static void link_record(rondo_allocation_starts *starts, rondo_allocation *allocation) {
  rondo_allocation **bucket = &starts->buckets[bucket_of(starts, allocation->address)];
  RONDO_LIST_INSERT(*bucket, allocation, next, link);
}

/* Reverses the chains twice, so that the latest record stays first. */
static void rehash(rondo_allocation_starts *starts, rondo_allocation **buckets, size_t bucket_count) {
  rondo_allocation *all = NULL;
  for (size_t i = 0; i < starts->bucket_count; i++)
    while (starts->buckets[i] != NULL) {
      rondo_allocation *record = starts->buckets[i];
      starts->buckets[i] = record->next;
      record->next = all;
      all = record;
    }
  starts->buckets = buckets;
  starts->bucket_count = bucket_count;
  while (all != NULL) {
    rondo_allocation *record = all;
    all = record->next;
    link_record(starts, record);
  }
}

static void grow(const rondo_allocator *allocator, rondo_allocation_starts *starts) {
  const size_t old_count = starts->bucket_count;
  rondo_allocation **old = starts->buckets;
  void *buckets;
  if (rondo_allocate(allocator, old_count * 2, sizeof *old, &buckets) != RONDO_OK) return;
  rehash(starts, buckets, old_count * 2);
  rondo_release(allocator, old, old_count, sizeof *old);
}

void rondo_allocation_starts_enter(const rondo_allocator *allocator, rondo_allocation_starts *starts,
                                   rondo_allocation *allocation) {
  if (starts->count >= starts->bucket_count) grow(allocator, starts);
  link_record(starts, allocation);
  starts->count++;
}

void rondo_allocation_starts_leave(rondo_allocation_starts *starts, rondo_allocation *allocation) {
  assert(starts->count > 0);
  RONDO_LIST_REMOVE(allocation, next, link);
  starts->count--;
}

void rondo_allocation_starts_touch(rondo_allocation_starts *starts, rondo_allocation *allocation) {
  RONDO_LIST_REMOVE(allocation, next, link);
  link_record(starts, allocation);
}

static rondo_allocation *skip_to(rondo_allocation *record, const void *address) {
  while (record != NULL && record->address != address) record = record->next;
  return record;
}

rondo_allocation *rondo_allocation_starts_find(const rondo_allocation_starts *starts, const void *address) {
  return skip_to(starts->buckets[bucket_of(starts, address)], address);
}

rondo_allocation *rondo_allocation_next(const rondo_allocation *allocation) {
  return skip_to(allocation->next, allocation->address);
}

/* Tables ---------------------------------------------------------------------------------------------------------- */

rondo_status rondo_allocation_table_init(const rondo_allocator *allocator, rondo_allocation_table *table) {
  *table = (rondo_allocation_table){0};
  return rondo_allocation_starts_init(allocator, &table->starts);
}

void rondo_allocation_table_deinit(const rondo_allocator *allocator, rondo_allocation_table *table) {
  rondo_allocation_starts_deinit(allocator, &table->starts);
  rondo_range_index_deinit(allocator, &table->index);
  rondo_range_index_deinit(allocator, &table->gone);
  *table = (rondo_allocation_table){0};
}

void rondo_allocation_table_insert(const rondo_allocator *allocator, rondo_allocation_table *table,
                                   rondo_allocation *allocation) {
  rondo_allocation_starts_enter(allocator, &table->starts, allocation);
  allocation->index_node = rondo_range_enter(allocator, &table->index, allocation->address, allocation->bytes,
                                             (uint32_t)allocation->kind, allocation);
}

void rondo_allocation_table_remove(rondo_allocation_table *table, rondo_allocation *allocation) {
  rondo_allocation_starts_leave(&table->starts, allocation);
  rondo_range_leave(&table->index, allocation->index_node);
}

/* Ranges ---------------------------------------------------------------------------------------------------------- */

static bool holds(const rondo_allocation *record, const void *address) {
  return (uintptr_t)address - (uintptr_t)record->address < record->bytes;
}

/* Whether the index has all ranges. */
static bool is_whole(const rondo_allocation_table *table) {
  return atomic_load_explicit(&table->index.missing, memory_order_relaxed) == 0;
}

/* For an index that lacks ranges. `address` NULL: visits all. */
static void visit_all(const rondo_allocation_table *table, const void *address, rondo_range_visitor *visit,
                      void *user) {
  for (size_t i = 0; i < table->starts.bucket_count; i++)
    for (rondo_allocation *at = table->starts.buckets[i]; at != NULL; at = at->next)
      if ((address == NULL || holds(at, address)) && !visit(at, user)) return;
}

static bool keep_farthest(void *owner, void *user) {
  rondo_allocation *record = owner, **best = user;
  if (*best == NULL || record->address + record->bytes > (*best)->address + (*best)->bytes) *best = record;
  return true;
}

rondo_allocation *rondo_allocation_table_around(const rondo_allocation_table *table, const void *address) {
  rondo_allocation *best = NULL;
  if (address == NULL) return NULL;
  if (is_whole(table)) return rondo_range_around(&table->index, address);
  visit_all(table, address, keep_farthest, &best);
  return best;
}

void rondo_allocation_table_visit_around(const rondo_allocation_table *table, const void *address,
                                         rondo_range_visitor *visit, void *user) {
  if (address == NULL) return;
  if (is_whole(table))
    rondo_range_visit(&table->index, address, visit, user);
  else
    visit_all(table, address, visit, user);
}

void rondo_allocation_table_visit(const rondo_allocation_table *table, rondo_range_visitor *visit, void *user) {
  visit_all(table, NULL, visit, user);
}

/* Freed ----------------------------------------------------------------------------------------------------------- */

/* Truncates a long name between UTF-8 characters. */
static void copy_name(char out[RONDO_FREED_NAME], const char *name) {
  const char *end = memchr(name, '\0', RONDO_FREED_NAME);
  size_t length = end != NULL ? (size_t)(end - name) : RONDO_FREED_NAME - 1;
  while (end == NULL && length > 0 && ((unsigned char)name[length] & 0xC0) == 0x80) length--;
  memcpy(out, name, length);
  out[length] = '\0';
}

void rondo_allocation_table_note_freed(rondo_allocation_table *table, const rondo_allocation *allocation) {
  rondo_freed *at = &table->freed[table->next_freed];
  rondo_allocation_table_note_taken(table, at);
  *at = (rondo_freed){.address = allocation->address,
                      .bytes = allocation->bytes,
                      .kind = allocation->kind,
                      .number = ++table->freed_count};
  if (allocation->name != NULL) copy_name(at->name, allocation->name);
  table->next_freed = (table->next_freed + 1) % RONDO_FREED_RING;
}

/* The `back`-th latest, from 1. */
static const rondo_freed *freed_before(const rondo_allocation_table *table, size_t back) {
  assert(back >= 1 && back <= RONDO_FREED_RING);
  return &table->freed[(table->next_freed + RONDO_FREED_RING - back) % RONDO_FREED_RING];
}

const rondo_freed *rondo_allocation_table_freed_at(const rondo_allocation_table *table, const void *address) {
  for (size_t back = 1; back <= RONDO_FREED_RING; back++) {
    const rondo_freed *at = freed_before(table, back);
    if (at->address != NULL && at->address == address && at->kind != RONDO_ALLOCATION_SPACE) return at;
  }
  return NULL;
}

const rondo_freed *rondo_allocation_table_freed_around(const rondo_allocation_table *table, const void *address) {
  for (size_t back = 1; back <= RONDO_FREED_RING; back++) {
    const rondo_freed *at = freed_before(table, back);
    if (at->address != NULL && !at->gone && (uintptr_t)address - (uintptr_t)at->address < at->bytes) return at;
  }
  return NULL;
}

const rondo_freed *rondo_allocation_table_freed_since(const rondo_allocation_table *table, const void *address,
                                                      uint64_t number) {
  for (size_t back = 1; back <= RONDO_FREED_RING; back++) {
    const rondo_freed *at = freed_before(table, back);
    if (at->number <= number) return NULL;
    if ((uintptr_t)address - (uintptr_t)at->address < at->bytes) return at;
  }
  return NULL;
}

void rondo_allocation_table_note_gone(const rondo_allocator *allocator, rondo_allocation_table *table,
                                      const char *address, size_t bytes) {
  for (size_t i = 0; i < RONDO_FREED_RING; i++) {
    rondo_freed *at = &table->freed[i];
    if (at->gone || (uintptr_t)at->address - (uintptr_t)address >= bytes) continue;
    at->gone = at->is_listed = true;
    at->index_node = rondo_range_enter(allocator, &table->gone, at->address, at->bytes, 0, at);
  }
}

rondo_freed *rondo_allocation_table_gone_around(rondo_allocation_table *table, const void *address) {
  for (size_t back = 1; back <= RONDO_FREED_RING; back++) {
    rondo_freed *at = &table->freed[(table->next_freed + RONDO_FREED_RING - back) % RONDO_FREED_RING];
    if (at->is_listed && (uintptr_t)address - (uintptr_t)at->address < at->bytes) return at;
  }
  return NULL;
}

void rondo_allocation_table_note_taken(rondo_allocation_table *table, rondo_freed *freed) {
  if (freed->is_listed) rondo_range_leave(&table->gone, freed->index_node);
  freed->is_listed = false;
}
