/* SPDX-License-Identifier: MIT
 * Dependencies between positions of an order: for each position those that must come before it, all lower, so the order
 * itself keeps them. Plain data; the caller frees it.
 */
#ifndef RONDO_TENSOR_COMPILE_OPERATOR_EDGES_H
#define RONDO_TENSOR_COMPILE_OPERATOR_EDGES_H

#include <stdint.h>

#include "base/allocation.h"

/* Those before position p are items[start[p]] up to items[start[p + 1]], each once, rising. */
typedef struct rondo_edges {
  uint32_t count;  /* positions */
  uint32_t *start; /* count + 1; NULL: nothing is allocated */
  uint32_t *items;
  size_t room; /* of items */
} rondo_edges;

/* `count` positions without edges, and room for so many edges. Errors of all: OUT_OF_MEMORY. */
RONDO_MUST_USE rondo_status rondo_edges_make(const rondo_allocator *allocator, uint32_t count, size_t room,
                                             rondo_edges *out);
void rondo_edges_free(const rondo_allocator *allocator, rondo_edges *edges);

/* The same edges from their other ends: those after each position. */
RONDO_MUST_USE rondo_status rondo_edges_turn(const rondo_allocator *allocator, const rondo_edges *edges,
                                             rondo_edges *out);

/* Sets of ancestors take a bit for each pair of positions, 32 MiB at most: of more positions than these nothing is
 * reduced, and branches are not planned. */
#define RONDO_MOST_REDUCED 16384

/* All that comes before each position, directly or not: bit q of the `words` words of position p. */
typedef struct rondo_ancestors {
  uint64_t *bits;
  size_t words, room;
} rondo_ancestors;

RONDO_MUST_USE rondo_status rondo_ancestors_make(const rondo_allocator *allocator, const rondo_edges *edges,
                                                 rondo_ancestors *out);
void rondo_ancestors_free(const rondo_allocator *allocator, rondo_ancestors *ancestors);

static inline bool rondo_comes_before(const rondo_ancestors *ancestors, uint32_t p, uint32_t q) {
  return (ancestors->bits[q * ancestors->words + p / 64] >> p % 64 & 1u) != 0;
}

/* Takes away the edges that others imply: the fewest that say the same (Aho, Garey and Ullman 1972). */
RONDO_MUST_USE rondo_status rondo_edges_reduce(const rondo_allocator *allocator, rondo_edges *edges);

/* These edges, and one from each position to the `width`-th behind it, reduced: about so many then run side by side. */
RONDO_MUST_USE rondo_status rondo_edges_narrow(const rondo_allocator *allocator, const rondo_edges *edges,
                                               uint32_t width, rondo_edges *out);

/* Whether each position has the one before it as its only edge. */
bool rondo_edges_are_straight(const rondo_edges *edges);

#endif
