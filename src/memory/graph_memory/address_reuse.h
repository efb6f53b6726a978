/* SPDX-License-Identifier: MIT
 * Which bytes a graph's memory uses between which nodes, and the condition of address reuse: where two alloc nodes of a
 * graph cover the same bytes, the free node of the earlier one comes before the later one.
 */
#ifndef RONDO_MEMORY_GRAPH_MEMORY_ADDRESS_REUSE_H
#define RONDO_MEMORY_GRAPH_MEMORY_ADDRESS_REUSE_H

#include "memory/graph_memory/address_space.h"

/* The bytes of an alloc node, or of a block of a recording, with the free node that ends their use. */
typedef struct rondo_address_use {
  const rondo_graph_allocation *block; /* NULL for an alloc node */
  uint32_t slot;                       /* of the alloc node; RONDO_NO_NODE for a block */
  uint32_t free_slot;                  /* RONDO_NO_NODE when the graph does not free it */
  const char *begin;
  size_t bytes;
} rondo_address_use;

typedef RONDO_ARRAY(rondo_address_use) rondo_address_uses; /* freed with rondo_array_free */

/* Lists the blocks, then the graph's own alloc nodes by slot. Also for a graph that was loaded with its addresses.
 * NULL_ARGUMENT names a node without an address. `out` is empty. */
RONDO_MUST_USE rondo_status rondo_address_uses_list(const rondo_graph *graph, rondo_address_uses *out);

/* Whether the node in `slot` (RONDO_NO_NODE: none) and the edges may be removed together. EDGE_IN_USE names the two
 * nodes that would no longer be ordered. The slots are valid. */
RONDO_MUST_USE rondo_status rondo_address_space_check_removal(const rondo_graph *graph, uint32_t slot,
                                                              const uint32_t *from, const uint32_t *to, size_t count);

#endif
