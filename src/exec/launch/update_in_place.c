/* SPDX-License-Identifier: MIT
 * Passing the changes of an update to the driver, all or none; and the fast updates that need nothing else. For those,
 * the graph has the same nodes and edges under the same numbers, and each parameter fits in place of the old one. Then
 * nothing is cloned or lowered. Nothing is verified either: the graph must be verified already.
 *
 * While the driver takes the changes, the exec's lowering still has the old parameters. If the driver refuses a change,
 * those before it are undone with the old parameters.
 *
 * Threads: one at a time for an exec; the graph is read.
 */
#include <string.h>

#include "exec/launch/exec_internal.h"
#include "exec/launch/exec_verify.h"
#include "exec/launch/instantiate.h"
#include "exec/launch/update_in_place.h"
#include "graph/graph.h"
#include "graph/node_params.h"
#include "memory/arena/arena.h"
#include "memory/arena/arena_recording.h"
#include "memory/peer_access.h"

/* Comparing ------------------------------------------------------------------------------------------------------- */

static bool same_slots(const rondo_slots *a, const rondo_slots *b) {
  if (a->count != b->count) return false;
  for (size_t i = 0; i < a->count; i++)
    if (a->items[i] != b->items[i]) return false;
  return true;
}

/* Shapes of more than one dimension cannot change. Events cannot change in this fast update. */
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

/* The result of comparing the parameters of two nodes with the same index. */
typedef enum comparison { CANNOT_CHANGE, SAME, CHANGED } comparison;

/* Whether both launch the same kernel, so that the new arguments fit. */
static inline bool is_launch_of_same(const rondo_node_params *now, const rondo_node_params *then) {
  return now->kind == RONDO_NODE_KERNEL && then->kind == RONDO_NODE_KERNEL &&
         now->as.kernel.kernel == then->as.kernel.kernel && now->name == then->name &&
         now->as.kernel.arg_bytes == NULL && then->as.kernel.arg_bytes == NULL && now->as.kernel.config == NULL &&
         then->as.kernel.config == NULL;
}

static inline bool same_launch(const rondo_graph_node *a, const rondo_graph_node *b) {
  const rondo_kernel_node *x = &a->params.as.kernel, *y = &b->params.as.kernel;
  return x->grid.x == y->grid.x && x->grid.y == y->grid.y && x->grid.z == y->grid.z &&
         rondo_arguments_same(x->kernel, a->arguments, b->arguments);
}

static __attribute__((noinline)) comparison compare_others(const rondo_graph *clone, uint32_t slot,
                                                           const rondo_node_params *then) {
  const rondo_node_params *now = &clone->nodes.items[slot].params;
  if (!rondo_graph_fits(clone, slot, then)) return CANNOT_CHANGE;
  if (rondo_node_params_compare(now, then, false) == 0) return SAME;
  return may_change(now, then) ? CHANGED : CANNOT_CHANGE;
}

static inline comparison compare_node(const rondo_graph *clone, uint32_t slot, const rondo_graph_node *then) {
  const rondo_graph_node *now = &clone->nodes.items[slot];
  if (!then->live || !same_slots(&now->dependencies, &then->dependencies)) return CANNOT_CHANGE;
  if (!is_launch_of_same(&now->params, &then->params)) return compare_others(clone, slot, &then->params);
  return same_launch(now, then) ? SAME : CHANGED;
}

/* Each recording of an arena is verified with the memory that is live when it begins. */
static bool has_same_live_memory(const rondo_graph *now, const rondo_graph *then) {
  return now->memory.object == then->memory.object || (rondo_arena_of(now) == NULL && rondo_arena_of(then) == NULL);
}

static bool is_simple(const rondo_exec *exec, const rondo_graph *graph) {
  return exec->placed == NULL && !rondo_random_is_drawn(graph) && exec->findings == NULL && !exec->broken &&
         exec->lowering.graphs.count == 1 && exec->lowering.join_count == 0 && !exec->graph->has_memory &&
         !graph->has_memory && graph->captures == 0 && has_same_live_memory(exec->graph, graph) &&
         graph->symbol_kernels.count == 0 && exec->graph->others.count == 0 && graph->others.count == 0 &&
         exec->graph->programmatic.count == 0 && graph->programmatic.count == 0 &&
         !rondo_peers_others_have_memory(exec->device);
}

/* Both have as many live nodes. If each has the slot of a node of the exec, the nodes are the same. */
static bool could_fit(const rondo_exec *exec, const rondo_graph *graph) {
  const rondo_graph *clone = exec->graph;
  return is_simple(exec, graph) && clone->nodes.count == graph->nodes.count && clone->live_count == graph->live_count &&
         strcmp(clone->name, graph->name) == 0 && (!exec->verify || rondo_exec_is_verified(graph));
}

