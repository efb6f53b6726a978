/* SPDX-License-Identifier: MIT
 * The layout of a graph in layers (K. Sugiyama, S. Tagawa, M. Toda, "Methods for visual understanding of hierarchical
 * system structures", IEEE Trans. SMC 11 (1981)). Each node is in a layer below all nodes that it depends on. An edge
 * that passes layers has a bend in each of them. There are few crossings, and connected vertices are near each other.
 * The same input always gives the same result.
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

/* A vertex is a node or a bend. The nodes come first, by number. */
typedef struct rondo_layers {
  rondo_allocator allocator;
  rondo_layers_input input;
  uint32_t layer_count, vertex_count;
  uint32_t *layer;      /* of each vertex */
  uint32_t *bend_start; /* the bends of edge e are vertices bend_start[e] to bend_start[e + 1] - 1, from above */
  int32_t *x;           /* the centre of each vertex; the leftmost edge is at 0 */
  int32_t width;
} rondo_layers;

/* Counts the vertices. rondo_layers_make takes O(n log n) for n vertices. */
RONDO_MUST_USE rondo_status rondo_layers_count(const rondo_allocator *allocator, const rondo_layers_input *input,
                                               uint64_t *out_vertices);

/* Freed by rondo_layers_free, also after a failure. Fewer than 2^30 vertices. Errors: OUT_OF_MEMORY. */
RONDO_MUST_USE rondo_status rondo_layers_make(const rondo_allocator *allocator, const rondo_layers_input *input,
                                              rondo_layers *out);
void rondo_layers_free(rondo_layers *layers);

#endif
