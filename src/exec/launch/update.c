/* SPDX-License-Identifier: MIT
 * Updates: the parameters of one node, enabling or disabling a node, or the parameters of a whole graph. A child graph
 * is replaced by such an update too (update_child.c). Changes that an exec does not allow are refused before anything
 * changes. If the driver refuses a change after that, the update is undone (update_in_place.c).
 *
 * Threads: one at a time for an exec.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/trace.h"
#include "base/versioned_struct.h"
#include "exec/build/node_device.h"
#include "exec/launch/declared_access.h"
#include "exec/launch/exec_check.h"
#include "exec/launch/exec_relocate.h"
#include "exec/launch/exec_verify.h"
#include "exec/launch/instantiate.h"
#include "exec/launch/update.h"
#include "exec/launch/update_in_place.h"
#include "exec/patch/patch.h"
#include "exec/stream/stream_work.h"
#include "graph/graph.h"
#include "graph/launch_config.h"
#include "graph/node_name.h"
#include "graph/node_params.h"
#include "graph/user_object.h"
#include "memory/symbol_memory.h"

/* One node -------------------------------------------------------------------------------------------------------- */

/* A child node is not in the list. */
static rondo_status fail_child(const char *call, const rondo_exec *exec, rondo_node node,
                               const rondo_node_params *params) {
  const uint32_t number = rondo_node_number(node), around = rondo_lowering_around(&exec->lowering, node);
  const bool is_other = params != NULL && params->kind != RONDO_NODE_CHILD;
  char inside[64] = "";
  if (around != RONDO_NO_NODE) (void)snprintf(inside, sizeof inside, " of the child graph in node %" PRIu32, around);
  return rondo_fail_node(is_other ? RONDO_INVALID_ARGUMENT : RONDO_UNSUPPORTED, RONDO_REASON_NODE_KIND,
                         around != RONDO_NO_NODE ? around : number,
                         "%s: node %" PRIu32
                         "%s is a child graph: change the nodes in it, or give it another graph by "
                         "rondo_exec_set_params",
                         call, number, inside);
}

static rondo_status find_any(const char *call, const rondo_exec *exec, rondo_node node, uint32_t *out) {
  *out = rondo_lowering_find(&exec->lowering, node);
  if (*out == RONDO_INDEX_NONE)
    return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_UNKNOWN_NODE,
                      "%s: the exec's graph and its child graphs have no node with the node id 0x%" PRIx64
                      ": pass the node id that adding the node to the original graph returned",
                      call, node.id);
  return RONDO_OK;
}

static rondo_status find_index(const char *call, const rondo_exec *exec, rondo_node node, uint32_t *out) {
  RONDO_TRY(find_any(call, exec, node, out));
  return *out == RONDO_INDEX_CHILD ? fail_child(call, exec, node, NULL) : RONDO_OK;
}

static rondo_status check_kind(const char *call, const rondo_node_params *now, const rondo_node_params *then,
                               const rondo_node_where *where) {
  char label[RONDO_LABEL_BYTES];
  if (now->kind != then->kind)
    return rondo_fail_node(RONDO_INVALID_ARGUMENT, RONDO_REASON_NODE_KIND, where->number,
                           "%s: %s cannot become a node of kind '%s': change the graph, and instantiate it again", call,
                           rondo_node_label_at(label, now, where), rondo_node_kind_name(then->kind));
  if (now->kind == RONDO_NODE_EMPTY || now->kind == RONDO_NODE_FOREIGN || rondo_node_is_memory(now))
    return rondo_fail_node(
        RONDO_UNSUPPORTED, RONDO_REASON_NODE_KIND, where->number,
        "%s: %s has no parameters that an exec can change: change the graph, and instantiate it again", call,
        rondo_node_label_at(label, now, where));
  return RONDO_OK;
}

/* Shapes of more than one dimension cannot change, and neither can the kinds of memory operations. `then` is resolved.
 */
