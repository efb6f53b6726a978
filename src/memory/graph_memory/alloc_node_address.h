/* SPDX-License-Identifier: MIT
 * Giving alloc nodes their addresses.
 */
#ifndef RONDO_MEMORY_GRAPH_MEMORY_ALLOC_NODE_ADDRESS_H
#define RONDO_MEMORY_GRAPH_MEMORY_ALLOC_NODE_ADDRESS_H

#include "memory/graph_memory/address_space.h"

/* On a guarded device: addresses for `bytes`, rounded, on pages that nothing else of the space has or had; NULL when
 * there is no room. Under the memory's lock, if others know the space. */
char *rondo_address_space_take_fresh(rondo_address_space *space, size_t bytes);

/* Chooses the address of an alloc node of `graph` that depends on `dependencies`, and sets it in `node`, which is else
 * as it will be. Taken back with rondo_address_space_unplace when the node is not made, and with _forget when it is
 * removed. */
RONDO_MUST_USE rondo_status rondo_address_space_place(const rondo_graph *graph, const rondo_node *dependencies,
                                                      size_t count, rondo_alloc_node *node);
void rondo_address_space_unplace(const rondo_graph *graph, const rondo_alloc_node *node);
void rondo_address_space_forget(const rondo_graph *graph, const rondo_alloc_node *node);

#endif
