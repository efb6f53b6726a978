/* SPDX-License-Identifier: MIT
 * The table rondo_capture_ops over the driver's stream capture: begins and ends captures, adds nodes to them, and reads
 * the nodes of captured graphs. Kernels and copies are translated in cuda_foreign_nodes.c.
 */
#include "device/cuda/cuda_foreign_nodes.h"

#include <assert.h>

#include "device/cuda/cuda_adopt.h"
#include "device/cuda/cuda_context.h"
#include "device/cuda/cuda_declared_kernels.h"
#include "device/cuda/cuda_graph_export.h"
#include "device/cuda/cuda_kernel.h"
#include "device/cuda/cuda_launch_params.h"
#include "device/cuda/cuda_operations.h"
#include "device/cuda/cuda_placeholder_memory.h"
#include "device/cuda/cuda_queue.h"
#include "graph/user_object.h"

static cuda_captured *captured_of(rondo_captured *base) { return (cuda_captured *)base; }
static cuda_device *device_of(const cuda_captured *captured) { return cuda_device_of(captured->base.device); }
static const rondo_allocator *allocator_of(const cuda_captured *captured) { return &captured->base.device->allocator; }
static uint64_t name_of(cu_graph_node node) { return (uint64_t)(uintptr_t)node; }

/* Life ------------------------------------------------------------------------------------------------------------- */

void cuda_captured_free(cuda_captured *captured) {
  if (captured == NULL) return;
  cuda_device *device = device_of(captured);
  const rondo_allocator *allocator = allocator_of(captured);
  CUDA_SCOPE(scope);
  if (captured->is_over && captured->base.owns_graph && captured->graph != NULL) {
    cuda_enter_to_free(device, &scope);
    (void)device->api->graph_destroy(captured->graph); /* gone already on a lost device */
  }
  rondo_object_list_free(allocator, &captured->base.objects);
  rondo_array_free(allocator, &captured->edges);
  rondo_array_free(allocator, &captured->nodes);
  rondo_array_free(allocator, &captured->handles);
  rondo_array_free(allocator, &captured->data);
  rondo_array_free(allocator, &captured->values);
  rondo_array_free(allocator, &captured->argument_list);
  rondo_array_free(allocator, &captured->places);
  rondo_release(allocator, captured, 1, sizeof *captured);
}

/* Queues may still use what a library attached to the graph. */
static void capture_release(rondo_captured *base) {
  cuda_captured *captured = captured_of(base);
  assert(captured->grave->captured == NULL);
  captured->grave->captured = captured;
  cuda_kernel_bury(captured->grave);
}

/* Capturing -------------------------------------------------------------------------------------------------------- */

static rondo_status begin_inside(cuda_captured *captured, const cuda_queue *queue, rondo_capture_mode mode) {
  static const cu_capture_mode modes[] = {[RONDO_CAPTURE_GLOBAL] = CU_CAPTURE_MODE_GLOBAL,
                                          [RONDO_CAPTURE_THREAD_LOCAL] = CU_CAPTURE_MODE_THREAD_LOCAL,
                                          [RONDO_CAPTURE_RELAXED] = CU_CAPTURE_MODE_RELAXED};
  cuda_device *device = device_of(captured);
  cu_capture_status state;
  assert((size_t)mode < sizeof modes / sizeof modes[0]);
  cu_result code = device->api->capture_begin(queue->stream, modes[mode]);
  if (code == CU_ILLEGAL_STATE)
    return rondo_fail_driver(
        RONDO_CAPTURE_REFUSED, RONDO_REASON_ALREADY_CAPTURING, (int32_t)code, cuda_code_name(device->api, code),
        "%s is part of a capture that other code began on the driver's handle: end that first", queue->label);
  RONDO_TRY(cuda_check(device, code, "beginning to capture %s on device '%s'", queue->label, device->base.name));
  code = device->api->capture_info(queue->stream, &state, &captured->base.id, &captured->graph, NULL, NULL, NULL);
  if (code == CU_OK) return RONDO_OK;
  cu_graph graph = NULL; /* the first failure is reported */
  if (device->api->capture_end(queue->stream, &graph) == CU_OK && graph != NULL)
    (void)device->api->graph_destroy(graph);
  return cuda_check(device, code, "asking for the capture of %s", queue->label);
}

