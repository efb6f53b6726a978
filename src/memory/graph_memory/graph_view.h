/* SPDX-License-Identifier: MIT
 * What the records of a space know of one graph, the last that was built: which allocations stand open, that is, are
 * allocated and not freed by it, and which node freed the others (rondo_graph_allocation.open, .free_slot). Building
 * another graph of the space begins anew.
 *
 * Threads: under the lock of the device's memory.
 */
#ifndef RONDO_MEMORY_GRAPH_MEMORY_GRAPH_VIEW_H
#define RONDO_MEMORY_GRAPH_MEMORY_GRAPH_VIEW_H

#include "memory/graph_memory/address_space.h"

/* Brings the view up to date with the graph. */
void rondo_graph_view_refresh(rondo_address_space *space, const rondo_graph *graph);

/* The allocation at exactly this address that stands open; NULL when there is none. */
rondo_graph_allocation *rondo_graph_view_find_open(const rondo_address_space *space, const void *address);

/* Something was removed from the graph. */
void rondo_address_space_note_removal(const rondo_graph *graph);

#endif
