/* SPDX-License-Identifier: MIT
 * Replacing a child graph of an exec: an update with a copy of the exec's own graph in which the child node has another
 * graph. So the rest of the exec keeps its parameters, and the rules are those of updates: the new child is compared
 * and verified completely before anything changes. Threads: one at a time for an exec.
 */
#include <inttypes.h>

#include "exec/build/graph_build.h"
#include "exec/build/node_device.h"
#include "exec/launch/instantiate.h"
#include "exec/launch/update.h"
#include "exec/patch/patch.h"
#include "exec/stream/stream_work.h"
#include "graph/graph.h"

/* The graph inside `root` at the place where `graph` is inside its outermost graph, which has the same nodes. */
static rondo_graph *find_counterpart(rondo_graph *root, const rondo_graph *graph) {
  if (graph->parent == NULL) return root;
  const rondo_graph *parent = find_counterpart(root, graph->parent);
  return rondo_graph_at(parent, graph->parent_slot)->params.as.child;
}

static rondo_status refuse(const char *call, rondo_node node, const char *why) {
  const uint32_t number = rondo_node_number(node);
  return rondo_fail_node(RONDO_UPDATE_REFUSED, RONDO_REASON_NOT_UPDATABLE, number,
                         "%s: the child graph of node %" PRIu32 " cannot be replaced: %s", call, number, why);
}

static rondo_status check_child(const char *call, const rondo_exec *exec, rondo_node node, const rondo_graph *child) {
  RONDO_TRY(rondo_build_refuse_captured(call, child));
  if (rondo_random_is_drawn(exec->graph) || rondo_random_is_drawn(child))
    return refuse(call, node,
                  "it or the exec draws random numbers, which a graph reserves: update the exec with a whole graph");
  return RONDO_OK;
}

static rondo_status find_child(const char *call, const rondo_exec *exec, rondo_node node,
                               const rondo_lowered_child **out) {
  *out = rondo_lowering_find_child(&exec->lowering, node);
  if (*out != NULL) return RONDO_OK;
  return refuse(call, node,
                "the exec was updated with a graph that has no child graph of these nodes: update it with a whole "
                "graph");
}

static rondo_status check_device(const char *call, const rondo_lowered_child *at, const rondo_node_params *params) {
  const rondo_graph_node *now = rondo_graph_at(at->graph, at->slot);
  const rondo_node_where where = {.number = at->slot, .own = at->slot};
  rondo_device *device;
  RONDO_TRY(rondo_node_device_find(call, at->graph, params, &device));
  return rondo_node_device_refuse_move(call, &now->params, &where, rondo_graph_node_device(at->graph, now), device);
}

static rondo_status update_with_child(const char *call, rondo_exec *exec, rondo_graph *whole,
                                      const rondo_lowered_child *at, const rondo_node_params *params) {
  rondo_update_result result;
  rondo_graph *graph = find_counterpart(whole, at->graph);
  rondo_node_params placed = *params;
  rondo_device *device;
  RONDO_TRY(rondo_node_device_set(call, graph, &placed, &device));
  RONDO_TRY(rondo_fail_context(rondo_graph_replace_child(graph, at->slot, &placed), "%s", call));
  return rondo_exec_update_with(call, exec, whole, &result);
}

rondo_status rondo_exec_replace_child(const char *call, rondo_exec *exec, rondo_node node,
                                      const rondo_node_params *params) {
  const rondo_lowered_child *at;
  rondo_graph *whole;
  const rondo_graph *child = params->as.child;
  const bool has_device = child != NULL && child->device != NULL;
  RONDO_TRY(rondo_work_check(call, has_device ? child->device : exec->device, params));
  RONDO_TRY(check_child(call, exec, node, child));
  RONDO_TRY(find_child(call, exec, node, &at));
  RONDO_TRY(check_device(call, at, params));
  rondo_patch_settle(exec);
  RONDO_TRY(rondo_fail_context(rondo_exec_clone_graph(exec->graph, &whole), "%s", call));
  const rondo_status status = update_with_child(call, exec, whole, at, params);
  rondo_graph_free(whole);
  return status;
}
