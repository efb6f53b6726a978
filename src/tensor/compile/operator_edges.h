/* SPDX-License-Identifier: MIT
 * Dependencies between positions of an order: for each position, the positions that must come before it. These are
 * lower, so the order itself is a topological order. Also used for other lists of numbers, one list for each position.
 * Plain data; the caller frees it.
 */
#ifndef RONDO_TENSOR_COMPILE_OPERATOR_EDGES_H
#define RONDO_TENSOR_COMPILE_OPERATOR_EDGES_H

#include <stdbool.h>
#include <stdint.h>

#include "base/allocation.h"

/* The list of position p is items[start[p]] up to items[start[p + 1]]: rising, each number once. */
typedef struct rondo_edges {
  uint32_t count;  /* positions */
  uint32_t *start; /* count + 1; NULL: nothing is allocated */
  uint32_t *items;
  size_t capacity; /* of items */
} rondo_edges;

/* `count` positions without edges, and a capacity of `capacity` edges. Errors of all: OUT_OF_MEMORY. */
RONDO_MUST_USE rondo_status rondo_edges_make(const rondo_allocator *allocator, uint32_t count, size_t capacity,
                                             rondo_edges *out);
RONDO_MUST_USE rondo_status rondo_edges_copy(const rondo_allocator *allocator, const rondo_edges *edges,
                                             rondo_edges *out);
void rondo_edges_free(const rondo_allocator *allocator, rondo_edges *edges);

/* Inserts `from` into the list of `position`, which ends at *inout_end and stays sorted, unless it is there. */
void rondo_edges_insert(const rondo_edges *edges, uint32_t position, uint32_t *inout_end, uint32_t from);

/* The transpose: for each of `count` numbers, the positions whose list has it. Of dependencies, the successors. */
RONDO_MUST_USE rondo_status rondo_edges_transpose(const rondo_allocator *allocator, const rondo_edges *edges,
                                                  uint32_t count, rondo_edges *out);

/* Sets of ancestors take a bit for each pair of positions, at most 32 MiB. With more positions than this, edges are not
 * reduced and branches are not planned. */
#define RONDO_MAX_REDUCED 16384

/* All that comes before each position, directly or not: bit q of the `words` words of position p. */
typedef struct rondo_ancestors {
  uint64_t *bits;
  size_t words, capacity;
} rondo_ancestors;

RONDO_MUST_USE rondo_status rondo_ancestors_make(const rondo_allocator *allocator, const rondo_edges *edges,
                                                 rondo_ancestors *out);
void rondo_ancestors_free(const rondo_allocator *allocator, rondo_ancestors *ancestors);

static inline bool rondo_comes_before(const rondo_ancestors *ancestors, uint32_t p, uint32_t q) {
  return (ancestors->bits[q * ancestors->words + p / 64] >> p % 64 & 1u) != 0;
}

/* Removes the edges that other edges imply: the transitive reduction (Aho, Garey and Ullman 1972). */
RONDO_MUST_USE rondo_status rondo_edges_reduce(const rondo_allocator *allocator, rondo_edges *edges);

/* These edges, and one from each position to the position `width` later, reduced: about `width` can then overlap. Not
 * counted are positions that may overlap with any that do not depend on them. is_free: by position; NULL: none. */
RONDO_MUST_USE rondo_status rondo_edges_narrow(const rondo_allocator *allocator, const rondo_edges *edges,
                                               uint32_t width, const bool *is_free, rondo_edges *out);

/* Whether the edges form a chain: each position depends on the one before it alone. */
bool rondo_edges_are_chain(const rondo_edges *edges);

#endif
