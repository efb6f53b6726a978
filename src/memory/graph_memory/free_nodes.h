/* SPDX-License-Identifier: MIT
 * Free nodes: whether one may be added, and what the device knows of those there are.
 */
#ifndef RONDO_MEMORY_GRAPH_MEMORY_FREE_NODES_H
#define RONDO_MEMORY_GRAPH_MEMORY_FREE_NODES_H

#include "memory/graph_memory/address_space.h"

/* Whether a free node of `address` may be added to the graph: FOREIGN_ADDRESS, DOUBLE_FREE. Counts it; taken back with
 * rondo_address_space_forget_free when the node is not made or removed. */
RONDO_MUST_USE rondo_status rondo_address_space_claim_free(const rondo_graph *graph, const void *address);
void rondo_address_space_forget_free(const rondo_graph *graph, const void *address);

/* The graphs of the space are gone, and what frees other graphs' memory with them. Under the lock. */
void rondo_address_space_forget_outside_frees(rondo_address_space *space);

#endif
