/* SPDX-License-Identifier: MIT
 * On which device a node runs. Threads: as the graph.
 */
#ifndef RONDO_EXEC_BUILD_NODE_DEVICE_H
#define RONDO_EXEC_BUILD_NODE_DEVICE_H

#include "device/device.h"
#include "graph/graph_internal.h"

/* The device of a node with these parameters in the graph: the graph's, or another one of its driver. Errors:
 * INVALID_ARGUMENT with OTHER_DEVICE (a device of another driver; one that contradicts the kernel, event, semaphore or
 * child graph; a node that has to run on the graph's device), OTHER_PROCESS. NULL in the parameters is left to later
 * checks. */
RONDO_MUST_USE rondo_status rondo_node_device_find(const char *call, const rondo_graph *graph,
                                                   const rondo_node_params *params, rondo_device **out);

/* Whether the node plainly runs on the graph's device, as most do. False: rondo_node_device_find says. */
static inline bool rondo_node_is_plainly_own(const rondo_graph *graph, const rondo_node_params *params) {
  if (params->device != NULL) return false;
  if (params->kind == RONDO_NODE_KERNEL)
    return params->as.kernel.kernel != NULL && params->as.kernel.kernel->device == graph->device;
  return params->kind != RONDO_NODE_CHILD && !rondo_node_names_event(params) && !rondo_node_names_semaphores(params);
}

/* Prepares a node of the graph: *params get the device as graphs store it (NULL: the graph's), and the graph retains
 * the device, which is also returned. */
RONDO_MUST_USE rondo_status rondo_node_device_set(const char *call, rondo_graph *graph, rondo_node_params *params,
                                                  rondo_device **out);

/* Refuses parameters of an exec's node that move it from `now` to another device `then`. */
RONDO_MUST_USE rondo_status rondo_node_device_refuse_move(const char *call, const rondo_node_params *params,
                                                          const rondo_node_where *where, const rondo_device *now,
                                                          const rondo_device *then);

#endif