static bool can_change_to(const rondo_node_params *now, const rondo_node_params *then) {
  if (now->kind == RONDO_NODE_MEMORY_OPERATIONS)
    return rondo_operations_alike(&now->as.memory_operations, &then->as.memory_operations);
  if (rondo_node_names_semaphores(now)) return now->as.semaphores.count == then->as.semaphores.count;
  return (rondo_node_is_plain(now) && rondo_node_is_plain(then)) || rondo_node_params_compare(now, then, false) == 0;
}

static rondo_status check_shapes(const char *call, const rondo_node_params *now, const rondo_node_params *then,
                                 const rondo_node_where *where) {
  char label[RONDO_LABEL_BYTES];
  if (can_change_to(now, then)) return RONDO_OK;
  if (rondo_node_names_semaphores(now))
    return rondo_fail_node(RONDO_UPDATE_REFUSED, RONDO_REASON_PARAMETERS_CHANGED, where->number,
                           "%s: %s has %zu semaphores, which an exec can exchange, but not their number: instantiate "
                           "the graph again",
                           call, rondo_node_label_at(label, now, where), now->as.semaphores.count);
  if (now->kind == RONDO_NODE_MEMORY_OPERATIONS)
    return rondo_fail_node(RONDO_UPDATE_REFUSED, RONDO_REASON_PARAMETERS_CHANGED, where->number,
                           "%s: %s has %zu memory operations: an exec can only change their addresses, values and "
                           "conditions, not their number and kinds: instantiate the graph again",
                           call, rondo_node_label_at(label, now, where), now->as.memory_operations.count);
  return rondo_fail_node(
      RONDO_UPDATE_REFUSED, RONDO_REASON_PARAMETERS_CHANGED, where->number,
      "%s: %s has, or would have, more than one dimension: an exec can only change one-dimensional copies "
      "and fills: instantiate the graph again",
      call, rondo_node_label_at(label, now, where));
}

/* Changes the driver's executable, then the clone, whose change cannot fail. */
static rondo_status commit_in_place(rondo_exec *exec, uint32_t index, const rondo_lowered_node *after) {
  const rondo_lowered_origin *origin = &exec->lowering.origins.items[index];
  RONDO_TRY(exec->executable->ops->set_params(exec->executable, index, after));
  if (after->params->kind == RONDO_NODE_KERNEL)
    rondo_graph_store_launch(rondo_graph_at(origin->graph, origin->slot), &after->params->as.kernel);
  else
    rondo_graph_overwrite(origin->graph, origin->slot, after->params);
  return RONDO_OK;
}

static rondo_status commit_prepared(rondo_exec *exec, uint32_t index, const rondo_lowered_node *after) {
  const rondo_lowered_origin *origin = &exec->lowering.origins.items[index];
  rondo_graph_node prepared;
  RONDO_TRY(rondo_graph_prepare(origin->graph, origin->slot, after->params, &prepared));
  const rondo_status status = exec->executable->ops->set_params(exec->executable, index, after);
  if (status != RONDO_OK) {
    rondo_graph_discard(origin->graph, &prepared);
    return status;
  }
  rondo_graph_put(origin->graph, origin->slot, &prepared);
  rondo_exec_rebind(exec, index);
  return RONDO_OK;
}

/* `params` has the exec's addresses. The exec owns its nodes. */
static rondo_status commit_lowered(rondo_exec *exec, uint32_t index, const rondo_node_params *params) {
  const rondo_lowered_origin *origin = &exec->lowering.origins.items[index];
  rondo_lowered_node *lowered = &exec->lowering.nodes.items[index];
  const rondo_lowered_node after = rondo_lowered_of(params, lowered->device, &lowered->where, lowered->captured);
  const bool same = rondo_exec_same_accesses(exec, index, params);
  if (exec->verify && !same) RONDO_TRY(rondo_exec_verify_node(exec, index, params));
  if (rondo_graph_fits(origin->graph, origin->slot, params))
    RONDO_TRY(commit_in_place(exec, index, &after));
  else
    RONDO_TRY(commit_prepared(exec, index, &after));
  if (!same) rondo_exec_renew_access(exec, index);
  lowered->event = after.event;
  return RONDO_OK;
}

