/* SPDX-License-Identifier: MIT
 * The table of allocations: buckets of chained records, doubled when there is a record a bucket; and the tree by
 * address, whose recursion is as deep as the tree, some logarithms of the count.
 */
#include "memory/allocation_table.h"

#include <assert.h>
#include <string.h>

#include "base/error.h"
#include "base/hash.h"

#define FIRST_BUCKETS 64

static size_t bucket_of(const rondo_allocation_table *table, const void *address) {
  return (size_t)rondo_hash_u64(RONDO_HASH_START, (uint64_t)(uintptr_t)address) & (table->bucket_count - 1);
}

rondo_status rondo_allocation_table_init(const rondo_allocator *allocator, rondo_allocation_table *table) {
  *table = (rondo_allocation_table){0};
  void *buckets;
  RONDO_TRY(rondo_allocate(allocator, FIRST_BUCKETS, sizeof *table->buckets, &buckets));
  table->buckets = buckets;
  table->bucket_count = FIRST_BUCKETS;
  return RONDO_OK;
}

void rondo_allocation_table_deinit(const rondo_allocator *allocator, rondo_allocation_table *table) {
  assert(table->count == 0);
  rondo_release(allocator, table->buckets, table->bucket_count, sizeof *table->buckets);
  *table = (rondo_allocation_table){0};
}

static void link_record(rondo_allocation_table *table, rondo_allocation *allocation) {
  rondo_allocation **bucket = &table->buckets[bucket_of(table, allocation->address)];
  allocation->next = *bucket;
  *bucket = allocation;
}

/* Chains are turned round on the way, twice, so that the latest stays first. */
static void rehash(rondo_allocation_table *table, rondo_allocation **buckets, size_t bucket_count) {
  rondo_allocation *all = NULL;
  for (size_t i = 0; i < table->bucket_count; i++)
    while (table->buckets[i] != NULL) {
      rondo_allocation *record = table->buckets[i];
      table->buckets[i] = record->next;
      record->next = all;
      all = record;
    }
  table->buckets = buckets;
  table->bucket_count = bucket_count;
  while (all != NULL) {
    rondo_allocation *record = all;
    all = record->next;
    link_record(table, record);
  }
}

static void grow(const rondo_allocator *allocator, rondo_allocation_table *table) {
  const size_t old_count = table->bucket_count;
  rondo_allocation **old = table->buckets;
  void *buckets;
  if (rondo_allocate(allocator, old_count * 2, sizeof *old, &buckets) != RONDO_OK) return;
  rehash(table, buckets, old_count * 2);
  rondo_release(allocator, old, old_count, sizeof *old);
}

/* The tree -------------------------------------------------------------------------------------------------------- */

static uint64_t priority_of(const rondo_allocation *record) {
  return rondo_hash_u64(RONDO_HASH_START, (uint64_t)(uintptr_t)record);
}

/* Several may start at one address: those are in the order of the records' own addresses. */
static bool precedes(const rondo_allocation *a, const rondo_allocation *b) {
  return a->address != b->address ? (uintptr_t)a->address < (uintptr_t)b->address : (uintptr_t)a < (uintptr_t)b;
}

static uintptr_t end_of(const rondo_allocation *record) { return (uintptr_t)record->address + record->bytes; }

/* Either may be NULL. */
static rondo_allocation *farther(rondo_allocation *a, rondo_allocation *b) {
  if (a == NULL || b == NULL) return a == NULL ? b : a;
  return end_of(a) >= end_of(b) ? a : b;
}

static rondo_allocation *farthest_in(const rondo_allocation *tree) { return tree == NULL ? NULL : tree->farthest; }

static void update_farthest(rondo_allocation *tree) {
  tree->farthest = farther(tree, farther(farthest_in(tree->before), farthest_in(tree->after)));
}

static void split(rondo_allocation *tree, const rondo_allocation *at, rondo_allocation **out_before,
                  rondo_allocation **out_after) {
  if (tree == NULL) {
    *out_before = *out_after = NULL;
    return;
  }
  if (precedes(tree, at)) {
    split(tree->after, at, &tree->after, out_after);
    *out_before = tree;
  } else {
    split(tree->before, at, out_before, &tree->before);
    *out_after = tree;
  }
  update_farthest(tree);
}

/* All of `before` precedes all of `after`. */
static rondo_allocation *merge(rondo_allocation *before, rondo_allocation *after) {
  if (before == NULL || after == NULL) return before == NULL ? after : before;
  if (priority_of(before) > priority_of(after)) {
    before->after = merge(before->after, after);
    update_farthest(before);
    return before;
  }
  after->before = merge(before, after->before);
  update_farthest(after);
  return after;
}

static void enter_tree(rondo_allocation **tree, rondo_allocation *record) {
  if (*tree == NULL || priority_of(record) > priority_of(*tree)) {
    split(*tree, record, &record->before, &record->after);
    *tree = record;
  } else {
    enter_tree(precedes(record, *tree) ? &(*tree)->before : &(*tree)->after, record);
  }
  update_farthest(*tree);
}

