/* SPDX-License-Identifier: MIT
 * See node_device.h. What a node runs says where it runs; only copies, fills and memory operations need to be told.
 */
#include "exec/build/node_device.h"

#include "exec/random/random_internal.h"
#include "exec/stream/stream_internal.h"
#include "graph/graph.h"
#include "graph/node_name.h"
#include "graph/semaphore_data.h"

static const char *name_of(const rondo_device *device) { return device == NULL ? "(none)" : device->name; }

/* The device of what the node runs; NULL if that says nothing. */
static rondo_device *device_of_content(const rondo_node_params *params) {
  const rondo_semaphores_node *semaphores = &params->as.semaphores;
  switch (params->kind) {
    case RONDO_NODE_KERNEL:
      return params->as.kernel.kernel == NULL ? NULL : params->as.kernel.kernel->device;
    case RONDO_NODE_EVENT_RECORD:
    case RONDO_NODE_EVENT_WAIT:
      return params->as.event == NULL ? NULL : params->as.event->device;
    case RONDO_NODE_CHILD:
      return params->as.child == NULL ? NULL : params->as.child->device;
    case RONDO_NODE_SEMAPHORE_SIGNAL:
    case RONDO_NODE_SEMAPHORE_WAIT:
      if (semaphores->count == 0 || semaphores->values == NULL || semaphores->values[0].semaphore == NULL) return NULL;
      return semaphores->values[0].semaphore->device;
    default:
      return NULL;
  }
}

static rondo_status fail_kept(const char *call, const rondo_graph *graph, const rondo_node_params *params) {
  char label[RONDO_LABEL_BYTES];
  if (rondo_node_is_memory(params))
    return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_OTHER_DEVICE,
                      "%s: graph memory for device '%s', but that of %s belongs to its device '%s': allocate and free "
                      "it there, and let '%s' access it (rondo_alloc_node.peers, rondo_pool_set_access)",
                      call, params->device->name, rondo_graph_label(label, graph), name_of(graph->device),
                      params->device->name);
  return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_OTHER_DEVICE,
                    "%s: a node of kind '%s' for device '%s': nodes of this kind run on no device: leave the device "
                    "out",
                    call, rondo_node_kind_name(params->kind), params->device->name);
}

static rondo_status fail_contradiction(const char *call, const rondo_node_params *params, const rondo_device *has) {
  return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_OTHER_DEVICE,
                    "%s: a node of kind '%s' for device '%s', but what it runs belongs to device '%s': name that "
                    "device, or none",
                    call, rondo_node_kind_name(params->kind), params->device->name, name_of(has));
}

/* Devices of one driver close by the same function. Those with checks have their own. */
static rondo_status check_driver(const char *call, const rondo_graph *graph, const rondo_device *device) {
  char label[RONDO_LABEL_BYTES];
  RONDO_TRY(rondo_device_require_own(call, device));
  if (rondo_device_shares_driver(graph->device, device)) return RONDO_OK;
  return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_OTHER_DEVICE,
                    "%s: a node for device '%s' in %s of device '%s': all devices of a graph are CUDA devices, or CPU "
                    "devices, or CPU devices with checks: make one graph for each device, and order their launches on "
                    "the host",
                    call, device->name, rondo_graph_label(label, graph), graph->device->name);
}

/* Its memory is mapped for launches on its own device, and so are cells of random numbers. */
static rondo_status check_child(const char *call, const rondo_graph *graph, const rondo_graph *child) {
  char label[RONDO_LABEL_BYTES];
  const bool draws = rondo_random_is_drawn(child);
  if (!child->has_memory && !draws) return RONDO_OK;
  return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_OTHER_DEVICE,
                    "%s: %s of device '%s' %s and cannot become a child graph on device '%s': %s", call,
                    rondo_graph_label(label, child), child->device->name,
                    draws ? "draws random numbers" : "has graph memory", graph->device->name,
                    draws ? "draw them in a graph of the launching device"
                          : "allocate in the graph around it, with access by this device");
}

static bool is_placed_by_caller(rondo_node_kind kind) {
  return kind == RONDO_NODE_COPY || kind == RONDO_NODE_FILL || kind == RONDO_NODE_MEMORY_OPERATIONS;
}

static rondo_status find(const char *call, const rondo_graph *graph, const rondo_node_params *params,
                         rondo_device **out) {
  rondo_device *const has = device_of_content(params), *const named = params->device;
  if (named != NULL && has != NULL && has != named) return fail_contradiction(call, params, has);
  *out = has != NULL ? has : named;
  if (*out == NULL || *out == graph->device) {
    *out = graph->device;
    return RONDO_OK;
  }
  if (graph->device == NULL) {
    *out = NULL; /* of a graph that is only data, which has no kernels and events of devices */
    return named == NULL ? RONDO_OK : fail_contradiction(call, params, NULL);
  }
  if (has == NULL && !is_placed_by_caller(params->kind)) return fail_kept(call, graph, params);
  RONDO_TRY(check_driver(call, graph, *out));
  return params->kind == RONDO_NODE_CHILD ? check_child(call, graph, params->as.child) : RONDO_OK;
}

rondo_status rondo_node_device_find(const char *call, const rondo_graph *graph, const rondo_node_params *params,
                                    rondo_device **out) {
  *out = graph->device;
  return rondo_node_is_plainly_own(graph, params) ? RONDO_OK : find(call, graph, params, out);
}

rondo_status rondo_node_device_set(const char *call, rondo_graph *graph, rondo_node_params *params,
                                   rondo_device **out) {
  RONDO_TRY(rondo_node_device_find(call, graph, params, out));
  params->device = *out == graph->device ? NULL : *out;
  if (graph->device == NULL) return RONDO_OK;
  if (params->kind == RONDO_NODE_CHILD && params->as.child != NULL && params->as.child->device != NULL)
    return rondo_fail_context(rondo_graph_retain_device_of(graph, params->as.child, (*out)->index), "%s", call);
  if (params->device == NULL) return RONDO_OK;
  return rondo_fail_context(rondo_graph_retain_device(graph, *out, (*out)->index), "%s", call);
}

rondo_status rondo_node_device_refuse_move(const char *call, const rondo_node_params *params,
                                           const rondo_node_where *where, const rondo_device *now,
                                           const rondo_device *then) {
  char label[RONDO_LABEL_BYTES];
  if (now == then) return RONDO_OK;
  return rondo_fail_node(RONDO_UPDATE_REFUSED, RONDO_REASON_OTHER_DEVICE, where->number,
                         "%s: %s runs on device '%s', and an exec cannot move it to '%s': change the graph, and "
                         "instantiate it again",
                         call, rondo_node_label_at(label, params, where), name_of(now), name_of(then));
}
