/* SPDX-License-Identifier: MIT
 * What the two halves of the layout share: who is next to whom in neighbouring layers (ordering, graph_layers.c), and
 * then where (graph_layers_place.c).
 */
#ifndef RONDO_RENDER_GRAPH_LAYERS_INTERNAL_H
#define RONDO_RENDER_GRAPH_LAYERS_INTERNAL_H

#include "render/graph_layers.h"

/* The neighbours of place i in one direction are items[start[i] .. start[i + 1]). */
typedef struct rondo_neighbours {
  uint32_t *start, *items;
} rondo_neighbours;

typedef struct rondo_ordering {
  rondo_layers *layers;
  uint32_t link_count; /* between places of neighbouring layers */
  rondo_neighbours above, below;
  uint32_t *row_start; /* layer l has the places row[row_start[l] .. row_start[l + 1]), from the left */
  uint32_t *row;
  uint32_t *position; /* of each place in its layer */
} rondo_ordering;

/* Fills layers->x and layers->width. */
RONDO_MUST_USE rondo_status rondo_layers_place(const rondo_ordering *ordering);

#endif