static rondo_status make_captured(rondo_device *device, cuda_captured **out) {
  const rondo_allocator *allocator = &device->allocator;
  cuda_kernel *grave;
  RONDO_TRY(rondo_allocate_items(allocator, 1, sizeof *grave, &grave));
  const rondo_status status = rondo_allocate_items(allocator, 1, sizeof **out, out);
  if (status != RONDO_OK) {
    rondo_release(allocator, grave, 1, sizeof *grave);
    return status;
  }
  grave->device = cuda_device_of(device);
  (*out)->base = (rondo_captured){.ops = &cuda_capture_ops, .device = device};
  (*out)->grave = grave;
  atomic_init(&(*out)->base.references, 1);
  return RONDO_OK;
}

static rondo_status refuse_legacy(const cuda_queue *queue) {
  return rondo_fail(RONDO_CAPTURE_REFUSED, RONDO_REASON_UNSUPPORTED_CALL,
                    "%s is the legacy default stream, which the driver cannot capture: use another stream, or compile "
                    "with per-thread default streams (nvcc --default-stream per-thread) and adopt "
                    "CU_STREAM_PER_THREAD",
                    queue->label);
}

static rondo_status capture_begin(rondo_queue *base, rondo_capture_mode mode, rondo_captured **out) {
  cuda_captured *captured;
  CUDA_SCOPE(scope);
  *out = NULL;
  if (((const cuda_queue *)base)->is_legacy) return refuse_legacy((const cuda_queue *)base);
  RONDO_TRY(cuda_queue_require_thread((const cuda_queue *)base));
  RONDO_TRY(cuda_enter(cuda_device_of(base->device), &scope));
  RONDO_TRY(make_captured(base->device, &captured));
  captured->base.owns_graph = true;
  const rondo_status status = begin_inside(captured, (const cuda_queue *)base, mode);
  if (status == RONDO_OK)
    *out = &captured->base;
  else
    capture_release(&captured->base);
  return status;
}

/* The driver cannot copy graphs with memory nodes or conditional nodes. */
static rondo_status copy_graph(cuda_device *device, cu_graph graph, cu_graph *out) {
  const cu_result code = device->api->graph_clone(out, graph);
  if (code != CU_NOT_SUPPORTED)
    return cuda_check(device, code, "copying the driver's graph on device '%s'", device->base.name);
  return rondo_fail_driver(RONDO_UNSUPPORTED, RONDO_REASON_FOREIGN_WORK, (int32_t)code,
                           cuda_code_name(device->api, code),
                           "the driver does not copy a graph with memory nodes or conditional nodes: set "
                           "takes_ownership, and do not use the driver's graph afterwards");
}

static rondo_status capture_import(rondo_device *base, void *graph, bool copies, rondo_captured **out) {
  cuda_device *device = cuda_device_of(base);
  cuda_captured *captured;
  CUDA_SCOPE(scope);
  *out = NULL;
  RONDO_TRY(cuda_enter(device, &scope));
  RONDO_TRY(make_captured(base, &captured));
  captured->is_over = true;
  captured->graph = graph;
  const rondo_status status = copies ? copy_graph(device, graph, &captured->graph) : RONDO_OK;
  if (status == RONDO_OK) {
    captured->base.owns_graph = copies;
    *out = &captured->base;
  } else {
    capture_release(&captured->base);
  }
  return status;
}

static void *capture_native(const rondo_captured *captured) { return ((const cuda_captured *)captured)->graph; }

static uint64_t capture_of(const rondo_queue *queue) {
  uint64_t id;
  if (!cuda_queue_is_here((const cuda_queue *)queue)) return 0; /* here its handle is another stream */
  return cuda_queue_capture((const cuda_queue *)queue, &id) == CU_CAPTURE_STATUS_ACTIVE ? id : 0;
}

/* The driver's edge. Without data it is a full edge. */
static inline rondo_captured_edge edge_of(cu_graph_node node, const cu_edge_data *data) {
  rondo_captured_edge edge = {.node = name_of(node)};
  if (data == NULL) return edge;
  edge.from_port = data->from_port;
  edge.to_port = data->to_port;
  edge.type = data->type;
  edge.is_programmatic = data->from_port != 0 || data->to_port != 0 || data->type != 0;
  return edge;
}

