/* SPDX-License-Identifier: MIT
 * Nodes of executables as the driver takes them: made from lowered nodes, added to graphs, changed in executable
 * graphs, and run one by one. A fill is a kernel (cuda_builtin_kernels.h). A host function is followed by a wait for
 * its gate (cuda_host_function.c). A copy whose slices the driver cannot describe is one node for each slice
 * (cuda_launch_params.c). In a graph for callers, nodes are as a program would add them: a fill is a memset node, and a
 * host function is called on the driver's thread. Threads: the executable's owner.
 */
#include <assert.h>
#include <string.h>

#include "base/allocation.h"
#include "device/cuda/cuda_builtin_kernels.h"
#include "device/cuda/cuda_context.h"
#include "device/cuda/cuda_foreign_nodes.h"
#include "device/cuda/cuda_graph_node.h"
#include "device/cuda/cuda_host_function.h"
#include "device/cuda/cuda_launch_params.h"
#include "device/cuda/cuda_operations.h"
#include "graph/launch_config.h"
#include "graph/node_name.h"
#include "graph/semaphore_data.h"

/* Making ----------------------------------------------------------------------------------------------------------- */

void cuda_node_bind(cuda_node *node, const void *const *args) {
  const cuda_foreign_kernel *foreign = node->is_foreign ? cuda_foreign_of(node->kernel) : NULL;
  node->args = args;
  node->as.kernel.params = (void **)(uintptr_t)args; /* the driver only reads */
  node->as.kernel.extra = NULL;
  if (foreign != NULL && args != NULL)
    cuda_foreign_arguments(foreign, foreign->has_buffer, args, node->storage, &node->as.kernel);
}

static bool has_arguments(const cuda_node *node) {
  return node->args != NULL || node->as.kernel.params != NULL || node->kernel->parameter_count == 0;
}

/* A library's kernel with the configuration of its launch. Its priority may be just that of its stream. */
static bool has_captured_config(const rondo_kernel *kernel, const rondo_launch_config *config) {
  const cuda_foreign_kernel *foreign = cuda_foreign_of(kernel);
  return foreign != NULL && rondo_launch_config_same_attributes(&foreign->config, config);
}

static rondo_status keep_config(cuda_executable *executable, const rondo_kernel_node *node, cuda_node *out) {
  rondo_launch_config config, *copy;
  if (node->config == NULL || !rondo_launch_config_resolve(node, &config)) return RONDO_OK;
  RONDO_TRY(rondo_allocate_items(cuda_allocator_of(executable), 1, sizeof *copy, &copy));
  *copy = config;
  out->config = copy;
  out->is_configured = executable->has_configs = true;
  executable->has_priorities |= config.priority != 0 && !has_captured_config(node->kernel, &config);
  return RONDO_OK;
}

static rondo_status make_kernel(cuda_executable *executable, const rondo_kernel_node *node, cuda_node *out) {
  const cuda_foreign_kernel *foreign = cuda_foreign_of(node->kernel);
  out->kernel = node->kernel;
  rondo_kernel_retain(node->kernel);
  cuda_kernel_params(node, &out->as.kernel);
  RONDO_TRY(keep_config(executable, node, out));
  out->is_foreign = foreign != NULL;
  executable->has_foreign |= out->is_foreign;
  if (foreign != NULL && !foreign->is_declared && node->kernel->parameter_count > 0) {
    out->storage_bytes = (foreign->has_buffer ? CUDA_BUFFER_LIST : foreign->count) * sizeof(void *);
    RONDO_TRY(rondo_allocate(cuda_allocator_of(executable), 1, out->storage_bytes, &out->storage));
  }
  cuda_node_bind(out, node->args);
  return RONDO_OK;
}

static rondo_status make_host(cuda_executable *executable, const rondo_host_node *node, cuda_node *out) {
  cuda_device *device = cuda_device_of(executable->base.device);
  cuda_host_work *work;
  RONDO_TRY(cuda_hosts_start(device));
  RONDO_TRY(rondo_allocate_items(cuda_allocator_of(executable), 1, sizeof *work, &work));
  out->as.host = work;
  *work = (cuda_host_work){
      .host = *node, .device = device, .queue = &executable->queue, .node = out->where.number, .value = 1};
  char label[RONDO_LABEL_BYTES];
  RONDO_TRY(rondo_allocate_text(cuda_allocator_of(executable), cuda_node_label(label, out), &work->label));
  return cuda_gate_take(device, &work->gate);
}