/* If there are two clones, the first gets the parameters that were passed, and the second the translated ones. */
static rondo_status commit_one(rondo_exec *exec, uint32_t index, const rondo_node_params *params) {
  if (exec->placed == NULL) return commit_lowered(exec, index, params);
  const rondo_lowered_origin *origin = &exec->lowering.origins.items[index];
  rondo_graph *original = rondo_exec_original(exec, origin->graph);
  rondo_relocated_params relocated;
  rondo_graph_node prepared;
  RONDO_TRY(rondo_exec_translate(exec, index, params, &relocated));
  RONDO_TRY(rondo_graph_prepare(original, origin->slot, params, &prepared));
  const rondo_status status = commit_lowered(exec, index, &relocated.params);
  if (status == RONDO_OK)
    rondo_graph_put(original, origin->slot, &prepared);
  else
    rondo_graph_discard(original, &prepared);
  return status;
}

/* Whether only the arguments and the grid change. Then the kernel was checked before, and all arguments fit. */
static inline bool keeps_kernel(const rondo_exec *exec, const rondo_node_params *now, const rondo_node_params *params) {
  const rondo_kernel_node *kernel = &params->as.kernel, *kernel_now = &now->as.kernel;
  if (now->kind != RONDO_NODE_KERNEL || params->kind != RONDO_NODE_KERNEL || kernel->kernel != kernel_now->kernel)
    return false;
  if ((params->name != NULL && params->name != now->name) || kernel->arg_bytes != NULL || kernel_now->arg_bytes != NULL)
    return false;
  if (kernel->config != kernel_now->config || params->device != now->device) return false;
  if (kernel->arg_count != kernel->kernel->parameter_count || (kernel->arg_count > 0 && kernel->args == NULL))
    return false;
  for (size_t i = 0; i < kernel->arg_count; i++)
    if (kernel->args[i] == NULL) return false;
  return exec->placed == NULL && exec->patched == NULL && !rondo_peers_others_have_memory(exec->device);
}

/* Whether the pointers stay the same. Then all accesses were verified before. */
static inline bool keeps_pointers(const rondo_kernel_node *now, const rondo_kernel_node *then) {
  for (size_t i = 0; i < then->arg_count; i++)
    if (then->kernel->parameters[i].access != RONDO_ACCESS_SCALAR &&
        memcmp(now->args[i], then->args[i], sizeof(void *)) != 0)
      return false;
  return true;
}

/* Another grid with the configuration that the node has. */
static rondo_status check_grid(const rondo_device *device, const rondo_kernel_node *kernel, rondo_grid *out) {
  RONDO_TRY(rondo_grid_check(kernel->kernel->name, kernel->grid, out));
  RONDO_TRY(rondo_launch_config_check(kernel));
  return rondo_device_check_launch(device, kernel);
}

static rondo_status set_arguments(rondo_exec *exec, uint32_t index, const rondo_node_params *now,
                                  const rondo_kernel_node *kernel) {
  rondo_node_params then = {.kind = RONDO_NODE_KERNEL, .name = now->name, .device = now->device, .as.kernel = *kernel};
  RONDO_TRY(rondo_symbols_retain(exec->graph, &then));
  const rondo_grid *grid = &kernel->grid, *grid_now = &now->as.kernel.grid;
  if (grid->x != grid_now->x || grid->y != grid_now->y || grid->z != grid_now->z)
    RONDO_TRY(check_grid(kernel->kernel->device, kernel, &then.as.kernel.grid));
  const bool is_new = exec->verify && !keeps_pointers(&now->as.kernel, kernel);
  const rondo_lowered_node *lowered = &exec->lowering.nodes.items[index];
  const rondo_lowered_node after = {.params = &then, .device = lowered->device, .where = lowered->where};
  const bool is_plain = is_new && rondo_exec_accesses_plain(exec, kernel);
  if (is_new && !is_plain) RONDO_TRY(rondo_exec_verify_node(exec, index, &then));
  RONDO_TRY(commit_in_place(exec, index, &after));
  if (is_new && !is_plain) rondo_exec_renew_access(exec, index);
  return RONDO_OK;
}

