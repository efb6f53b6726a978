/* SPDX-License-Identifier: MIT
 * The checks on a piece of work, whether it is enqueued or becomes a node. All public calls share them; a message names
 * the call that was given the work. Nothing here allocates; threads as the device's.
 */
#ifndef RONDO_EXEC_STREAM_STREAM_WORK_H
#define RONDO_EXEC_STREAM_STREAM_WORK_H

#include "exec/api_check.h"
#include "graph/graph_internal.h"
#include "memory/peer_access.h"

/* Names call and node in what the device said of a kernel that it has no code for. */
RONDO_MUST_USE rondo_status rondo_work_fail_code(const char *call, rondo_status status, const rondo_node_params *params,
                                                 const rondo_node_where *where);

/* Whether it can be a node. In addition to rondo_node_params_check this finds what graph/ cannot know: an event of
 * another device, and a copy or fill that passes the end of an allocation (B4). `device` is the graph's, or NULL. */
RONDO_MUST_USE rondo_status rondo_work_check(const char *call, const rondo_device *device,
                                             const rondo_node_params *params);

/* Whether the device has code for it, if it is a kernel: INVALID_GRAPH/NO_FUNCTION. `where` is the node's, NULL for
 * what is queued. */
RONDO_MUST_USE static inline rondo_status rondo_work_check_code(const char *call, const rondo_device *device,
                                                                const rondo_node_params *params,
                                                                const rondo_node_where *where) {
  if (params->kind != RONDO_NODE_KERNEL) return RONDO_OK;
  const rondo_status status = device->ops->kernel_check(device, &params->as.kernel);
  return __builtin_expect(status == RONDO_OK, 1) ? RONDO_OK : rondo_work_fail_code(call, status, params, where);
}

/* Whether the device can run it: that, and NO_ACCESS when memory of another device is not open to it. */
RONDO_MUST_USE static inline rondo_status rondo_work_check_runs(const char *call, const rondo_device *device,
                                                                const rondo_node_params *params,
                                                                const rondo_node_where *where) {
  RONDO_TRY(rondo_work_check_code(call, device, params, where));
  return rondo_peers_check(device, call, params, where);
}

/* Both, for work that is enqueued now, when graph memory that it accesses must be allocated too (GM-18). */
RONDO_MUST_USE rondo_status rondo_work_check_now(const char *call, const rondo_device *device,
                                                 const rondo_node_params *params);

#endif
