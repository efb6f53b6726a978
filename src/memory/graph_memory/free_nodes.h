/* SPDX-License-Identifier: MIT
 * Free nodes: whether one may be added, and which allocations have free nodes.
 */
#ifndef RONDO_MEMORY_GRAPH_MEMORY_FREE_NODES_H
#define RONDO_MEMORY_GRAPH_MEMORY_FREE_NODES_H

#include "memory/graph_memory/address_space.h"

/* Checks whether a free node of `address` may be added to the graph (FOREIGN_ADDRESS, DOUBLE_FREE), and counts it.
 * rondo_address_space_forget_free undoes that when the node is not made or is removed. */
RONDO_MUST_USE rondo_status rondo_address_space_claim_free(const rondo_graph *graph, const void *address);
void rondo_address_space_forget_free(const rondo_graph *graph, const void *address);

/* Forgets the free nodes of other graphs' memory, when the graphs of the space are destroyed. Under the lock. */
void rondo_address_space_forget_outside_frees(rondo_address_space *space);

#endif