static inline rondo_status keep_edges(cuda_captured *captured, const cu_graph_node *nodes, const cu_edge_data *data,
                                      size_t count) {
  RONDO_TRY(rondo_array_reserve(allocator_of(captured), &captured->edges, count));
  for (size_t i = 0; i < count; i++) captured->edges.items[i] = edge_of(nodes[i], data == NULL ? NULL : &data[i]);
  captured->edges.count = count;
  return RONDO_OK;
}

/* In the context of the queue's device, which is not always the capture's. A failure is one of that device. */
static rondo_status read_frontier(cuda_captured *captured, const cuda_queue *queue, bool *out_is_active) {
  cuda_device *device = cuda_device_of(queue->base.device);
  const cu_graph_node *nodes = NULL;
  const cu_edge_data *data = NULL;
  cu_graph graph = NULL;
  uint64_t id = 0;
  size_t count = 0;
  cu_capture_status state = CU_CAPTURE_STATUS_NONE;
  const cu_result code = device->api->capture_info(queue->stream, &state, &id, &graph, &nodes, &data, &count);
  RONDO_TRY(cuda_check(device, code, "asking for the capture of %s", queue->label));
  *out_is_active = state == CU_CAPTURE_STATUS_ACTIVE && id == captured->base.id;
  return *out_is_active ? keep_edges(captured, nodes, data, count) : RONDO_OK;
}

static rondo_status capture_frontier(rondo_captured *base, rondo_queue *queue, bool *out_is_active,
                                     const rondo_captured_edge **out, size_t *out_count) {
  cuda_captured *captured = captured_of(base);
  CUDA_SCOPE(scope);
  *out_is_active = false;
  captured->edges.count = 0;
  RONDO_TRY(cuda_queue_require_thread((const cuda_queue *)queue));
  RONDO_TRY(cuda_enter(cuda_device_of(queue->device), &scope));
  const rondo_status status = read_frontier(captured, (const cuda_queue *)queue, out_is_active);
  *out = captured->edges.items;
  *out_count = captured->edges.count;
  return status;
}

/* Turns names into handles, in the capture's working memory. */
static rondo_status take_handles(cuda_captured *captured, const uint64_t *names, size_t count) {
  RONDO_TRY(rondo_array_reserve(allocator_of(captured), &captured->handles, count));
  for (size_t i = 0; i < count; i++) captured->handles.items[i] = cuda_captured_handle(names[i]);
  return RONDO_OK;
}

static rondo_status capture_set_frontier(rondo_captured *base, rondo_queue *queue, const uint64_t *nodes,
                                         size_t count) {
  cuda_captured *captured = captured_of(base);
  cuda_device *device = cuda_device_of(queue->device);
  const cu_stream stream = ((const cuda_queue *)queue)->stream;
  CUDA_SCOPE(scope);
  RONDO_TRY(take_handles(captured, nodes, count));
  RONDO_TRY(cuda_enter(device, &scope));
  const cu_result code =
      device->api->capture_set_dependencies(stream, captured->handles.items, NULL, count, CU_CAPTURE_DEPENDENCIES_SET);
  return cuda_check(device, code, "setting what %s depends on", ((const cuda_queue *)queue)->label);
}

static rondo_status fail_copy(const cuda_captured *captured, const rondo_copy *copy, cu_result code) {
  const cuda_device *device = device_of(captured);
  return rondo_fail_driver(
      RONDO_CAPTURE_REFUSED, RONDO_REASON_FOREIGN_WORK, (int32_t)code, cuda_code_name(device->api, code),
      "a copy from %p to %p, which are not memory of device '%s' now: copy what a library allocates in a capture "
      "before it is freed",
      copy->src, copy->dst, device->base.name);
}

