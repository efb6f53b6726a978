/* SPDX-License-Identifier: MIT
 * Free nodes: whether one may be added, and which allocations have some.
 */
#ifndef RONDO_MEMORY_GRAPH_MEMORY_FREE_NODES_H
#define RONDO_MEMORY_GRAPH_MEMORY_FREE_NODES_H

#include "memory/graph_memory/address_space.h"

/* Whether a free node of `address` may be added to the graph: FOREIGN_ADDRESS, DOUBLE_FREE. Counts the node;
 * rondo_address_space_forget_free undoes that when the node is not made or is removed. */
RONDO_MUST_USE rondo_status rondo_address_space_claim_free(const rondo_graph *graph, const void *address);
void rondo_address_space_forget_free(const rondo_graph *graph, const void *address);

/* The graphs of the space are gone, and with them their free nodes of other graphs' memory. Under the lock. */
void rondo_address_space_forget_outside_frees(rondo_address_space *space);

#endif