/* Comes before the exec's nodes are read, because they may move. */
static inline rondo_status own_nodes(const char *call, rondo_exec *exec) {
  const rondo_status status = rondo_exec_own_nodes(exec);
  return __builtin_expect(status == RONDO_OK, 1) ? RONDO_OK : rondo_fail_context(status, "%s", call);
}

/* The general case: the kind or the kernel changes, or there is more to change than the driver's parameters. */
static __attribute__((noinline)) rondo_status set_any_params(const char *call, rondo_exec *exec, uint32_t index,
                                                             const rondo_node_params *params) {
  const rondo_node_params *now = rondo_exec_given_params(exec, index);
  const rondo_lowered_node *lowered = &exec->lowering.nodes.items[index];
  rondo_graph *graph = exec->lowering.origins.items[index].graph;
  rondo_node_params then = *params;
  rondo_device *device;
  RONDO_TRY(check_kind(call, now, params, &lowered->where));
  RONDO_TRY(rondo_node_device_find(call, graph, params, &device));
  RONDO_TRY(rondo_node_device_refuse_move(call, now, &lowered->where, lowered->device, device));
  then.device = now->device;
  RONDO_TRY(rondo_work_check(call, device, params));
  RONDO_TRY(rondo_work_check_runs(call, device, params, &lowered->where));
  RONDO_TRY(rondo_random_check_node(call, graph, params));
  RONDO_TRY(rondo_fail_context(rondo_symbols_retain(exec->graph, &then), "%s", call));
  rondo_node_params_resolve(&then);
  if (then.name == NULL) then.name = now->name;
  RONDO_TRY(check_shapes(call, now, &then, &lowered->where));
  rondo_patch_settle(exec);
  const rondo_status status = rondo_fail_context(commit_one(exec, index, &then), "%s", call);
  rondo_patch_note_update(exec);
  return status;
}

static inline rondo_status set_params(const char *call, rondo_exec *exec, uint32_t index,
                                      const rondo_node_params *params) {
  const rondo_node_params *now = rondo_exec_params(exec, index);
  if (!keeps_kernel(exec, now, params)) return set_any_params(call, exec, index, params);
  const rondo_status status = set_arguments(exec, index, now, &params->as.kernel);
  return __builtin_expect(status == RONDO_OK, 1) ? RONDO_OK : rondo_fail_context(status, "%s", call);
}

rondo_status rondo_exec_set_params(rondo_exec *exec, rondo_node node, const rondo_node_params *params) {
  const char *const call = "rondo_exec_set_params";
  if (__builtin_expect(exec == NULL || rondo_in_callback(), 0)) return rondo_check_call(call, "the exec", exec);
  if (params == NULL) return rondo_refuse_null(call, "params");
  __builtin_prefetch(exec->executable); /* used last */
  uint32_t index;
  RONDO_TRY(find_any(call, exec, node, &index));
  RONDO_TRY(own_nodes(call, exec));
  if (__builtin_expect(index != RONDO_INDEX_CHILD, 1)) return set_params(call, exec, index, params);
  return params->kind == RONDO_NODE_CHILD ? rondo_exec_replace_child(call, exec, node, params)
                                          : fail_child(call, exec, node, params);
}

