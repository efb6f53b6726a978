/* SPDX-License-Identifier: MIT
 * Creating execs: clone, lower, check, and create the driver's executable. The exec has a clone of the graph, so that
 * the graph can be changed or destroyed afterwards. The two share their nodes until one of them is changed. A failure
 * frees what was created.
 */
#include "exec/launch/instantiate.h"
#include "base/trace.h"
#include "base/versioned_struct.h"
#include "exec/build/graph_build.h"
#include "exec/launch/declared_access.h"
#include "exec/launch/exec_check.h"
#include "exec/launch/exec_relocate.h"
#include "exec/launch/exec_verify.h"
#include "exec/launch/update_in_place.h"
#include "exec/patch/patch.h"
#include "exec/stream/stream_work.h"
#include "graph/graph.h"
#include "graph/graph_clone.h"
#include "memory/arena/arena.h"
#include "memory/arena/arena_recording.h"

static const rondo_device_use exec_use = {.rank = 7, .name = "exec"};

/* Drafts ---------------------------------------------------------------------------------------------------------- */

static rondo_status check_nodes(const char *call, const rondo_device *device, const rondo_lowering *lowering) {
  const bool is_alone = !rondo_peers_others_have_memory(device) && lowering->root->others.count == 0;
  for (size_t i = 0; i < lowering->nodes.count; i++) {
    const rondo_lowered_node *node = &lowering->nodes.items[i];
    RONDO_TRY(rondo_work_check_code(call, node->device, node->params, &node->where));
    if (!is_alone && node->device != NULL) RONDO_TRY(rondo_peers_check(node->device, call, node->params, &node->where));
  }
  return RONDO_OK;
}

static rondo_status check_graph(const char *call, const rondo_graph *graph) {
  char label[RONDO_LABEL_BYTES];
  if (graph->device == NULL)
    return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_OTHER_DEVICE,
                      "%s: %s was created without a device and is only data: create it for a device", call,
                      rondo_graph_label(label, graph));
  return rondo_build_refuse_captured(call, graph);
}

/* Only the exec uses the clone. So the device does not count it as a graph, nor the address space as a user. */
rondo_status rondo_exec_clone_graph(rondo_graph *graph, rondo_graph **out) {
  RONDO_TRY(rondo_graph_copy(graph, out));
  rondo_address_space_forget_clone(rondo_address_space_of(graph));
  rondo_build_uncount(*out);
  return RONDO_OK;
}

static rondo_status keep_nodes(rondo_graph *graph) {
  rondo_graph *child;
  RONDO_TRY(rondo_graph_keep_nodes(graph));
  for (uint32_t at = 0; (child = rondo_graph_next_child(graph, &at)) != NULL;) RONDO_TRY(keep_nodes(child));
  return RONDO_OK;
}

/* The nodes may have moved. */
static void find_nodes(rondo_exec *exec) {
  for (uint32_t i = 0; i < exec->lowering.nodes.count; i++) {
    const rondo_lowered_origin *origin = &exec->lowering.origins.items[i];
    if (origin->graph == NULL) continue;
    exec->lowering.nodes.items[i].params = &rondo_graph_at(origin->graph, origin->slot)->params;
    if (exec->executable != NULL) rondo_exec_rebind(exec, i);
  }
}

rondo_status rondo_exec_copy_nodes(rondo_exec *exec) {
  rondo_status status = keep_nodes(exec->graph);
  if (status == RONDO_OK && exec->placed != NULL) status = keep_nodes(exec->placed);
  exec->owns_nodes = status == RONDO_OK;
  find_nodes(exec); /* after a failure, some may have moved */
  return status;
}

/* The second clone gets other addresses. */
static rondo_status place(rondo_graph *graph, rondo_exec_draft *out) {
  RONDO_TRY(rondo_exec_clone_graph(graph, &out->placed));
  return keep_nodes(out->placed);
}