/* After the first `count` of the capture's handles. */
static rondo_status place_copy(cuda_captured *captured, const rondo_node_params *work, size_t count,
                               cu_graph_node *out) {
  cuda_device *device = device_of(captured);
  const rondo_copy *copy = &work->as.copy;
  const cu_context context = work->device == NULL ? device->context : cuda_device_of(work->device)->context;
  cuda_placeholders placeholders;
  cu_copy params;
  cu_result code = CU_OK;
  cuda_copy_params(copy, 0, &params);
  rondo_status status = cuda_placeholders_begin(device, &placeholders);
  if (status == RONDO_OK) status = cuda_placeholders_add_copy(&placeholders, copy);
  if (status == RONDO_OK)
    code = device->api->graph_add_copy(out, captured->graph, captured->handles.items, count, &params, context);
  cuda_placeholders_end(&placeholders);
  if (code == CU_INVALID_VALUE) return fail_copy(captured, copy, code);
  return status == RONDO_OK
             ? cuda_check(device, code, "a copy in the capture's graph on device '%s'", device->base.name)
             : status;
}

static rondo_status place_empty(cuda_captured *captured, size_t count, cu_graph_node *out) {
  cuda_device *device = device_of(captured);
  return cuda_check(device, device->api->graph_add_empty(out, captured->graph, captured->handles.items, count),
                    "a node in the capture's graph on device '%s'", device->base.name);
}

static rondo_status capture_place(rondo_captured *base, const rondo_node_params *copy, const uint64_t *before,
                                  size_t count, uint64_t *out) {
  cuda_captured *captured = captured_of(base);
  const bool is_copy = copy != NULL && cuda_copy_parts(&copy->as.copy) == 1;
  cu_graph_node node = NULL;
  CUDA_SCOPE(scope);
  RONDO_TRY(take_handles(captured, before, count));
  RONDO_TRY(cuda_enter(device_of(captured), &scope));
  const rondo_status status = is_copy ? place_copy(captured, copy, count, &node) : place_empty(captured, count, &node);
  *out = name_of(node);
  return status;
}

/* The node of the kernel is the node that the next one depends on. */
static rondo_status find_launched(cuda_captured *captured, const cuda_queue *queue, uint64_t *out) {
  cuda_device *device = cuda_device_of(queue->base.device);
  bool is_active;
  RONDO_TRY(read_frontier(captured, queue, &is_active));
  if (!is_active || captured->edges.count != 1)
    return cuda_check(device, CU_STREAM_CAPTURE_INVALIDATED, "the kernel's node on %s", queue->label);
  *out = captured->edges.items[0].node;
  return RONDO_OK;
}

static rondo_status capture_launch(rondo_captured *base, rondo_queue *base_queue, const rondo_node_params *params,
                                   uint64_t *out) {
  cuda_captured *captured = captured_of(base);
  cuda_device *device = cuda_device_of(base_queue->device);
  const cuda_queue *queue = (const cuda_queue *)base_queue;
  CUDA_SCOPE(scope);
  RONDO_TRY(cuda_enter(device, &scope));
  rondo_status status = cuda_check(device, cuda_kernel_submit(device->api, queue->stream, &params->as.kernel),
                                   "kernel '%s' on %s", params->as.kernel.kernel->name, queue->label);
  if (status == RONDO_OK) status = find_launched(captured, queue, out);
  return status;
}

static rondo_status capture_show(rondo_captured *base, const void *memory, size_t bytes) {
  cuda_captured *captured = captured_of(base);
  cuda_placeholders placeholders;
  CUDA_SCOPE(scope);
  RONDO_TRY(cuda_enter(device_of(captured), &scope));
  rondo_status status = cuda_placeholders_begin(device_of(captured), &placeholders);
  if (status == RONDO_OK) status = cuda_placeholders_add(&placeholders, memory, bytes);
  if (status == RONDO_OK) return cuda_placeholders_keep(&placeholders, &captured->shown);
  cuda_placeholders_end(&placeholders);
  return status;
}

static rondo_status capture_end(rondo_captured *base, rondo_queue *base_queue) {
  cuda_captured *captured = captured_of(base);
  cuda_device *device = device_of(captured);
  const cuda_queue *queue = (const cuda_queue *)base_queue;
  CUDA_SCOPE(scope);
  captured->graph = NULL;
  captured->is_over = true;
  cuda_enter_to_free(device, &scope);
  const cu_result code = device->api->capture_end(queue->stream, &captured->graph);
  if (code != CU_OK && captured->graph != NULL) {
    (void)device->api->graph_destroy(captured->graph); /* returned together with an error that other code caused */
    captured->graph = NULL;
  }
  cuda_placeholders_drop(device, &captured->shown);
  return cuda_check(device, code, "ending the capture of %s", queue->label);
}