rondo_status rondo_exec_set_argument(rondo_exec *exec, rondo_node node, size_t number, const void *value) {
  const char *const call = "rondo_exec_set_argument";
  const void *args[RONDO_MAX_PARAMETERS];
  rondo_node_params params;
  uint32_t index;
  RONDO_TRY(rondo_check_call(call, "the exec", exec));
  RONDO_TRY(find_index(call, exec, node, &index));
  RONDO_TRY(own_nodes(call, exec));
  RONDO_TRY(rondo_node_params_exchange(call, rondo_exec_given_params(exec, index), number, value, args, &params));
  return set_params(call, exec, index, &params);
}

/* Enabling -------------------------------------------------------------------------------------------------------- */

static rondo_status find_switchable(const char *call, const rondo_exec *exec, rondo_node node, uint32_t *out) {
  RONDO_TRY(find_index(call, exec, node, out));
  const rondo_node_params *params = rondo_exec_params(exec, *out);
  if (params->kind == RONDO_NODE_KERNEL || params->kind == RONDO_NODE_COPY || params->kind == RONDO_NODE_FILL)
    return RONDO_OK;
  char label[RONDO_LABEL_BYTES];
  return rondo_fail_node(RONDO_UNSUPPORTED, RONDO_REASON_NODE_KIND, exec->lowering.nodes.items[*out].where.number,
                         "%s: %s cannot be disabled: only kernels, copies and fills can", call,
                         rondo_lowering_label(&exec->lowering, *out, label));
}

rondo_status rondo_exec_set_enabled(rondo_exec *exec, rondo_node node, bool enabled) {
  const char *const call = "rondo_exec_set_enabled";
  RONDO_TRY(rondo_check_call(call, "the exec", exec));
  uint32_t index;
  RONDO_TRY(find_switchable(call, exec, node, &index));
  if (exec->disabled[index] == !enabled) return RONDO_OK;
  RONDO_TRY(exec->executable->ops->set_enabled(exec->executable, index, enabled));
  exec->disabled[index] = !enabled;
  if (enabled) rondo_exec_forget_checked(exec);
  exec->disabled_count += enabled ? (size_t)-1 : 1;
  return RONDO_OK;
}

rondo_status rondo_exec_get_enabled(const rondo_exec *exec, rondo_node node, bool *out_enabled) {
  const char *const call = "rondo_exec_get_enabled";
  if (out_enabled == NULL) return rondo_refuse_null(call, "out_enabled");
  *out_enabled = false;
  RONDO_TRY(rondo_check_call(call, "the exec", exec));
  uint32_t index;
  RONDO_TRY(find_switchable(call, exec, node, &index));
  *out_enabled = !exec->disabled[index];
  return RONDO_OK;
}

/* Whole graphs: comparing ------------------------------------------------------------------------------------------ */

/* The public call that updates, and what it reports. */
typedef struct update_call {
  const char *call;
  rondo_update_result *result;
} update_call;

static rondo_status refuse_update(const update_call *to, rondo_reason reason, const rondo_exec *exec,
                                  const rondo_exec_draft *draft, size_t index, const char *what) {
  char now[RONDO_LABEL_BYTES], then[RONDO_LABEL_BYTES];
  to->result->reason = reason;
  to->result->exec_node = exec->lowering.origins.items[index].tag;
  to->result->graph_node = draft->lowering.origins.items[index].tag;
  return rondo_fail_node(RONDO_UPDATE_REFUSED, reason, exec->lowering.nodes.items[index].where.number,
                         "%s: %s, and %s in the new graph: %s", to->call,
                         rondo_lowering_label(&exec->lowering, index, now),
                         rondo_lowering_label(&draft->lowering, index, then), what);
}

