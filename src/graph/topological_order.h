/* SPDX-License-Identifier: MIT
 * The topological order of a graph's nodes, cycles, and which nodes come before others.
 */
#ifndef RONDO_GRAPH_TOPOLOGICAL_ORDER_H
#define RONDO_GRAPH_TOPOLOGICAL_ORDER_H

#include "graph/graph_internal.h"

/* Slots in topological order, the lowest number first among the ready ones. *out has live_count entries and is freed
 * with rondo_release(allocator of the graph). INVALID_GRAPH/CYCLE names a node on the cycle. Programmatic edges count.
 * Child graphs are not visited. The graph may be a child graph of `root`, to which the error refers. */
RONDO_MUST_USE rondo_status rondo_graph_order_in(const rondo_graph *graph, const rondo_graph *root, uint32_t **out);
RONDO_MUST_USE static inline rondo_status rondo_graph_order(const rondo_graph *graph, uint32_t **out) {
  return rondo_graph_order_in(graph, graph, out);
}

/* Ancestor queries for one set of dependencies: marks every slot that is `from` or comes before it. `marks` has
 * nodes.count entries, zeroed by the caller; work is linear in nodes and edges. Programmatic edges do not count. */
RONDO_MUST_USE rondo_status rondo_graph_mark_ancestors(const rondo_graph *graph, const uint32_t *from, size_t count,
                                                       bool *marks);

#endif