/* Reading ---------------------------------------------------------------------------------------------------------- */

rondo_status cuda_list_nodes(cuda_device *device, cu_graph graph, cuda_graph_nodes *out) {
  size_t count = 0;
  out->count = 0;
  RONDO_TRY(cuda_check(device, device->api->graph_get_nodes(graph, NULL, &count), "counting captured nodes"));
  RONDO_TRY(rondo_array_reserve(&device->base.allocator, out, count));
  if (count > 0)
    RONDO_TRY(cuda_check(device, device->api->graph_get_nodes(graph, out->items, &count), "listing %zu captured nodes",
                         count));
  out->count = count;
  return RONDO_OK;
}

static rondo_status capture_nodes(rondo_captured *base, uint64_t graph, const uint64_t **out, size_t *out_count) {
  cuda_captured *captured = captured_of(base);
  cuda_graph_nodes *handles = &captured->handles;
  const cu_graph listed = graph == 0 ? captured->graph : (cu_graph)(uintptr_t)graph;
  CUDA_SCOPE(scope);
  *out_count = 0;
  RONDO_TRY(cuda_enter(device_of(captured), &scope));
  RONDO_TRY(cuda_list_nodes(device_of(captured), listed, handles));
  RONDO_TRY(rondo_array_reserve(allocator_of(captured), &captured->nodes, handles->count));
  for (size_t i = 0; i < handles->count; i++) captured->nodes.items[i] = name_of(handles->items[i]);
  *out = captured->nodes.items;
  *out_count = handles->count;
  return RONDO_OK;
}

/* Lists what a node depends on, in the capture's working memory. */
static rondo_status list_long_before(cuda_captured *captured, cu_graph_node node) {
  cuda_device *device = device_of(captured);
  const cuda_api *api = device->api;
  size_t count = 0;
  RONDO_TRY(cuda_check(device, api->graph_node_get_dependencies(node, NULL, NULL, &count),
                       "counting what a captured node depends on"));
  RONDO_TRY(rondo_array_reserve(allocator_of(captured), &captured->handles, count));
  RONDO_TRY(rondo_array_reserve(allocator_of(captured), &captured->data, count));
  RONDO_TRY(cuda_check(device,
                       api->graph_node_get_dependencies(node, captured->handles.items, captured->data.items, &count),
                       "listing what a captured node depends on"));
  return keep_edges(captured, captured->handles.items, captured->data.items, count);
}

/* Most lists are short: one call reads them. A list that is not full is whole. */
static rondo_status list_before(cuda_captured *captured, cu_graph_node node) {
  enum { SHORT = 16 };
  cu_graph_node handles[SHORT];
  cu_edge_data data[SHORT];
  cuda_device *device = device_of(captured);
  size_t count = SHORT;
  CUDA_TRY(device, device->api->graph_node_get_dependencies(node, handles, data, &count),
           "listing what a captured node depends on");
  return count < SHORT ? keep_edges(captured, handles, data, count) : list_long_before(captured, node);
}

static rondo_status capture_before(rondo_captured *base, uint64_t name, const rondo_captured_edge **out,
                                   size_t *out_count) {
  cuda_captured *captured = captured_of(base);
  *out_count = 0;
  RONDO_TRY(cuda_require(device_of(captured)));
  RONDO_TRY(list_before(captured, cuda_captured_handle(name)));
  *out = captured->edges.items;
  *out_count = captured->edges.count;
  return RONDO_OK;
}

/* A bound node exists only in the captured graph. Of the types after CU_NODE_EVENT_RECORD, and of types that this
 * version does not know, all are. */
static bool is_bound_type(cu_node_type type) { return type > CU_NODE_EVENT_RECORD; }

static void set_foreign(rondo_captured_work *out, const char *what, bool is_bound, bool is_opaque) {
  out->params.kind = RONDO_NODE_FOREIGN;
  out->params.as.foreign = (rondo_foreign_node){.what = what, .is_bound = is_bound, .is_opaque = is_opaque};
}