static rondo_status compare_topology(const rondo_exec *exec, const rondo_exec_draft *draft, const update_call *to) {
  const size_t now = exec->lowering.nodes.count, then = draft->lowering.nodes.count;
  if (now != then) {
    to->result->reason = RONDO_REASON_TOPOLOGY_CHANGED;
    return rondo_fail(RONDO_UPDATE_REFUSED, RONDO_REASON_TOPOLOGY_CHANGED,
                      "%s: the new graph has %zu nodes with its children, the exec has %zu: instantiate it", to->call,
                      then - draft->lowering.join_count, now - exec->lowering.join_count);
  }
  const uint32_t other = rondo_lowering_find_other_edges(&exec->lowering, &draft->lowering);
  if (other != RONDO_INDEX_NONE)
    return refuse_update(to, RONDO_REASON_TOPOLOGY_CHANGED, exec, draft, other,
                         "the dependencies differ: instantiate the new graph");
  if (rondo_lowering_same_programmatic(&exec->lowering, &draft->lowering)) return RONDO_OK;
  to->result->reason = RONDO_REASON_TOPOLOGY_CHANGED;
  return rondo_fail(RONDO_UPDATE_REFUSED, RONDO_REASON_TOPOLOGY_CHANGED,
                    "%s: the new graph has %zu programmatic edges, the exec has %zu, and they differ: instantiate the "
                    "new graph",
                    to->call, draft->lowering.programmatic.count, exec->lowering.programmatic.count);
}

static rondo_status compare_node(const rondo_exec *exec, const rondo_exec_draft *draft, size_t index,
                                 const update_call *to) {
  const rondo_node_params *now = rondo_exec_params(exec, index);
  const rondo_node_params *then = draft->lowering.nodes.items[index].params;
  if (now->kind != then->kind)
    return refuse_update(to, RONDO_REASON_NODE_KIND_CHANGED, exec, draft, index,
                         "the kind of node differs: instantiate the new graph");
  const bool is_other = then->kind == RONDO_NODE_FOREIGN &&
                        exec->lowering.nodes.items[index].captured != draft->lowering.nodes.items[index].captured;
  if (is_other)
    return refuse_update(to, RONDO_REASON_FOREIGN_WORK, exec, draft, index,
                         "a library captured it, so it cannot be compared: instantiate the new graph");
  rondo_device *const device = draft->lowering.nodes.items[index].device;
  if (exec->lowering.nodes.items[index].device != device)
    return refuse_update(to, RONDO_REASON_OTHER_DEVICE, exec, draft, index,
                         "they run on different devices: instantiate the new graph");
  if (!can_change_to(now, then))
    return refuse_update(to, RONDO_REASON_PARAMETERS_CHANGED, exec, draft, index,
                         "an exec can only change one-dimensional copies and fills, and memory operations of the same "
                         "kinds");
  if (then->kind == RONDO_NODE_KERNEL && device->ops->kernel_check(device, &then->as.kernel) != RONDO_OK)
    return refuse_update(to, RONDO_REASON_FUNCTION_CHANGED, exec, draft, index,
                         "the new kernel has no code for the device");
  if (device != NULL &&
      rondo_peers_check(device, to->call, then, &draft->lowering.nodes.items[index].where) != RONDO_OK)
    return refuse_update(to, RONDO_REASON_NO_ACCESS, exec, draft, index,
                         "memory of another device, to which this device has no access");
  return RONDO_OK;
}

static bool differs(const rondo_exec *exec, const rondo_exec_draft *draft, size_t index) {
  return rondo_node_params_compare(rondo_exec_params(exec, index), draft->lowering.nodes.items[index].params, false) !=
         0;
}

static rondo_status make_memory(const char *call, const rondo_exec *exec, rondo_graph *graph, rondo_exec_draft *draft,
                                bool memory_changed) {
  if (exec->verify) RONDO_TRY(rondo_exec_draft_verify(call, draft, graph));
  return memory_changed ? rondo_exec_draft_memory(draft, exec->auto_free) : RONDO_OK;
}

