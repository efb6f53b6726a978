/* SPDX-License-Identifier: MIT
 * Making, launching and freeing executables. The driver orders the launches of one executable itself. An executable
 * that was built again comes after the launches of the one that it replaces: uploading the old one waits for them.
 */
#include <assert.h>

#include "base/allocation.h"
#include "device/cuda/cuda_context.h"
#include "device/cuda/cuda_executable.h"
#include "device/cuda/cuda_foreign_nodes.h"
#include "device/cuda/cuda_graph_build.h"
#include "device/cuda/cuda_graph_node.h"
#include "device/cuda/cuda_host_function.h"
#include "device/cuda/cuda_placeholder_memory.h"
#include "device/cuda/cuda_queue.h"
#include "graph/graph.h"
#include "graph/semaphore_data.h"

/* Edges ------------------------------------------------------------------------------------------------------------ */

/* Marks the full edge that stands for a programmatic one. */
static void mark_edge(const cuda_executable *executable, const rondo_lowered_edge *edge) {
  uint32_t e = executable->predecessor_start[edge->to];
  while (executable->predecessors[e] != edge->from) e++;
  assert(e < executable->predecessor_start[edge->to + 1]);
  executable->predecessors[e] = UINT32_MAX;
}

/* Programmatic edges that order nodes are made in place of the full ones, on GPUs that have such launches. */
static void leave_out_full_edges(const cuda_executable *executable, size_t count) {
  uint32_t kept = 0, first = 0;
  if (!cuda_may_begin_early(cuda_device_of(executable->base.device))) return;
  for (size_t i = 0; i < executable->programmatic_count; i++)
    if (executable->programmatic[i].orders) mark_edge(executable, &executable->programmatic[i]);
  for (size_t i = 0; i < count; i++) {
    const uint32_t past = executable->predecessor_start[i + 1];
    for (uint32_t e = first; e < past; e++)
      if (executable->predecessors[e] != UINT32_MAX) executable->predecessors[kept++] = executable->predecessors[e];
    executable->predecessor_start[i + 1] = kept;
    first = past;
  }
}

/* Topology does not change with updates. */
static rondo_status keep_edges(cuda_executable *executable, const rondo_lowered_graph *graph) {
  const rondo_allocator *allocator = cuda_allocator_of(executable);
  const size_t edges = graph->predecessor_start[graph->node_count];
  RONDO_TRY(rondo_allocate_copy(allocator, graph->predecessor_start, graph->node_count + 1, sizeof(uint32_t),
                                &executable->predecessor_start));
  RONDO_TRY(rondo_allocate_copy(allocator, graph->predecessors, edges, sizeof(uint32_t), &executable->predecessors));
  executable->edge_count = edges;
  RONDO_TRY(rondo_allocate_copy(allocator, graph->programmatic, graph->programmatic_count, sizeof *graph->programmatic,
                                &executable->programmatic));
  executable->programmatic_count = graph->programmatic_count;
  if (graph->programmatic_count > 0) leave_out_full_edges(executable, graph->node_count);
  if (graph->captured != NULL) rondo_captured_retain(executable->captured = graph->captured);
  return RONDO_OK;
}

/* Invariant -------------------------------------------------------------------------------------------------------- */

#ifndef NDEBUG
static void check_node(const cuda_executable *executable, size_t i) {
  const cuda_node *node = &executable->nodes[i];
  const uint32_t begin = executable->predecessor_start[i], end = executable->predecessor_start[i + 1];
  assert(begin <= end && end <= executable->edge_count);
  for (uint32_t e = begin; e < end; e++) assert(executable->predecessors[e] < i); /* topological order */
  assert((node->kernel != NULL) == (node->kind == RONDO_NODE_KERNEL));
  assert(!node->is_foreign || executable->has_foreign);
}
#endif

