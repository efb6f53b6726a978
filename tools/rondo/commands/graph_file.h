/* SPDX-License-Identifier: MIT
 * Shared by the commands that read the dump of a graph: check, graph and report.
 */
#ifndef RONDO_TOOL_GRAPH_FILE_H
#define RONDO_TOOL_GRAPH_FILE_H

#include <rondo/graph.h>

#include "common/file.h"
#include "common/options.h"

/* Members of an option_table for the operand of check and graph. */
#define GRAPH_FILE_OPERAND                  \
  .operand = "FILE", .reads_operand = true, \
  .operand_help = "a dump, as rondo_graph_to_json or 'rondo train --dump-graph' writes it; '-' is standard input"

/* Parses the command line, reads the graph, calls `use` with it and the file name, and destroys it. `check`, which may
 * be NULL, checks the settings before the file is read: TOOL_OK or TOOL_USAGE. Returns the exit status. */
int graph_file_command(const option_table *table, int argc, char **argv, void *settings,
                       int (*check)(const void *settings),
                       int (*use)(const rondo_graph *graph, const char *path, const void *settings));

/* Reads the graph from the file's bytes, calls `use`, and destroys it. */
int graph_file_use(const char *path, const file_bytes *file, const void *settings,
                   int (*use)(const rondo_graph *graph, const char *path, const void *settings));

#endif
