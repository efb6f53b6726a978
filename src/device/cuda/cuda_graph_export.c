/* SPDX-License-Identifier: MIT
 * Exports a graph: the driver's graph has a node for each node of the lowered one, in its order, so that importing it
 * gives an equal graph. Nodes are as a program would add them (cuda_graph_node.c), and nodes that only order others
 * stay. The executable that owns the graph is never instantiated. It keeps the kernels and the records of host
 * functions that the nodes use. A graph that differs from an earlier one in a few kernels is a clone of that, whose
 * executable has these kernels alone. Threads: as driver.h says.
 */
#include "device/cuda/cuda_graph_export.h"

#include <assert.h>

#include "device/cuda/cuda_context.h"
#include "device/cuda/cuda_executable.h"
#include "device/cuda/cuda_foreign_nodes.h"
#include "device/cuda/cuda_graph_build.h"

/* Makes an executable and, by `make`, its graph. */
static rondo_status export_by(rondo_device *base, const rondo_lowered_graph *graph,
                              rondo_status (*make)(cuda_executable *executable, const void *user), const void *user,
                              rondo_executable **out, void **out_native) {
  cuda_device *device = cuda_device_of(base);
  cuda_executable *executable;
  CUDA_SCOPE(scope);
  *out = NULL;
  *out_native = NULL;
  RONDO_TRY(cuda_enter(device, &scope));
  RONDO_TRY(cuda_executable_make(device, graph, true, &executable));
  const rondo_status status = make(executable, user);
  if (status != RONDO_OK) {
    cuda_executable_free(executable);
    return status;
  }
  *out = &executable->base;
  *out_native = executable->built.graph;
  return RONDO_OK;
}

static rondo_status build(cuda_executable *executable, const void *user) {
  (void)user;
  return cuda_build_graph(executable, &executable->built.graph, executable->handles);
}

rondo_status cuda_graph_export(rondo_device *device, const rondo_lowered_graph *graph, rondo_executable **out,
                               void **out_native) {
  return export_by(device, graph, build, NULL, out, out_native);
}

/* Changing a copy -------------------------------------------------------------------------------------------------- */

/* The driver's node in an exported graph. Usually nodes are in the order of their numbers. */
static cu_graph_node exported_node(const cuda_executable *exported, uint32_t number) {
  const cuda_node *node = number < exported->count ? &exported->nodes[number] : exported->nodes;
  if (node->where.own != number) node = exported->nodes;
  while (node->where.own != number) node++;
  assert(node < exported->nodes + exported->count);
  return exported->handles[node->first];
}

static rondo_status change(cuda_executable *executable, const cuda_executable *exported) {
  cuda_device *device = cuda_device_of(executable->base.device);
  for (size_t i = 0; i < executable->count; i++) {
    const cuda_node *node = &executable->nodes[i];
    const cu_graph_node from =
        exported != NULL ? exported_node(exported, node->where.own) : cuda_captured_handle(node->captured);
    cu_graph_node *const handle = &executable->handles[node->first];
    cu_result code = device->api->graph_find_in_clone(handle, from, executable->built.graph);
    if (code == CU_OK) code = device->api->graph_kernel_set_params(*handle, &node->as.kernel);
    RONDO_TRY(cuda_check_node(device, code, node, "changing ", executable->label));
  }
  return RONDO_OK;
}

/* What a form is a copy of. */
typedef struct original {
  cu_graph graph;
  const cuda_executable *exported; /* NULL: the graph was imported */
} original;

static rondo_status clone_and_change(cuda_executable *executable, const void *user) {
  const original *from = user;
  cuda_device *device = cuda_device_of(executable->base.device);
  RONDO_TRY(cuda_check(device, device->api->graph_clone(&executable->built.graph, from->graph),
                       "copying %s on device '%s'", executable->label, device->base.name));
  return change(executable, from->exported);
}

rondo_status cuda_graph_revise(rondo_device *device, void *native, const rondo_executable *exported,
                               const rondo_lowered_graph *changed, rondo_executable **out, void **out_native) {
  const original from = {native, (const cuda_executable *)exported};
  return export_by(device, changed, clone_and_change, &from, out, out_native);
}
