/* SPDX-License-Identifier: MIT
 * A graph as an SVG element for a page. A small graph is drawn in layers, with its edges. A large graph is drawn in the
 * same order, with one cell for each node and the numbers of its dependencies instead of edges. A child graph is a
 * single node here. The same graph always gives the same text.
 */
#ifndef RONDO_RENDER_GRAPH_DRAWING_H
#define RONDO_RENDER_GRAPH_DRAWING_H

#include "graph/graph_internal.h"

/* What a drawing shows of a node in addition to the graph. */
typedef struct rondo_drawing_mark {
  bool critical;          /* on the critical path */
  uint32_t next_critical; /* the next slot on it if that is in the same graph; otherwise RONDO_NO_NODE */
  bool faulty;            /* verification found an error in it */
  double share;           /* its time divided by the longest time of a node; 0: not known */
  char time[32];          /* as text; "": not known */
} rondo_drawing_mark;

typedef struct rondo_drawing {
  const rondo_graph *graph;
  const uint32_t *order;           /* its slots, topological */
  const rondo_drawing_mark *marks; /* by slot */
  const char *prefix;              /* node 3 has the id PREFIX3 and links to #row-PREFIX3 */
  bool links;                      /* the page has these rows */
  size_t max_cells;                /* of the form for large graphs; the rest is left out */
  const char *label;               /* for screen readers */
  /* Writes the escaped text of a node's tooltip. */
  void (*describe)(rondo_text *text, const void *user, const rondo_graph *graph, uint32_t slot);
  const void *user;
} rondo_drawing;

/* Graphs within these limits are drawn with edges. Vertices are nodes and the bends of edges. */
#define RONDO_DRAWING_MAX_NODES 400
#define RONDO_DRAWING_MAX_EDGES 2000
#define RONDO_DRAWING_MAX_VERTICES 6000

/* Adds an <svg> element of the class "rondo-graph" or "rondo-cells". *out_shown: how many nodes it shows. */
RONDO_MUST_USE rondo_status rondo_drawing_add(rondo_text *text, const rondo_drawing *drawing, size_t *out_shown);

/* Adds the CSS rules for both classes and both colour schemes. Call it once for a page. */
void rondo_drawing_add_style(rondo_text *text);

#endif
