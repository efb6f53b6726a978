/* SPDX-License-Identifier: MIT
 * Execs of the fake driver: instantiation, upload, launch, and updates of one node or all nodes. Launches of one exec
 * run one after another. An update copies the program while a launch uses it, so that only later launches see the
 * change.
 */
#include <stdlib.h>

#include "fake_cuda/fake.h"

static fake_exec *need_exec(cu_graph_exec handle) { return fake_need(FAKE_CUDA_EXEC, fake_handle(handle)); }

void fake_exec_free(fake_exec *exec) {
  fake_object_remove(&exec->object);
  fake_program_release(exec->program);
  fake_marker_release(exec->last);
  free(exec);
}

fake_program *fake_exec_edit(fake_exec *exec) {
  if (exec->program->references == 1) return exec->program;
  fake_program *copy = fake_program_copy(exec->program);
  fake_program_release(exec->program);
  exec->program = copy;
  return copy;
}

/* Whether the graph has an exec. */
static void compare_graph(void *exec, void *user) {
  uint64_t *graph = user;
  if (((const fake_exec *)exec)->graph == *graph) *graph = 0;
}

static bool has_exec(const fake_graph *graph) {
  uint64_t handle = graph->object.handle;
  fake_each(FAKE_CUDA_EXEC, compare_graph, &handle);
  return handle == 0;
}

/* What copies and fills name has to be mapped now, which a capture did not ask. */
static cu_result look(const fake_program *program, cu_graph_node *out_error) {
  cu_result code = CU_OK;
  for (size_t i = 0; i < program->count && code == CU_OK; i++) {
    if (program->works[i] != NULL) code = fake_work_look(program->works[i]);
    if (code != CU_OK) *out_error = (cu_graph_node)(uintptr_t)program->nodes[i];
  }
  return code;
}

/* The program of an exec whose nodes have the priority of its stream. */
static void drop_priorities(fake_program *program) {
  for (size_t i = 0; i < program->count; i++) {
    fake_work *work = program->works[i], *changed;
    if (work == NULL || work->type != CU_NODE_KERNEL || work->of.kernel.attributes.priority == 0) continue;
    fake_cuda_attributes attributes = work->of.kernel.attributes;
    attributes.priority = 0;
    if (fake_work_kernel(&work->of.kernel.params, &attributes, &changed) != CU_OK) continue;
    fake_work_release(work);
    program->works[i] = changed;
  }
}

static cu_result instantiate(cu_graph_exec *out, const fake_graph *graph, cu_instantiate_params *params) {
  params->result = CU_INSTANTIATE_ERROR;
  params->error_node = NULL;
  const uint64_t known = CU_INSTANTIATE_AUTO_FREE | CU_INSTANTIATE_UPLOAD | CU_INSTANTIATE_NODE_PRIORITY;
  if ((params->flags & ~known) != 0) return CU_INVALID_VALUE;
  if (graph->capture != NULL) return CU_ILLEGAL_STATE;
  if ((params->flags & CU_INSTANTIATE_UPLOAD) != 0) {
    fake_stream *stream = fake_stream_need(params->upload_stream);
    const cu_result code = stream != NULL ? fake_gate_submit(stream) : CU_INVALID_HANDLE;
    if (code != CU_OK) return code;
  }
  if (fake_graph_has_memory(graph) && has_exec(graph)) {
    params->result = CU_INSTANTIATE_OPERATION_NOT_SUPPORTED;
    return CU_NOT_SUPPORTED;
  }
  fake_program *program = fake_program_new(graph, &params->error_node);
  params->result = program != NULL ? CU_INSTANTIATE_SUCCESS : CU_INSTANTIATE_INVALID_STRUCTURE;
  if (program == NULL) return CU_INVALID_VALUE;
  if (look(program, &params->error_node) != CU_OK) {
    fake_program_release(program);
    params->result = CU_INSTANTIATE_ERROR;
    return CU_INVALID_VALUE;
  }
  if ((params->flags & CU_INSTANTIATE_NODE_PRIORITY) == 0) drop_priorities(program);
  fake_exec *exec = fake_allocate(1, sizeof *exec);
  exec->program = program;
  exec->graph = graph->object.handle;
  exec->frees_before = (params->flags & CU_INSTANTIATE_AUTO_FREE) != 0;
  fake_object_add(&exec->object, FAKE_CUDA_EXEC, fake_self.current);
  *out = fake_as(cu_graph_exec, exec);
  return CU_OK;
}

