/* SPDX-License-Identifier: MIT
 * A graph as an SVG element, for pages that the layers above write. Small graphs are drawn in layers, with their edges.
 * Large graphs are drawn in the same order as one cell for each node, with the numbers of its dependencies instead of
 * edges. Child graphs are single nodes here. The same graph always gives the same text.
 */
#ifndef RONDO_RENDER_GRAPH_DRAWING_H
#define RONDO_RENDER_GRAPH_DRAWING_H

#include "graph/graph_internal.h"

/* What is known of a node in addition to the graph. */
typedef struct rondo_drawing_mark {
  bool critical;          /* on the critical path */
  uint32_t next_critical; /* the slot that follows on it, if that is in the same graph; else RONDO_NO_NODE */
  bool faulty;            /* an error was found in it */
  double share;           /* its time as a share of the longest; 0: none */
  char time[32];          /* to be shown on it; "": none */
} rondo_drawing_mark;

typedef struct rondo_drawing {
  const rondo_graph *graph;
  const uint32_t *order;           /* its slots, topological */
  const rondo_drawing_mark *marks; /* by slot */
  const char *prefix;              /* node 3 has the id PREFIX3 and links to #row-PREFIX3 */
  bool links;                      /* whether there are such rows */
  size_t max_cells;                /* of the form for large graphs; the rest is left out */
  const char *label;               /* for screen readers */
  /* Writes the text of a node's tooltip, escaped. */
  void (*describe)(rondo_text *text, const void *user, const rondo_graph *graph, uint32_t slot);
  const void *user;
} rondo_drawing;

/* Graphs with at most so many nodes and edges, and so many vertices of nodes and bends, are drawn with edges. */
#define RONDO_DRAWING_MAX_NODES 400
#define RONDO_DRAWING_MAX_EDGES 2000
#define RONDO_DRAWING_MAX_VERTICES 6000

/* Adds the <svg> element, of the class "rondo-graph" or "rondo-cells". *out_shown, how many nodes it shows. */
RONDO_MUST_USE rondo_status rondo_drawing_add(rondo_text *text, const rondo_drawing *drawing, size_t *out_shown);

/* The CSS rules for both, once a page; both colour schemes. */
void rondo_drawing_add_style(rondo_text *text);

#endif
