/* SPDX-License-Identifier: MIT
 * Exports a graph: the driver's graph has a node for each node of the lowered one, in its order, so that importing it
 * gives an equal graph. Nodes are as a program would add them: a fill is a memset node, a host function is called on
 * the driver's thread, and nodes that only order others stay. The executable that owns the graph is never instantiated.
 * It keeps the kernels and the records of host functions that the nodes use. Threads: as driver.h says.
 */
#include "device/cuda/cuda_graph_export.h"

#include "device/cuda/cuda_context.h"
#include "device/cuda/cuda_executable.h"
#include "device/cuda/cuda_graph_build.h"
#include "device/cuda/cuda_graph_node.h"
#include "device/cuda/cuda_host_function.h"

static rondo_status export_graph(cuda_device *device, const rondo_lowered_graph *graph, cuda_executable **out);

static cu_result add_memset(const cuda_device *device, const rondo_fill *fill, cu_graph graph,
                            const cu_graph_node *before, size_t count, cu_graph_node *out) {
  const cu_memset_params params = {.dst = cuda_address(fill->dst),
                                   .pitch = fill->pitch,
                                   .value = fill->value,
                                   .element_bytes = fill->element_bytes,
                                   .width = fill->width,
                                   .height = fill->height};
  return device->api->graph_add_memset(out, graph, before, count, &params, device->context);
}

/* The driver's node has a copy of the child graph, which uses what the inner executable owns. */
static rondo_status add_child(cuda_executable *executable, const rondo_lowered_graph *child, cu_graph graph,
                              const cuda_node *node, const cu_graph_node *before, size_t count, cu_graph_node *out) {
  cuda_device *device = cuda_device_of(executable->base.device);
  cuda_executable *inner;
  RONDO_TRY(export_graph(device, child, &inner));
  inner->next_inner = executable->inner;
  executable->inner = inner;
  const cu_result code = device->api->graph_add_child(out, graph, before, count, inner->built.graph);
  (void)device->api->graph_destroy(inner->built.graph); /* gone already on a lost device */
  inner->built.graph = NULL;
  return cuda_check_node(device, code, node, "adding ", executable->label);
}

static cu_result add_host(const cuda_device *device, const cuda_node *node, cu_graph graph, const cu_graph_node *before,
                          size_t count, cu_graph_node *out_parts) {
  const cu_result code =
      device->api->graph_add_host(out_parts, graph, before, count, &(cu_host_params){cuda_call_host, node->as.host});
  out_parts[1] = out_parts[0]; /* nodes that come after it depend on the last part */
  return code;
}

/* `user` is the lowered graph. */
static rondo_status add_node(cuda_executable *executable, cu_graph graph, size_t i, const cu_graph_node *before,
                             size_t count, cu_graph_node *out_parts, void *user) {
  const rondo_lowered_graph *lowered = user;
  cuda_device *device = cuda_device_of(executable->base.device);
  const cuda_node *node = &executable->nodes[i];
  cu_result code;
  switch (node->kind) {
    case RONDO_NODE_CHILD:
      return add_child(executable, lowered->nodes[i].child, graph, node, before, count, out_parts);
    case RONDO_NODE_HOST:
      code = add_host(device, node, graph, before, count, out_parts);
      break;
    case RONDO_NODE_FILL:
      code = add_memset(device, &node->as.fill, graph, before, count, out_parts);
      break;
    default:
      code = cuda_node_add(executable, node, graph, before, count, out_parts);
  }
  return cuda_check_node(device, code, node, "adding ", executable->label);
}

static rondo_status build(cuda_executable *executable, const rondo_lowered_graph *graph) {
  cuda_device *device = cuda_device_of(executable->base.device);
  const cuda_order order = cuda_order_plain(executable);
  RONDO_TRY(rondo_allocate_items(cuda_allocator_of(executable), executable->handle_count, sizeof(cu_graph_node),
                                 &executable->handles));
  RONDO_TRY(cuda_check(device, device->api->graph_create(&executable->built.graph, 0), "making %s on device '%s'",
                       executable->label, device->base.name));
  return cuda_add_all(executable, executable->built.graph, executable->handles, &order, add_node,
                      (void *)(uintptr_t)graph);
}

static rondo_status export_graph(cuda_device *device, const rondo_lowered_graph *graph, cuda_executable **out) {
  RONDO_TRY(cuda_executable_make(device, graph, out));
  const rondo_status status = build(*out, graph);
  if (status == RONDO_OK) return RONDO_OK;
  cuda_executable_free(*out);
  *out = NULL;
  return status;
}

rondo_status cuda_graph_export(rondo_device *base, const rondo_lowered_graph *graph, rondo_executable **out,
                               void **out_native) {
  cuda_device *device = cuda_device_of(base);
  cuda_executable *executable;
  CUDA_SCOPE(scope);
  *out = NULL;
  *out_native = NULL;
  RONDO_TRY(cuda_enter(device, &scope));
  RONDO_TRY(export_graph(device, graph, &executable));
  *out = &executable->base;
  *out_native = executable->built.graph;
  return RONDO_OK;
}
