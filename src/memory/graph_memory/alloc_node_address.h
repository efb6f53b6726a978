/* SPDX-License-Identifier: MIT
 * The addresses of alloc nodes, and the search for gaps between allocations.
 */
#ifndef RONDO_MEMORY_GRAPH_MEMORY_ALLOC_NODE_ADDRESS_H
#define RONDO_MEMORY_GRAPH_MEMORY_ALLOC_NODE_ADDRESS_H

#include "memory/graph_memory/address_space.h"

/* A best-fit search, which can continue from range to range. Initialize best_bytes to SIZE_MAX. */
typedef struct rondo_gap_search {
  char *best;                /* the smallest gap that fits; NULL: none so far */
  size_t best_bytes, widest; /* the sizes of the best gap and of the widest gap */
  char *end;                 /* after all allocations of the last range */
  size_t left;               /* bytes from there to the end of the range */
} rondo_gap_search;

/* Searches one range of addresses for a gap of `bytes` between records, which are sorted by address. `freed_before` may
 * be NULL; otherwise records that are freed before that point are ignored. */
void rondo_gaps_search(const rondo_address_range *range, rondo_graph_allocation *const *records, size_t count,
                       const rondo_graph_point *freed_before, size_t bytes, rondo_gap_search *search);

/* Whether no record overlaps the bytes. The records may be in any order. */
bool rondo_range_is_free(rondo_graph_allocation *const *records, size_t count, const char *begin, size_t bytes);

/* On a guarded device: an address for `bytes`, which are rounded, on pages that the space has never used; NULL when it
 * is full. Under the memory's lock, if other threads know the space. */
char *rondo_address_space_take_fresh(rondo_address_space *space, size_t bytes);

/* Chooses the address of a new alloc node of `graph` that depends on `dependencies`, and sets it in `node`, whose other
 * fields are set already. rondo_address_space_unplace undoes this if the node is not made, _forget if it is removed. */
RONDO_MUST_USE rondo_status rondo_address_space_place(const rondo_graph *graph, const rondo_node *dependencies,
                                                      size_t count, rondo_alloc_node *node);
void rondo_address_space_unplace(const rondo_graph *graph, const rondo_alloc_node *node);
void rondo_address_space_forget(const rondo_graph *graph, const rondo_alloc_node *node);

#endif
