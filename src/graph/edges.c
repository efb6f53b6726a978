/* SPDX-License-Identifier: MIT
 * Edges. Each is stored twice, in sorted arrays: in the node that it leaves and in the node that it enters. Lists of
 * edges are added or removed one by one. If one is refused, those before it are undone. Undoing cannot fail: removing
 * needs no memory, and a removed edge leaves its capacity reserved.
 */
#include <assert.h>
#include <inttypes.h>
#include <string.h>

#include "base/binary_search.h"
#include "base/error.h"
#include "graph/edges.h"
#include "graph/graph.h"
#include "graph/graph_clone.h"
#include "graph/node.h"
#include "graph/node_name.h"

bool rondo_slots_find(const rondo_slots *slots, uint32_t slot, size_t *out_index) {
  size_t low = 0, high = slots->count;
  if (high > 0 && slots->items[high - 1] < slot) low = high; /* most edges are added in ascending order */
  RONDO_BINARY_SEARCH(low, high, middle, slots->items[middle] < slot)
  *out_index = low;
  return low < slots->count && slots->items[low] == slot;
}

void rondo_slots_insert_before(rondo_slots *slots, uint32_t slot) {
  size_t index;
  const bool found = rondo_slots_find(slots, slot, &index);
  assert(!found && slots->count < slots->capacity);
  (void)found;
  rondo_array_insert(slots, index, slot);
}

void rondo_slots_remove(rondo_slots *slots, uint32_t slot) {
  size_t index;
  const bool found = rondo_slots_find(slots, slot, &index);
  assert(found);
  (void)found;
  rondo_array_remove(slots, index);
}

rondo_status rondo_slots_grow(rondo_graph *graph, rondo_slots *slots, size_t want) {
  return rondo_array_reserve(&graph->storage->small, slots, want);
}

bool rondo_graph_has_edge(const rondo_graph *graph, uint32_t from, uint32_t to) {
  size_t index;
  return rondo_slots_find(&rondo_graph_at(graph, to)->dependencies, from, &index);
}

/* Both lists must have capacity for the edge. The graph owns its nodes, here and below. */
static void put_edge(rondo_graph *graph, uint32_t from, uint32_t to) {
  rondo_graph_note_change(graph);
  rondo_slots_insert(&rondo_graph_at(graph, from)->dependents, to);
  rondo_slots_insert(&rondo_graph_at(graph, to)->dependencies, from);
}

static void cut_edge(rondo_graph *graph, uint32_t from, uint32_t to) {
  rondo_graph_note_change(graph);
  rondo_slots_remove(&rondo_graph_at(graph, from)->dependents, to);
  rondo_slots_remove(&rondo_graph_at(graph, to)->dependencies, from);
}

static rondo_status fail_edge(const rondo_graph *graph, rondo_reason reason, uint32_t from, uint32_t to,
                              const char *what) {
  char label[RONDO_LABEL_BYTES], begin[RONDO_LABEL_BYTES], end[RONDO_LABEL_BYTES];
  return rondo_fail_node(RONDO_INVALID_ARGUMENT, reason, to, "%s: the edge from %s to %s %s",
                         rondo_graph_label(label, graph),
                         rondo_node_label(begin, &rondo_graph_at(graph, from)->params, from),
                         rondo_node_label(end, &rondo_graph_at(graph, to)->params, to), what);
}

static bool is_before(const rondo_programmatic_edge *edge, uint32_t from, uint32_t to) {
  return edge->to < to || (edge->to == to && edge->from < from);
}

/* The index of the first edge that is not less than from -> to. */
static size_t programmatic_index(const rondo_graph *graph, uint32_t from, uint32_t to) {
  const rondo_programmatic_edge *edges = graph->programmatic.items;
  size_t low = 0, high = graph->programmatic.count;
  if (high > 0 && is_before(&edges[high - 1], from, to)) low = high; /* most nodes are added after all others */
  RONDO_BINARY_SEARCH(low, high, middle, is_before(&edges[middle], from, to))
  return low;
}

static rondo_programmatic_edge *find_programmatic(const rondo_graph *graph, uint32_t from, uint32_t to) {
  if (graph->programmatic.count == 0) return NULL;
  const size_t at = programmatic_index(graph, from, to);
  rondo_programmatic_edge *edge = &graph->programmatic.items[at];
  return at < graph->programmatic.count && edge->from == from && edge->to == to ? edge : NULL;
}