static cu_result read_copy(const cuda_api *api, cu_graph_node node, rondo_captured_work *out) {
  cu_copy copy;
  const cu_result code = api->graph_copy_get_params(node, &copy);
  out->params.kind = RONDO_NODE_COPY;
  if (code == CU_OK && !cuda_foreign_copy_read(&copy, &out->params.as.copy)) set_foreign(out, "copy", false, true);
  return code;
}

static cu_result read_fill(const cuda_api *api, cu_graph_node node, rondo_captured_work *out) {
  cu_memset_params fill = {0};
  const cu_result code = api->graph_memset_get_params(node, &fill);
  out->params.kind = RONDO_NODE_FILL;
  out->params.as.fill = (rondo_fill){.dst = (void *)(uintptr_t)fill.dst,
                                     .value = fill.value,
                                     .element_bytes = fill.element_bytes,
                                     .width = fill.width,
                                     .height = fill.height,
                                     .pitch = fill.height > 1 ? fill.pitch : 0};
  return code;
}

static cu_result read_alloc(const cuda_api *api, cu_graph_node node, rondo_captured_work *out) {
  cu_alloc_params alloc = {0};
  const cu_result code = api->graph_alloc_get_params(node, &alloc);
  set_foreign(out, "memory allocation", true, false);
  out->params.as.foreign.bytes = alloc.bytes;
  out->params.as.foreign.address = (void *)(uintptr_t)alloc.address;
  return code;
}

static cu_result read_free(const cuda_api *api, cu_graph_node node, rondo_captured_work *out) {
  cu_address address = 0;
  const cu_result code = api->graph_free_get_params(node, &address);
  set_foreign(out, "memory free", true, false);
  out->params.as.foreign.address = (void *)(uintptr_t)address;
  return code;
}

static cu_result read_host(const cuda_api *api, cu_graph_node node, rondo_captured_work *out) {
  cu_host_params host = {0};
  const cu_result code = api->graph_host_get_params(node, &host);
  set_foreign(out, "host function", false, false);
  out->params.as.foreign.user = host.user;
  return code;
}

/* The names of nodes that are kept as they are, by type. */
static const char *const foreign_names[] = {[CU_NODE_EVENT_WAIT] = "event wait",
                                            [CU_NODE_EVENT_RECORD] = "event record",
                                            [CU_NODE_SEMAPHORE_SIGNAL] = "semaphore signal",
                                            [CU_NODE_SEMAPHORE_WAIT] = "semaphore wait",
                                            [CU_NODE_BATCH_MEMORY_OPERATION] = "batch of memory operations",
                                            [CU_NODE_CONDITIONAL] = RONDO_FOREIGN_CONDITIONAL};

static void read_foreign(cu_node_type type, rondo_captured_work *out) {
  const bool is_known = type < sizeof foreign_names / sizeof foreign_names[0] && foreign_names[type] != NULL;
  set_foreign(out, is_known ? foreign_names[type] : "node of a kind that this version does not know",
              is_bound_type(type), type != CU_NODE_EVENT_WAIT && type != CU_NODE_EVENT_RECORD);
}

/* Operations that Rondo has no node for are kept as they are. */
static rondo_status read_operations(cuda_captured *captured, cu_graph_node node, rondo_captured_work *out) {
  cuda_device *device = device_of(captured);
  rondo_memory_operation *operations = captured->operations;
  size_t count;
  RONDO_TRY(cuda_check(device, cuda_operations_read(device->api, node, operations, &count),
                       "reading captured memory operations"));
  if (count == 0) {
    read_foreign(CU_NODE_BATCH_MEMORY_OPERATION, out);
    return RONDO_OK;
  }
  out->params.kind = RONDO_NODE_MEMORY_OPERATIONS;
  out->params.as.memory_operations = (rondo_memory_operations_node){.operations = operations, .count = count};
  return RONDO_OK;
}

static cu_result ask_bound(const cuda_api *api, cu_graph_node node, cu_node_type type, bool *out) {
  rondo_memory_operation operations[RONDO_MAX_MEMORY_OPERATIONS];
  size_t count;
  *out = is_bound_type(type);
  if (type != CU_NODE_BATCH_MEMORY_OPERATION) return CU_OK;
  const cu_result code = cuda_operations_read(api, node, operations, &count);
  *out = count == 0;
  return code;
}

