/* SPDX-License-Identifier: MIT
 * An index of address ranges, which may overlap. It finds the range that contains an address. It is a treap (Seidel and
 * Aragon 1996): a binary search tree by start address that is a heap by random priorities. A node's priority is a hash
 * of its number. Each node knows the highest end in its subtree.
 *
 * Lookups need no lock. Nodes are identified by their index in an array, and old arrays stay readable when the array
 * grows. A counter that is odd while the tree changes lets a reader detect an inconsistent tree (a sequence lock, with
 * release stores and acquire loads instead of fences). The array doubles, so that all old arrays together are no larger
 * than the current one.
 *
 * Threads: any for rondo_range_look; all other functions under one lock of the owner.
 */
#ifndef RONDO_MEMORY_RANGE_INDEX_H
#define RONDO_MEMORY_RANGE_INDEX_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/allocation.h"

typedef struct rondo_range_nodes rondo_range_nodes;

/* A zeroed index is empty. */
typedef struct rondo_range_index {
  _Atomic(rondo_range_nodes *) nodes; /* NULL until the first range */
  _Atomic uint64_t version;           /* odd while the tree changes */
  _Atomic uint32_t root;
  _Atomic uint32_t missing; /* ranges that were not entered for lack of host memory: an address may be in one */
  uint32_t unused;          /* the first unused node; the others follow by `after` */
} rondo_range_index;

void rondo_range_index_deinit(const rondo_allocator *allocator, rondo_range_index *index);

/* Adds a range; a lookup returns `owner` and `tag`. Returns the node number for rondo_range_leave. It is 0 without host
 * memory: the range is then missing until rondo_range_leave with 0. */
uint32_t rondo_range_enter(const rondo_allocator *allocator, rondo_range_index *index, const void *begin, size_t bytes,
                           uint32_t tag, void *owner);
void rondo_range_leave(rondo_range_index *index, uint32_t number);

/* The node number of the range that contains the address, or 0. Of several, the one with the highest end. Missing
 * ranges are not found. */
uint32_t rondo_range_find(const rondo_range_index *index, const void *address);

/* Whether it has no range, except missing ones. Without the lock. */
static inline bool rondo_range_index_is_empty(const rondo_range_index *index) {
  return atomic_load_explicit(&index->root, memory_order_relaxed) == 0;
}

/* The owner of that range; NULL for none. */
void *rondo_range_around(const rondo_range_index *index, const void *address);

typedef bool rondo_range_visitor(void *owner, void *user);

/* Calls `visit` for each range that contains the address, by ascending start, until it returns false. */
void rondo_range_visit(const rondo_range_index *index, const void *address, rondo_range_visitor *visit, void *user);

typedef struct rondo_range_found {
  uintptr_t begin, end; /* 0 when the address is in no range */
  uint32_t tag;
  void *owner;
} rondo_range_found;

/* As rondo_range_around, without the lock. False when the answer is not known: the tree changes at that moment, or
 * ranges are missing. */
bool rondo_range_look(const rondo_range_index *index, const void *address, rondo_range_found *out);

/* Asserts the invariants of the tree and returns the number of entered ranges, including missing ones. Builds without
 * assertions only count. Under the lock. */
size_t rondo_range_index_check(const rondo_range_index *index);

#endif