/* They stay open until the clones are freed. */
static rondo_status keep_others(rondo_exec_draft *draft) {
  const rondo_graph *graph = draft->graph;
  RONDO_TRY(rondo_array_reserve(&draft->device->allocator, &draft->others, graph->others.count));
  for (size_t i = 0; i < graph->others.count; i++) {
    rondo_device_begin_use(graph->others.items[i].device, &exec_use);
    draft->others.items[draft->others.count++] = graph->others.items[i].device;
  }
  return RONDO_OK;
}

static void release_others(rondo_exec_draft *draft) {
  for (size_t i = 0; i < draft->others.count; i++) rondo_device_end_use(draft->others.items[i], &exec_use);
  if (draft->device != NULL) rondo_array_free(&draft->device->allocator, &draft->others);
}

rondo_status rondo_exec_draft_make(const char *call, rondo_graph *graph, bool relocate, rondo_exec_draft *out) {
  *out = (rondo_exec_draft){0};
  RONDO_TRY(check_graph(call, graph));
  const bool relocates = relocate || rondo_exec_must_relocate(graph);
  if (relocates) {
    RONDO_TRY(rondo_graph_refuse_bound(graph, "cannot be relocated"));
    RONDO_TRY(rondo_exec_refuse_arena(call, graph));
  }
  RONDO_TRY(rondo_exec_clone_graph(graph, &out->graph));
  out->device = graph->device;
  rondo_status status = keep_others(out);
  out->relocates = relocates && graph->has_memory;
  if (status == RONDO_OK && (out->relocates || rondo_random_is_drawn(graph))) status = place(graph, out);
  if (status == RONDO_OK)
    status =
        rondo_fail_context(rondo_lower(out->placed != NULL ? out->placed : out->graph, &out->lowering), "%s", call);
  if (status == RONDO_OK)
    status = rondo_fail_context(rondo_launched_objects_make(out->device, out->graph, &out->objects), "%s", call);
  if (status != RONDO_OK) rondo_exec_draft_free(out);
  return status;
}

void rondo_exec_draft_free(rondo_exec_draft *draft) {
  rondo_findings_destroy(draft->findings);
  rondo_exec_memory_destroy(draft->memory);
  rondo_exec_random_destroy(draft->random);
  rondo_lowering_free(&draft->lowering);
  rondo_relocation_destroy(draft->relocation);
  if (draft->placed != NULL) rondo_graph_free(draft->placed);
  rondo_graph_free(draft->graph);
  rondo_launched_objects_free(draft->objects);
  release_others(draft);
  *draft = (rondo_exec_draft){0};
}

rondo_status rondo_exec_draft_random(rondo_exec_draft *draft, const rondo_exec_random *like) {
  return draft->placed == NULL ? RONDO_OK : rondo_exec_random_create(draft->placed, like, &draft->random);
}

/* The address space of the node. */
static rondo_address_space *space_of(const rondo_exec_draft *draft, size_t index) {
  const rondo_node_params *params = draft->lowering.nodes.items[index].params;
  const rondo_relocation *relocation = draft->relocation;
  if (relocation != NULL && params->kind == RONDO_NODE_ALLOC &&
      rondo_relocation_owns(relocation, params->as.alloc.address))
    return relocation->space;
  return rondo_address_space_of(draft->lowering.origins.items[index].graph);
}

/* Whether the node's memory belongs to an arena. Then the exec neither maps it nor tracks it. */
static bool is_of_arena(const rondo_exec_draft *draft, size_t index) {
  const rondo_node_params *params = draft->lowering.nodes.items[index].params;
  const rondo_arena *arena = rondo_arena_of(draft->lowering.origins.items[index].graph);
  return arena != NULL && (params->kind == RONDO_NODE_ALLOC || rondo_arena_owns(arena, params->as.free_address));
}