/* Whether a graph or one of its child graphs has a bound node. */
static rondo_status find_bound(cuda_device *device, cu_graph graph, bool *out) {
  cuda_graph_nodes nodes = {0};
  rondo_status status = cuda_list_nodes(device, graph, &nodes);
  for (size_t i = 0; i < nodes.count && status == RONDO_OK && !*out; i++) {
    cu_node_type type;
    cu_graph child = NULL;
    cu_result code = device->api->graph_node_get_type(nodes.items[i], &type);
    if (code == CU_OK && type == CU_NODE_GRAPH) code = device->api->graph_child_get_graph(nodes.items[i], &child);
    if (code == CU_OK) code = ask_bound(device->api, nodes.items[i], type, out);
    status = cuda_check(device, code, "reading a captured child graph");
    if (child != NULL) status = find_bound(device, child, out);
  }
  rondo_array_free(&device->base.allocator, &nodes);
  return status;
}

static rondo_status read_child(cuda_captured *captured, cu_graph_node node, rondo_captured_work *out) {
  cuda_device *device = device_of(captured);
  cu_graph graph = NULL;
  bool is_bound = false;
  RONDO_TRY(cuda_check(device, device->api->graph_child_get_graph(node, &graph), "reading a captured child graph"));
  RONDO_TRY(find_bound(device, graph, &is_bound));
  if (is_bound) {
    set_foreign(out, "child graph with work that only the driver's graph can hold", true, true);
    return RONDO_OK;
  }
  out->params.kind = RONDO_NODE_CHILD;
  out->child = (uint64_t)(uintptr_t)graph;
  return RONDO_OK;
}

static cu_result read_plain(const cuda_api *api, cu_graph_node node, cu_node_type type, rondo_captured_work *out) {
  switch (type) {
    case CU_NODE_COPY:
      return read_copy(api, node, out);
    case CU_NODE_MEMSET:
      return read_fill(api, node, out);
    case CU_NODE_HOST:
      return read_host(api, node, out);
    case CU_NODE_ALLOC:
      return read_alloc(api, node, out);
    case CU_NODE_FREE:
      return read_free(api, node, out);
    case CU_NODE_EMPTY:
      out->params.kind = RONDO_NODE_EMPTY;
      return CU_OK;
    default:
      read_foreign(type, out);
      return CU_OK;
  }
}

/* Like listing what a node depends on, it needs no current context, and no capture forbids it. */
static rondo_status capture_read(rondo_captured *base, uint64_t name, rondo_captured_work *out) {
  cuda_captured *captured = captured_of(base);
  cuda_device *device = device_of(captured);
  const cu_graph_node node = cuda_captured_handle(name);
  cu_node_type type;
  *out = (rondo_captured_work){0};
  RONDO_TRY(cuda_require(device));
  CUDA_TRY(device, device->api->graph_node_get_type(node, &type), "asking what a captured node is");
  if (type == CU_NODE_GRAPH) return read_child(captured, node, out);
  if (type == CU_NODE_BATCH_MEMORY_OPERATION) return read_operations(captured, node, out);
  if (type != CU_NODE_KERNEL)
    return cuda_check(device, read_plain(device->api, node, type, out), "reading a captured node of kind %d",
                      (int)type);
  out->params.kind = RONDO_NODE_KERNEL;
  return cuda_foreign_kernel_read(captured, node, &out->params.as.kernel);
}

static void capture_end_reading(rondo_captured *base) {
  cuda_foreign_forget_kernels(captured_of(base));
  rondo_devices_end_use(base->device, &captured_of(base)->others);
}

const rondo_capture_ops cuda_capture_ops = {
    .begin = capture_begin,
    .capture_of = capture_of,
    .frontier = capture_frontier,
    .set_frontier = capture_set_frontier,
    .place = capture_place,
    .launch = capture_launch,
    .show = capture_show,
    .end = capture_end,
    .import = capture_import,
    .native = capture_native,
    .export = cuda_graph_export,
    .revise = cuda_graph_revise,
    .declare = cuda_declare,
    .nodes = capture_nodes,
    .before = capture_before,
    .read = capture_read,
    .end_reading = capture_end_reading,
    .release = capture_release,
};
