/* SPDX-License-Identifier: MIT
 * Viewing a graph: going through the nodes that it has got since the last time. The record that was opened last stands
 * first at its address.
 */
#include "memory/graph_memory/graph_view.h"

#include "memory/graph_memory/graph_allocation.h"

rondo_graph_allocation *rondo_graph_view_find_open(const rondo_address_space *space, const void *address) {
  rondo_allocation *at = rondo_allocation_starts_find(space->starts, address);
  for (; at != NULL; at = rondo_allocation_next(at)) {
    if (at->kind != RONDO_ALLOCATION_GRAPH) continue;
    rondo_graph_allocation *record = (rondo_graph_allocation *)at;
    if (record->space == space && record->open) return record;
  }
  return NULL;
}

static void view_node(rondo_address_space *space, uint32_t slot, const rondo_node_params *params) {
  const bool is_alloc = params->kind == RONDO_NODE_ALLOC;
  if (!is_alloc && params->kind != RONDO_NODE_FREE) return;
  rondo_graph_allocation *record = is_alloc ? rondo_graph_allocation_find(space, &params->as.alloc)
                                            : rondo_graph_view_find_open(space, params->as.free_address);
  if (record == NULL) return;
  record->open = is_alloc;
  record->free_slot = is_alloc ? RONDO_NO_NODE : slot;
  if (!is_alloc) return;
  rondo_standpoints_note(space, record);
  rondo_allocation_starts_touch(space->starts, &record->base);
}

static void reset_view(rondo_address_space *space, uint32_t serial) {
  space->view.serial = serial;
  space->view.viewed = 0;
  rondo_standpoints_reset(space);
  for (size_t i = 0; i < space->allocations.count; i++) {
    rondo_graph_allocation *record = space->allocations.items[i];
    record->open = record->role == RONDO_RECORD_BLOCK;
    record->free_slot = RONDO_NO_NODE;
  }
}

void rondo_graph_view_refresh(rondo_address_space *space, const rondo_graph *graph) {
  rondo_graph_view *view = &space->view;
  if (view->serial != graph->serial) reset_view(space, graph->serial);
  for (; view->viewed < graph->nodes.count; view->viewed++) {
    const rondo_graph_node *node = &graph->nodes.items[view->viewed];
    if (node->live) view_node(space, (uint32_t)view->viewed, &node->params);
  }
}

void rondo_address_space_note_removal(const rondo_graph *graph) {
  rondo_address_space *space = rondo_address_space_of(graph);
  if (space == NULL) return;
  pthread_mutex_lock(&space->memory->lock);
  if (space->view.serial == graph->serial) reset_view(space, 0);
  pthread_mutex_unlock(&space->memory->lock);
}