static size_t collect_memory_nodes(const rondo_exec_draft *draft, rondo_memory_node *out) {
  const rondo_lowering *lowering = &draft->lowering;
  size_t count = 0;
  for (size_t i = 0; i < lowering->nodes.count; i++) {
    const rondo_lowered_node *node = &lowering->nodes.items[i];
    if (!rondo_node_is_memory(node->params) || is_of_arena(draft, i)) continue;
    out[count++] = (rondo_memory_node){.params = node->params, .space = space_of(draft, i), .where = node->where};
  }
  return count;
}

rondo_status rondo_exec_draft_memory(rondo_exec_draft *draft, bool auto_free) {
  const rondo_lowering *lowering = &draft->lowering;
  if (!draft->graph->has_memory) return RONDO_OK;
  rondo_device_memory *memory = rondo_address_space_of(draft->graph)->memory;
  rondo_memory_node *nodes;
  RONDO_TRY(rondo_allocate_items(&lowering->allocator, lowering->nodes.count, sizeof *nodes, &nodes));
  const size_t count = collect_memory_nodes(draft, nodes);
  const rondo_status status = rondo_exec_memory_create(memory, nodes, count, auto_free, &draft->memory);
  rondo_release(&lowering->allocator, nodes, lowering->nodes.count, sizeof(rondo_memory_node));
  return status;
}

/* Execs ----------------------------------------------------------------------------------------------------------- */

static rondo_status collect_records(rondo_exec *exec) {
  for (size_t i = 0; i < exec->lowering.nodes.count; i++) {
    if (rondo_exec_params(exec, i)->kind != RONDO_NODE_EVENT_RECORD) continue;
    const uint32_t index = (uint32_t)i;
    RONDO_TRY(rondo_array_push(&exec->device->allocator, &exec->records, &index));
  }
  return RONDO_OK;
}

void rondo_exec_note_extras(rondo_exec *exec) {
  exec->has_extras = exec->memory != NULL || exec->records.count > 0 || exec->random != NULL || exec->broken;
}

static void free_exec(rondo_exec *exec) {
  const rondo_device *device = exec->device;
  if (exec->executable != NULL) exec->executable->ops->destroy(exec->executable);
  rondo_release(&device->allocator, exec->disabled, exec->lowering.nodes.count, sizeof(bool));
  rondo_array_free(&device->allocator, &exec->records);
  rondo_exec_draft_free(exec);
  rondo_release(&device->allocator, exec, 1, sizeof *exec);
}

static rondo_status prepare_memory(rondo_exec *exec, rondo_graph *graph) {
  RONDO_TRY(rondo_exec_draft_relocate(exec, &exec->plan, NULL));
  RONDO_TRY(rondo_exec_draft_random(exec, NULL));
  if (exec->verify) RONDO_TRY(rondo_exec_draft_verify("rondo_instantiate", exec, graph));
  return rondo_exec_draft_memory(exec, exec->auto_free);
}

static rondo_status make_executable(rondo_exec *exec) {
  rondo_device *device = exec->device;
  const size_t count = exec->lowering.nodes.count;
  const rondo_lowered_graph view = rondo_lowering_view(&exec->lowering, exec->graph->name);
  RONDO_TRY(collect_records(exec));
  RONDO_TRY(rondo_allocate_items(&device->allocator, count, sizeof *exec->disabled, &exec->disabled));
  RONDO_TRY(device->ops->executable_create(device, &view, &exec->executable));
  rondo_exec_note_extras(exec);
  return RONDO_OK;
}

static rondo_status complete(rondo_exec *exec, rondo_graph *graph) {
  RONDO_TRY(check_nodes("rondo_instantiate", exec->device, &exec->lowering));
  RONDO_TRY(rondo_fail_context(prepare_memory(exec, graph), "rondo_instantiate"));
  return make_executable(exec);
}

