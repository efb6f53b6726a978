/* SPDX-License-Identifier: MIT
 * Updates from a graph of which nothing but parameters can differ: the same nodes and edges under the same numbers,
 * each parameter with room where the old one is. Then there is nothing to clone, to lower or to pair; and nothing to
 * verify, if the graph has not changed since verification found nothing in it, and no allocation has come or gone.
 */
#include <string.h>

#include "exec/exec_internal.h"
#include "memory/arena.h"
#include "memory/peers.h"

/* Comparing ------------------------------------------------------------------------------------------------------- */

static bool same_slots(const rondo_slots *a, const rondo_slots *b) {
  return a->count == b->count && (a->count == 0 || memcmp(a->items, b->items, a->count * sizeof *a->items) == 0);
}

/* Shapes of more than one dimension cannot change, nor can events in this way. */
static bool may_change(const rondo_node_params *now, const rondo_node_params *then) {
  switch (now->kind) {
    case RONDO_NODE_KERNEL:
    case RONDO_NODE_HOST:
    case RONDO_NODE_EMPTY:
      return true;
    case RONDO_NODE_COPY:
    case RONDO_NODE_FILL:
      return rondo_node_is_plain(now) && rondo_node_is_plain(then);
    default:
      return false;
  }
}

static bool fits_node(const rondo_graph *clone, uint32_t slot, const rondo_graph_node *then) {
  const rondo_graph_node *now = &clone->nodes.items[slot];
  if (!now->live || !then->live) return now->live == then->live;
  return same_slots(&now->dependencies, &then->dependencies) && rondo_graph_fits(clone, slot, &then->params) &&
         (may_change(&now->params, &then->params) ||
          rondo_node_params_compare(&now->params, &then->params, false) == 0);
}

/* Recordings of an arena are each verified with what they find alive. */
static bool finds_the_same(const rondo_graph *now, const rondo_graph *then) {
  return now->memory.object == then->memory.object || (rondo_arena_of(now) == NULL && rondo_arena_of(then) == NULL);
}

static bool is_simple(const rondo_exec *exec, const rondo_graph *graph) {
  return exec->placed == NULL && !rondo_random_is_drawn(graph) && exec->findings == NULL && !exec->broken &&
         exec->lowering.graphs.count == 1 && !exec->graph->has_memory && !graph->has_memory && graph->captures == 0 &&
         finds_the_same(exec->graph, graph) && exec->graph->programmatic.count == 0 && graph->programmatic.count == 0 &&
         !rondo_peers_others_have_memory(exec->device);
}

bool rondo_exec_fits(const rondo_exec *exec, const rondo_graph *graph) {
  const rondo_graph *clone = exec->graph;
  if (!is_simple(exec, graph) || clone->nodes.count != graph->nodes.count || strcmp(clone->name, graph->name) != 0)
    return false;
  if (exec->verify && !rondo_exec_is_verified(graph)) return false;
  for (uint32_t slot = 0; slot < clone->nodes.count; slot++) {
    if (!fits_node(clone, slot, &graph->nodes.items[slot])) return false;
  }
  return true;
}

/* Committing ------------------------------------------------------------------------------------------------------ */

typedef struct changes {
  uint32_t *places;
  size_t count;
} changes;

/* What a place gets. */
static const rondo_node_params *params_for(const rondo_exec *exec, const rondo_graph *graph, uint32_t place) {
  return &graph->nodes.items[exec->lowering.origins.items[place].slot].params;
}

static void find_changes(const rondo_exec *exec, const rondo_graph *graph, changes *out) {
  for (uint32_t place = 0; place < exec->lowering.nodes.count; place++) {
    const rondo_node_params *then = params_for(exec, graph, place);
    if (rondo_node_params_compare(rondo_exec_params(exec, place), then, false) != 0) out->places[out->count++] = place;
  }
}

/* The driver first: the clone still has what to take back to. */
static rondo_status commit(rondo_exec *exec, const rondo_graph *graph, const changes *found) {
  rondo_executable *executable = exec->executable;
  for (size_t i = 0; i < found->count; i++) {
    const uint32_t place = found->places[i];
    rondo_lowered_node after = exec->lowering.nodes.items[place];
    after.params = params_for(exec, graph, place);
    const rondo_status status = executable->ops->set_params(executable, place, &after);
    if (status == RONDO_OK) continue;
    while (i-- > 0) {
      const uint32_t changed = found->places[i];
      if (executable->ops->set_params(executable, changed, &exec->lowering.nodes.items[changed]) != RONDO_OK)
        exec->broken = true;
    }
    rondo_exec_note_extras(exec);
    return status;
  }
  for (size_t i = 0; i < found->count; i++) {
    const uint32_t place = found->places[i];
    rondo_graph_overwrite(exec->graph, exec->lowering.origins.items[place].slot, params_for(exec, graph, place));
  }
  exec->updates++;
  return RONDO_OK;
}

rondo_status rondo_exec_update_in_place(rondo_exec *exec, const rondo_graph *graph) {
  const rondo_allocator *allocator = &exec->device->allocator;
  const size_t room = exec->lowering.nodes.count;
  changes found = {0};
  RONDO_TRY(rondo_allocate_items(allocator, room, sizeof *found.places, &found.places));
  find_changes(exec, graph, &found);
  const rondo_status status = commit(exec, graph, &found);
  rondo_release(allocator, found.places, room, sizeof *found.places);
  return status;
}