/* A library's copy is kept as the driver describes it, which may say more about the memory than its address. */
static rondo_status make_copy(cuda_executable *executable, const rondo_copy *copy, cuda_node *out) {
  cuda_device *device = cuda_device_of(executable->base.device);
  cu_copy captured;
  bool is_found;
  out->as.copy = *copy;
  if (out->captured == 0) return RONDO_OK;
  RONDO_TRY(cuda_check_node(device, cuda_foreign_copy_find(device, out->captured, copy, &is_found, &captured), out,
                            "reading ", NULL));
  if (!is_found) return RONDO_OK;
  RONDO_TRY(rondo_allocate(cuda_allocator_of(executable), 1, sizeof captured, &out->storage));
  out->storage_bytes = sizeof captured;
  memcpy(out->storage, &captured, sizeof captured);
  return RONDO_OK;
}

static rondo_status make_operations(cuda_executable *executable, const rondo_memory_operations_node *node,
                                    cuda_node *out) {
  out->storage_bytes = node->count * sizeof(cu_memory_operation);
  RONDO_TRY(rondo_allocate(cuda_allocator_of(executable), 1, out->storage_bytes, &out->storage));
  cuda_operations_params(node, out->storage);
  return RONDO_OK;
}

static cu_memory_operations_params operations_of(const cuda_node *node) {
  return (cu_memory_operations_params){.context = node->device->context,
                                       .count = (unsigned)(node->storage_bytes / sizeof(cu_memory_operation)),
                                       .operations = node->storage};
}

/* Launches by the driver may use them after the graph of the exec, or of the form, has let them go. */
static rondo_status make_semaphores(cuda_executable *executable, const rondo_semaphores_node *node, cuda_node *out) {
  const size_t bytes = cuda_semaphores_bytes(node->count);
  out->storage_bytes = bytes + node->count * sizeof(rondo_external_semaphore *);
  RONDO_TRY(rondo_allocate(cuda_allocator_of(executable), 1, out->storage_bytes, &out->storage));
  cuda_semaphores_fill(node, out->storage);
  rondo_external_semaphore **const kept = (void *)((char *)out->storage + bytes);
  for (size_t i = 0; i < node->count; i++) rondo_semaphore_retain(kept[i] = node->values[i].semaphore);
  out->as.semaphores.items = kept;
  out->as.semaphores.count = node->count;
  return RONDO_OK;
}

static rondo_status make_foreign(cuda_executable *executable, const rondo_foreign_node *foreign, cuda_node *out) {
  executable->has_foreign = true;
  out->is_bound = foreign->is_bound;
  char where[RONDO_LABEL_BYTES];
  if (out->captured != 0) return RONDO_OK;
  return rondo_fail_node(RONDO_UNSUPPORTED, RONDO_REASON_FOREIGN_WORK, out->where.number,
                         "%s is a %s of a library, from a capture that failed: remove it and capture again",
                         rondo_node_where_text(where, &out->where), foreign->what);
}

static rondo_status make(cuda_executable *executable, const rondo_lowered_node *lowered, cuda_node *out) {
  const rondo_node_params *params = lowered->params;
  switch (params->kind) {
    case RONDO_NODE_KERNEL:
      return make_kernel(executable, &params->as.kernel, out);
    case RONDO_NODE_HOST:
      return make_host(executable, &params->as.host, out);
    case RONDO_NODE_COPY:
      return make_copy(executable, &params->as.copy, out);
    case RONDO_NODE_FILL:
      out->as.fill = params->as.fill;
      return RONDO_OK;
    case RONDO_NODE_EVENT_RECORD:
    case RONDO_NODE_EVENT_WAIT:
      out->as.event = ((cuda_event *)lowered->event)->event;
      return RONDO_OK;
    case RONDO_NODE_FOREIGN:
      return make_foreign(executable, &params->as.foreign, out);
    case RONDO_NODE_MEMORY_OPERATIONS:
      return make_operations(executable, &params->as.memory_operations, out);
    case RONDO_NODE_SEMAPHORE_SIGNAL:
    case RONDO_NODE_SEMAPHORE_WAIT:
      return make_semaphores(executable, &params->as.semaphores, out);
    case RONDO_NODE_CHILD:
      assert(executable->is_exported);
      return cuda_executable_make(cuda_device_of(executable->base.device), lowered->child, true, &out->as.child);
    default:
      assert(cuda_is_order_alone(out));
      return RONDO_OK;
  }
}

