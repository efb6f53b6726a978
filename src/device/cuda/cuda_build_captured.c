/* SPDX-License-Identifier: MIT
 * Builds an executable with bound nodes from a captured graph. Memory that the driver manages, and some other kinds of
 * nodes, exist only in the graph that they were captured in. So that graph becomes the graph of the executable. Some
 * nodes of Rondo are only an empty node in it. They are added after this empty node, and nodes that depend on the empty
 * node then depend on them too. Nodes that were added after the capture are added as well. The driver cannot remove
 * nodes from such a graph, so it is used for one executable only. Threads: the thread that makes the executable.
 */
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "device/cuda/cuda_context.h"
#include "device/cuda/cuda_foreign_nodes.h"
#include "device/cuda/cuda_graph_node.h"
#include "graph/node_name.h"

typedef struct edge_pair {
  cu_graph_node from, to;
} edge_pair;

/* The nodes of the executable in the captured graph. */
typedef struct binding {
  cuda_executable *executable;
  cuda_device *device;
  cuda_captured *captured;
  cuda_graph_nodes members; /* nodes of the captured graph, ascending */
  rondo_scratch scratch;    /* owns `edges` and `entries` */
  edge_pair *edges;         /* of the captured graph, ascending */
  size_t edge_count;
  cu_graph_node *entries; /* for each node, where edges to it end */
  cu_graph_node *handles; /* the parts of each node; edges from it begin at the last part */
} binding;

static int compare_addresses(const void *a, const void *b) {
  return ((uintptr_t)a > (uintptr_t)b) - ((uintptr_t)a < (uintptr_t)b);
}

static int compare_handles(const void *a, const void *b) {
  return compare_addresses(*(const cu_graph_node *)a, *(const cu_graph_node *)b);
}

static int compare_pairs(const void *a, const void *b) {
  const edge_pair *x = a, *y = b;
  const int from = compare_addresses(x->from, y->from);
  return from != 0 ? from : compare_addresses(x->to, y->to);
}

static bool is_member(const binding *b, cu_graph_node node) {
  return b->members.count > 0 &&
         bsearch(&node, b->members.items, b->members.count, sizeof node, compare_handles) != NULL;
}

static bool has_edge(const binding *b, cu_graph_node from, cu_graph_node to) {
  const edge_pair pair = {from, to};
  return b->edge_count > 0 && bsearch(&pair, b->edges, b->edge_count, sizeof pair, compare_pairs) != NULL;
}

/* Reading the captured graph --------------------------------------------------------------------------------------- */

static rondo_status read_members(binding *b) {
  cuda_graph_nodes *members = &b->members;
  RONDO_TRY(cuda_list_nodes(b->device, b->captured->graph, members));
  if (members->count > 1) qsort(members->items, members->count, sizeof *members->items, compare_handles);
  return RONDO_OK;
}

static rondo_status read_edges(binding *b) {
  const cuda_api *api = b->device->api;
  const cu_graph graph = b->captured->graph;
  cu_graph_node *from;
  cu_edge_data *data;
  size_t count = 0;
  RONDO_TRY(cuda_check(b->device, api->graph_get_edges(graph, NULL, NULL, NULL, &count), "counting captured edges"));
  if (count == 0) return RONDO_OK;
  RONDO_TRY(rondo_scratch_take(&b->scratch, count, sizeof *b->edges, &b->edges));
  RONDO_TRY(rondo_scratch_take(&b->scratch, 2 * count, sizeof *from, &from));
  RONDO_TRY(rondo_scratch_take(&b->scratch, count, sizeof *data, &data));
  const cu_graph_node *const to = from + count;
  RONDO_TRY(cuda_check(b->device, api->graph_get_edges(graph, from, from + count, data, &count),
                       "listing %zu captured edges", count));
  for (size_t i = 0; i < count; i++) b->edges[i] = (edge_pair){from[i], to[i]};
  b->edge_count = count;
  qsort(b->edges, count, sizeof(edge_pair), compare_pairs);
  return RONDO_OK;
}

/* Finding and taking the graph ------------------------------------------------------------------------------------- */

static rondo_status fail_bound(const cuda_node *node, const char *why) {
  char where[RONDO_LABEL_BYTES];
  return rondo_fail_node(RONDO_UNSUPPORTED, RONDO_REASON_FOREIGN_WORK, node->where.number,
                         "%s is work of a library that only the captured graph can contain; %s: keep such work out of "
                         "the capture (for memory: give the library a workspace first, for example with "
                         "cublasSetWorkspace)",
                         rondo_node_where_text(where, &node->where), why);
}

static const cuda_node *first_bound(const cuda_executable *executable) {
  const cuda_node *node = executable->nodes;
  while (!node->is_bound) node++;
  assert(node < executable->nodes + executable->count);
  return node;
}

/* All bound nodes must be in the same captured graph. */
static rondo_status check_one_graph(const binding *b) {
  for (size_t i = 0; i < b->executable->count; i++) {
    const cuda_node *node = &b->executable->nodes[i];
    if (node->is_bound && !is_member(b, cuda_captured_handle(node->captured)))
      return fail_bound(node, "other such work belongs to another capture, or to one that failed");
  }
  return RONDO_OK;
}

