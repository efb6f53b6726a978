/* SPDX-License-Identifier: MIT
 * Making, changing, launching and freeing lowered graphs. The driver orders launches of one executable by itself. What
 * it does not change in place is made anew, and ordered behind the launches of what it replaces by an upload of that,
 * which the driver puts behind its launches.
 */
#include <assert.h>
#include <string.h>

#include "base/allocation.h"
#include "device/cuda/cuda_context.h"
#include "device/cuda/cuda_executable.h"
#include "device/cuda/cuda_foreign_nodes.h"
#include "device/cuda/cuda_graph_build.h"
#include "device/cuda/cuda_graph_node.h"
#include "device/cuda/cuda_host_function.h"
#include "device/cuda/cuda_node_timing.h"
#include "device/cuda/cuda_placeholder_memory.h"
#include "device/cuda/cuda_queue.h"
#include "graph/graph.h"

/* Edges ----------------------------------------------------------------------------------------------------------- */

static rondo_status keep_edges(cuda_executable *executable, const rondo_lowered_graph *graph) {
  const rondo_allocator *allocator = cuda_allocator_of(executable);
  const size_t starts = graph->node_count + 1;
  void *start, *predecessors;
  RONDO_TRY(rondo_allocate_copy(allocator, graph->predecessor_start, starts, sizeof(uint32_t), &start));
  executable->predecessor_start = start;
  executable->edge_count = executable->predecessor_start[graph->node_count];
  RONDO_TRY(
      rondo_allocate_copy(allocator, graph->predecessors, executable->edge_count, sizeof(uint32_t), &predecessors));
  executable->predecessors = predecessors;
  return RONDO_OK;
}

static rondo_status keep_captured(cuda_executable *executable, const rondo_lowered_graph *graph) {
  const size_t count = graph->programmatic_count;
  if (graph->captured != NULL) rondo_captured_retain(executable->captured = graph->captured);
  RONDO_TRY(rondo_allocate_items(cuda_allocator_of(executable), count, sizeof *graph->programmatic,
                                 &executable->programmatic));
  for (size_t i = 0; i < count; i++) executable->programmatic[i] = graph->programmatic[i];
  executable->programmatic_count = count;
  return RONDO_OK;
}

/* Life ------------------------------------------------------------------------------------------------------------ */

static void free_replaced(cuda_executable *executable) {
  cuda_host_work *work = executable->replaced;
  executable->replaced = NULL;
  while (work != NULL) {
    cuda_host_work *next = work->next;
    cuda_host_free(cuda_allocator_of(executable), work);
    work = next;
  }
}

/* The driver's objects and the code that they run. */
static void let_go(cuda_executable *executable) {
  cuda_device *device = cuda_device_of(executable->base.device);
  const cuda_api *api = device->api;
  cuda_scope scope;
  rondo_status_ignore(cuda_set_timing(&executable->base, false), "it only frees");
  cuda_enter_to_free(device, &scope);
  cuda_built_free(executable, &executable->built);
  if (executable->before != NULL) (void)api->exec_destroy(executable->before); /* on a lost device these are gone */
  if (executable->last != NULL) (void)api->event_destroy(executable->last);
  cuda_leave(&scope);
  executable->before = NULL;
  executable->last = NULL;
  rondo_captured_release(executable->captured);
  executable->captured = NULL;
  for (size_t i = 0; i < executable->count; i++) {
    rondo_kernel_release(executable->nodes[i].kernel);
    executable->nodes[i].kernel = NULL;
  }
}

static void free_memory(cuda_executable *executable) {
  const rondo_allocator *allocator = cuda_allocator_of(executable);
  const size_t count = executable->count;
  free_replaced(executable);
  for (size_t i = 0; i < count; i++) cuda_node_free(executable, &executable->nodes[i]);
  rondo_slab_free(&executable->slab);
  rondo_release(allocator, executable->nodes, executable->node_room, sizeof(cuda_node));
  rondo_release(allocator, executable->handles, executable->handle_count, sizeof(cu_graph_node));
  rondo_release(allocator, executable->programmatic, executable->programmatic_count, sizeof(rondo_lowered_edge));
  rondo_release(allocator, executable->predecessor_start, executable->node_room + 1, sizeof(uint32_t));
  rondo_release(allocator, executable->predecessors, executable->edge_count, sizeof(uint32_t));
  rondo_release_text(allocator, executable->label);
  rondo_release(allocator, executable, 1, sizeof *executable);
}