rondo_status cuda_node_make(cuda_executable *executable, const rondo_lowered_node *lowered, cuda_node *out) {
  assert(out->kind == 0 && out->name == NULL && out->kernel == NULL); /* zero */
  out->kind = lowered->params->kind;
  out->enabled = true;
  out->captured = lowered->captured;
  out->name = lowered->params->name;
  out->device = cuda_device_of(lowered->device == NULL ? executable->base.device : lowered->device);
  out->where = lowered->where;
  const rondo_status status = make(executable, lowered, out);
  if (status != RONDO_OK) cuda_node_free(executable, out);
  return status;
}

void cuda_node_release(cuda_node *node) {
  rondo_kernel_release(node->kernel);
  node->kernel = NULL;
  if (!cuda_has_semaphores(node)) return;
  for (size_t i = 0; i < node->as.semaphores.count; i++) rondo_semaphore_release(node->as.semaphores.items[i]);
  node->as.semaphores.count = 0;
}

void cuda_node_free(cuda_executable *executable, cuda_node *node) {
  const rondo_allocator *allocator = cuda_allocator_of(executable);
  if (node->kind == RONDO_NODE_HOST && node->as.host != NULL) {
    cuda_gate_give(cuda_device_of(executable->base.device), node->as.host->gate);
    cuda_host_free(allocator, node->as.host);
  }
  if (node->kind == RONDO_NODE_CHILD && node->as.child != NULL) cuda_executable_free(node->as.child);
  cuda_node_release(node);
  rondo_release(allocator, node->storage, 1, node->storage_bytes);
  rondo_release(allocator, (void *)(uintptr_t)node->config, 1, sizeof *node->config);
  *node = (cuda_node){0};
}

/* In graphs for callers -------------------------------------------------------------------------------------------- */

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

/* The second part is the first, because nodes that come after it depend on the last part. */
static cu_result add_host_call(const cuda_device *device, const cuda_node *node, cu_graph graph,
                               const cu_graph_node *before, size_t count, cu_graph_node *out) {
  const cu_result code =
      device->api->graph_add_host(out, graph, before, count, &(cu_host_params){cuda_call_host, node->as.host});
  out[1] = out[0];
  return code;
}

/* In a driver's graph ---------------------------------------------------------------------------------------------- */

static cu_result add_host(const cuda_executable *executable, const cuda_node *node, cu_graph graph,
                          const cu_graph_node *before, size_t count, cu_graph_node *out) {
  cuda_device *device = cuda_device_of(executable->base.device);
  if (executable->is_exported) return add_host_call(device, node, graph, before, count, out);
  cu_memory_operation wait = {.of = {.operation = CU_OPERATION_WAIT_VALUE_32,
                                     .address = cuda_address(node->as.host->gate),
                                     .value = node->as.host->value,
                                     .flags = CU_WAIT_VALUE_EQUAL}};
  const cu_memory_operations_params params = {.context = device->context, .count = 1, .operations = &wait};
  const cu_result code =
      device->api->graph_add_host(&out[0], graph, before, count, &(cu_host_params){cuda_post_host, node->as.host});
  if (code != CU_OK) return code;
  return device->api->graph_add_memory_operations(&out[1], graph, out, 1, &params);
}