static rondo_status make_exec(rondo_graph *graph, const rondo_instantiate_options *options,
                              const rondo_plan_options *plan, rondo_exec **out) {
  rondo_exec_draft draft;
  rondo_exec *exec;
  RONDO_TRY(rondo_exec_draft_make("rondo_instantiate", graph, options->relocate, &draft));
  rondo_status status = rondo_allocate_items(&graph->device->allocator, 1, sizeof *exec, &exec);
  if (status != RONDO_OK) {
    rondo_exec_draft_free(&draft);
    return status;
  }
  *exec = draft;
  exec->verify = !options->skip_verify;
  exec->auto_free = options->auto_free_on_launch;
  exec->relocate = options->relocate;
  exec->plan = *plan;
  status = complete(exec, graph);
  if (status != RONDO_OK) {
    free_exec(exec);
    return status;
  }
  rondo_exec_begin_access(exec, graph);
  rondo_exec_check(exec);
  *out = exec;
  return RONDO_OK;
}

static rondo_status instantiate(rondo_graph *graph, const rondo_instantiate_options *options, rondo_exec **out) {
  rondo_plan_options plan;
  RONDO_TRY(rondo_versioned_read("rondo_plan_options", options->plan, &plan, sizeof plan));
  RONDO_TRY(make_exec(graph, options, &plan, out));
  rondo_retired_objects_look(graph->device, RONDO_QUEUE_NONE);
  rondo_device_begin_use((*out)->device, &exec_use);
  if (options->upload_stream == NULL) return RONDO_OK;
  const rondo_status uploaded = rondo_exec_upload(*out, options->upload_stream);
  if (uploaded != RONDO_OK) {
    rondo_exec_destroy(*out);
    *out = NULL;
  }
  return uploaded;
}

rondo_status rondo_instantiate(rondo_graph *graph, const rondo_instantiate_options *options, rondo_exec **out_exec) {
  RONDO_TRY(rondo_check_call("rondo_instantiate", "out_exec", out_exec));
  *out_exec = NULL;
  if (graph == NULL) return rondo_refuse_null("rondo_instantiate", "the graph");
  RONDO_TRY(rondo_device_require_own("rondo_instantiate", graph->device));
  rondo_instantiate_options known;
  RONDO_TRY(rondo_versioned_read("rondo_instantiate_options", options, &known, sizeof known));
  rondo_trace_here(RONDO_TRACE_BEGIN, "exec", "rondo_instantiate");
  const rondo_status status = instantiate(graph, &known, out_exec);
  rondo_trace_here(RONDO_TRACE_END, "exec", "rondo_instantiate");
  return status;
}

rondo_status rondo_exec_own_heap(rondo_exec *exec) {
  if (exec->memory == NULL) return RONDO_OK;
  return rondo_heap_acquire(rondo_device_memory_made(exec->device), RONDO_HEAP_PRIVATE, &exec->heap);
}

uint64_t rondo_exec_heap_bytes(const rondo_exec *exec) { return exec->heap == NULL ? 0 : rondo_heap_bytes(exec->heap); }

void rondo_exec_destroy(rondo_exec *exec) {
  if (exec == NULL || exec->device->is_inherited) return;
  rondo_device *device = exec->device;
  rondo_device_memory *memory = rondo_device_memory_made(device);
  rondo_heap *heap = exec->heap;
  rondo_patch_leave(exec);
  rondo_launched_objects_retire(exec->objects, exec->executable, rondo_exec_last_queue(exec));
  exec->objects = NULL;
  free_exec(exec);
  rondo_heap_abandon(heap);
  rondo_retired_sweep(memory, false);
  rondo_retired_objects_look(device, RONDO_QUEUE_NONE);
  rondo_device_end_use(device, &exec_use);
}

void rondo_exec_end(rondo_exec *exec) {
  if (exec == NULL) return;
  rondo_status_ignore(exec->executable->ops->synchronize(exec->executable), "failed launches have ended too");
  if (exec->heap != NULL) rondo_status_ignore(rondo_heap_wait(exec->heap), "failed launches have ended too");
  if (exec->memory != NULL) rondo_exec_memory_free_live(exec->memory);
  rondo_exec_destroy(exec);
}

/* Information ----------------------------------------------------------------------------------------------------- */