static rondo_status link_edge(rondo_graph *graph, uint32_t from, uint32_t to) {
  RONDO_TRY(rondo_graph_check_slot(graph, from));
  RONDO_TRY(rondo_graph_check_slot(graph, to));
  if (from == to)
    return fail_edge(graph, RONDO_REASON_SELF_EDGE, from, to, "leads from a node to itself: pass two different nodes");
  if (rondo_graph_has_edge(graph, from, to) || find_programmatic(graph, from, to) != NULL)
    return fail_edge(graph, RONDO_REASON_DUPLICATE_EDGE, from, to,
                     "exists already, or is twice in the list: remove it from the list");
  rondo_slots *dependents = &rondo_graph_at(graph, from)->dependents;
  rondo_slots *dependencies = &rondo_graph_at(graph, to)->dependencies;
  RONDO_TRY(rondo_slots_reserve(graph, dependents, dependents->count + 1));
  RONDO_TRY(rondo_slots_reserve(graph, dependencies, dependencies->count + 1));
  put_edge(graph, from, to);
  return RONDO_OK;
}

static rondo_status unlink_edge(rondo_graph *graph, uint32_t from, uint32_t to) {
  RONDO_TRY(rondo_graph_check_slot(graph, from));
  RONDO_TRY(rondo_graph_check_slot(graph, to));
  if (!rondo_graph_has_edge(graph, from, to))
    return fail_edge(graph, RONDO_REASON_MISSING_EDGE, from, to,
                     "does not exist, or is twice in the list: rondo_graph_edges lists the edges of the graph");
  cut_edge(graph, from, to);
  return RONDO_OK;
}

/* Programmatic edges ---------------------------------------------------------------------------------------------- */

const rondo_programmatic_edge *rondo_graph_programmatic_to(const rondo_graph *graph, uint32_t slot, size_t *out_count) {
  *out_count = 0;
  if (graph->programmatic.count == 0) return NULL;
  const size_t first = programmatic_index(graph, 0, slot);
  const rondo_programmatic_edge *edges = graph->programmatic.items + first;
  while (first + *out_count < graph->programmatic.count && edges[*out_count].to == slot) ++*out_count;
  return edges;
}

/* There is capacity for it. */
static void put_programmatic(rondo_graph *graph, const rondo_programmatic_edge *edge) {
  const size_t at = programmatic_index(graph, edge->from, edge->to);
  rondo_graph_note_change(graph);
  rondo_graph_at(graph, edge->from)->leaving++;
  rondo_array_insert(&graph->programmatic, at, *edge);
}

rondo_status rondo_graph_link_programmatic(rondo_graph *graph, const rondo_programmatic_edge *edge) {
  RONDO_TRY(rondo_graph_check_slot(graph, edge->from));
  RONDO_TRY(rondo_graph_check_slot(graph, edge->to));
  if (edge->from == edge->to)
    return fail_edge(graph, RONDO_REASON_SELF_EDGE, edge->from, edge->to,
                     "leads from a node to itself: pass two different nodes");
  if (find_programmatic(graph, edge->from, edge->to) != NULL || rondo_graph_has_edge(graph, edge->from, edge->to))
    return fail_edge(graph, RONDO_REASON_DUPLICATE_EDGE, edge->from, edge->to,
                     "exists already: remove it from the list");
  RONDO_TRY(rondo_graph_own_nodes(graph));
  RONDO_TRY(rondo_array_reserve(&graph->allocator, &graph->programmatic, graph->programmatic.count + 1));
  put_programmatic(graph, edge);
  return RONDO_OK;
}

/* Removes at most `left` edges of the slot, from the index on. Returns how many are left to remove. */
static size_t cut_from(rondo_graph *graph, size_t at, uint32_t slot, size_t left) {
  rondo_programmatic_edge *edges = graph->programmatic.items;
  const size_t count = graph->programmatic.count;
  size_t kept = at;
  for (; left > 0 && at < count; at++) {
    if (edges[at].from != slot && edges[at].to != slot) {
      edges[kept++] = edges[at];
      continue;
    }
    rondo_graph_at(graph, edges[at].from)->leaving--;
    left--;
  }
  memmove(&edges[kept], &edges[at], (count - at) * sizeof *edges);
  graph->programmatic.count -= at - kept;
  return left;
}