void cuda_executable_check(const cuda_executable *executable) {
#ifdef NDEBUG
  (void)executable;
#else
  size_t handles = 0, hosts = 0, kernels = 0, disabled = 0;
  for (size_t i = 0; i < executable->count; i++) {
    const cuda_node *node = &executable->nodes[i];
    check_node(executable, i);
    assert(node->first == handles);
    handles += cuda_node_parts(node);
    hosts += node->kind == RONDO_NODE_HOST;
    kernels += node->kind == RONDO_NODE_KERNEL && node->enabled;
    disabled += !node->enabled;
  }
  assert(handles == executable->handle_count && hosts == executable->host_count);
  assert(kernels == executable->kernel_count && disabled == executable->disabled_count);
  assert(executable->built.graph != NULL && executable->built.exec != NULL);
  assert((executable->last != NULL) == (hosts > 0 || executable->others.count > 0 || executable->base.is_handed_out));
  assert(executable->direct == NULL || (hosts == 0 && executable->before == NULL && !executable->is_stale));
#endif
}

/* Life ------------------------------------------------------------------------------------------------------------- */

static void free_replaced(cuda_executable *executable) {
  cuda_host_work *work = executable->replaced;
  executable->replaced = NULL;
  while (work != NULL) {
    cuda_host_work *next = work->next;
    cuda_host_free(cuda_allocator_of(executable), work);
    work = next;
  }
}

static void release_replaced(cuda_executable *executable) {
  for (size_t i = 0; i < executable->replaced_kernels.count; i++)
    rondo_kernel_release(executable->replaced_kernels.items[i]);
  for (size_t i = 0; i < executable->replaced_semaphores.count; i++)
    rondo_semaphore_release(executable->replaced_semaphores.items[i]);
  executable->replaced_kernels.count = executable->replaced_semaphores.count = 0;
}

/* Releases the driver's objects, and the code and semaphores that they use. */
static void release_objects(cuda_executable *executable) {
  cuda_device *device = cuda_device_of(executable->base.device);
  const cuda_api *api = device->api;
  CUDA_SCOPE(scope);
  rondo_status_ignore(cuda_set_timing(&executable->base, false), "it only frees");
  cuda_enter_to_free(device, &scope);
  cuda_built_free(executable, &executable->built);
  if (executable->before != NULL) (void)api->exec_destroy(executable->before); /* gone already on a lost device */
  if (executable->last != NULL) (void)api->event_destroy(executable->last);
  executable->before = NULL;
  executable->last = NULL;
  rondo_captured_release(executable->captured);
  executable->captured = NULL;
  for (size_t i = 0; i < executable->count; i++) cuda_node_release(&executable->nodes[i]);
  release_replaced(executable);
}

static void free_memory(cuda_executable *executable) {
  const rondo_allocator *allocator = cuda_allocator_of(executable);
  const size_t count = executable->count;
  free_replaced(executable);
  for (size_t i = 0; i < count; i++) cuda_node_free(executable, &executable->nodes[i]);
  rondo_release(allocator, executable->nodes, executable->node_room, sizeof(cuda_node));
  rondo_release(allocator, executable->handles, executable->handle_count, sizeof(cu_graph_node));
  rondo_release(allocator, executable->programmatic, executable->programmatic_count, sizeof(rondo_lowered_edge));
  rondo_release(allocator, executable->predecessor_start, executable->node_room + 1, sizeof(uint32_t));
  rondo_release(allocator, executable->predecessors, executable->edge_count, sizeof(uint32_t));
  rondo_release_text(allocator, executable->label);
  rondo_array_free(allocator, &executable->replaced_kernels);
  rondo_array_free(allocator, &executable->replaced_semaphores);
  rondo_devices_end_use(executable->base.device, &executable->others);
  rondo_release(allocator, executable, 1, sizeof *executable);
}

void cuda_executable_free(cuda_executable *executable) {
  release_objects(executable);
  free_memory(executable);
}

/* True if no launch can call its host functions, or run code of other devices, any more. Not known on a lost device. */
static bool is_over(const cuda_executable *executable) {
  cuda_device *device = cuda_device_of(executable->base.device);
  CUDA_SCOPE(scope);
  if (executable->last == NULL) return true;
  if (cuda_is_lost(device)) return false;
  cuda_enter_to_free(device, &scope);
  const cu_result code = device->api->event_query(executable->last);
  return code == CU_OK;
}