static rondo_status refuse_memory(rondo_status status, const update_call *to) {
  if (status == RONDO_OK || status == RONDO_OUT_OF_MEMORY) return status;
  to->result->reason = RONDO_REASON_NOT_UPDATABLE;
  return rondo_fail_node(RONDO_UPDATE_REFUSED, RONDO_REASON_NOT_UPDATABLE, rondo_last_error()->node,
                         "%s: verification of the new graph failed: %s", to->call, rondo_last_error()->message);
}

/* New graph memory is needed only if an alloc or free node changed. Verification runs in any case, because other nodes
 * may access the memory. */
static rondo_status draft_memory(const rondo_exec *exec, rondo_graph *graph, rondo_exec_draft *draft, bool *out_changed,
                                 const update_call *to) {
  *out_changed = false;
  for (size_t i = 0; i < exec->lowering.nodes.count && !*out_changed; i++)
    *out_changed = rondo_node_is_memory(rondo_exec_params(exec, i)) && differs(exec, draft, i);
  return refuse_memory(make_memory(to->call, exec, graph, draft, *out_changed), to);
}

/* Whole graphs: committing ----------------------------------------------------------------------------------------- */

/* Whether the driver needs the parameters. Empty nodes and joins run nothing; memory nodes do on guarded devices. */
static bool needs_params(const rondo_exec *exec, const rondo_node_params *params) {
  return params->kind != RONDO_NODE_EMPTY && (exec->device->ops->guard != NULL || !rondo_node_is_memory(params));
}

/* A broken exec gets all nodes, because its current parameters are unknown. */
static size_t collect_changes(const rondo_exec *exec, const rondo_exec_draft *draft, rondo_node_change *out) {
  size_t count = 0;
  for (uint32_t i = 0; i < exec->lowering.nodes.count; i++) {
    if (!needs_params(exec, rondo_exec_params(exec, i)) || (!exec->broken && !differs(exec, draft, i))) continue;
    out[count++] = (rondo_node_change){.index = i, .node = draft->lowering.nodes.items[i]};
  }
  return count;
}

static rondo_status commit_nodes(rondo_exec *exec, const rondo_exec_draft *draft) {
  const rondo_allocator *allocator = &exec->device->allocator;
  const size_t capacity = exec->lowering.nodes.count;
  rondo_node_change *changes;
  RONDO_TRY(rondo_allocate_items(allocator, capacity, sizeof *changes, &changes));
  const rondo_status status = rondo_exec_commit(exec, changes, collect_changes(exec, draft, changes));
  rondo_release(allocator, changes, capacity, sizeof *changes);
  return status;
}

#define SWAP(a, b)                   \
  do {                               \
    const __typeof__(a) kept_ = (a); \
    (a) = (b);                       \
    (b) = kept_;                     \
  } while (0)

/* The exec takes what the draft has, and the draft what the exec had. */
static void exchange(rondo_exec *exec, rondo_exec_draft *draft, bool memory_changed) {
  rondo_lowering_move_tags(&exec->lowering, &draft->lowering);
  SWAP(exec->graph, draft->graph);
  SWAP(exec->placed, draft->placed);
  SWAP(exec->owns_nodes, draft->owns_nodes);
  SWAP(exec->relocation, draft->relocation);
  SWAP(exec->random, draft->random);
  SWAP(exec->lowering, draft->lowering);
  SWAP(exec->findings, draft->findings);
  SWAP(exec->checked_at_verify, draft->checked_at_verify);
  SWAP(exec->objects, draft->objects);
  SWAP(exec->others, draft->others);
  if (memory_changed) SWAP(exec->memory, draft->memory);
  for (uint32_t i = 0; i < exec->lowering.nodes.count; i++) rondo_exec_rebind(exec, i);
  exec->broken = false;
  exec->updates++;
  rondo_exec_note_extras(exec);
}

