/* SPDX-License-Identifier: MIT
 * The graph memory of one exec: which pages it needs mapped, which allocations its launches leave allocated, and which
 * allocations of other graphs they free. Created from the alloc and free nodes of the flattened graph, whose order was
 * verified (graph/verify/verifier.h) or is trusted.
 *
 * Each launch runs between _begin and _end. _begin enters the gate of the heap, checks and changes lives in the order
 * of the calls, and waits for earlier work. _end records the launch and leaves the gate. A warm launch allocates
 * nothing, takes no lock and looks nothing up, with one exception: after a stream-ordered free of memory that another
 * exec of the graph left allocated, _begin checks under the lock whether this exec uses its bytes.
 *
 * Threads: as the exec, one at a time. State that execs share is atomic or under the heap's gate.
 */
#ifndef RONDO_MEMORY_GRAPH_MEMORY_EXEC_MEMORY_H
#define RONDO_MEMORY_GRAPH_MEMORY_EXEC_MEMORY_H

#include "memory/heap/graph_heap.h"

/* A node of the flattened graph that allocates or frees memory. */
typedef struct rondo_memory_node {
  const rondo_node_params *params;
  rondo_address_space *space; /* of the graph that has the node */
  rondo_node_where where;     /* for messages */
} rondo_memory_node;

typedef struct rondo_exec_memory rondo_exec_memory;

/* `nodes` are in topological order; *out is NULL when there are none. Errors: INVALID_LIFETIME for nodes that no launch
 * could run: STILL_ALLOCATED (bytes are reused before they are freed), NOT_ALLOCATED, DOUBLE_FREE, FOREIGN_ADDRESS;
 * OUT_OF_MEMORY. */
RONDO_MUST_USE rondo_status rondo_exec_memory_create(rondo_device_memory *memory, const rondo_memory_node *nodes,
                                                     size_t count, bool auto_free, rondo_exec_memory **out);
void rondo_exec_memory_destroy(rondo_exec_memory *exec); /* live allocations stay live; NULL is allowed */

/* Frees the allocations that its launches left and that are still live. */
void rondo_exec_memory_free_live(rondo_exec_memory *exec);

/* Whether launches of the exec begin or end the life of an allocation that contains the address: one of its alloc
 * nodes, or one that its free nodes free. */
bool rondo_exec_memory_covers(const rondo_exec_memory *exec, const void *address);

/* The bytes of whole pages that must be mapped for it. */
uint64_t rondo_exec_memory_bytes(const rondo_exec_memory *exec);
/* Host memory of the struct itself. */
uint64_t rondo_exec_memory_host_bytes(const rondo_exec_memory *exec);

/* Maps its memory from the stream's heap in advance. */
RONDO_MUST_USE rondo_status rondo_exec_memory_upload(rondo_exec_memory *exec, rondo_heap *heap);

/* `heap` is the heap of the launch stream. After success, launch and pass the status of the launch to _end, which
 * returns it. */
RONDO_MUST_USE rondo_status rondo_exec_memory_begin(rondo_exec_memory *exec, rondo_heap *heap, rondo_queue *queue);
RONDO_MUST_USE rondo_status rondo_exec_memory_end(rondo_exec_memory *exec, rondo_queue *queue, rondo_status launched);

#endif