void cuda_executable_reap_replaced(cuda_executable *executable) {
  const bool has_any = executable->replaced != NULL || executable->replaced_kernels.count > 0 ||
                       executable->replaced_semaphores.count > 0;
  if (!has_any || !is_over(executable)) return;
  free_replaced(executable);
  release_replaced(executable);
}

static void wait_over(const cuda_executable *executable) {
  cuda_device *device = cuda_device_of(executable->base.device);
  CUDA_SCOPE(scope);
  if (executable->last == NULL || cuda_is_lost(device)) return;
  cuda_enter_to_free(device, &scope);
  (void)device->api->event_synchronize(executable->last); /* the queue reports failures */
}

static void bury(cuda_device *device, cuda_executable *executable) {
  pthread_mutex_lock(&device->lock);
  executable->next_dead = device->dead;
  device->dead = executable;
  pthread_mutex_unlock(&device->lock);
}

static cuda_executable *take_dead(cuda_device *device) {
  pthread_mutex_lock(&device->lock);
  cuda_executable *list = device->dead;
  device->dead = NULL;
  pthread_mutex_unlock(&device->lock);
  return list;
}

void cuda_executables_reap(cuda_device *device, bool all) {
  cuda_executable *list = take_dead(device);
  while (list != NULL) {
    cuda_executable *executable = list;
    list = executable->next_dead;
    if (all) wait_over(executable);
    if (all) release_objects(executable);
    if (!all && is_over(executable))
      cuda_executable_free(executable);
    else
      bury(device, executable);
  }
}

/* Nothing runs any more: the device is lost, or waiting for the launches has failed. */
static void leave_others(cuda_executable *executable) {
  for (size_t i = 0; i < executable->count; i++) {
    cuda_node *node = &executable->nodes[i];
    if (&node->device->base != executable->base.device) cuda_node_release(node);
  }
  release_replaced(executable);
  rondo_devices_end_use(executable->base.device, &executable->others);
}

void cuda_executables_settle(rondo_device *base) {
  cuda_device *device = cuda_device_of(base);
  cuda_executable *list = take_dead(device);
  while (list != NULL) {
    cuda_executable *executable = list;
    list = executable->next_dead;
    if (executable->others.count > 0) wait_over(executable);
    if (is_over(executable)) {
      cuda_executable_free(executable);
      continue;
    }
    if (executable->others.count > 0) leave_others(executable);
    bury(device, executable);
  }
}

void cuda_executables_free(cuda_device *device) {
  cuda_executable *list = take_dead(device);
  while (list != NULL) {
    cuda_executable *next = list->next_dead;
    free_memory(list);
    list = next;
  }
}

static rondo_status follow_launches(const cuda_executable *executable, const cuda_event *event);

rondo_status cuda_executable_mark_launches(cuda_executable *executable) {
  const cuda_event last = {.event = executable->last};
  if (executable->is_marked) return RONDO_OK;
  cuda_executable_reap_replaced(executable);
  if (executable->host_count == 0) RONDO_TRY(follow_launches(executable, &last));
  executable->is_marked = true;
  return RONDO_OK;
}

/* Launches by the driver, and on other devices, may still use what it keeps. */
static void mark_end(const cuda_executable *executable) {
  const cuda_event last = {.event = executable->last};
  const bool is_marked = executable->base.is_handed_out || executable->others.count > 0;
  rondo_saved_error before;
  if (!is_marked || last.event == NULL || cuda_is_lost(cuda_device_of(executable->base.device))) return;
  rondo_error_save(&before);
  rondo_status_ignore(follow_launches(executable, &last), "then its launches are not waited for");
  rondo_error_restore(&before);
}

static void executable_destroy(rondo_executable *base) {
  cuda_executable *executable = (cuda_executable *)base;
  cuda_device *device = cuda_device_of(base->device);
  cuda_queues_forget(device, executable);
  mark_end(executable);
  if (is_over(executable))
    cuda_executable_free(executable);
  else
    bury(device, executable);
}

/* Launching -------------------------------------------------------------------------------------------------------- */

