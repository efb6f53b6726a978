/* SPDX-License-Identifier: MIT
 * See stream_work.h.
 */
#include "exec/stream/stream_work.h"

#include <stdio.h>

#include "exec/stream/stream_internal.h"
#include "graph/node_name.h"
#include "graph/node_params.h"
#include "memory/memory_errors.h"

/* Kernels are the most frequent nodes and have no extents. So this is asked before check_extents sets up its list. */
static inline bool has_extents(const rondo_node_params *params) {
  return params->kind == RONDO_NODE_COPY || params->kind == RONDO_NODE_FILL;
}

/* A device without memory state has no allocations. */
static rondo_status check_extents(const char *call, const rondo_device *device, const rondo_node_params *params,
                                  bool now) {
  rondo_extent extents[RONDO_MOST_EXTENTS];
  rondo_device_memory *memory = device == NULL ? NULL : rondo_device_memory_made(device);
  if (memory == NULL) return RONDO_OK;
  const size_t count = rondo_node_extents(params, extents);
  for (size_t i = 0; i < count; i++)
    RONDO_TRY(rondo_memory_check_range(memory, call, extents[i].what, extents[i].address, extents[i].bytes, now));
  return RONDO_OK;
}

static rondo_status check_operations(const char *call, const rondo_device *device,
                                     const rondo_memory_operations_node *work, bool now) {
  rondo_device_memory *memory = device == NULL ? NULL : rondo_device_memory_made(device);
  if (device != NULL) RONDO_TRY(rondo_fail_context(rondo_device_check_operations(device, work), "%s", call));
  for (size_t i = 0; i < work->count && memory != NULL; i++) {
    const rondo_memory_operation *operation = &work->operations[i];
    const size_t bytes = rondo_operation_bytes(operation);
    char what[48];
    if (operation->address == NULL) continue;
    snprintf(what, sizeof what, "word of memory operation %zu", i);
    RONDO_TRY(rondo_memory_check_range(memory, call, what, operation->address, bytes, now));
  }
  return RONDO_OK;
}

/* A copy that passes the end of an allocation often overlaps the next one. The message should be about the end. */
static rondo_status check_params(const char *call, const rondo_device *device, const rondo_node_params *params,
                                 bool now) {
  rondo_status status = rondo_node_params_check(call, device, params);
  if (status == RONDO_OK && device != NULL && params->kind == RONDO_NODE_KERNEL) {
    status = rondo_device_check_launch(device, &params->as.kernel);
    if (status != RONDO_OK) status = rondo_fail_context(status, "%s", call);
  }
  if (status == RONDO_OK || params == NULL || params->kind != RONDO_NODE_COPY) return status;
  if (rondo_last_error()->reason == RONDO_REASON_OUT_OF_RANGE) RONDO_TRY(check_extents(call, device, params, now));
  return status;
}

rondo_status rondo_work_check(const char *call, const rondo_device *device, const rondo_node_params *params) {
  RONDO_TRY(check_params(call, device, params, false));
  if (rondo_node_names_event(params)) return rondo_require_device(call, "the event", device, params->as.event->device);
  if (params->kind == RONDO_NODE_MEMORY_OPERATIONS)
    return check_operations(call, device, &params->as.memory_operations, false);
  return has_extents(params) ? check_extents(call, device, params, false) : RONDO_OK;
}

rondo_status rondo_work_check_ranges(const char *call, const rondo_device *device, const rondo_node_params *params) {
  return has_extents(params) ? check_extents(call, device, params, false) : RONDO_OK;
}

rondo_status rondo_work_fail_code(const char *call, rondo_status status, const rondo_node_params *params,
                                  const rondo_node_where *where) {
  if (where == NULL) return rondo_fail_context(status, "%s", call);
  const rondo_error *why = rondo_last_error();
  char label[RONDO_LABEL_BYTES];
  return rondo_fail_node(status, why->reason, where->number, "%s: %s: %s", call,
                         rondo_node_label_at(label, params, where), why->message);
}

rondo_status rondo_work_check_now(const char *call, const rondo_device *device, const rondo_node_params *params) {
  RONDO_TRY(check_params(call, device, params, true));
  if (has_extents(params)) RONDO_TRY(check_extents(call, device, params, true));
  if (params->kind == RONDO_NODE_MEMORY_OPERATIONS)
    RONDO_TRY(check_operations(call, device, &params->as.memory_operations, true));
  return rondo_work_check_runs(call, device, params, NULL);
}