/* Those that leave the slot are near those that enter it, if nodes are added in the order in which they run. */
void rondo_graph_cut_programmatic(rondo_graph *graph, uint32_t slot) {
  size_t left;
  (void)rondo_graph_programmatic_to(graph, slot, &left);
  left += rondo_graph_at(graph, slot)->leaving;
  if (left > 0) left = cut_from(graph, programmatic_index(graph, 0, slot), slot, left);
  if (left > 0) left = cut_from(graph, 0, slot, left);
  assert(left == 0);
}

/* Edges of either kind --------------------------------------------------------------------------------------------- */

static bool is_full(const rondo_edge_data *data) {
  static const rondo_edge_data full = {0};
  return data == NULL || memcmp(data, &full, sizeof full) == 0;
}

static rondo_programmatic_edge edge_of(uint32_t from, uint32_t to, const rondo_edge_data *data) {
  return (rondo_programmatic_edge){.from = from,
                                   .to = to,
                                   .from_port = data->from_port,
                                   .to_port = data->to_port,
                                   .type = data->type,
                                   .orders = true};
}

/* Both nodes are there, and the data has nothing of a later version. */
static rondo_status check_edge(const rondo_graph *graph, uint32_t from, uint32_t to, const rondo_edge_data *data) {
  static const uint8_t zeros[sizeof data->reserved];
  RONDO_TRY(rondo_graph_check_slot(graph, from));
  RONDO_TRY(rondo_graph_check_slot(graph, to));
  if (memcmp(data->reserved, zeros, sizeof zeros) == 0) return RONDO_OK;
  return fail_edge(graph, RONDO_REASON_BAD_OPTIONS, from, to, "has reserved bytes that are not 0: set them to 0");
}

/* `data` is not that of a full edge. */
static rondo_status check_data(const rondo_graph *graph, uint32_t from, uint32_t to, const rondo_edge_data *data) {
  RONDO_TRY(check_edge(graph, from, to, data));
  if (data->type != RONDO_EDGE_PROGRAMMATIC)
    return fail_edge(graph, RONDO_REASON_BAD_OPTIONS, from, to,
                     "has an unknown type, or a full edge has a port: types are FULL, without ports, and PROGRAMMATIC");
  if ((data->from_port != RONDO_PORT_PROGRAMMATIC && data->from_port != RONDO_PORT_LAUNCH_ORDER) || data->to_port != 0)
    return fail_edge(graph, RONDO_REASON_BAD_OPTIONS, from, to,
                     "is programmatic and has other ports: from_port is PROGRAMMATIC or LAUNCH_ORDER, to_port is 0");
  if (rondo_graph_at(graph, from)->params.kind != RONDO_NODE_KERNEL ||
      rondo_graph_at(graph, to)->params.kind != RONDO_NODE_KERNEL)
    return fail_edge(graph, RONDO_REASON_NODE_KIND, from, to,
                     "is programmatic, which only edges between kernels can be: add a full edge");
  return RONDO_OK;
}

static rondo_status link_one(rondo_graph *graph, uint32_t from, uint32_t to, const rondo_edge_data *data) {
  if (is_full(data)) return link_edge(graph, from, to);
  RONDO_TRY(check_data(graph, from, to, data));
  const rondo_programmatic_edge edge = edge_of(from, to, data);
  return rondo_graph_link_programmatic(graph, &edge);
}

/* The edge is there. */
static void cut_one(rondo_graph *graph, uint32_t from, uint32_t to, const rondo_edge_data *data) {
  if (is_full(data)) {
    cut_edge(graph, from, to);
    return;
  }
  rondo_graph_note_change(graph);
  rondo_graph_at(graph, from)->leaving--;
  rondo_array_remove(&graph->programmatic, programmatic_index(graph, from, to));
}

static const rondo_edge_data *at(const rondo_edge_data *data, size_t i) { return data == NULL ? NULL : &data[i]; }

rondo_status rondo_graph_link_edges_with(rondo_graph *graph, const uint32_t *from, const uint32_t *to,
                                         const rondo_edge_data *data, size_t count) {
  RONDO_TRY(rondo_graph_own_nodes(graph));
  for (size_t i = 0; i < count; i++) {
    const rondo_status status = link_one(graph, from[i], to[i], at(data, i));
    if (status == RONDO_OK) continue;
    while (i-- > 0) cut_one(graph, from[i], to[i], at(data, i));
    return status;
  }
  return RONDO_OK;
}

rondo_status rondo_graph_link_edges(rondo_graph *graph, const uint32_t *from, const uint32_t *to, size_t count) {
  return rondo_graph_link_edges_with(graph, from, to, NULL, count);
}

