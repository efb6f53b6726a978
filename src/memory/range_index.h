/* SPDX-License-Identifier: MIT
 * Ranges of addresses, which may overlap, and which of them an address lies in: a tree in the order of their
 * beginnings, balanced by a hash of each node's number as its priority (Seidel and Aragon 1996), the greatest on top;
 * each node knows how far the ranges below it reach.
 *
 * Looking an address up takes no lock: nodes are numbers in an array that stays readable when it grows, and a counter
 * that is odd while the tree changes tells a reader whether what it saw was whole (a sequence lock, with release stores
 * and acquire loads in the place of fences). Arrays double, so that the old ones together are as large as the last.
 *
 * Threads: rondo_range_look from any thread; all else under one lock of the owner's.
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
  _Atomic uint32_t missing; /* ranges that there was no memory for: an address may lie in one of them */
  uint32_t unused;          /* the first of a list of free nodes, by `after` */
} rondo_range_index;

void rondo_range_index_deinit(const rondo_allocator *allocator, rondo_range_index *index);

/* Enters a range; `owner` and `tag` are what looking up returns. Its place, by which it leaves; 0 when there is no
 * memory for it, which counts as missing until rondo_range_leave with 0. */
uint32_t rondo_range_enter(const rondo_allocator *allocator, rondo_range_index *index, const void *begin, size_t bytes,
                           uint32_t tag, void *owner);
void rondo_range_leave(rondo_range_index *index, uint32_t place);

/* The place of the range that the address lies in, of several the one that reaches farthest; 0 when it lies in none
 * that is not missing. */
uint32_t rondo_range_place(const rondo_range_index *index, const void *address);

/* The owner of that range; NULL for none. */
void *rondo_range_around(const rondo_range_index *index, const void *address);

/* Calls `visit` for each range that the address lies in, from low addresses on, until it returns false. */
void rondo_range_visit(const rondo_range_index *index, const void *address, bool (*visit)(void *owner, void *user),
                       void *user);

typedef struct rondo_range_found {
  uintptr_t begin, end; /* 0 when the address lies in no range */
  uint32_t tag;
  void *owner;
} rondo_range_found;

/* As rondo_range_around, without the lock. False when that did not succeed: the tree changes just now, or ranges are
 * missing. */
bool rondo_range_look(const rondo_range_index *index, const void *address, rondo_range_found *out);

/* Asserts the order, the balance and the reach of the tree, and returns how many ranges were entered, missing ones
 * included. Builds without assertions return that alone. Under the lock. */
size_t rondo_range_index_check(const rondo_range_index *index);

#endif
