/* SPDX-License-Identifier: MIT
 * Reading the dump of a graph for a command.
 */
#include "commands/graph_file.h"

#include "common/tool.h"

static int parse_graph(const char *path, const file_bytes *file, rondo_graph **out) {
  const char *name = file_display_name(path);
  if (file->count == 0)
    return tool_fail("%s: the file is empty; it must hold a graph, as rondo_graph_to_json writes it", name);
  return rondo_graph_from_json((const char *)file->bytes, file->count, out) ? tool_fail_status("%s", name) : TOOL_OK;
}

int graph_file_use(const char *path, const file_bytes *file, const void *settings,
                   int (*use)(const rondo_graph *graph, const char *path, const void *settings)) {
  rondo_graph *graph = NULL;
  int result = parse_graph(path, file, &graph);
  if (result == TOOL_OK) result = use(graph, path, settings);
  if (rondo_graph_destroy(graph) && result == TOOL_OK) result = tool_fail_status("the graph");
  return result;
}

int graph_file_command(const option_table *table, int argc, char **argv, void *settings,
                       int (*check)(const void *settings),
                       int (*use)(const rondo_graph *graph, const char *path, const void *settings)) {
  const char *path = NULL;
  file_bytes file;
  int result = options_parse(table, argc, argv, settings, &path);
  if (result != OPTIONS_RUN) return result;
  result = check ? check(settings) : TOOL_OK;
  if (result != TOOL_OK) return result;
  result = file_read(path, &file);
  if (result != TOOL_OK) return result;
  result = graph_file_use(path, &file, settings, use);
  file_release(&file);
  return result;
}
