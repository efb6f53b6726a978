/* SPDX-License-Identifier: MIT
 * The addresses of alloc nodes, and the search for gaps between allocations.
 */
#ifndef RONDO_MEMORY_GRAPH_MEMORY_ALLOC_NODE_ADDRESS_H
#define RONDO_MEMORY_GRAPH_MEMORY_ALLOC_NODE_ADDRESS_H

#include "memory/graph_memory/address_space.h"

/* A best-fit search, which can go on from range to range. Begins with best_bytes = SIZE_MAX. */
typedef struct rondo_gap_search {
  char *best;                /* the smallest gap that fits; NULL: none so far */
  size_t best_bytes, widest; /* of the best gap; of the widest one */
  char *end;                 /* after all allocations of the last range */
  size_t left;               /* bytes from there to the end of the range */
} rondo_gap_search;

/* Searches one range of addresses for a gap of `bytes` between records, which are sorted by address. `freed_before` may
 * be NULL; otherwise records that are freed before that point are ignored. */
void rondo_gaps_search(const rondo_address_range *range, rondo_graph_allocation *const *records, size_t count,
                       const rondo_graph_point *freed_before, size_t bytes, rondo_gap_search *search);

/* Whether none of the records, in any order, has bytes there. */
bool rondo_range_is_free(rondo_graph_allocation *const *records, size_t count, const char *begin, size_t bytes);

/* On a guarded device: an address for `bytes`, rounded, on pages that nothing else of the space has or had; NULL when
 * there is no room. Under the memory's lock, if others know the space. */
char *rondo_address_space_take_fresh(rondo_address_space *space, size_t bytes);

/* Chooses the address of an alloc node of `graph` that depends on `dependencies`, and sets it in `node`, whose other
 * fields are set already. Undone by rondo_address_space_unplace when the node is not made, and by _forget when it is
 * removed. */
RONDO_MUST_USE rondo_status rondo_address_space_place(const rondo_graph *graph, const rondo_node *dependencies,
                                                      size_t count, rondo_alloc_node *node);
void rondo_address_space_unplace(const rondo_graph *graph, const rondo_alloc_node *node);
void rondo_address_space_forget(const rondo_graph *graph, const rondo_alloc_node *node);

#endif