/* What was enqueued last uses the executable's memory. If the event cannot be recorded, waits for the work. */
static cu_result record_last(const cuda_executable *executable, const cuda_queue *queue) {
  const cuda_api *api = cuda_device_of(queue->base.device)->api;
  return api->event_record(executable->last, queue->stream) == CU_OK ? CU_OK : api->stream_synchronize(queue->stream);
}

/* Host functions report failures to the queue of their launch. This queue is set in the order of the stream: after
 * earlier launches, before this one; also if the launch then fails. */
static rondo_status launch_with_hosts(cuda_executable *executable, cuda_queue *queue, cu_graph_exec exec) {
  cuda_device *device = cuda_device_of(queue->base.device);
  const cuda_api *api = device->api;
  cu_result code = api->stream_wait_event(queue->stream, executable->last, 0);
  if (code == CU_OK) {
    if (executable->queue_set != queue) RONDO_TRY(cuda_queue_store_self(queue, &executable->queue));
    executable->queue_set = queue;
    code = api->exec_launch(exec, queue->stream);
    const cu_result recorded = record_last(executable, queue);
    if (code == CU_OK) code = recorded;
  }
  return cuda_check(device, code, "launching %s with host functions on %s", executable->label, queue->label);
}

/* The driver's nodes differ from ours, so the executable is built again. */
static rondo_status rebuild_stale(cuda_executable *executable) {
  CUDA_SCOPE(scope);
  RONDO_TRY(cuda_enter(cuda_device_of(executable->base.device), &scope));
  return cuda_executable_rebuild(executable);
}

/* Orders later work of the stream after the launches of the executable graph that was replaced. */
static rondo_status catch_up(cuda_executable *executable, const cuda_queue *queue) {
  cuda_device *device = cuda_device_of(queue->base.device);
  CUDA_SCOPE(scope);
  RONDO_TRY(cuda_enter_for_work(device, &scope));
  const cu_result code = device->api->exec_upload(executable->before, queue->stream);
  RONDO_TRY(cuda_check(device, code, "ordering %s after its earlier launches on %s", executable->label, queue->label));
  (void)device->api->exec_destroy(executable->before); /* its launches continue */
  executable->before = NULL;
  cuda_note_direct(executable);
  return RONDO_OK;
}

static rondo_status side_stream(cuda_device *device, cu_stream *out);

/* In the context of the node's device, on a stream of that device. */
static rondo_status run_node(const cuda_executable *executable, const cuda_node *node, const cuda_queue *queue) {
  cuda_device *device = node->device;
  cu_stream stream = queue->stream;
  CUDA_SCOPE(scope);
  RONDO_TRY(cuda_enter(device, &scope));
  if (&device->base != queue->base.device) RONDO_TRY(side_stream(device, &stream));
  cu_result code = cuda_node_submit(node, stream);
  if (code == CU_OK) code = device->api->stream_synchronize(stream);
  return cuda_check_node(device, code, node, "", executable->label);
}

/* Runs node by node on a synchronous device, so that a failure names its node. Earlier launches are done. */
static rondo_status launch_singly(cuda_executable *executable, cuda_queue *queue) {
  rondo_status status = RONDO_OK;
  executable->queue = executable->queue_set = queue;
  for (size_t i = 0; i < executable->count && status == RONDO_OK; i++)
    if (executable->nodes[i].enabled)
      status = rondo_fail_context(run_node(executable, &executable->nodes[i], queue), "%s", queue->label);
  return status;
}

/* On a synchronous device, except for work that runs in graphs only and while nodes are timed. */
static bool is_run_singly(const cuda_executable *executable) {
  return executable->base.device->synchronous && executable->timed.exec == NULL && !executable->has_foreign;
}

static cu_graph_exec launched_exec(const cuda_executable *executable) {
  return executable->timed.exec != NULL ? executable->timed.exec : executable->built.exec;
}

void cuda_note_direct(cuda_executable *executable) {
  const bool is_direct =
      executable->host_count == 0 && executable->before == NULL && !executable->is_stale && !is_run_singly(executable);
  executable->direct = is_direct ? launched_exec(executable) : NULL;
}