/* Searches the captures into the graph, the last one first. */
static rondo_status find_captured(binding *b) {
  const cuda_node *first = first_bound(b->executable);
  for (rondo_captured *at = b->executable->captured; at != NULL; at = at->earlier) {
    b->captured = (cuda_captured *)at;
    RONDO_TRY(read_members(b));
    if (is_member(b, cuda_captured_handle(first->captured))) return check_one_graph(b);
  }
  return fail_bound(first, "its capture failed");
}

static rondo_status take(binding *b) {
  if (!atomic_exchange(&b->captured->is_taken, true)) return RONDO_OK;
  return fail_bound(first_bound(b->executable), "its graph was already instantiated, which is possible only once");
}

/* Adding ----------------------------------------------------------------------------------------------------------- */

/* Sets the node's handles and its entry. */
static cu_result bind_node(binding *b, size_t i) {
  cuda_executable *executable = b->executable;
  const cuda_node *node = &executable->nodes[i];
  cu_graph_node handle = cuda_captured_handle(node->captured), *const parts = &b->handles[node->first];
  cu_node_type type = CU_NODE_EMPTY;
  if (!is_member(b, handle)) {
    const cu_result code = cuda_node_add(executable, node, b->captured->graph, NULL, 0, parts);
    b->entries[i] = parts[0];
    return code;
  }
  const cu_result code = b->device->api->graph_node_get_type(handle, &type);
  b->entries[i] = handle;
  if (code == CU_OK && type == CU_NODE_EMPTY && !cuda_is_order_alone(node))
    return cuda_node_add(executable, node, b->captured->graph, &handle, 1, parts);
  parts[0] = handle;
  return code;
}

/* The driver accepts no copy of memory that the graph has already freed. */
static rondo_status fail_copy(const cuda_node *node, cu_result code) {
  char label[RONDO_LABEL_BYTES];
  return rondo_fail_node(
      RONDO_UNSUPPORTED, RONDO_REASON_FOREIGN_WORK, node->where.number,
      "%s cannot be added to the captured graph (the driver's code %d), which has already freed "
      "memory of a library that it uses: capture it before that is freed, as one block with even distances "
      "between rows and slices, or give the library memory of your own",
      cuda_node_label(label, node), (int)code);
}

static rondo_status bind_nodes(binding *b) {
  for (size_t i = 0; i < b->executable->count; i++) {
    const cuda_node *node = &b->executable->nodes[i];
    const cu_result code = bind_node(b, i);
    if (code == CU_INVALID_VALUE && node->kind == RONDO_NODE_COPY) return fail_copy(node, code);
    RONDO_TRY(cuda_check_node(b->device, code, node, "adding ", "a captured graph"));
  }
  return RONDO_OK;
}

static rondo_status bind_edge(const binding *b, uint32_t from, uint32_t to, const cu_edge_data *data) {
  const cuda_node *source = &b->executable->nodes[from], *target = &b->executable->nodes[to];
  const cu_graph_node exit = b->handles[source->first + cuda_node_parts(source) - 1], entry = b->entries[to];
  assert(exit != NULL && entry != NULL);
  if (has_edge(b, exit, entry)) return RONDO_OK;
  const cu_result code = b->device->api->graph_add_edges(b->captured->graph, &exit, &entry, data, 1);
  char label[RONDO_LABEL_BYTES], doing[RONDO_LABEL_BYTES + 24];
  if (code == CU_OK) return RONDO_OK;
  (void)snprintf(doing, sizeof doing, "adding the edge from %s to ", cuda_node_label(label, source));
  return cuda_check_node(b->device, code, target, doing, "a captured graph");
}

static rondo_status bind_edges(const binding *b) {
  const cuda_executable *executable = b->executable;
  for (uint32_t i = 0; i < executable->count; i++)
    for (uint32_t e = executable->predecessor_start[i]; e < executable->predecessor_start[i + 1]; e++)
      RONDO_TRY(bind_edge(b, executable->predecessors[e], i, NULL));
  for (size_t i = 0; i < executable->programmatic_count; i++) {
    const rondo_lowered_edge *edge = &executable->programmatic[i];
    if (edge->orders && !cuda_may_begin_early(b->device)) continue; /* it is a full edge */
    const cu_edge_data data = {.from_port = edge->from_port, .to_port = edge->to_port, .type = edge->type};
    RONDO_TRY(bind_edge(b, edge->from, edge->to, &data));
  }
  return RONDO_OK;
}

static rondo_status build(binding *b, cuda_built *out) {
  RONDO_TRY(find_captured(b));
  RONDO_TRY(read_edges(b));
  RONDO_TRY(rondo_scratch_take(&b->scratch, b->executable->count, sizeof *b->entries, &b->entries));
  RONDO_TRY(take(b));
  out->graph = b->captured->graph;
  out->is_captured = true;
  RONDO_TRY(bind_nodes(b));
  return bind_edges(b);
}

rondo_status cuda_build_captured(cuda_executable *executable, cuda_built *out, cu_graph_node *handles) {
  binding b = {.executable = executable,
               .device = cuda_device_of(executable->base.device),
               .handles = handles,
               .scratch = {.allocator = cuda_allocator_of(executable)}};
  const rondo_status status = build(&b, out);
  rondo_scratch_free(&b.scratch);
  rondo_array_free(cuda_allocator_of(executable), &b.members);
  return status;
}
