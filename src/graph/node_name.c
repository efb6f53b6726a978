/* SPDX-License-Identifier: MIT
 * Names of nodes for messages. The header describes them.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "graph/graph_internal.h"
#include "graph/node_name.h"
#include "graph/node_params.h"

/* The maximum number of bytes for the outermost part of a path, including the brackets of all parts; and for a child.
 */
enum { TAIL_BYTES = 48, CHILD_BYTES = 72 };

/* "child 'inner' (node 7": the child node that contains the graph, without the closing bracket. */
static int child_text(char buffer[CHILD_BYTES], const rondo_graph *graph) {
  const rondo_node_params *params = &graph->parent->nodes.items[graph->parent_slot].params;
  const char *name = params->name == NULL || params->name[0] == '\0' ? graph->name : params->name;
  if (name[0] == '\0') return snprintf(buffer, CHILD_BYTES, "child (node %" PRIu32, graph->parent_slot);
  return snprintf(buffer, CHILD_BYTES, "child '%.40s' (node %" PRIu32, name, graph->parent_slot);
}

static bool is_outermost(const rondo_graph *graph, const rondo_graph *root) {
  return graph == NULL || graph == root || graph->parent == NULL;
}

uint32_t rondo_graph_outer_number(const rondo_graph *graph, const rondo_graph *root, uint32_t slot) {
  for (; !is_outermost(graph, root); graph = graph->parent) slot = graph->parent_slot;
  return slot;
}

const char *rondo_graph_inside(char buffer[RONDO_INSIDE_BYTES], const rondo_graph *graph, const rondo_graph *root) {
  size_t used = 0, open = 0;
  if (is_outermost(graph, root)) return NULL;
  for (; !is_outermost(graph, root); graph = graph->parent) {
    char part[CHILD_BYTES];
    const size_t length = (size_t)child_text(part, graph);
    if (used + length + TAIL_BYTES >= RONDO_INSIDE_BYTES) {
      used += (size_t)snprintf(buffer + used, RONDO_INSIDE_BYTES - used, " ... inside node %" PRIu32,
                               rondo_graph_outer_number(graph, root, RONDO_NO_NODE));
      break;
    }
    used += (size_t)snprintf(buffer + used, RONDO_INSIDE_BYTES - used, "%s%s", open == 0 ? "" : " of ", part);
    open++;
  }
  memset(buffer + used, ')', open);
  buffer[used + open] = '\0';
  return buffer;
}

rondo_node_where rondo_node_where_in(char buffer[RONDO_INSIDE_BYTES], const rondo_graph *graph, const rondo_graph *root,
                                     uint32_t slot) {
  return (rondo_node_where){.number = rondo_graph_outer_number(graph, root, slot),
                            .own = slot,
                            .inside = rondo_graph_inside(buffer, graph, root)};
}

rondo_status rondo_node_where_copy(const rondo_allocator *allocator, const rondo_node_where *from,
                                   rondo_node_where *out) {
  *out = *from;
  out->inside = NULL;
  if (from->inside == NULL) return RONDO_OK;
  char *copy;
  RONDO_TRY(rondo_allocate_text(allocator, from->inside, &copy));
  out->inside = copy;
  return RONDO_OK;
}

void rondo_node_where_free(const rondo_allocator *allocator, rondo_node_where *where) {
  rondo_release_text(allocator, (char *)(uintptr_t)where->inside);
  where->inside = NULL;
}

const char *rondo_node_where_text(char buffer[RONDO_LABEL_BYTES], const rondo_node_where *where) {
  if (where->inside == NULL)
    (void)snprintf(buffer, RONDO_LABEL_BYTES, "node %" PRIu32, where->number);
  else
    (void)snprintf(buffer, RONDO_LABEL_BYTES, "node %" PRIu32 " of %s", where->own, where->inside);
  return buffer;
}

const char *rondo_node_edge_text(char buffer[RONDO_EDGE_TEXT], const rondo_node_where *from,
                                 const rondo_node_where *to) {
  const bool is_near = from->inside == NULL && to->inside == NULL;
  if (is_near || from->number != to->number)
    (void)snprintf(buffer, RONDO_EDGE_TEXT, "an edge %" PRIu32 " -> %" PRIu32, from->number, to->number);
  else
    (void)snprintf(buffer, RONDO_EDGE_TEXT, "an edge between the two inside of node %" PRIu32, from->number);
  return buffer;
}

const char *rondo_kind_label(char buffer[RONDO_LABEL_BYTES], rondo_node_kind kind, const char *name,
                             const rondo_node_where *where) {
  char at[RONDO_LABEL_BYTES] = "", quoted[64] = "";
  const bool is_named = name != NULL && name[0] != '\0';
  const char *const kind_name = kind == RONDO_NODE_HOST ? "host function" : rondo_node_kind_name(kind);
  if (where != NULL) rondo_node_where_text(at, where);
  if (is_named) (void)snprintf(quoted, sizeof quoted, " '%.60s'", name);
  (void)snprintf(buffer, RONDO_LABEL_BYTES, "%s%s%s%s%.180s%s", is_named || where != NULL ? "" : "a ", kind_name,
                 quoted, where == NULL ? "" : " (", at, where == NULL ? "" : ")");
  return buffer;
}

/* The node's own name, or that of its kernel or child graph. */
static const char *name_of(const rondo_node_params *params) {
  if (params->name != NULL && params->name[0] != '\0') return params->name;
  if (params->kind == RONDO_NODE_KERNEL && params->as.kernel.kernel != NULL) return params->as.kernel.kernel->name;
  return params->kind == RONDO_NODE_CHILD && params->as.child != NULL ? params->as.child->name : "";
}

/* For a copy or fill on a stream, which has no number: its size and address. */
static const char *work_label(char buffer[RONDO_LABEL_BYTES], const rondo_node_params *params) {
  char size[RONDO_SIZE_TEXT];
  rondo_extent extents[RONDO_MOST_EXTENTS];
  if (rondo_node_extents(params, extents) == 0) return rondo_kind_label(buffer, params->kind, "", NULL);
  const bool is_copy = params->kind == RONDO_NODE_COPY;
  (void)snprintf(buffer, RONDO_LABEL_BYTES, "a %s of %s %s %p", rondo_node_kind_name(params->kind),
                 rondo_size_text(size, extents[0].bytes), is_copy ? "to" : "at",
                 is_copy ? (void *)params->as.copy.dst : (void *)params->as.fill.dst);
  return buffer;
}

const char *rondo_node_label_at(char buffer[RONDO_LABEL_BYTES], const rondo_node_params *params,
                                const rondo_node_where *where) {
  const char *const name = name_of(params);
  if (where == NULL && name[0] == '\0') return work_label(buffer, params);
  return rondo_kind_label(buffer, params->kind, name, where);
}

const char *rondo_node_label_in(char buffer[RONDO_LABEL_BYTES], const rondo_graph *graph, const rondo_graph *root,
                                uint32_t slot) {
  char inside[RONDO_INSIDE_BYTES];
  const rondo_node_where where = rondo_node_where_in(inside, graph, root, slot);
  return rondo_node_label_at(buffer, &rondo_graph_at(graph, slot)->params, &where);
}

const char *rondo_node_label(char buffer[RONDO_LABEL_BYTES], const rondo_node_params *params, uint32_t number) {
  const rondo_node_where where = {.number = number, .own = number};
  return rondo_node_label_at(buffer, params, &where);
}
