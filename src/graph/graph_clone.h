/* SPDX-License-Identifier: MIT
 * Cloning graphs, and taking back nodes that clones share. Threads: as the graph; a shared node is only read.
 */
#ifndef RONDO_GRAPH_GRAPH_CLONE_H
#define RONDO_GRAPH_GRAPH_CLONE_H

#include "base/error.h"
#include "graph/graph_internal.h"

/* Clones with another allocator; see rondo_graph_clone. */
RONDO_MUST_USE rondo_status rondo_graph_clone_with(const rondo_allocator *allocator, const rondo_graph *graph,
                                                   rondo_graph **out);

/* As rondo_graph_clone, but also for a bound graph: the copy for an exec. */
RONDO_MUST_USE rondo_status rondo_graph_copy(const rondo_graph *graph, rondo_graph **out);

/* Comes before nodes or edges of the graph are written: copies the nodes if other graphs share them, so that they are
 * at other addresses. Errors: OUT_OF_MEMORY; then nothing has changed. */
RONDO_MUST_USE rondo_status rondo_graph_copy_nodes(rondo_graph *graph);
RONDO_MUST_USE static inline rondo_status rondo_graph_own_nodes(rondo_graph *graph) {
  return __builtin_expect(rondo_graph_shares_nodes(graph), 0) ? rondo_graph_copy_nodes(graph) : RONDO_OK;
}

/* The same for good: no clone will share the nodes of the graph. They stay at their addresses while the graph has them,
 * as long as no node is added. */
RONDO_MUST_USE rondo_status rondo_graph_keep_nodes(rondo_graph *graph);

#endif