static void free_executable(cuda_executable *executable) {
  let_go(executable);
  free_memory(executable);
}

/* True when no launch can call its host functions any more; on a lost device nobody knows. */
static bool is_over(const cuda_executable *executable) {
  cuda_device *device = cuda_device_of(executable->base.device);
  cuda_scope scope;
  if (executable->last == NULL) return true;
  if (cuda_is_lost(device)) return false;
  cuda_enter_to_free(device, &scope);
  const cu_result code = device->api->event_query(executable->last);
  cuda_leave(&scope);
  return code == CU_OK;
}

static void wait_over(const cuda_executable *executable) {
  cuda_device *device = cuda_device_of(executable->base.device);
  cuda_scope scope;
  if (executable->last == NULL || cuda_is_lost(device)) return;
  cuda_enter_to_free(device, &scope);
  (void)device->api->event_synchronize(executable->last); /* a failure is the queue's to tell */
  cuda_leave(&scope);
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
    if (all) let_go(executable);
    if (!all && is_over(executable))
      free_executable(executable);
    else
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

static void executable_destroy(rondo_executable *base) {
  cuda_executable *executable = (cuda_executable *)base;
  cuda_device *device = cuda_device_of(base->device);
  cuda_queues_forget(device, executable);
  if (is_over(executable))
    free_executable(executable);
  else
    bury(device, executable);
}

/* Launching ------------------------------------------------------------------------------------------------------- */

/* Host functions report to the queue of their own launch, which is told in the stream's order: behind earlier launches,
 * in front of this one. */
static rondo_status launch_with_hosts(cuda_executable *executable, cuda_queue *queue, cu_graph_exec exec) {
  cuda_device *device = cuda_device_of(queue->base.device);
  const cuda_api *api = device->api;
  cu_result code = api->stream_wait_event(queue->stream, executable->last, 0);
  if (code == CU_OK && executable->queue_told != queue) {
    RONDO_TRY(cuda_queue_tell(queue, &executable->queue));
    executable->queue_told = queue;
  }
  if (code == CU_OK) code = api->exec_launch(exec, queue->stream);
  if (code == CU_OK && api->event_record(executable->last, queue->stream) != CU_OK)
    code = api->stream_synchronize(queue->stream); /* what cannot be recorded is waited for */
  return cuda_check(device, code, "launching %s with host functions on %s", executable->label, queue->label);
}

/* What the driver has is not what it should run: it is given all anew. */
static rondo_status rebuild_stale(cuda_executable *executable) {
  cuda_scope scope;
  RONDO_TRY(cuda_enter(cuda_device_of(executable->base.device), &scope));
  const rondo_status status = cuda_executable_rebuild(executable);
  cuda_leave(&scope);
  return status;
}

/* Orders what follows on the stream behind the launches of what was replaced. */
static rondo_status catch_up(cuda_executable *executable, const cuda_queue *queue) {
  cuda_device *device = cuda_device_of(queue->base.device);
  cuda_scope scope;
  RONDO_TRY(cuda_enter_for_work(device, &scope));
  const cu_result code = device->api->exec_upload(executable->before, queue->stream);
  RONDO_TRY(
      cuda_leave_with(&scope, code, "ordering %s after its earlier launches on %s", executable->label, queue->label));
  (void)device->api->exec_destroy(executable->before); /* its launches go on */
  executable->before = NULL;
  cuda_note_direct(executable);
  return RONDO_OK;
}

/* On a synchronous device, so that a failure names its node. Every earlier launch is done. */
static rondo_status launch_singly(cuda_executable *executable, cuda_queue *queue) {
  cuda_device *device = cuda_device_of(queue->base.device);
  cuda_scope scope;
  rondo_status status = RONDO_OK;
  RONDO_TRY(cuda_enter(device, &scope));
  executable->queue = executable->queue_told = queue;
  for (size_t i = 0; i < executable->count && status == RONDO_OK; i++) {
    const cuda_node *node = &executable->nodes[i];
    if (!node->enabled) continue;
    cu_result code = cuda_node_submit(executable, node, queue->stream);
    if (code == CU_OK) code = device->api->stream_synchronize(queue->stream);
    status = rondo_fail_context(cuda_check_node(device, code, node, "", executable->label), "%s", queue->label);
  }
  cuda_leave(&scope);
  return status;
}

/* On a synchronous device, but for what runs in graphs only, and while nodes are timed. */
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

/* Out of the way of launches that are one call. */
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
  cuda_scope scope;
  RONDO_TRY(cuda_enter_for_work(device, &scope));
  cuda_queue_note_work(queue);
  const cu_result code = device->api->exec_upload(executable->built.exec, queue->stream);
  return cuda_leave_with(&scope, code, "uploading %s on %s", executable->label, queue->label);
}

