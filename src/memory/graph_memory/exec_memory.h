/* SPDX-License-Identifier: MIT
 * The graph memory of one exec: which pages it needs mapped, which allocations its launches leave alive, and which
 * allocations of other graphs they free. Made from the alloc and free nodes of the flattened graph, whose order has
 * been verified (graph/verify/verifier.h) or is taken on trust.
 *
 * A launch is framed by _begin and _end: begin checks and changes lives in the order of the calls, waits for what must
 * come first, and enters the gate of the heap; end records the launch and leaves the gate. Once warm on a stream
 * neither allocates, takes a lock or looks anything up; but where a relative left memory allocated that was freed in
 * stream order since, begin looks under the lock whether the exec gives its bytes out.
 *
 * Threads: as the exec: one at a time. What execs share is atomic or under the heap's gate.
 */
#ifndef RONDO_MEMORY_GRAPH_MEMORY_EXEC_MEMORY_H
#define RONDO_MEMORY_GRAPH_MEMORY_EXEC_MEMORY_H

#include "memory/heap/heap.h"

/* A node of the flattened graph that allocates or frees memory. */
typedef struct rondo_memory_node {
  const rondo_node_params *params;
  rondo_address_space *space; /* of the graph that the node stands in */
  rondo_node_where where;     /* for messages */
} rondo_memory_node;

typedef struct rondo_exec_memory rondo_exec_memory;

/* `nodes` in topological order; *out is NULL when there are none. Errors: INVALID_LIFETIME with what no launch could
 * keep account of: STILL_ALLOCATED (bytes given out again before they are freed), NOT_ALLOCATED, DOUBLE_FREE,
 * FOREIGN_ADDRESS; OUT_OF_MEMORY. */
RONDO_MUST_USE rondo_status rondo_exec_memory_create(rondo_device_memory *memory, const rondo_memory_node *nodes,
                                                     size_t count, bool auto_free, rondo_exec_memory **out);
void rondo_exec_memory_destroy(rondo_exec_memory *exec); /* what lives stays alive; NULL is fine */

/* Frees what its launches left allocated and nobody has freed, at once. */
void rondo_exec_memory_free_live(rondo_exec_memory *exec);

/* Whether what is at the address is the exec's own affair: its alloc nodes give it out, or its free nodes free it, so
 * that launches keep account of its life. */
bool rondo_exec_memory_covers(const rondo_exec_memory *exec, const void *address);

/* Bytes of whole pages that must be mapped for it. */
uint64_t rondo_exec_memory_bytes(const rondo_exec_memory *exec);
/* Host memory of the struct itself. */
uint64_t rondo_exec_memory_host_bytes(const rondo_exec_memory *exec);

/* Maps all ahead into the stream's heap. */
RONDO_MUST_USE rondo_status rondo_exec_memory_upload(rondo_exec_memory *exec, rondo_heap *heap);

/* `heap` is the stream's. On success the launch follows, then _end with its status, which is returned. */
RONDO_MUST_USE rondo_status rondo_exec_memory_begin(rondo_exec_memory *exec, rondo_heap *heap, rondo_queue *queue);
RONDO_MUST_USE rondo_status rondo_exec_memory_end(rondo_exec_memory *exec, rondo_queue *queue, rondo_status launched);

#endif
