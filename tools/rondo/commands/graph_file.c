/* SPDX-License-Identifier: MIT
 * Dumped graphs, read whole.
 */
#include "commands/graph_file.h"

#include "common/file.h"
#include "common/tool.h"

static int read_graph(const char *path, const file_bytes *file, rondo_graph **out) {
  const char *name = file_display_name(path);
  if (file->count == 0)
    return tool_fail("%s: the file is empty; it must hold a graph, as rondo_graph_to_json writes it", name);
  return rondo_graph_from_json((const char *)file->bytes, file->count, out) ? tool_fail_status("%s", name) : TOOL_OK;
}

int graph_read(const char *path, rondo_graph **out) {
  file_bytes file;
  *out = NULL;
  int result = file_read(path, &file);
  if (result != TOOL_OK) return result;
  result = read_graph(path, &file, out);
  file_release(&file);
  return result;
}