cu_result fake_graph_instantiate(cu_graph_exec *out, cu_graph handle, cu_instantiate_params *params) {
  cu_result code = fake_begin(CALL_graph_instantiate, FAKE_IN_CONTEXT);
  const fake_graph *graph = code == CU_OK ? fake_need(FAKE_CUDA_GRAPH, fake_handle(handle)) : NULL;
  if (code == CU_OK && (graph == NULL || out == NULL || params == NULL)) code = CU_INVALID_VALUE;
  if (code == CU_OK) code = fake_gate_unsafe();
  if (code == CU_OK) code = instantiate(out, graph, params);
  return fake_end(code);
}

cu_result fake_exec_destroy(cu_graph_exec handle) {
  cu_result code = fake_begin(CALL_exec_destroy, FAKE_ALL_THE_SAME);
  fake_exec *exec = code == CU_OK ? need_exec(handle) : NULL;
  if (code == CU_OK && exec == NULL) code = CU_INVALID_VALUE;
  if (code == CU_OK) fake_exec_free(exec);
  return fake_end(code);
}

static bool are_events_alive(const fake_program *program) {
  for (size_t i = 0; i < program->count; i++) {
    const bool is_event = program->types[i] == CU_NODE_EVENT_RECORD || program->types[i] == CU_NODE_EVENT_WAIT;
    if (is_event && program->works[i]->of.event->object.handle == 0) return false;
  }
  return true;
}

/* Waits mean what is recorded now, records count from now on. */
static fake_marker **bind_events(const fake_program *program) {
  fake_marker **markers = fake_allocate(program->count, sizeof(fake_marker *));
  for (size_t i = 0; i < program->count; i++) {
    if (program->types[i] == CU_NODE_EVENT_WAIT) markers[i] = fake_marker_retain(program->works[i]->of.event->marker);
  }
  for (size_t i = 0; i < program->count; i++) {
    if (program->types[i] != CU_NODE_EVENT_RECORD) continue;
    fake_event *event = program->works[i]->of.event;
    fake_marker_release(event->marker);
    event->marker = fake_marker_new();
    event->capture = 0;
    markers[i] = fake_marker_retain(event->marker);
  }
  return markers;
}

cu_result fake_exec_submit(fake_exec *exec, fake_stream *stream) {
  if (!are_events_alive(exec->program))
    return fake_violation(CU_INVALID_VALUE, "an exec with an event that was destroyed is launched");
  const cu_result code = fake_program_take_memory(exec->program, exec->frees_before);
  if (code != CU_OK) return code;
  fake_task task = {.wait = exec->last, .program = exec->program, .program_markers = bind_events(exec->program)};
  exec->program->references++;
  exec->last = fake_marker_new();
  task.reach = fake_marker_retain(exec->last);
  return fake_stream_submit(stream, task);
}

/* The exec and the stream of a launch or an upload. */
static cu_result find_both(cu_graph_exec exec_handle, cu_stream stream_handle, fake_exec **exec, fake_stream **stream) {
  *exec = need_exec(exec_handle);
  *stream = *exec != NULL ? fake_stream_need(stream_handle) : NULL;
  if (*exec == NULL) return CU_INVALID_VALUE;
  return *stream != NULL ? fake_gate_submit(*stream) : CU_INVALID_HANDLE;
}

cu_result fake_exec_upload(cu_graph_exec exec_handle, cu_stream stream_handle) {
  cu_result code = fake_begin(CALL_exec_upload, FAKE_IN_CONTEXT);
  fake_exec *exec;
  fake_stream *stream;
  if (code == CU_OK) code = find_both(exec_handle, stream_handle, &exec, &stream);
  if (code == CU_OK) code = fake_stream_submit(stream, (fake_task){.wait = fake_marker_retain(exec->last)});
  return fake_end(code);
}

cu_result fake_exec_launch(cu_graph_exec exec_handle, cu_stream stream_handle) {
  cu_result code = fake_begin(CALL_exec_launch, FAKE_ANYWHERE);
  fake_exec *exec;
  fake_stream *stream;
  if (code == CU_OK) code = find_both(exec_handle, stream_handle, &exec, &stream);
  if (code == CU_OK) fake_stream_serialize(stream);
  if (code == CU_OK) code = stream->object.context->lost;
  if (code == CU_OK) code = fake_exec_submit(exec, stream);
  if (code == CU_OK) fake_stream_serialize(stream);
  return fake_end(code);
}