/* Changes --------------------------------------------------------------------------------------------------------- */

/* An earlier launch may still call what was replaced. Its gate is the new one's. */
static void replace_host(cuda_executable *executable, cuda_node *node, cuda_node *changed) {
  cuda_device *device = cuda_device_of(executable->base.device);
  cuda_gate_give(device, changed->as.host->gate);
  changed->as.host->gate = node->as.host->gate;
  node->as.host->next = executable->replaced;
  executable->replaced = node->as.host;
  node->as.host = NULL;
}

static void exchange(cuda_node *one, cuda_node *other) {
  const cuda_node kept = *one;
  *one = *other;
  *other = kept;
}

rondo_status cuda_executable_rebuild(cuda_executable *executable) {
  cuda_device *device = cuda_device_of(executable->base.device);
  const rondo_allocator *allocator = cuda_allocator_of(executable);
  cu_graph_node *handles;
  cuda_built built;
  RONDO_TRY(rondo_allocate_items(allocator, executable->handle_count, sizeof *handles, &handles));
  const rondo_status status = cuda_build(executable, &built, handles);
  if (status != RONDO_OK) {
    rondo_release(allocator, handles, executable->handle_count, sizeof *handles);
    return status;
  }
  if (executable->before == NULL) { /* else what is replaced here was never launched */
    executable->before = executable->built.exec;
    executable->built.exec = NULL;
  }
  cuda_built_free(executable, &executable->built);
  rondo_release(allocator, executable->handles, executable->handle_count, sizeof *handles);
  executable->built = built;
  executable->handles = handles;
  executable->is_stale = false;
  cuda_note_direct(executable);
  atomic_fetch_add_explicit(&device->rebuilds, 1, memory_order_relaxed);
  return RONDO_OK;
}

/* What the driver does not change in place, as it said by `code`, is made anew; when that fails too, its first word
 * stands. */
static rondo_status rebuild_unless(cu_result code, cuda_executable *executable, cuda_node *node, cuda_node *changed) {
  cuda_device *device = cuda_device_of(executable->base.device);
  if (code == CU_OK) return RONDO_OK;
  rondo_saved_error first, before;
  rondo_error_save(&before);
  const rondo_status status = cuda_check_node(device, code, changed, "changing ", executable->label);
  if (status == RONDO_OUT_OF_MEMORY || status == RONDO_DEVICE_LOST) return status;
  rondo_error_save(&first);
  exchange(node, changed);
  const rondo_status rebuilt = cuda_executable_rebuild(executable);
  exchange(node, changed);
  if (rebuilt != RONDO_OK) return rondo_error_raise(&first);
  rondo_error_restore(&before);
  return RONDO_OK;
}

rondo_status cuda_executable_change(cuda_executable *executable, const cuda_node *changed, cu_result *out_code) {
  cuda_placeholders placeholders;
  if (changed->kind != RONDO_NODE_COPY) {
    *out_code = cuda_node_change(executable, &executable->built, changed);
    return RONDO_OK;
  }
  rondo_status status = cuda_placeholders_begin(cuda_device_of(executable->base.device), &placeholders);
  if (status == RONDO_OK) status = cuda_placeholders_add_copy(&placeholders, &changed->as.copy);
  if (status == RONDO_OK) *out_code = cuda_node_change(executable, &executable->built, changed);
  cuda_placeholders_end(&placeholders);
  return status;
}

