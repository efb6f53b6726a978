/* SPDX-License-Identifier: MIT
 * Layers for drawing a graph, numbers only (K. Sugiyama, S. Tagawa, M. Toda, "Methods for visual understanding of
 * hierarchical system structures", IEEE Trans. SMC 11 (1981)): each node in a layer below all it depends on, an edge
 * that passes layers bent once in each, few crossings, and everything near what it is connected with. The same input
 * gives the same result.
 */
#ifndef RONDO_RENDER_GRAPH_LAYERS_H
#define RONDO_RENDER_GRAPH_LAYERS_H

#include "base/allocation.h"

/* Nodes numbered in a topological order; edge e goes from a node i with start[i] <= e < start[i + 1] to to[e]. */
typedef struct rondo_layers_input {
  uint32_t node_count;
  const uint32_t *start; /* node_count + 1 */
  const uint32_t *to;
  const uint32_t *widths; /* of the nodes */
  uint32_t gap;           /* between neighbours in a layer */
} rondo_layers_input;

/* Places: the nodes, by number, and then the bends. */
typedef struct rondo_layers {
  rondo_allocator allocator;
  rondo_layers_input input;
  uint32_t layer_count, vertex_count;
  uint32_t *layer;      /* of each vertex */
  uint32_t *bend_start; /* edge e bends at the vertices bend_start[e] to bend_start[e + 1], from above */
  int32_t *x;           /* the middle of each vertex; the leftmost node begins at 0 */
  int32_t width;
} rondo_layers;

/* How many vertices there will be: what the work of rondo_layers_make grows with, times its logarithm. */
RONDO_MUST_USE rondo_status rondo_layers_count(const rondo_allocator *allocator, const rondo_layers_input *input,
                                               uint64_t *out_vertices);

/* Freed by rondo_layers_free, also after a failure. Fewer than 2^30 vertices. Errors: OUT_OF_MEMORY. */
RONDO_MUST_USE rondo_status rondo_layers_make(const rondo_allocator *allocator, const rondo_layers_input *input,
                                              rondo_layers *out);
void rondo_layers_free(rondo_layers *layers);

#endif
