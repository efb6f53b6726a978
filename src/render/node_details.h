/* SPDX-License-Identifier: MIT
 * The parameters of a node in words: on lines of a DOT label, or separated by commas in HTML.
 */
#ifndef RONDO_RENDER_NODE_DETAILS_H
#define RONDO_RENDER_NODE_DETAILS_H

#include "graph/graph_internal.h"

/* Names longer than this are cut. */
#define RONDO_DETAILS_HTML_NAME_BYTES 120

typedef struct rondo_node_details {
  rondo_text *text;
  const rondo_graph *graph; /* of the node */
  bool is_dot;
  bool with_addresses;
  uint32_t max_parameters; /* of a kernel */
} rondo_node_details;

void rondo_node_details_add(const rondo_node_details *details, const rondo_graph_node *node);

/* Adds a name to a DOT text, escaped and cut. */
void rondo_dot_add_name(rondo_text *text, const char *name);

#endif
