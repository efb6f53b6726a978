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
         exec->lowering.graphs.count == 1 && exec->lowering.join_count == 0 && !exec->graph->has_memory &&
         !graph->has_memory && graph->captures == 0 && finds_the_same(exec->graph, graph) &&
         exec->graph->programmatic.count == 0 && graph->programmatic.count == 0 &&
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

/* Committing ------------------------------------------------------------------------------------------------------- */

/* The places that change, and what the clone's nodes there had before. */
typedef struct changes {
  uint32_t *places;
  size_t count;
  char *kept;
  size_t kept_bytes;
} changes;

static uint32_t slot_of(const rondo_exec *exec, uint32_t place) { return exec->lowering.origins.items[place].slot; }

/* What is needed for a place is had while the driver works on the one before. */
static void fetch_ahead(const rondo_exec *exec, const rondo_graph *graph, const changes *made, size_t i) {
  if (i >= made->count) return;
  const uint32_t slot = slot_of(exec, made->places[i]);
  __builtin_prefetch(exec->graph->nodes.items[slot].arguments, 1);
  __builtin_prefetch(graph->nodes.items[slot].arguments);
}

/* Of the first `count`; *at is behind what was kept of them. The thread's last error stays: it says what was refused.
 */
static void take_back(rondo_exec *exec, const changes *made, size_t count, const char *at) {
  const rondo_executable_ops *ops = exec->executable->ops;
  rondo_saved_error refusal;
  rondo_error_save(&refusal);
  for (size_t i = count; i-- > 0;) {
    const uint32_t place = made->places[i], slot = slot_of(exec, place);
    at -= rondo_graph_kept_bytes(exec->graph, slot);
    rondo_graph_restore(exec->graph, slot, at);
    if (ops->set_params(exec->executable, place, &exec->lowering.nodes.items[place]) != RONDO_OK) exec->broken = true;
  }
  rondo_exec_note_extras(exec);
  rondo_error_restore(&refusal);
}

/* Node by node, the clone first: the driver takes its parameters from there. */
static rondo_status give(rondo_exec *exec, const rondo_graph *graph, const changes *made) {
  const rondo_executable_ops *ops = exec->executable->ops;
  char *at = made->kept;
  for (size_t i = 0; i < made->count; i++) {
    const uint32_t place = made->places[i], slot = slot_of(exec, place);
    rondo_graph_keep(exec->graph, slot, at);
    rondo_graph_overwrite(exec->graph, slot, &graph->nodes.items[slot].params);
    fetch_ahead(exec, graph, made, i + 1);
    const rondo_status status = ops->set_params(exec->executable, place, &exec->lowering.nodes.items[place]);
    if (__builtin_expect(status != RONDO_OK, 0)) {
      rondo_graph_restore(exec->graph, slot, at);
      take_back(exec, made, i, at);
      return status;
    }
    at += rondo_graph_kept_bytes(exec->graph, slot);
  }
  return RONDO_OK;
}

static rondo_status commit(rondo_exec *exec, const rondo_graph *graph, changes *made) {
  const rondo_allocator *allocator = &exec->device->allocator;
  for (size_t i = 0; i < made->count; i++)
    made->kept_bytes += rondo_graph_kept_bytes(exec->graph, slot_of(exec, made->places[i]));
  RONDO_TRY(rondo_allocate_items(allocator, made->kept_bytes, 1, &made->kept));
  rondo_status status = rondo_exec_begin_changes(exec);
  if (status == RONDO_OK) {
    status = give(exec, graph, made);
    rondo_exec_end_changes(exec);
  }
  rondo_release(allocator, made->kept, made->kept_bytes, 1);
  if (status == RONDO_OK) exec->updates++;
  return status;
}

rondo_status rondo_exec_update_in_place(rondo_exec *exec, const rondo_graph *graph, bool *out_done) {
  const rondo_allocator *allocator = &exec->device->allocator;
  const size_t room = exec->lowering.nodes.count;
  changes made = {0};
  *out_done = false;
  RONDO_TRY(rondo_allocate_items(allocator, room, sizeof *made.places, &made.places));
  rondo_status status = RONDO_OK;
  *out_done = rondo_exec_fits(exec, graph, made.places, &made.count);
  if (*out_done) status = commit(exec, graph, &made);
  rondo_release(allocator, made.places, room, sizeof *made.places);
  return status;
}