/* `refused` is what the driver said when the parameters were put in place; CU_OK when they do not fit there. */
static rondo_status replace_node(cuda_executable *executable, cuda_node *node, const rondo_lowered_node *lowered,
                                 cu_result refused) {
  cuda_node changed = {0};
  RONDO_TRY(cuda_node_make(executable, lowered, &changed));
  changed.first = node->first;
  changed.enabled = node->enabled;
  changed.captured = node->captured;
  const bool is_host = node->kind == RONDO_NODE_HOST;
  cuda_gate *const own_gate = is_host ? changed.as.host->gate : NULL;
  if (is_host) changed.as.host->gate = node->as.host->gate;
  cu_result code = refused;
  rondo_status status = refused == CU_OK ? cuda_executable_change(executable, &changed, &code) : RONDO_OK;
  if (status == RONDO_OK) status = rebuild_unless(code, executable, node, &changed);
  if (is_host) changed.as.host->gate = own_gate;
  if (status != RONDO_OK) {
    cuda_node_free(executable, &changed);
    return status;
  }
  if (executable->replaced != NULL && is_over(executable)) free_replaced(executable);
  if (is_host) replace_host(executable, node, &changed);
  if (node->kernel == changed.kernel) changed.args = node->args;
  cuda_node_free(executable, node);
  *node = changed;
  cuda_note_direct(executable);
  return RONDO_OK;
}

/* It is of the same kernel and name: the parameters have room where its own are. */
static inline bool fits(const cuda_node *node, const rondo_node_params *params) {
  return node->kind == RONDO_NODE_KERNEL && params->kind == RONDO_NODE_KERNEL &&
         node->kernel == params->as.kernel.kernel && !node->is_foreign &&
         (node->name == params->name || strcmp(node->name, params->name) == 0);
}

static inline void set_grid(cu_kernel_params *params, rondo_grid grid) {
  params->grid_x = grid.x;
  params->grid_y = grid.y;
  params->grid_z = grid.z;
}

/* Changes a kernel's grid and arguments in place, which the driver allows in any capture mode (docs/cuda-probes.md, 7).
 * Until set_nodes ends, the node reads the arguments where the caller has them. */
static inline cu_result overwrite(cuda_executable *executable, cuda_node *node, const rondo_lowered_node *lowered) {
  const cuda_api *api = cuda_device_of(executable->base.device)->api;
  const rondo_kernel_node *kernel = &lowered->params->as.kernel;
  cu_kernel_params *own = &node->as.kernel;
  const rondo_grid before = {own->grid_x, own->grid_y, own->grid_z};
  set_grid(own, kernel->grid);
  own->params = (void **)(uintptr_t)kernel->args; /* the driver only reads */
  const cu_result code = api->exec_set_kernel(executable->built.exec, executable->handles[node->first], own);
  if (__builtin_expect(code == CU_OK, 1)) return code;
  cuda_node_bind(node, node->args);
  set_grid(own, before);
  return code;
}

/* What a change needs is had while the driver works on the one before. */
static inline void fetch(const cuda_executable *executable, const rondo_node_change *change) {
  const char *node = (const char *)&executable->nodes[change->index];
  __builtin_prefetch(node, 1);
  __builtin_prefetch(node + 64, 1);
  if (change->node.params->kind == RONDO_NODE_KERNEL) __builtin_prefetch(change->node.params->as.kernel.args);
}

/* Kernels read their arguments from the exec's memory again. If the kernel of a node is another one, the caller follows
 * with rebind. */
static void bind_nodes(cuda_executable *executable, const rondo_node_change *changes, size_t count) {
  for (size_t i = 0; i < count; i++) {
    cuda_node *node = &executable->nodes[changes[i].index];
    if (node->kind == RONDO_NODE_KERNEL) cuda_node_bind(node, node->args);
  }
}

/* `scope` is what was entered for work alone; NULL when it has the relaxed mode too. Returns how many are changed. */
static size_t change_nodes(cuda_executable *executable, const rondo_node_change *changes, size_t count,
                           cuda_scope *scope, rondo_status *out_status) {
  *out_status = RONDO_OK;
  for (size_t i = 0; i < count; i++) {
    cuda_node *node = &executable->nodes[changes[i].index];
    const rondo_lowered_node *then = &changes[i].node;
    cu_result code = CU_OK;
    if (i + 1 < count) fetch(executable, &changes[i + 1]);
    if (fits(node, then->params)) {
      code = overwrite(executable, node, then);
      if (__builtin_expect(code == CU_OK, 1)) continue;
    }
    if (scope != NULL) cuda_relax(scope);
    *out_status = replace_node(executable, node, then, code);
    if (*out_status != RONDO_OK) return i;
  }
  return count;
}

static size_t set_nodes(cuda_executable *executable, const rondo_node_change *changes, size_t count, cuda_scope *scope,
                        rondo_status *out_status) {
  const size_t done = change_nodes(executable, changes, count, scope, out_status);
  bind_nodes(executable, changes, count);
  return done;
}