static void count_launch(const cuda_executable *executable, cuda_queue *queue) {
  cuda_queue_count(&queue->launches, 1);
  cuda_queue_count(&queue->kernels, executable->kernel_count);
}

/* Not inlined into launches that are one call. */
static __attribute__((noinline)) rondo_status check_launch(const cuda_executable *executable, const cuda_queue *queue,
                                                           cu_result code) {
  return cuda_check(cuda_device_of(queue->base.device), code, "launching %s on %s", executable->label, queue->label);
}

static rondo_status launch_in_order(cuda_executable *executable, cuda_queue *queue) {
  if (executable->is_stale) RONDO_TRY(rebuild_stale(executable));
  if (executable->before != NULL) RONDO_TRY(catch_up(executable, queue));
  const cu_graph_exec exec = launched_exec(executable);
  if (executable->host_count > 0) return launch_with_hosts(executable, queue, exec);
  return check_launch(executable, queue, cuda_device_of(queue->base.device)->api->exec_launch(exec, queue->stream));
}

static __attribute__((noinline)) rondo_status launch_otherwise(cuda_executable *executable, cuda_queue *queue) {
  RONDO_TRY(is_run_singly(executable) ? launch_singly(executable, queue) : launch_in_order(executable, queue));
  count_launch(executable, queue);
  return RONDO_OK;
}

rondo_status cuda_queue_launch(rondo_queue *base, rondo_executable *base_executable) {
  cuda_executable *executable = (cuda_executable *)base_executable;
  cuda_queue *queue = (cuda_queue *)base;
  cuda_device *device = cuda_device_of(base->device);
  RONDO_TRY(cuda_require(device));
  cuda_queue_note_work(queue);
  atomic_store_explicit(&queue->last, executable, memory_order_relaxed);
  if (__builtin_expect(executable->direct == NULL, 0)) return launch_otherwise(executable, queue);
  const cu_result code = device->api->exec_launch(executable->direct, queue->stream);
  if (__builtin_expect(code != CU_OK, 0)) return check_launch(executable, queue, code);
  count_launch(executable, queue);
  return RONDO_OK;
}

rondo_status cuda_queue_upload(rondo_queue *base, rondo_executable *base_executable) {
  cuda_executable *executable = (cuda_executable *)base_executable;
  cuda_queue *queue = (cuda_queue *)base;
  cuda_device *device = cuda_device_of(base->device);
  CUDA_SCOPE(scope);
  RONDO_TRY(cuda_enter_for_work(device, &scope));
  cuda_queue_note_work(queue);
  const cu_result code = device->api->exec_upload(executable->built.exec, queue->stream);
  return cuda_check(device, code, "uploading %s on %s", executable->label, queue->label);
}

/* Waiting ---------------------------------------------------------------------------------------------------------- */

/* A stream that is never captured. Call it in the device's context. */
static rondo_status side_stream(cuda_device *device, cu_stream *out) {
  pthread_mutex_lock(&device->lock);
  *out = device->side;
  pthread_mutex_unlock(&device->lock);
  if (*out != NULL) return RONDO_OK;
  cu_stream made;
  RONDO_TRY(cuda_check(device, device->api->stream_create(&made, CU_STREAM_FLAG_NON_BLOCKING),
                       "making a stream on device '%s'", device->base.name));
  pthread_mutex_lock(&device->lock);
  *out = device->side != NULL ? device->side : made;
  device->side = *out;
  pthread_mutex_unlock(&device->lock);
  if (*out != made) (void)device->api->stream_destroy(made); /* another thread was faster */
  return RONDO_OK;
}

/* An upload comes after all launches of the executable graph. Then waits for the device's side stream, or records the
 * event there. */
static rondo_status follow_launches(const cuda_executable *executable, const cuda_event *event) {
  cuda_device *device = cuda_device_of(executable->base.device);
  cu_stream side;
  CUDA_SCOPE(scope);
  RONDO_TRY(cuda_enter(device, &scope));
  RONDO_TRY(side_stream(device, &side));
  const cu_graph_exec latest = executable->before != NULL ? executable->before : executable->built.exec;
  cu_result code = device->api->exec_upload(latest, side);
  if (code == CU_OK && executable->timed.exec != NULL) code = device->api->exec_upload(executable->timed.exec, side);
  if (code == CU_OK)
    code = event == NULL ? device->api->stream_synchronize(side) : device->api->event_record(event->event, side);
  return cuda_check(device, code, "waiting for the launches of %s", executable->label);
}