/* An estimate for the clone and its children: the parts that grow with the graph, also where the graph shares them. */
static uint64_t graph_host_bytes(const rondo_graph *graph) {
  uint64_t bytes = sizeof *graph + graph->nodes.capacity * sizeof *graph->nodes.items;
  for (size_t i = 0; i < graph->nodes.count; i++) {
    const rondo_graph_node *node = &graph->nodes.items[i];
    if (!node->live) continue;
    bytes += (node->dependencies.capacity + node->dependents.capacity) * sizeof(uint32_t);
    if (node->params.kind == RONDO_NODE_KERNEL)
      bytes += node->params.as.kernel.kernel->argument_bytes + node->params.as.kernel.arg_count * sizeof(void *);
    if (node->params.kind == RONDO_NODE_KERNEL && node->params.as.kernel.arg_bytes != NULL)
      bytes += node->params.as.kernel.arg_count * sizeof(size_t);
    if (node->params.kind == RONDO_NODE_KERNEL && node->params.as.kernel.config != NULL)
      bytes += sizeof(rondo_launch_config);
    if (node->params.kind == RONDO_NODE_CHILD) bytes += graph_host_bytes(node->params.as.child);
  }
  return bytes;
}

static uint64_t lowering_host_bytes(const rondo_lowering *lowering) {
  uint64_t bytes = lowering->nodes.capacity * sizeof(rondo_lowered_node) +
                   lowering->origins.capacity * sizeof(rondo_lowered_origin) +
                   lowering->graphs.capacity * sizeof(rondo_graph_indices) +
                   (lowering->nodes.count + 1 + lowering->predecessors.count) * sizeof(uint32_t) +
                   (lowering->predecessor_start.capacity + lowering->predecessors.capacity) * sizeof(uint32_t);
  for (size_t i = 0; i < lowering->graphs.count; i++) bytes += lowering->graphs.items[i].count * sizeof(uint32_t);
  return bytes;
}

static uint64_t foreign_bytes(const rondo_lowering *lowering) {
  uint64_t bytes = 0;
  for (size_t i = 0; i < lowering->nodes.count; i++)
    if (lowering->nodes.items[i].params->kind == RONDO_NODE_FOREIGN)
      bytes += lowering->nodes.items[i].params->as.foreign.bytes;
  return bytes;
}

rondo_status rondo_exec_get_info(const rondo_exec *exec, rondo_exec_info *out_info) {
  RONDO_TRY(rondo_check_call("rondo_exec_get_info", "the exec", exec));
  if (out_info == NULL) return rondo_refuse_null("rondo_exec_get_info", "out_info");
  const rondo_executable *executable = exec->executable;
  rondo_exec_info info = {.struct_size = sizeof info};
  info.node_count = (uint32_t)(exec->lowering.nodes.count - exec->lowering.join_count);
  info.launches = exec->launches;
  info.updates = exec->updates;
  info.host_bytes = sizeof *exec + graph_host_bytes(exec->graph) + lowering_host_bytes(&exec->lowering) +
                    executable->ops->host_bytes(executable);
  if (exec->placed != NULL) info.host_bytes += graph_host_bytes(exec->placed);
  if (exec->relocation != NULL) {
    info.host_bytes += rondo_relocation_host_bytes(exec->relocation);
    info.planned_bytes = exec->relocation->plan.peak;
    info.planned_bound = exec->relocation->plan.lower_bound;
  }
  info.device_bytes = executable->ops->device_bytes(executable);
  if (exec->random != NULL) {
    info.host_bytes += rondo_exec_random_host_bytes(exec->random);
    info.device_bytes += rondo_exec_random_device_bytes(exec->random);
  }
  info.foreign_bytes = foreign_bytes(&exec->lowering);
  if (exec->memory != NULL) {
    info.graph_bytes = rondo_exec_memory_bytes(exec->memory);
    info.host_bytes += rondo_exec_memory_host_bytes(exec->memory);
  }
  return rondo_versioned_write("rondo_exec_info", &info, out_info, sizeof info);
}