static void executable_rebind(rondo_executable *base, size_t index, const rondo_kernel_node *kernel) {
  cuda_node *node = &((cuda_executable *)base)->nodes[index];
  assert(node->kind == RONDO_NODE_KERNEL && (kernel == NULL || node->kernel == kernel->kernel));
  cuda_node_bind(node, kernel == NULL ? NULL : kernel->args);
}

static rondo_status executable_set_params(rondo_executable *base, size_t index, const rondo_lowered_node *lowered) {
  const rondo_node_change change = {.index = (uint32_t)index, .node = *lowered};
  cuda_scope scope;
  rondo_status status;
  RONDO_TRY(cuda_enter_for_work(cuda_device_of(base->device), &scope));
  (void)set_nodes((cuda_executable *)base, &change, 1, &scope, &status);
  cuda_leave(&scope);
  return status;
}

static rondo_status executable_set_many(rondo_executable *base, const rondo_node_change *changes, size_t count,
                                        size_t *out_done) {
  cuda_scope scope;
  rondo_status status;
  *out_done = 0;
  RONDO_TRY(cuda_enter(cuda_device_of(base->device), &scope));
  *out_done = set_nodes((cuda_executable *)base, changes, count, NULL, &status);
  cuda_leave(&scope);
  return status;
}

static rondo_status executable_set_enabled(rondo_executable *base, size_t index, bool enabled) {
  cuda_executable *executable = (cuda_executable *)base;
  cuda_device *device = cuda_device_of(base->device);
  cuda_node *node = &executable->nodes[index];
  cuda_scope scope;
  if (node->enabled == enabled) return RONDO_OK;
  RONDO_TRY(cuda_enter(device, &scope));
  const cu_result code = cuda_node_switch(executable, &executable->built, executable->handles, node, enabled);
  cuda_leave(&scope);
  if (code != CU_OK && cuda_node_parts(node) > 1) {
    executable->is_stale = true; /* some parts may be switched */
    cuda_note_direct(executable);
  }
  RONDO_TRY(cuda_check_node(device, code, node, enabled ? "switching on " : "switching off ", executable->label));
  node->enabled = enabled;
  executable->disabled_count += enabled ? (size_t)-1 : 1;
  if (node->kind == RONDO_NODE_KERNEL) executable->kernel_count += enabled ? 1 : (size_t)-1;
  return RONDO_OK;
}

/* Waiting --------------------------------------------------------------------------------------------------------- */

/* A stream of the device's own, which nobody captures. In the device's context. */
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
  if (*out != made) (void)device->api->stream_destroy(made); /* somebody was faster */
  return RONDO_OK;
}

static rondo_status wait_inside(cuda_executable *executable) {
  cuda_device *device = cuda_device_of(executable->base.device);
  cu_stream side;
  RONDO_TRY(side_stream(device, &side));
  const cu_graph_exec latest = executable->before != NULL ? executable->before : executable->built.exec;
  cu_result code = device->api->exec_upload(latest, side);
  if (code == CU_OK && executable->timed.exec != NULL) code = device->api->exec_upload(executable->timed.exec, side);
  if (code == CU_OK) code = device->api->stream_synchronize(side);
  return cuda_check(device, code, "waiting for the launches of %s", executable->label);
}

/* An upload is put behind all launches of what it uploads. */
static rondo_status executable_synchronize(rondo_executable *base) {
  cuda_device *device = cuda_device_of(base->device);
  cuda_scope scope;
  RONDO_TRY(cuda_enter(device, &scope));
  const rondo_status status = wait_inside((cuda_executable *)base);
  cuda_leave(&scope);
  return status;
}

/* The front's slots ----------------------------------------------------------------------------------------------- */

static uint64_t executable_host_bytes(const rondo_executable *base) {
  const cuda_executable *executable = (const cuda_executable *)base;
  uint64_t bytes = sizeof *executable + executable->node_room * (sizeof(cuda_node) + sizeof(uint32_t)) +
                   executable->edge_count * sizeof(uint32_t) + executable->handle_count * sizeof(cu_graph_node);
  for (size_t i = 0; i < executable->count; i++) bytes += executable->nodes[i].storage_bytes;
  return bytes;
}

