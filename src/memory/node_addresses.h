/* SPDX-License-Identifier: MIT
 * The addresses that a node declares: pointer parameters of a kernel, source and destination of a copy, destination of
 * a fill, words of memory operations.
 */
#ifndef RONDO_MEMORY_NODE_ADDRESSES_H
#define RONDO_MEMORY_NODE_ADDRESSES_H

#include "base/component.h"
#include "graph/graph_internal.h"

/* `field`: the number of a kernel's parameter; 0: the destination of a copy or fill; 1: the source of a copy;
 * the number of a memory operation. */
typedef struct rondo_node_address {
  uint32_t field;
  const char *address;
} rondo_node_address;

static inline bool rondo_parameter_is_pointer(const rondo_parameter *parameter) {
  return parameter->access != RONDO_ACCESS_SCALAR && parameter->bytes == sizeof(void *);
}

/* Returns how many there are; 0 for other kinds of nodes. */
RONDO_PRIVATE size_t rondo_node_addresses(const rondo_node_params *params,
                                          rondo_node_address out[RONDO_MAX_PARAMETERS]);

/* Whether work of a library allocates the memory, in the graph or one of its child graphs. It may have no pages yet. */
RONDO_PRIVATE bool rondo_graph_has_foreign_memory(const rondo_graph *graph, const void *address);

#endif