/* Changing one node ----------------------------------------------------------------------------------------------- */

/* The place of a node of the graph that the exec was made from; it must be there still. SIZE_MAX: none. */
static size_t find_node(const fake_exec *exec, cu_graph_node handle) {
  if (fake_need(FAKE_CUDA_NODE, fake_handle(handle)) == NULL) return SIZE_MAX;
  for (size_t i = 0; i < exec->program->count; i++) {
    if (exec->program->nodes[i] == fake_handle(handle)) return i;
  }
  return SIZE_MAX;
}

/* A call that changes a node of an exec. */
typedef struct change {
  cu_result code;
  fake_exec *exec;
  size_t place;    /* of the node in its program */
  fake_work *work; /* what is to stand there */
} change;

static change begin_set(fake_call call, unsigned how, cu_graph_exec handle, cu_graph_node node, cu_node_type type) {
  change c = {.code = fake_begin(call, how)};
  if (c.code != CU_OK) return c;
  c.exec = need_exec(handle);
  c.place = c.exec != NULL ? find_node(c.exec, node) : SIZE_MAX;
  if (c.place == SIZE_MAX || c.exec->program->types[c.place] != type) c.code = CU_INVALID_VALUE;
  return c;
}

/* Whether an update may put one work in another's place (U1). */
static bool may_replace(const fake_work *old, const fake_work *new) {
  if (old->type != new->type) return false;
  if (old->type == CU_NODE_COPY)
    return old->context == new->context &&fake_copy_is_1d(&old->of.copy) && fake_copy_is_1d(&new->of.copy) &&
           fake_copy_is_alike(&old->of.copy, &new->of.copy);
  if (old->type == CU_NODE_MEMSET)
    return old->context == new->context && old->of.fill.height == 1 && new->of.fill.height == 1;
  return old->type != CU_NODE_KERNEL || old->context == new->context;
}

static void put_work(fake_exec *exec, size_t place, fake_work *work) {
  fake_program *program = fake_exec_edit(exec);
  fake_work_release(program->works[place]);
  program->works[place] = work;
}

static cu_result end_set(change *c) {
  if (c->code == CU_OK && !may_replace(c->exec->program->works[c->place], c->work)) c->code = CU_INVALID_VALUE;
  if (c->code == CU_OK)
    put_work(c->exec, c->place, c->work);
  else
    fake_work_release(c->work);
  return fake_end(c->code);
}

cu_result fake_exec_set_kernel(cu_graph_exec handle, cu_graph_node node, const cu_kernel_params *params) {
  change c = begin_set(CALL_exec_set_kernel, FAKE_IN_CONTEXT, handle, node, CU_NODE_KERNEL);
  const fake_work *now = c.code == CU_OK ? c.exec->program->works[c.place] : NULL;
  if (c.code == CU_OK)
    c.code = params != NULL ? fake_work_kernel(params, &now->of.kernel.attributes, &c.work) : CU_INVALID_VALUE;
  return end_set(&c);
}

/* The context that a copy or a fill is to be done in; refused without parameters, too. */
static fake_context *context_of(change *c, cu_context handle, const void *params) {
  fake_context *context = c->code == CU_OK ? fake_need(FAKE_CUDA_CONTEXT, fake_handle(handle)) : NULL;
  if (c->code == CU_OK && (context == NULL || params == NULL)) c->code = CU_INVALID_VALUE;
  return context;
}

cu_result fake_exec_set_copy(cu_graph_exec handle, cu_graph_node node, const cu_copy *params,
                             cu_context context_handle) {
  change c = begin_set(CALL_exec_set_copy, FAKE_IN_CONTEXT, handle, node, CU_NODE_COPY);
  fake_context *context = context_of(&c, context_handle, params);
  if (c.code == CU_OK) c.code = fake_work_copy(params, context, false, &c.work);
  return end_set(&c);
}

