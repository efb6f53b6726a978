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
  if (a->count != b->count) return false;
  for (size_t i = 0; i < a->count; i++)
    if (a->items[i] != b->items[i]) return false;
  return true;
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

/* Another launch of the kernel that the node has: all its arguments have their room. */
static bool is_launch_of_same(const rondo_node_params *now, const rondo_node_params *then) {
  return now->kind == RONDO_NODE_KERNEL && then->kind == RONDO_NODE_KERNEL &&
         now->as.kernel.kernel == then->as.kernel.kernel && now->name == then->name &&
         now->as.kernel.arg_bytes == NULL && then->as.kernel.arg_bytes == NULL;
}

/* Arguments lie as the kernel says, with zeros between. */
static bool same_launch(const rondo_graph_node *a, const rondo_graph_node *b) {
  const rondo_kernel_node *x = &a->params.as.kernel, *y = &b->params.as.kernel;
  return x->grid.x == y->grid.x && x->grid.y == y->grid.y && x->grid.z == y->grid.z &&
         (x->kernel->argument_bytes == 0 || memcmp(a->arguments, b->arguments, x->kernel->argument_bytes) == 0);
}

/* *out_differs: whether the parameters do, when the node fits. */
static bool fits_node(const rondo_graph *clone, uint32_t slot, const rondo_graph_node *then, bool *out_differs) {
  const rondo_graph_node *now = &clone->nodes.items[slot];
  if (!then->live || !same_slots(&now->dependencies, &then->dependencies)) return false;
  if (is_launch_of_same(&now->params, &then->params)) {
    *out_differs = !same_launch(now, then);
    return true;
  }
  if (!rondo_graph_fits(clone, slot, &then->params)) return false;
  *out_differs = rondo_node_params_compare(&now->params, &then->params, false) != 0;
  return !*out_differs || may_change(&now->params, &then->params);
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

/* As many live nodes, each of them in the slot of one of the exec's: so they are the same. */
bool rondo_exec_fits(const rondo_exec *exec, const rondo_graph *graph, uint32_t *places, size_t *out_count) {
  const rondo_graph *clone = exec->graph;
  *out_count = 0;
  if (!is_simple(exec, graph) || clone->nodes.count != graph->nodes.count || clone->live_count != graph->live_count ||
      strcmp(clone->name, graph->name) != 0)
    return false;
  if (exec->verify && !rondo_exec_is_verified(graph)) return false;
  for (uint32_t place = 0; place < exec->lowering.nodes.count; place++) {
    const uint32_t slot = exec->lowering.origins.items[place].slot;
    bool differs;
    if (!fits_node(clone, slot, &graph->nodes.items[slot], &differs)) return false;
    if (differs) places[(*out_count)++] = place;
  }
  return true;
}

/* Committing ------------------------------------------------------------------------------------------------------ */

/* What a place gets. */
static const rondo_node_params *params_for(const rondo_exec *exec, const rondo_graph *graph, uint32_t place) {
  return &graph->nodes.items[exec->lowering.origins.items[place].slot].params;
}

static void take_back(rondo_exec *exec, const uint32_t *places, size_t count) {
  rondo_executable *executable = exec->executable;
  for (size_t i = count; i-- > 0;)
    if (executable->ops->set_params(executable, places[i], &exec->lowering.nodes.items[places[i]]) != RONDO_OK)
      exec->broken = true;
  rondo_exec_note_extras(exec);
}

/* The driver first: the clone still has what to take back to. */
static rondo_status give(rondo_exec *exec, const rondo_graph *graph, const uint32_t *places, size_t count) {
  rondo_executable *executable = exec->executable;
  for (size_t i = 0; i < count; i++) {
    rondo_lowered_node after = exec->lowering.nodes.items[places[i]];
    after.params = params_for(exec, graph, places[i]);
    const rondo_status status = executable->ops->set_params(executable, places[i], &after);
    if (__builtin_expect(status == RONDO_OK, 1)) continue;
    take_back(exec, places, i);
    return status;
  }
  return RONDO_OK;
}

static rondo_status commit(rondo_exec *exec, const rondo_graph *graph, const uint32_t *places, size_t count) {
  RONDO_TRY(rondo_exec_begin_changes(exec));
  const rondo_status status = give(exec, graph, places, count);
  rondo_exec_end_changes(exec);
  if (status != RONDO_OK) return status;
  for (size_t i = 0; i < count; i++)
    rondo_graph_overwrite(exec->graph, exec->lowering.origins.items[places[i]].slot,
                          params_for(exec, graph, places[i]));
  exec->updates++;
  return RONDO_OK;
}

rondo_status rondo_exec_update_in_place(rondo_exec *exec, const rondo_graph *graph, bool *out_done) {
  const rondo_allocator *allocator = &exec->device->allocator;
  const size_t room = exec->lowering.nodes.count;
  uint32_t *places;
  size_t count;
  *out_done = false;
  RONDO_TRY(rondo_allocate_items(allocator, room, sizeof *places, &places));
  rondo_status status = RONDO_OK;
  *out_done = rondo_exec_fits(exec, graph, places, &count);
  if (*out_done) status = commit(exec, graph, places, count);
  rondo_release(allocator, places, room, sizeof *places);
  return status;
}
