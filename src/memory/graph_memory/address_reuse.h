/* SPDX-License-Identifier: MIT
 * The condition of address reuse: where two alloc nodes of a graph cover the same bytes, the free node of the earlier
 * one comes before the later one.
 */
#ifndef RONDO_MEMORY_GRAPH_MEMORY_ADDRESS_REUSE_H
#define RONDO_MEMORY_GRAPH_MEMORY_ADDRESS_REUSE_H

#include "memory/graph_memory/address_space.h"

/* Whether the node in `slot` (RONDO_NO_NODE: none) and the edges may be removed together. EDGE_IN_USE names the two
 * nodes that would no longer be ordered. The slots are valid. */
RONDO_MUST_USE rondo_status rondo_address_space_check_removal(const rondo_graph *graph, uint32_t slot,
                                                              const uint32_t *from, const uint32_t *to, size_t count);

#endif
