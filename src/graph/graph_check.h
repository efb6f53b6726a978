/* SPDX-License-Identifier: MIT
 * Checks of a graph's invariants (graph_check.c). They assert, and do nothing in builds without assertions.
 */
#ifndef RONDO_GRAPH_GRAPH_CHECK_H
#define RONDO_GRAPH_GRAPH_CHECK_H

#include "graph/graph_internal.h"

#ifdef NDEBUG
static inline void rondo_graph_check_node(const rondo_graph *graph, uint32_t slot) { (void)graph, (void)slot; }
static inline void rondo_graph_check(const rondo_graph *graph) { (void)graph; }
#else
/* One node: its contents, and its edges at both ends. Its time is proportional to the node's edges. */
void rondo_graph_check_node(const rondo_graph *graph, uint32_t slot);
/* All nodes, the counters, and the child graphs. Its time is proportional to all edges. */
void rondo_graph_check(const rondo_graph *graph);
#endif

#endif