static cu_result add_copies(const cuda_node *node, cu_graph graph, const cu_graph_node *before, size_t count,
                            cu_graph_node *out) {
  const cuda_device *device = node->device;
  const size_t parts = cuda_copy_parts(&node->as.copy);
  cu_result code = CU_OK;
  if (node->storage != NULL)
    return device->api->graph_add_copy(out, graph, before, count, node->storage, device->context);
  for (size_t part = 0; part < parts && code == CU_OK; part++) {
    cu_copy params;
    cuda_copy_params(&node->as.copy, part, &params);
    code = part == 0 ? device->api->graph_add_copy(out, graph, before, count, &params, device->context)
                     : device->api->graph_add_copy(&out[part], graph, &out[part - 1], 1, &params, device->context);
  }
  return code;
}

/* The captured node, or the node that was made from it in the executable's graph. */
static cu_graph_node source_of(const cuda_executable *executable, const cuda_node *node) {
  return executable->is_made ? executable->handles[node->first] : cuda_captured_handle(node->captured);
}

/* Whether the captured node has the attributes of the configuration. It has the priority of its stream, too. Nodes are
 * not asked on a device where none ever had any. */
static cu_result compare_attributes(const cuda_executable *executable, const cuda_node *node, bool *out_same) {
  const cuda_device *device = node->device;
  rondo_launch_config captured = {0};
  *out_same = true;
  if (!node->is_configured && !atomic_load_explicit(&device->has_attributes, memory_order_relaxed)) return CU_OK;
  const cu_result code = cuda_node_attributes_read(device->api, source_of(executable, node), &captured);
  if (node->config == NULL || node->config->priority == 0) captured.priority = 0;
  *out_same = rondo_launch_config_same_attributes(&captured, node->config);
  return code;
}

/* Those that the stream or a library gave it when it was captured, or, after a change, those of its configuration. */
static cu_result set_attributes(const cuda_executable *executable, const cuda_node *node, cu_graph_node to) {
  const cuda_device *device = cuda_device_of(executable->base.device);
  const cuda_api *api = device->api;
  cu_node_type type = CU_NODE_EMPTY;
  bool is_same = false;
  cu_result code = node->captured == 0 ? CU_OK : api->graph_node_get_type(source_of(executable, node), &type);
  /* a kernel without code was captured as an empty node */
  if (code == CU_OK && type == CU_NODE_KERNEL) code = compare_attributes(executable, node, &is_same);
  if (code == CU_OK && is_same) return api->graph_kernel_copy_attributes(to, source_of(executable, node));
  return code == CU_OK && node->is_configured ? cuda_node_attributes_set(device, to, node->config) : code;
}

static cu_result add_kernel(const cuda_executable *executable, const cuda_node *node, cu_graph graph,
                            const cu_graph_node *before, size_t count, cu_graph_node *out) {
  const cuda_api *api = cuda_device_of(executable->base.device)->api;
  if (!has_arguments(node)) return CU_INVALID_VALUE;
  const cu_result code = api->graph_add_kernel(out, graph, before, count, &node->as.kernel);
  if (code != CU_OK || (node->captured == 0 && !node->is_configured)) return code;
  return set_attributes(executable, node, *out);
}

static cu_result add_fill(const cuda_executable *executable, const cuda_node *node, cu_graph graph,
                          const cu_graph_node *before, size_t count, cu_graph_node *out) {
  const cuda_device *device = node->device;
  cuda_fill fill;
  if (executable->is_exported) return add_memset(device, &node->as.fill, graph, before, count, out);
  cuda_fill_params(device, &node->as.fill, &fill);
  return device->api->graph_add_kernel(out, graph, before, count, &fill.params);
}

/* The driver takes the current context for nodes of semaphores. */
static cu_result enter_context(const cuda_executable *executable, const cuda_node *node) {
  if (&node->device->base == executable->base.device) return CU_OK;
  return node->device->api->context_set_current(node->device->context);
}

static cu_result leave_context(const cuda_executable *executable, const cuda_node *node, cu_result code) {
  const cuda_device *device = cuda_device_of(executable->base.device);
  if (node->device == device) return code;
  const cu_result left = device->api->context_set_current(device->context);
  return code == CU_OK ? left : code;
}

