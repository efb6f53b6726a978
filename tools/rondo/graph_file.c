/* SPDX-License-Identifier: MIT
 * Dumped graphs, read whole.
 */
#include "graph_file.h"

#include "file.h"
#include "tool.h"

int graph_read(const char *path, rondo_graph **out) {
  file_bytes file;
  *out = NULL;
  const int result = file_read(path, &file);
  if (result != TOOL_OK) return result;
  const rondo_status status = rondo_graph_from_json((const char *)file.bytes, file.count, out);
  file_release(&file);
  return status ? tool_fail_status("%s", file_display_name(path)) : TOOL_OK;
}