static rondo_status executable_synchronize(rondo_executable *executable) {
  return follow_launches((cuda_executable *)executable, NULL);
}

/* An event that was never recorded is complete. */
static rondo_status executable_record(rondo_executable *base, rondo_device_event *event) {
  const cuda_executable *executable = (const cuda_executable *)base;
  if (executable->host_count > 0 && is_over(executable)) return RONDO_OK;
  return follow_launches(executable, (const cuda_event *)event);
}

/* The driver orders its launches after each other only, so those of the one that was replaced have to end first. */
static rondo_status end_replaced(cuda_executable *executable) {
  if (executable->before == NULL) return RONDO_OK;
  RONDO_TRY(executable_synchronize(&executable->base));
  (void)cuda_device_of(executable->base.device)->api->exec_destroy(executable->before); /* gone on a lost device */
  executable->before = NULL;
  cuda_note_direct(executable);
  return RONDO_OK;
}

static rondo_status executable_native(rondo_executable *base, void **out) {
  cuda_executable *executable = (cuda_executable *)base;
  cuda_device *device = cuda_device_of(base->device);
  CUDA_SCOPE(scope);
  if (executable->host_count > 0)
    return rondo_fail(RONDO_UNSUPPORTED, RONDO_REASON_NOT_SUPPORTED,
                      "%s has %zu host functions, whose failures go to the stream of a launch: launch with "
                      "rondo_exec_launch",
                      executable->label, executable->host_count);
  if (executable->is_stale) RONDO_TRY(rebuild_stale(executable));
  RONDO_TRY(cuda_enter(device, &scope));
  RONDO_TRY(end_replaced(executable));
  if (executable->last == NULL)
    RONDO_TRY(cuda_check(device, device->api->event_create(&executable->last, CU_EVENT_FLAG_DISABLE_TIMING),
                         "making an event on device '%s'", device->base.name));
  base->is_handed_out = true;
  *out = executable->built.exec;
  return RONDO_OK;
}

/* Questions -------------------------------------------------------------------------------------------------------- */

static uint64_t executable_host_bytes(const rondo_executable *base) {
  const cuda_executable *executable = (const cuda_executable *)base;
  uint64_t bytes = sizeof *executable + executable->node_room * (sizeof(cuda_node) + sizeof(uint32_t)) +
                   executable->edge_count * sizeof(uint32_t) + executable->handle_count * sizeof(cu_graph_node);
  for (size_t i = 0; i < executable->count; i++) bytes += executable->nodes[i].storage_bytes;
  return bytes;
}

/* Device memory that the driver takes for an executable graph with work, and for each kernel and copy in it, as
 * measured (docs/cuda-probes.md, 40). The driver does not report it: it allocates memory in larger pieces and keeps
 * what is freed. */
enum { EXEC_BYTES = 105 << 10, NODE_BYTES = 2577 };

static uint64_t executable_device_bytes(const rondo_executable *base) {
  const cuda_executable *executable = (const cuda_executable *)base;
  uint64_t nodes = 0;
  bool runs = false;
  for (size_t i = 0; i < executable->count; i++) {
    const cuda_node *node = &executable->nodes[i];
    if (node->kind == RONDO_NODE_KERNEL || node->kind == RONDO_NODE_COPY || node->kind == RONDO_NODE_FILL)
      nodes += cuda_node_parts(node);
    runs |= !cuda_is_order_alone(node);
  }
  return (runs ? EXEC_BYTES : 0) + nodes * NODE_BYTES;
}

const rondo_executable_ops cuda_executable_ops = {
    .destroy = executable_destroy,
    .set_params = cuda_executable_set_params,
    .set_many = cuda_executable_set_many,
    .rebind = cuda_executable_rebind,
    .set_enabled = cuda_executable_set_enabled,
    .synchronize = executable_synchronize,
    .native = executable_native,
    .record = executable_record,
    .host_bytes = executable_host_bytes,
    .device_bytes = executable_device_bytes,
    .set_timing = cuda_set_timing,
    .times = cuda_times,
};

