/* SPDX-License-Identifier: MIT
 * The checks on a piece of work, whether it is enqueued or becomes a node. All public calls share them. Messages begin
 * with the name of the call. Nothing here allocates. Threads: as the device.
 */
#ifndef RONDO_EXEC_STREAM_STREAM_WORK_H
#define RONDO_EXEC_STREAM_STREAM_WORK_H

#include "exec/api_check.h"
#include "graph/graph_internal.h"
#include "memory/peer_access.h"

/* Adds the call and the node to the device's message about a kernel that has no code. */
RONDO_MUST_USE rondo_status rondo_work_fail_code(const char *call, rondo_status status, const rondo_node_params *params,
                                                 const rondo_node_where *where);

/* Checks work that becomes a node: rondo_node_params_check and, because graph/ does not know them, events of another
 * device, and copies and fills that pass the end of an allocation (B4). `device` is the one that the node runs on, or
 * NULL. */
RONDO_MUST_USE rondo_status rondo_work_check(const char *call, const rondo_device *device,
                                             const rondo_node_params *params);

/* The check for the end of an allocation with the allocations of another device, whose memory the node may use too. */
RONDO_MUST_USE rondo_status rondo_work_check_ranges(const char *call, const rondo_device *device,
                                                    const rondo_node_params *params);

/* INVALID_GRAPH/NO_FUNCTION for a kernel without code for the device. `where` is that of the node; NULL: the work is
 * enqueued. */
RONDO_MUST_USE static inline rondo_status rondo_work_check_code(const char *call, const rondo_device *device,
                                                                const rondo_node_params *params,
                                                                const rondo_node_where *where) {
  if (params->kind != RONDO_NODE_KERNEL) return RONDO_OK;
  const rondo_status status = device->ops->kernel_check(device, &params->as.kernel);
  return __builtin_expect(status == RONDO_OK, 1) ? RONDO_OK : rondo_work_fail_code(call, status, params, where);
}

/* The same, and NO_ACCESS if the work uses memory of another device without access to it. */
RONDO_MUST_USE static inline rondo_status rondo_work_check_runs(const char *call, const rondo_device *device,
                                                                const rondo_node_params *params,
                                                                const rondo_node_where *where) {
  RONDO_TRY(rondo_work_check_code(call, device, params, where));
  return rondo_peers_check(device, call, params, where);
}

/* All checks for work that is enqueued now. Graph memory that it accesses must be allocated (GM-18). */
RONDO_MUST_USE rondo_status rondo_work_check_now(const char *call, const rondo_device *device,
                                                 const rondo_node_params *params);

#endif
