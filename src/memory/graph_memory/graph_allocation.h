/* SPDX-License-Identifier: MIT
 * Records of graph allocations: finding the record of an alloc node, creating and forgetting records, and labels.
 */
#ifndef RONDO_MEMORY_GRAPH_MEMORY_GRAPH_ALLOCATION_H
#define RONDO_MEMORY_GRAPH_MEMORY_GRAPH_ALLOCATION_H

#include "memory/graph_memory/address_space.h"

/* Adds the record of a block or slot to a recording's space, for the lifetime of the space. Before other threads know
 * the space. */
RONDO_MUST_USE rondo_status rondo_graph_allocation_add(rondo_address_space *space, rondo_record_role role,
                                                       char *address, size_t bytes, const char *name);

/* The record of an alloc node; NULL when there is none. Under the lock. */
rondo_graph_allocation *rondo_graph_allocation_find(const rondo_address_space *space, const rondo_alloc_node *node);

/* The record of an alloc node, created if there is none. The caller gets a reference. Under the lock. */
RONDO_MUST_USE rondo_status rondo_graph_allocation_of(rondo_address_space *space, const rondo_alloc_node *node,
                                                      rondo_graph_allocation **out);

/* Releases a reference. The last release forgets the record, if it is not in use and there was never a clone. Under the
 * lock. */
void rondo_graph_allocation_release(rondo_graph_allocation *allocation);

/* For qsort of pointers to records: by address, and in some order at one address. */
int rondo_graph_allocation_compare(const void *a, const void *b);

/* Its bytes in the space, rounded up. */
size_t rondo_graph_allocation_rounded(const rondo_graph_allocation *allocation);

/* leave_table removes the record from the table of addresses; destroy frees it after it has left its tables. */
void rondo_graph_allocation_leave_table(rondo_graph_allocation *allocation);
void rondo_graph_allocation_destroy(rondo_graph_allocation *allocation);

/* The graph allocation at the address to which a free outside of graphs refers: the live one, otherwise the latest;
 * NULL when there is none. Under the lock. */
rondo_graph_allocation *rondo_graph_allocation_at(const rondo_device_memory *memory, const void *address);

/* "'scratch' (4.0 KiB)" for messages; returns buffer. */
const char *rondo_allocation_label(char buffer[RONDO_ALLOCATION_LABEL], const rondo_allocation *allocation);

#endif