bool rondo_exec_fits(const rondo_exec *exec, const rondo_graph *graph, rondo_node_change *changes, size_t *out_count) {
  const rondo_lowered_node *now = exec->lowering.nodes.items;
  const rondo_graph_node *nodes = graph->nodes.items;
  const size_t node_count = exec->lowering.nodes.count;
  size_t count = 0;
  *out_count = 0;
  if (!could_fit(exec, graph)) return false;
  for (uint32_t index = 0; index < node_count; index++) {
    const uint32_t slot = now[index].where.number;
    const comparison found = compare_node(exec->graph, slot, &nodes[slot]);
    if (found == CANNOT_CHANGE) return false;
    if (found == SAME) continue;
    changes[count] = (rondo_node_change){.index = index, .node = now[index]};
    changes[count++].node.params = &nodes[slot].params;
  }
  *out_count = count;
  return true;
}

/* Committing ------------------------------------------------------------------------------------------------------- */

/* For drivers that cannot take many changes at once. */
static rondo_status set_each(rondo_executable *executable, const rondo_node_change *changes, size_t count,
                             size_t *out_done) {
  rondo_status status = RONDO_OK;
  size_t done = 0;
  while (done < count && status == RONDO_OK) {
    status = executable->ops->set_params(executable, changes[done].index, &changes[done].node);
    done += status == RONDO_OK;
  }
  *out_done = done;
  return status;
}

void rondo_exec_rebind(rondo_exec *exec, uint32_t index) {
  const rondo_executable_ops *ops = exec->executable->ops;
  if (ops->rebind != NULL) ops->rebind(exec->executable, index, &exec->lowering.nodes.items[index]);
}

/* Undoing the change of this node failed. If the kernel changed, the driver's arguments are in the new graph, which is
 * freed next, so it must not use them. */
static void break_node(rondo_exec *exec, const rondo_node_change *change) {
  const rondo_executable_ops *ops = exec->executable->ops;
  const rondo_node_params *own = exec->lowering.nodes.items[change->index].params;
  exec->broken = true;
  if (ops->rebind == NULL || own->kind != RONDO_NODE_KERNEL) return;
  if (own->as.kernel.kernel != change->node.params->as.kernel.kernel)
    ops->rebind(exec->executable, change->index, NULL);
}

/* Undoes changes. The thread's last error stays, because it says what the driver refused. */
static void undo(rondo_exec *exec, const rondo_node_change *changes, size_t count) {
  rondo_executable *executable = exec->executable;
  rondo_saved_error refusal;
  rondo_error_save(&refusal);
  for (size_t i = count; i-- > 0;) {
    const uint32_t index = changes[i].index;
    if (executable->ops->set_params(executable, index, &exec->lowering.nodes.items[index]) != RONDO_OK)
      break_node(exec, &changes[i]);
  }
  rondo_exec_note_extras(exec);
  rondo_error_restore(&refusal);
}

rondo_status rondo_exec_commit(rondo_exec *exec, const rondo_node_change *changes, size_t count) {
  rondo_executable *executable = exec->executable;
  size_t done;
  const rondo_status status = executable->ops->set_many != NULL
                                  ? executable->ops->set_many(executable, changes, count, &done)
                                  : set_each(executable, changes, count, &done);
  if (status != RONDO_OK) undo(exec, changes, done);
  return status;
}

/* A clone is never verified by itself, so `verified` needs no reset. */
static inline void copy_node(rondo_graph *clone, uint32_t slot, const rondo_graph_node *then) {
  rondo_graph_node *now = &clone->nodes.items[slot];
  if (then->params.kind != RONDO_NODE_KERNEL) {
    rondo_graph_overwrite(clone, slot, &then->params);
    return;
  }
  now->params.as.kernel.grid = then->params.as.kernel.grid;
  rondo_arguments_copy(then->params.as.kernel.kernel, now->arguments, then->arguments);
}

/* Copies the changes that the driver took into the clone. */
static void copy_changes(rondo_exec *exec, const rondo_graph *graph, const rondo_node_change *changes, size_t count,
                         uint64_t ended) {
  rondo_graph *clone = exec->graph;
  const rondo_graph_node *nodes = graph->nodes.items;
  for (size_t i = 0; i < count; i++) {
    const uint32_t slot = changes[i].node.where.number;
    copy_node(clone, slot, &nodes[slot]);
  }
  exec->updates++;
  if (!exec->verify) return;
  exec->checked = ended; /* the graph is verified, and no allocation has ended since */
  exec->is_unsure = true;
}

rondo_status rondo_exec_update_in_place(rondo_exec *exec, const rondo_graph *graph, bool *out_done) {
  const rondo_allocator *allocator = &exec->device->allocator;
  const size_t capacity = exec->lowering.nodes.count;
  rondo_node_change *changes;
  size_t count;
  *out_done = false;
  const uint64_t ended = atomic_load_explicit(&exec->device->allocations_ended, memory_order_acquire);
  RONDO_TRY(rondo_allocate_items(allocator, capacity, sizeof *changes, &changes));
  rondo_status status = RONDO_OK;
  *out_done = rondo_exec_fits(exec, graph, changes, &count);
  if (*out_done && count > 0) status = rondo_exec_own_nodes(exec);
  if (*out_done && status == RONDO_OK) status = rondo_exec_commit(exec, changes, count);
  if (*out_done && status == RONDO_OK) copy_changes(exec, graph, changes, count, ended);
  rondo_release(allocator, changes, capacity, sizeof *changes);
  return status;
}