static cu_result add_semaphores(const cuda_executable *executable, const cuda_node *node, cu_graph graph,
                                const cu_graph_node *before, size_t count, cu_graph_node *out) {
  const cuda_api *api = node->device->api;
  const cu_semaphores_params params = cuda_semaphores_in(node->storage, node->as.semaphores.count);
  cu_result code = enter_context(executable, node);
  if (code == CU_OK)
    code = node->kind == RONDO_NODE_SEMAPHORE_SIGNAL
               ? api->graph_add_semaphore_signal(out, graph, before, count, &params)
               : api->graph_add_semaphore_wait(out, graph, before, count, &params);
  return leave_context(executable, node, code);
}

cu_result cuda_node_add(const cuda_executable *executable, const cuda_node *node, cu_graph graph,
                        const cu_graph_node *before, size_t count, cu_graph_node *out) {
  const cuda_device *device = cuda_device_of(executable->base.device);
  const cuda_api *api = device->api;
  assert(node->kind != RONDO_NODE_CHILD);
  switch (node->kind) {
    case RONDO_NODE_KERNEL:
      return add_kernel(executable, node, graph, before, count, out);
    case RONDO_NODE_FOREIGN:
      if (node->captured == 0) return CU_NOT_SUPPORTED;
      return cuda_foreign_add(device, source_of(executable, node), graph, before, count, out);
    case RONDO_NODE_COPY:
      return add_copies(node, graph, before, count, out);
    case RONDO_NODE_FILL:
      return add_fill(executable, node, graph, before, count, out);
    case RONDO_NODE_HOST:
      return add_host(executable, node, graph, before, count, out);
    case RONDO_NODE_EVENT_RECORD:
      return api->graph_add_event_record(out, graph, before, count, node->as.event);
    case RONDO_NODE_EVENT_WAIT:
      return api->graph_add_event_wait(out, graph, before, count, node->as.event);
    case RONDO_NODE_MEMORY_OPERATIONS: {
      const cu_memory_operations_params operations = operations_of(node);
      return api->graph_add_memory_operations(out, graph, before, count, &operations);
    }
    case RONDO_NODE_SEMAPHORE_SIGNAL:
    case RONDO_NODE_SEMAPHORE_WAIT:
      return add_semaphores(executable, node, graph, before, count, out);
    default:
      return api->graph_add_empty(out, graph, before, count);
  }
}

/* Changing --------------------------------------------------------------------------------------------------------- */

static cu_result change_copies(const cuda_executable *executable, const cuda_built *built, const cuda_node *node) {
  const cuda_device *device = node->device;
  const size_t parts = cuda_node_parts(node);
  cu_result code = CU_OK;
  for (size_t part = 0; part < parts && code == CU_OK; part++) {
    cu_copy params;
    if (node->storage != NULL)
      memcpy(&params, node->storage, sizeof params);
    else
      cuda_copy_params(&node->as.copy, part, &params);
    code = device->api->exec_set_copy(built->exec, executable->handles[node->first + part], &params, device->context);
  }
  return code;
}

static cu_result change_semaphores(const cuda_executable *executable, cu_graph_exec exec, cu_graph_node handle,
                                   const cuda_node *node) {
  const cuda_api *api = node->device->api;
  const cu_semaphores_params params = cuda_semaphores_in(node->storage, node->as.semaphores.count);
  cu_result code = enter_context(executable, node);
  if (code == CU_OK)
    code = node->kind == RONDO_NODE_SEMAPHORE_SIGNAL ? api->exec_set_semaphore_signal(exec, handle, &params)
                                                     : api->exec_set_semaphore_wait(exec, handle, &params);
  return leave_context(executable, node, code);
}

