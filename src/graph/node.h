/* SPDX-License-Identifier: MIT
 * What the files of this layer share and no other layer uses: contents of nodes and sorted lists of slots.
 */
#ifndef RONDO_GRAPH_NODE_H
#define RONDO_GRAPH_NODE_H

#include <string.h>

#include "base/error.h"
#include "graph/graph_internal.h"

/* Child graphs nest at most this deep, so that recursion over them is bounded. */
#define RONDO_GRAPH_MAX_NESTING 16

/* Makes the contents (params, arguments) of a node of `owner` from checked parameters. A child graph is cloned; with
 * `take_child`, the node owns it if the call succeeds. `out` is zero before the call and after a failure. */
RONDO_MUST_USE rondo_status rondo_node_contents_make(rondo_graph *owner, const rondo_node_params *params,
                                                     bool take_child, rondo_graph_node *out);
/* The same from the contents of a node of any graph. A child graph is cloned. */
RONDO_MUST_USE rondo_status rondo_node_contents_copy(rondo_graph *owner, const rondo_graph_node *from,
                                                     rondo_graph_node *out);
void rondo_node_contents_free(rondo_graph *owner, rondo_graph_node *node);

/* The node's parameters as given, with defaults for zeros. params lacks some of the given numbers: the pitch of a
 * single row, and the bytes of a fill's value beyond its element. */
rondo_node_params rondo_node_given_params(const rondo_graph_node *node);
/* Replaces the parameters of a node that is not a kernel, except its name. The new ones are resolved and have no memory
 * of their own. */
void rondo_node_overwrite(rondo_graph *owner, rondo_graph_node *node, const rondo_node_params *params);

/* Lists of a node of the graph. `grow` and `reserve` make capacity for `want` slots in all. `copy` copies to `out`,
 * which is empty, without spare capacity. Nothing changes on failure. Most lists have a few slots. */
#define RONDO_FIRST_SLOTS 4
RONDO_MUST_USE rondo_status rondo_slots_grow(rondo_graph *graph, rondo_slots *slots, size_t want);
RONDO_MUST_USE static inline rondo_status rondo_slots_take(rondo_graph *graph, rondo_slots *slots, size_t capacity) {
  void *items;
  RONDO_TRY(rondo_slab_take(&graph->storage->slab, capacity * sizeof *slots->items, &items));
  slots->items = items;
  slots->capacity = capacity;
  return RONDO_OK;
}
RONDO_MUST_USE static inline rondo_status rondo_slots_reserve(rondo_graph *graph, rondo_slots *slots, size_t want) {
  if (want <= slots->capacity) return RONDO_OK;
  if (slots->capacity == 0 && want <= RONDO_FIRST_SLOTS) return rondo_slots_take(graph, slots, RONDO_FIRST_SLOTS);
  return rondo_slots_grow(graph, slots, want);
}
RONDO_MUST_USE static inline rondo_status rondo_slots_copy(rondo_graph *graph, const rondo_slots *from,
                                                           rondo_slots *out) {
  if (from->count == 0) return RONDO_OK;
  RONDO_TRY(rondo_slots_take(graph, out, from->count));
  out->count = from->count;
  if (from->count == 1)
    out->items[0] = from->items[0];
  else
    memcpy(out->items, from->items, from->count * sizeof *from->items);
  return RONDO_OK;
}

/* There is capacity, and the slot is not in the list. Most slots are added in ascending order. */
void rondo_slots_insert_before(rondo_slots *slots, uint32_t slot); /* any order */
static inline void rondo_slots_insert(rondo_slots *slots, uint32_t slot) {
  assert(slots->count < slots->capacity);
  if (slots->count == 0 || slots->items[slots->count - 1] < slot)
    slots->items[slots->count++] = slot;
  else
    rondo_slots_insert_before(slots, slot);
}

static inline bool rondo_graph_has(const rondo_graph *graph, uint32_t slot) {
  return slot < graph->nodes.count && graph->nodes.items[slot].live;
}

#endif