static void leave_tree(rondo_allocation **tree, rondo_allocation *record) {
  assert(*tree != NULL);
  if (*tree == record) {
    *tree = merge(record->before, record->after);
    record->before = record->after = record->farthest = NULL;
    return;
  }
  leave_tree(precedes(record, *tree) ? &(*tree)->before : &(*tree)->after, record);
  update_farthest(*tree);
}

rondo_allocation *rondo_allocation_table_around(const rondo_allocation_table *table, const void *address) {
  rondo_allocation *best = NULL;
  for (rondo_allocation *at = table->root; at != NULL;) {
    if ((uintptr_t)at->address > (uintptr_t)address) {
      at = at->before;
      continue;
    }
    best = farther(best, farther(at, farthest_in(at->before)));
    at = at->after;
  }
  return best != NULL && end_of(best) > (uintptr_t)address ? best : NULL;
}

/* False when the visitor has seen enough. `address` NULL: all. */
static bool visit_tree(rondo_allocation *tree, const void *address, bool (*visit)(rondo_allocation *, void *),
                       void *user) {
  if (tree == NULL || (address != NULL && end_of(tree->farthest) <= (uintptr_t)address)) return true;
  if (!visit_tree(tree->before, address, visit, user)) return false;
  if (address != NULL && (uintptr_t)tree->address > (uintptr_t)address) return true;
  const bool holds = address == NULL || end_of(tree) > (uintptr_t)address;
  return (!holds || visit(tree, user)) && visit_tree(tree->after, address, visit, user);
}

void rondo_allocation_table_visit_around(const rondo_allocation_table *table, const void *address,
                                         bool (*visit)(rondo_allocation *allocation, void *user), void *user) {
  (void)visit_tree(address == NULL ? NULL : table->root, address, visit, user);
}

void rondo_allocation_table_visit(const rondo_allocation_table *table,
                                  bool (*visit)(rondo_allocation *allocation, void *user), void *user) {
  (void)visit_tree(table->root, NULL, visit, user);
}

/* Entering and looking up ----------------------------------------------------------------------------------------- */

void rondo_allocation_table_insert(const rondo_allocator *allocator, rondo_allocation_table *table,
                                   rondo_allocation *allocation) {
  if (table->count >= table->bucket_count) grow(allocator, table);
  link_record(table, allocation);
  enter_tree(&table->root, allocation);
  table->count++;
}

void rondo_allocation_table_remove(rondo_allocation_table *table, rondo_allocation *allocation) {
  rondo_allocation **at = &table->buckets[bucket_of(table, allocation->address)];
  while (*at != allocation) {
    assert(*at != NULL);
    at = &(*at)->next;
  }
  *at = allocation->next;
  allocation->next = NULL;
  leave_tree(&table->root, allocation);
  table->count--;
}

static rondo_allocation *skip_to(rondo_allocation *record, const void *address) {
  while (record != NULL && record->address != address) record = record->next;
  return record;
}

rondo_allocation *rondo_allocation_table_find(const rondo_allocation_table *table, const void *address) {
  return skip_to(table->buckets[bucket_of(table, address)], address);
}

rondo_allocation *rondo_allocation_table_next(const rondo_allocation *allocation) {
  return skip_to(allocation->next, allocation->address);
}

/* Freed ----------------------------------------------------------------------------------------------------------- */

/* What does not fit is left out from a whole UTF-8 character on. */
static void copy_name(char out[RONDO_FREED_NAME], const char *name) {
  const char *end = memchr(name, '\0', RONDO_FREED_NAME);
  size_t length = end != NULL ? (size_t)(end - name) : RONDO_FREED_NAME - 1;
  while (end == NULL && length > 0 && ((unsigned char)name[length] & 0xC0) == 0x80) length--;
  memcpy(out, name, length);
  out[length] = '\0';
}

void rondo_allocation_table_note_freed(rondo_allocation_table *table, const rondo_allocation *allocation) {
  rondo_freed *at = &table->freed[table->next_freed];
  *at = (rondo_freed){.address = allocation->address, .bytes = allocation->bytes, .kind = allocation->kind};
  if (allocation->name != NULL) copy_name(at->name, allocation->name);
  table->next_freed = (table->next_freed + 1) % RONDO_FREED_RING;
}

/* The `back`-th before the next one, from 1. */
static const rondo_freed *freed_before(const rondo_allocation_table *table, size_t back) {
  return &table->freed[(table->next_freed + RONDO_FREED_RING - back) % RONDO_FREED_RING];
}

const rondo_freed *rondo_allocation_table_freed_at(const rondo_allocation_table *table, const void *address) {
  for (size_t back = 1; back <= RONDO_FREED_RING; back++) {
    const rondo_freed *at = freed_before(table, back);
    if (at->address != NULL && at->address == address) return at;
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

void rondo_allocation_table_note_gone(rondo_allocation_table *table, const char *address, size_t bytes) {
  for (size_t i = 0; i < RONDO_FREED_RING; i++)
    if ((uintptr_t)table->freed[i].address - (uintptr_t)address < bytes) table->freed[i].gone = true;
}
