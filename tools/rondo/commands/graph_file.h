/* SPDX-License-Identifier: MIT
 * Dumped graphs.
 */
#ifndef RONDO_TOOL_GRAPH_FILE_H
#define RONDO_TOOL_GRAPH_FILE_H

#include <rondo/graph.h>

/* Reads the JSON dump of a graph; "-" is standard input. Returns TOOL_OK, or TOOL_FAILURE after a message, and *out is
 * NULL. */
int graph_read(const char *path, rondo_graph **out);

#endif