cu_result cuda_node_change(const cuda_executable *executable, const cuda_built *built, const cuda_node *node) {
  const cuda_device *device = node->device;
  const cuda_api *api = device->api;
  const cu_graph_node handle = executable->handles[node->first];
  cuda_fill fill;
  switch (node->kind) {
    case RONDO_NODE_KERNEL:
      return api->exec_set_kernel(built->exec, handle, &node->as.kernel);
    case RONDO_NODE_COPY:
      return change_copies(executable, built, node);
    case RONDO_NODE_FILL:
      cuda_fill_params(device, &node->as.fill, &fill);
      return api->exec_set_kernel(built->exec, handle, &fill.params);
    case RONDO_NODE_HOST:
      return api->exec_set_host(built->exec, handle, &(cu_host_params){cuda_post_host, node->as.host});
    case RONDO_NODE_EVENT_RECORD:
      return api->exec_set_event_record(built->exec, handle, node->as.event);
    case RONDO_NODE_EVENT_WAIT:
      return api->exec_set_event_wait(built->exec, handle, node->as.event);
    case RONDO_NODE_MEMORY_OPERATIONS: {
      const cu_memory_operations_params operations = operations_of(node);
      return api->exec_set_memory_operations(built->exec, handle, &operations);
    }
    case RONDO_NODE_SEMAPHORE_SIGNAL:
    case RONDO_NODE_SEMAPHORE_WAIT:
      return change_semaphores(executable, built->exec, handle, node);
    default:
      return CU_OK;
  }
}

cu_result cuda_node_switch(const cuda_executable *executable, const cuda_built *built, const cu_graph_node *handles,
                           const cuda_node *node, bool enabled) {
  const cuda_device *device = cuda_device_of(executable->base.device);
  const size_t parts = cuda_node_parts(node);
  cu_result code = CU_OK;
  for (size_t part = 0; part < parts && code == CU_OK; part++)
    code = device->api->exec_set_enabled(built->exec, handles[node->first + part], enabled);
  return code;
}

/* Running ---------------------------------------------------------------------------------------------------------- */

/* The function is called only if the stream will wait for it. */
static cu_result submit_host(const cuda_api *api, cuda_host_work *work, cu_stream stream) {
  atomic_store_explicit(work->gate, 0, memory_order_relaxed);
  atomic_store_explicit(&work->state, CUDA_HOST_BEING_QUEUED, memory_order_relaxed);
  cu_result code = api->launch_host_function(stream, cuda_post_host, work);
  const bool is_posted = code == CU_OK;
  if (is_posted) code = api->stream_wait_value_32(stream, cuda_address(work->gate), work->value, CU_WAIT_VALUE_EQUAL);
  atomic_store_explicit(&work->state, code == CU_OK ? CUDA_HOST_READY : CUDA_HOST_TAKEN_BACK, memory_order_release);
  if (is_posted && code != CU_OK && api->stream_synchronize(stream) == CU_OK) {
    while (atomic_load_explicit(work->gate, memory_order_acquire) != work->value) rondo_yield();
    atomic_store_explicit(&work->state, CUDA_HOST_READY, memory_order_relaxed);
  }
  return code;
}

cu_result cuda_node_submit(const cuda_node *node, cu_stream stream) {
  const cuda_device *device = node->device;
  const cuda_api *api = device->api;
  cuda_fill fill;
  switch (node->kind) {
    case RONDO_NODE_KERNEL:
      return cuda_launch_configured(device, stream, &node->as.kernel, node->config);
    case RONDO_NODE_COPY:
      return cuda_copy_submit(api, stream, &node->as.copy);
    case RONDO_NODE_FILL:
      cuda_fill_params(device, &node->as.fill, &fill);
      return cuda_launch_params(api, stream, &fill.params);
    case RONDO_NODE_HOST:
      return submit_host(api, node->as.host, stream);
    case RONDO_NODE_EVENT_RECORD:
      return api->event_record(node->as.event, stream);
    case RONDO_NODE_EVENT_WAIT:
      return api->stream_wait_event(stream, node->as.event, 0);
    case RONDO_NODE_MEMORY_OPERATIONS:
      return api->stream_batch_mem_op(stream, operations_of(node).count, node->storage, 0);
    case RONDO_NODE_SEMAPHORE_SIGNAL:
    case RONDO_NODE_SEMAPHORE_WAIT: {
      const cu_semaphores_params semaphores = cuda_semaphores_in(node->storage, node->as.semaphores.count);
      return cuda_semaphores_submit(device, stream, node->kind, &semaphores);
    }
    default:
      return CU_OK;
  }
}
