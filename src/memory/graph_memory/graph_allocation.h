/* SPDX-License-Identifier: MIT
 * Records of graph allocations: finding the one of an alloc node, making and forgetting them, and what they are
 * called.
 */
#ifndef RONDO_MEMORY_GRAPH_MEMORY_GRAPH_ALLOCATION_H
#define RONDO_MEMORY_GRAPH_MEMORY_GRAPH_ALLOCATION_H

#include "memory/graph_memory/address_space.h"

/* A record of a block or slot of a recording's space, which stays as long as that. Before others know the space. */
RONDO_MUST_USE rondo_status rondo_graph_allocation_add(rondo_address_space *space, rondo_record_role role,
                                                       char *address, size_t bytes, const char *name);

/* The record of an alloc node; NULL when there is none. Under the lock. */
rondo_graph_allocation *rondo_graph_allocation_find(const rondo_address_space *space, const rondo_alloc_node *node);

/* The record of an alloc node, made again if it was forgotten; a new reference is the caller's. Under the lock. */
RONDO_MUST_USE rondo_status rondo_graph_allocation_of(rondo_address_space *space, const rondo_alloc_node *node,
                                                      rondo_graph_allocation **out);

/* Gives a reference up; the last one forgets the record, if it is not alive and there was never a clone. Under the
 * lock.
 */
void rondo_graph_allocation_release(rondo_graph_allocation *allocation);

/* Its bytes with what alignment adds: what it takes of the space. */
size_t rondo_graph_allocation_rounded(const rondo_graph_allocation *allocation);

/* Takes a record out of the table of addresses; and frees one that is in no table any more. */
void rondo_graph_allocation_leave_table(rondo_graph_allocation *allocation);
void rondo_graph_allocation_destroy(rondo_graph_allocation *allocation);

/* The graph allocation at an address that a free from outside means: the live one, else the latest; NULL when there is
 * none. Under the lock. */
rondo_graph_allocation *rondo_graph_allocation_at(const rondo_device_memory *memory, const void *address);

/* "'scratch' (4.0 KiB)" for messages; returns buffer. */
const char *rondo_allocation_label(char buffer[RONDO_ALLOCATION_LABEL], const rondo_allocation *allocation);

#endif