/* A captured edge is removed too. *out_removed is what it was. */
static rondo_status unlink_one(rondo_graph *graph, uint32_t from, uint32_t to, const rondo_edge_data *data,
                               rondo_programmatic_edge *out_removed) {
  if (is_full(data)) return unlink_edge(graph, from, to);
  RONDO_TRY(check_edge(graph, from, to, data));
  const rondo_programmatic_edge *edge = find_programmatic(graph, from, to);
  if (edge == NULL || edge->from_port != data->from_port || edge->to_port != data->to_port || edge->type != data->type)
    return fail_edge(graph, RONDO_REASON_MISSING_EDGE, from, to,
                     "does not exist with these ports and this type, or is twice in the list: "
                     "rondo_graph_programmatic_edges lists such edges");
  *out_removed = *edge;
  cut_one(graph, from, to, data);
  return RONDO_OK;
}

static rondo_status erase_edges(rondo_graph *graph, const uint32_t *from, const uint32_t *to,
                                const rondo_edge_data *data, size_t count, rondo_programmatic_edge *removed) {
  RONDO_TRY(rondo_graph_own_nodes(graph));
  for (size_t i = 0; i < count; i++) {
    const rondo_status status = unlink_one(graph, from[i], to[i], at(data, i), removed == NULL ? NULL : &removed[i]);
    if (status == RONDO_OK) continue;
    while (i-- > 0) {
      if (is_full(at(data, i)))
        put_edge(graph, from[i], to[i]);
      else
        put_programmatic(graph, &removed[i]);
    }
    return status;
  }
  return RONDO_OK;
}

rondo_status rondo_graph_erase_edges(rondo_graph *graph, const uint32_t *from, const uint32_t *to, size_t count) {
  RONDO_TRY(rondo_graph_refuse_bound(graph, "cannot lose edges"));
  return erase_edges(graph, from, to, NULL, count, NULL);
}

rondo_status rondo_graph_erase_edges_with(rondo_graph *graph, const uint32_t *from, const uint32_t *to,
                                          const rondo_edge_data *data, size_t count) {
  rondo_programmatic_edge *removed;
  if (data == NULL) return rondo_graph_erase_edges(graph, from, to, count);
  RONDO_TRY(rondo_graph_refuse_bound(graph, "cannot lose edges"));
  RONDO_TRY(rondo_allocate_items(&graph->allocator, count, sizeof *removed, &removed));
  const rondo_status status = erase_edges(graph, from, to, data, count, removed);
  rondo_release(&graph->allocator, removed, count, sizeof *removed);
  return status;
}

/* Public functions ------------------------------------------------------------------------------------------------- */

static rondo_status add_edges(const char *call, rondo_graph *graph, const rondo_node *from, const rondo_node *to,
                              const rondo_edge_data *data, size_t count) {
  RONDO_TRY(rondo_require(call, "the graph", graph));
  if (count == 0) return RONDO_OK;
  RONDO_TRY(rondo_require(call, "the list of nodes that the edges leave", from));
  RONDO_TRY(rondo_require(call, "the list of nodes that the edges enter", to));
  void *from_slots, *to_slots;
  RONDO_TRY(rondo_allocate(&graph->allocator, count, sizeof(uint32_t), &from_slots));
  rondo_status status = rondo_allocate(&graph->allocator, count, sizeof(uint32_t), &to_slots);
  if (status == RONDO_OK) status = rondo_graph_find_all(graph, "from", from, count, from_slots);
  if (status == RONDO_OK) status = rondo_graph_find_all(graph, "to", to, count, to_slots);
  if (status == RONDO_OK) status = rondo_graph_link_edges_with(graph, from_slots, to_slots, data, count);
  rondo_release(&graph->allocator, to_slots, count, sizeof(uint32_t));
  rondo_release(&graph->allocator, from_slots, count, sizeof(uint32_t));
  return rondo_fail_context(status, "%s", call);
}

rondo_status rondo_graph_add_edges(rondo_graph *graph, const rondo_node *from, const rondo_node *to, size_t count) {
  return add_edges("rondo_graph_add_edges", graph, from, to, NULL, count);
}

rondo_status rondo_graph_add_edges_with(rondo_graph *graph, const rondo_node *from, const rondo_node *to,
                                        const rondo_edge_data *data, size_t count) {
  return add_edges("rondo_graph_add_edges_with", graph, from, to, data, count);
}