cu_result fake_exec_set_memset(cu_graph_exec handle, cu_graph_node node, const cu_memset_params *params,
                               cu_context context_handle) {
  change c = begin_set(CALL_exec_set_memset, FAKE_IN_CONTEXT, handle, node, CU_NODE_MEMSET);
  fake_context *context = context_of(&c, context_handle, params);
  if (c.code == CU_OK) c.code = fake_work_fill(params, context, false, &c.work);
  return end_set(&c);
}

cu_result fake_exec_set_host(cu_graph_exec handle, cu_graph_node node, const cu_host_params *params) {
  change c = begin_set(CALL_exec_set_host, FAKE_IN_CONTEXT, handle, node, CU_NODE_HOST);
  if (c.code == CU_OK && params == NULL) c.code = CU_INVALID_VALUE;
  if (c.code == CU_OK) c.code = fake_work_host(params, c.exec->program->works[c.place]->context, &c.work);
  return end_set(&c);
}

static bool are_alike(const fake_work *work, const cu_memory_operations_params *params) {
  if (params == NULL || params->operations == NULL || params->count != work->of.operations.count) return false;
  for (unsigned i = 0; i < params->count; i++)
    if (params->operations[i].of.operation != work->of.operations.items[i].of.operation) return false;
  return fake_find(FAKE_CUDA_CONTEXT, fake_handle(params->context)) == work->context;
}

/* Only addresses, values and conditions may change. */
cu_result fake_exec_set_memory_operations(cu_graph_exec handle, cu_graph_node node,
                                          const cu_memory_operations_params *params) {
  change c = begin_set(CALL_exec_set_memory_operations, FAKE_IN_CONTEXT, handle, node, CU_NODE_BATCH_MEMORY_OPERATION);
  const fake_work *now = c.code == CU_OK ? c.exec->program->works[c.place] : NULL;
  if (c.code == CU_OK && !are_alike(now, params)) c.code = CU_INVALID_VALUE;
  if (c.code == CU_OK) c.code = fake_work_operations(params->operations, params->count, now->context, &c.work);
  return end_set(&c);
}

/* Their number stays. */
static cu_result set_semaphores(fake_call call, cu_graph_exec handle, cu_graph_node node, cu_node_type type,
                                const cu_semaphores_params *params) {
  change c = begin_set(call, FAKE_IN_CONTEXT, handle, node, type);
  const fake_work *now = c.code == CU_OK ? c.exec->program->works[c.place] : NULL;
  if (c.code == CU_OK && (params == NULL || params->count != now->of.semaphores.count)) c.code = CU_INVALID_VALUE;
  if (c.code == CU_OK)
    c.code = fake_work_semaphores(params->semaphores, params->params, params->count, type, now->context, &c.work);
  return end_set(&c);
}

cu_result fake_exec_set_semaphore_signal(cu_graph_exec exec, cu_graph_node node, const cu_semaphores_params *params) {
  return set_semaphores(CALL_exec_set_semaphore_signal, exec, node, CU_NODE_SEMAPHORE_SIGNAL, params);
}

cu_result fake_exec_set_semaphore_wait(cu_graph_exec exec, cu_graph_node node, const cu_semaphores_params *params) {
  return set_semaphores(CALL_exec_set_semaphore_wait, exec, node, CU_NODE_SEMAPHORE_WAIT, params);
}

static cu_result set_event(fake_call call, cu_graph_exec handle, cu_graph_node node, cu_node_type type,
                           cu_event event) {
  change c = begin_set(call, FAKE_ANYWHERE, handle, node, type);
  if (c.code == CU_OK) c.code = fake_work_event(event, type, &c.work);
  return end_set(&c);
}

cu_result fake_exec_set_event_record(cu_graph_exec exec, cu_graph_node node, cu_event event) {
  return set_event(CALL_exec_set_event_record, exec, node, CU_NODE_EVENT_RECORD, event);
}

cu_result fake_exec_set_event_wait(cu_graph_exec exec, cu_graph_node node, cu_event event) {
  return set_event(CALL_exec_set_event_wait, exec, node, CU_NODE_EVENT_WAIT, event);
}

static bool can_be_disabled(cu_node_type type) {
  return type == CU_NODE_KERNEL || type == CU_NODE_COPY || type == CU_NODE_MEMSET;
}