/* What the driver was seen to take for an exec that runs anything, and for each kernel and copy in it
 * (docs/cuda-probes.md, 40). It cannot be asked: it takes more at a time, and keeps for later execs what one gives
 * back. */
enum { EXEC_BYTES = 105 << 10, NODE_BYTES = 2577 };

static uint64_t executable_device_bytes(const rondo_executable *base) {
  const cuda_executable *executable = (const cuda_executable *)base;
  uint64_t nodes = 0;
  bool runs = false;
  for (size_t i = 0; i < executable->count; i++) {
    const cuda_node *node = &executable->nodes[i];
    if (node->kind == RONDO_NODE_KERNEL || node->kind == RONDO_NODE_COPY || node->kind == RONDO_NODE_FILL)
      nodes += cuda_node_parts(node);
    runs |= node->kind != RONDO_NODE_EMPTY && node->kind != RONDO_NODE_ALLOC && node->kind != RONDO_NODE_FREE;
  }
  return (runs ? EXEC_BYTES : 0) + nodes * NODE_BYTES;
}

const rondo_executable_ops cuda_executable_ops = {
    .destroy = executable_destroy,
    .set_params = executable_set_params,
    .set_many = executable_set_many,
    .rebind = executable_rebind,
    .set_enabled = executable_set_enabled,
    .synchronize = executable_synchronize,
    .host_bytes = executable_host_bytes,
    .device_bytes = executable_device_bytes,
    .set_timing = cuda_set_timing,
    .times = cuda_times,
};

static rondo_status make_nodes(cuda_executable *executable, const rondo_lowered_graph *graph) {
  RONDO_TRY(
      rondo_allocate_items(cuda_allocator_of(executable), graph->node_count, sizeof(cuda_node), &executable->nodes));
  for (size_t i = 0; i < graph->node_count; i++) {
    cuda_node *node = &executable->nodes[i];
    RONDO_TRY(cuda_node_make(executable, &graph->nodes[i], node));
    executable->count++;
    node->first = executable->handle_count;
    executable->handle_count += cuda_node_parts(node);
    if (node->kind == RONDO_NODE_HOST) executable->host_count++;
    if (node->kind == RONDO_NODE_KERNEL) executable->kernel_count++;
  }
  return RONDO_OK;
}

static rondo_status make_driver_objects(cuda_executable *executable) {
  cuda_device *device = cuda_device_of(executable->base.device);
  RONDO_TRY(rondo_allocate_items(cuda_allocator_of(executable), executable->handle_count, sizeof(cu_graph_node),
                                 &executable->handles));
  RONDO_TRY(cuda_build(executable, &executable->built, executable->handles));
  if (executable->host_count == 0) return RONDO_OK;
  return cuda_check(device, device->api->event_create(&executable->last, CU_EVENT_FLAG_DISABLE_TIMING),
                    "making an event on device '%s'", device->base.name);
}

static rondo_status make(cuda_executable *executable, const rondo_lowered_graph *graph) {
  char label[RONDO_LABEL_BYTES];
  const char *text = rondo_graph_name_label(label, graph->name);
  RONDO_TRY(rondo_allocate_text(cuda_allocator_of(executable), text, &executable->label));
  RONDO_TRY(keep_edges(executable, graph));
  RONDO_TRY(keep_captured(executable, graph));
  RONDO_TRY(make_nodes(executable, graph));
  RONDO_TRY(make_driver_objects(executable));
  executable->is_made = true;
  cuda_note_direct(executable);
  return RONDO_OK;
}

rondo_status cuda_executable_create(rondo_device *base, const rondo_lowered_graph *graph, rondo_executable **out) {
  cuda_device *device = cuda_device_of(base);
  cuda_executable *executable;
  cuda_scope scope;
  *out = NULL;
  RONDO_TRY(cuda_enter(device, &scope));
  cuda_executables_reap(device, false);
  rondo_status status = rondo_allocate_items(&base->allocator, 1, sizeof *executable, &executable);
  if (status == RONDO_OK) {
    executable->base = (rondo_executable){&base->tables.executable, base};
    executable->node_room = graph->node_count;
    rondo_slab_init(&executable->slab, &base->allocator);
    executable->small = rondo_slab_allocator(&executable->slab);
    status = make(executable, graph);
    if (status == RONDO_OK)
      *out = &executable->base;
    else
      free_executable(executable);
  }
  cuda_leave(&scope);
  return status;
}
