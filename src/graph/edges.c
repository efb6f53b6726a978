/* SPDX-License-Identifier: MIT
 * Edges. Each is stored twice, in sorted arrays: in the node that it leaves and in the node that it enters. Lists of
 * edges are added or removed one by one. If one is refused, those before it are undone. Undoing cannot fail: removing
 * needs no memory, and a removed edge leaves its capacity reserved.
 */
#include <assert.h>
#include <inttypes.h>

#include "base/binary_search.h"
#include "base/error.h"
#include "graph/edges.h"
#include "graph/graph.h"
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
  return rondo_array_reserve(&graph->small, slots, want);
}

bool rondo_graph_has_edge(const rondo_graph *graph, uint32_t from, uint32_t to) {
  size_t index;
  return rondo_slots_find(&rondo_graph_at(graph, to)->dependencies, from, &index);
}

/* Both lists must have capacity for the edge. */
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

static rondo_status link_edge(rondo_graph *graph, uint32_t from, uint32_t to) {
  RONDO_TRY(rondo_graph_check_slot(graph, from));
  RONDO_TRY(rondo_graph_check_slot(graph, to));
  if (from == to)
    return fail_edge(graph, RONDO_REASON_SELF_EDGE, from, to, "leads from a node to itself: pass two different nodes");
  if (rondo_graph_has_edge(graph, from, to))
    return fail_edge(graph, RONDO_REASON_DUPLICATE_EDGE, from, to,
                     "exists already, or is twice in the list: remove it from the list");
  rondo_slots *dependents = &rondo_graph_at(graph, from)->dependents;
  rondo_slots *dependencies = &rondo_graph_at(graph, to)->dependencies;
  RONDO_TRY(rondo_slots_reserve(graph, dependents, dependents->count + 1));
  RONDO_TRY(rondo_slots_reserve(graph, dependencies, dependencies->count + 1));
  put_edge(graph, from, to);
  return RONDO_OK;
}

rondo_status rondo_graph_link_edges(rondo_graph *graph, const uint32_t *from, const uint32_t *to, size_t count) {
  for (size_t i = 0; i < count; i++) {
    const rondo_status status = link_edge(graph, from[i], to[i]);
    if (status == RONDO_OK) continue;
    while (i-- > 0) cut_edge(graph, from[i], to[i]);
    return status;
  }
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

rondo_status rondo_graph_erase_edges(rondo_graph *graph, const uint32_t *from, const uint32_t *to, size_t count) {
  RONDO_TRY(rondo_graph_refuse_bound(graph, "cannot lose edges"));
  for (size_t i = 0; i < count; i++) {
    const rondo_status status = unlink_edge(graph, from[i], to[i]);
    if (status == RONDO_OK) continue;
    while (i-- > 0) put_edge(graph, from[i], to[i]);
    return status;
  }
  return RONDO_OK;
}

/* Programmatic edges ---------------------------------------------------------------------------------------------- */

static bool is_before(const rondo_programmatic_edge *edge, uint32_t from, uint32_t to) {
  return edge->from < from || (edge->from == from && edge->to < to);
}

/* The index of the first edge that is not less than from -> to. */
static size_t find_programmatic(const rondo_graph *graph, uint32_t from, uint32_t to) {
  size_t low = 0, high = graph->programmatic.count;
  RONDO_BINARY_SEARCH(low, high, middle, is_before(&graph->programmatic.items[middle], from, to))
  return low;
}

const rondo_programmatic_edge *rondo_graph_programmatic_from(const rondo_graph *graph, uint32_t slot,
                                                             size_t *out_count) {
  *out_count = 0;
  if (graph->programmatic.count == 0) return NULL;
  const size_t first = find_programmatic(graph, slot, 0);
  const rondo_programmatic_edge *edges = graph->programmatic.items + first;
  while (first + *out_count < graph->programmatic.count && edges[*out_count].from == slot) ++*out_count;
  return edges;
}

rondo_status rondo_graph_link_programmatic(rondo_graph *graph, const rondo_programmatic_edge *edge) {
  RONDO_TRY(rondo_graph_check_slot(graph, edge->from));
  RONDO_TRY(rondo_graph_check_slot(graph, edge->to));
  const size_t at = find_programmatic(graph, edge->from, edge->to), count = graph->programmatic.count;
  const rondo_programmatic_edge *items = graph->programmatic.items;
  const bool is_there = at < count && items[at].from == edge->from && items[at].to == edge->to;
  if (edge->from == edge->to)
    return fail_edge(graph, RONDO_REASON_SELF_EDGE, edge->from, edge->to,
                     "leads from a node to itself: pass two different nodes");
  if (is_there || rondo_graph_has_edge(graph, edge->from, edge->to))
    return fail_edge(graph, RONDO_REASON_DUPLICATE_EDGE, edge->from, edge->to,
                     "exists already: remove it from the list");
  RONDO_TRY(rondo_array_reserve(&graph->allocator, &graph->programmatic, count + 1));
  rondo_graph_note_change(graph);
  rondo_array_insert(&graph->programmatic, at, *edge);
  return RONDO_OK;
}

void rondo_graph_cut_programmatic(rondo_graph *graph, uint32_t slot) {
  size_t kept = 0;
  for (size_t i = 0; i < graph->programmatic.count; i++) {
    const rondo_programmatic_edge edge = graph->programmatic.items[i];
    if (edge.from != slot && edge.to != slot) graph->programmatic.items[kept++] = edge;
  }
  graph->programmatic.count = kept;
}

/* Public functions ------------------------------------------------------------------------------------------------- */

rondo_status rondo_graph_add_edges(rondo_graph *graph, const rondo_node *from, const rondo_node *to, size_t count) {
  RONDO_TRY(rondo_require("rondo_graph_add_edges", "the graph", graph));
  if (count == 0) return RONDO_OK;
  RONDO_TRY(rondo_require("rondo_graph_add_edges", "the list of nodes that the edges leave", from));
  RONDO_TRY(rondo_require("rondo_graph_add_edges", "the list of nodes that the edges enter", to));
  void *from_slots, *to_slots;
  RONDO_TRY(rondo_allocate(&graph->allocator, count, sizeof(uint32_t), &from_slots));
  rondo_status status = rondo_allocate(&graph->allocator, count, sizeof(uint32_t), &to_slots);
  if (status == RONDO_OK) status = rondo_graph_find_all(graph, "from", from, count, from_slots);
  if (status == RONDO_OK) status = rondo_graph_find_all(graph, "to", to, count, to_slots);
  if (status == RONDO_OK) status = rondo_graph_link_edges(graph, from_slots, to_slots, count);
  rondo_release(&graph->allocator, to_slots, count, sizeof(uint32_t));
  rondo_release(&graph->allocator, from_slots, count, sizeof(uint32_t));
  return rondo_fail_context(status, "rondo_graph_add_edges");
}