cu_result fake_exec_set_enabled(cu_graph_exec handle, cu_graph_node node, unsigned enabled) {
  cu_result code = fake_begin(CALL_exec_set_enabled, FAKE_ANYWHERE);
  fake_exec *exec = code == CU_OK ? need_exec(handle) : NULL;
  const size_t place = exec != NULL ? find_node(exec, node) : SIZE_MAX;
  if (code == CU_OK && (place == SIZE_MAX || !can_be_disabled(exec->program->types[place]))) code = CU_INVALID_VALUE;
  if (code == CU_OK) fake_exec_edit(exec)->is_disabled[place] = enabled == 0;
  return fake_end(code);
}

/* Changing all ---------------------------------------------------------------------------------------------------- */

/* Whether nodes `i` lead to the same nodes, in whatever order. */
static bool have_same_successors(const fake_program *one, const fake_program *other, size_t i) {
  const size_t count = one->start[i + 1] - one->start[i];
  if (other->start[i + 1] - other->start[i] != count) return false;
  for (size_t k = 0; k < count; k++) {
    const size_t wanted = one->successors[one->start[i] + k];
    size_t at = other->start[i];
    while (at < other->start[i + 1] && other->successors[at] != wanted) at++;
    if (at == other->start[i + 1]) return false;
  }
  return true;
}

static int compare_node(const fake_program *old, const fake_program *new, size_t i) {
  if (old->types[i] != new->types[i]) return CU_UPDATE_NODE_TYPE_CHANGED;
  if (!have_same_successors(old, new, i)) return CU_UPDATE_TOPOLOGY_CHANGED;
  if (old->works[i] == NULL || old->works[i] == new->works[i]) return CU_UPDATE_SUCCESS;
  if (may_replace(old->works[i], new->works[i])) return CU_UPDATE_SUCCESS;
  return old->types[i] == CU_NODE_KERNEL ? CU_UPDATE_FUNCTION_CHANGED : CU_UPDATE_PARAMETERS_CHANGED;
}

/* Pairs nodes in the order in which they were added (U3). */
static void compare(const fake_program *old, const fake_program *new, cu_update_result *out) {
  *out = (cu_update_result){CU_UPDATE_SUCCESS, NULL, NULL};
  for (size_t i = 0; i < old->count && i < new->count && out->result == CU_UPDATE_SUCCESS; i++) {
    out->result = compare_node(old, new, i);
    if (out->result == CU_UPDATE_SUCCESS) continue;
    out->error_node = (cu_graph_node)(uintptr_t) new->nodes[i];
    out->error_from_node = (cu_graph_node)(uintptr_t)old->nodes[i];
  }
  if (old->count != new->count && out->result != CU_UPDATE_NODE_TYPE_CHANGED)
    *out = (cu_update_result){CU_UPDATE_TOPOLOGY_CHANGED, NULL, NULL};
}

static void take_works(fake_program *program, const fake_program *from) {
  for (size_t i = 0; i < program->count; i++) {
    fake_work_retain(from->works[i]);
    fake_work_release(program->works[i]);
    program->works[i] = from->works[i];
  }
}

static cu_result update(fake_exec *exec, const fake_graph *graph, cu_update_result *result) {
  cu_graph_node stuck;
  fake_program *program = fake_program_new(graph, &stuck);
  if (program == NULL) {
    *result = (cu_update_result){CU_UPDATE_TOPOLOGY_CHANGED, stuck, NULL};
    return CU_GRAPH_EXEC_UPDATE_FAILURE;
  }
  compare(exec->program, program, result);
  if (result->result == CU_UPDATE_SUCCESS) take_works(fake_exec_edit(exec), program);
  fake_program_release(program);
  return result->result == CU_UPDATE_SUCCESS ? CU_OK : CU_GRAPH_EXEC_UPDATE_FAILURE;
}

cu_result fake_exec_update(cu_graph_exec handle, cu_graph graph_handle, cu_update_result *result) {
  cu_result code = fake_begin(CALL_exec_update, FAKE_IN_CONTEXT);
  fake_exec *exec = code == CU_OK ? need_exec(handle) : NULL;
  const fake_graph *graph = exec != NULL ? fake_need(FAKE_CUDA_GRAPH, fake_handle(graph_handle)) : NULL;
  if (code == CU_OK && (graph == NULL || result == NULL)) code = CU_INVALID_VALUE;
  if (code == CU_OK && graph->capture != NULL) code = CU_ILLEGAL_STATE;
  if (code == CU_OK) code = update(exec, graph, result);
  return fake_end(code);
}
