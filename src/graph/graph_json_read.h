/* SPDX-License-Identifier: MIT
 * Graphs from JSON (<rondo/graph.h> describes the format).
 */
#ifndef RONDO_GRAPH_GRAPH_JSON_READ_H
#define RONDO_GRAPH_GRAPH_JSON_READ_H

#include "graph/graph_internal.h"

#define RONDO_GRAPH_JSON_VERSION 1 /* of the format, which readers compare */

/* rondo_graph_from_json with an allocator for the graph. */
RONDO_MUST_USE rondo_status rondo_graph_read_json(const rondo_allocator *allocator, const char *bytes, size_t count,
                                                  rondo_graph **out);

#endif