/* Kinds do not change. */
static void note_kind(cuda_executable *executable, const cuda_node *node) {
  executable->has_order |= cuda_is_order_alone(node);
  executable->has_copies |=
      node->kind == RONDO_NODE_COPY || node->kind == RONDO_NODE_FILL || node->kind == RONDO_NODE_MEMORY_OPERATIONS;
}

static rondo_status make_nodes(cuda_executable *executable, const rondo_lowered_graph *graph) {
  RONDO_TRY(
      rondo_allocate_items(cuda_allocator_of(executable), graph->node_count, sizeof(cuda_node), &executable->nodes));
  for (size_t i = 0; i < graph->node_count; i++) {
    cuda_node *node = &executable->nodes[i];
    const size_t before = executable->predecessor_start[i + 1] - executable->predecessor_start[i];
    RONDO_TRY(cuda_node_make(executable, &graph->nodes[i], node));
    executable->count++;
    if (before > executable->most_before) executable->most_before = before;
    if (node->kind != RONDO_NODE_KERNEL) note_kind(executable, node);
    node->first = executable->handle_count;
    executable->handle_count += cuda_node_parts(node);
    if (node->kind == RONDO_NODE_HOST) executable->host_count++;
    if (node->kind == RONDO_NODE_KERNEL) executable->kernel_count++;
  }
  return rondo_allocate_items(cuda_allocator_of(executable), executable->handle_count, sizeof(cu_graph_node),
                              &executable->handles);
}

static rondo_status make_driver_objects(cuda_executable *executable) {
  cuda_device *device = cuda_device_of(executable->base.device);
  RONDO_TRY(cuda_build(executable, &executable->built, executable->handles));
  if (executable->host_count == 0 && executable->others.count == 0) return RONDO_OK;
  return cuda_check(device, device->api->event_create(&executable->last, CU_EVENT_FLAG_DISABLE_TIMING),
                    "making an event on device '%s'", device->base.name);
}

static rondo_status make_contents(cuda_executable *executable, const rondo_lowered_graph *graph) {
  char label[RONDO_LABEL_BYTES];
  const char *text = rondo_graph_name_label(label, graph->name);
  RONDO_TRY(rondo_allocate_text(cuda_allocator_of(executable), text, &executable->label));
  RONDO_TRY(keep_edges(executable, graph));
  RONDO_TRY(rondo_devices_begin_use(executable->base.device, graph, &executable->others));
  return make_nodes(executable, graph);
}

rondo_status cuda_executable_make(cuda_device *device, const rondo_lowered_graph *graph, bool is_exported,
                                  cuda_executable **out) {
  cuda_executable *executable;
  *out = NULL;
  RONDO_TRY(rondo_allocate_items(&device->base.allocator, 1, sizeof *executable, &executable));
  executable->base = (rondo_executable){.ops = &device->base.tables.executable, .device = &device->base};
  executable->is_exported = is_exported;
  executable->node_room = graph->node_count;
  const rondo_status status = make_contents(executable, graph);
  if (status == RONDO_OK)
    *out = executable;
  else
    cuda_executable_free(executable);
  return status;
}

rondo_status cuda_executable_create(rondo_device *base, const rondo_lowered_graph *graph, rondo_executable **out) {
  cuda_device *device = cuda_device_of(base);
  cuda_executable *executable;
  CUDA_SCOPE(scope);
  *out = NULL;
  RONDO_TRY(cuda_enter(device, &scope));
  cuda_executables_reap(device, false);
  RONDO_TRY(cuda_executable_make(device, graph, false, &executable));
  const rondo_status status = make_driver_objects(executable);
  if (status != RONDO_OK) {
    cuda_executable_free(executable);
    return status;
  }
  executable->is_made = true;
  cuda_note_direct(executable);
  cuda_executable_check(executable);
  *out = &executable->base;
  return RONDO_OK;
}