static rondo_status update_from(rondo_exec *exec, rondo_graph *graph, rondo_exec_draft *draft, const update_call *to) {
  RONDO_TRY(compare_topology(exec, draft, to));
  RONDO_TRY(refuse_memory(rondo_exec_draft_relocate(draft, &exec->plan, exec->relocation), to));
  RONDO_TRY(rondo_exec_draft_random(draft, exec->random));
  for (size_t i = 0; i < exec->lowering.nodes.count; i++) RONDO_TRY(compare_node(exec, draft, i, to));
  bool memory_changed;
  RONDO_TRY(draft_memory(exec, graph, draft, &memory_changed, to));
  if (exec->patch_sets != NULL) RONDO_TRY(own_nodes(to->call, draft)); /* their launches write to nodes */
  RONDO_TRY(commit_nodes(exec, draft));
  exchange(exec, draft, memory_changed);
  rondo_launched_objects_retire(draft->objects, exec->executable, rondo_exec_last_queue(exec));
  draft->objects = NULL;
  rondo_exec_begin_access(exec, graph);
  return RONDO_OK;
}

/* Only the exec that was created from a bound graph can run it. */
static rondo_status refuse_bound(const rondo_exec *exec, const rondo_graph *graph, const update_call *to) {
  char text[RONDO_BOUND_TEXT];
  const rondo_graph *bound = exec->graph->is_bound ? exec->graph : graph;
  if (!bound->is_bound) return RONDO_OK;
  to->result->reason = RONDO_REASON_FOREIGN_WORK;
  return rondo_fail(RONDO_UPDATE_REFUSED, RONDO_REASON_FOREIGN_WORK, "%s: the %s: %s", to->call,
                    bound == graph ? "new graph" : "exec's graph", rondo_graph_bound_text(bound, text));
}

static rondo_status update(rondo_exec *exec, rondo_graph *graph, const update_call *to) {
  rondo_exec_draft draft;
  RONDO_TRY(refuse_bound(exec, graph, to));
  bool is_done = false;
  const bool has_objects = exec->objects != NULL || rondo_graph_has_objects(graph);
  if (!has_objects) RONDO_TRY(rondo_exec_update_in_place(exec, graph, &is_done));
  if (is_done) return RONDO_OK;
  RONDO_TRY(rondo_exec_draft_make(to->call, graph, exec->relocate, &draft));
  const rondo_status status = update_from(exec, graph, &draft, to);
  rondo_exec_draft_free(&draft);
  return status;
}

rondo_status rondo_exec_update_with(const char *call, rondo_exec *exec, rondo_graph *graph,
                                    rondo_update_result *out_result) {
  const update_call to = {call, out_result};
  rondo_trace_here(RONDO_TRACE_BEGIN, "exec", call);
  rondo_patch_settle(exec);
  const rondo_status status = update(exec, graph, &to);
  rondo_patch_note_update(exec);
  rondo_exec_check(exec);
  rondo_retired_objects_look(exec->device, RONDO_QUEUE_NONE);
  rondo_trace_here(RONDO_TRACE_END, "exec", call);
  return status;
}

rondo_status rondo_exec_update(rondo_exec *exec, rondo_graph *graph, rondo_update_result *out_result) {
  const char *const call = "rondo_exec_update";
  rondo_update_result result = {.struct_size = sizeof result};
  if (out_result != NULL) RONDO_TRY(rondo_versioned_write("rondo_update_result", &result, out_result, sizeof result));
  RONDO_TRY(rondo_check_call(call, "the exec", exec));
  if (graph == NULL) return rondo_refuse_null(call, "the graph");
  RONDO_TRY(rondo_require_device(call, "the graph", exec->device, graph->device));
  RONDO_TRY(rondo_device_require_own(call, exec->device));
  const rondo_status status = rondo_exec_update_with(call, exec, graph, &result);
  if (out_result != NULL) RONDO_TRY(rondo_versioned_write("rondo_update_result", &result, out_result, sizeof result));
  return status;
}
