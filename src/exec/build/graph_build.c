/* SPDX-License-Identifier: MIT
 * Building graphs node by node: the public functions that change a graph. Nodes and edges belong to graph/, addresses
 * to memory/. If one of the two refuses a change, it is undone in the other.
 */
#include "exec/build/graph_build.h"

#include "base/versioned_struct.h"
#include "exec/build/node_device.h"
#include "exec/random/random_internal.h"
#include "exec/stream/stream_internal.h"
#include "exec/stream/stream_work.h"
#include "graph/edges.h"
#include "graph/graph.h"
#include "graph/graph_clone.h"
#include "graph/node_name.h"
#include "graph/node_params.h"
#include "memory/graph_memory/address_reuse.h"
#include "memory/graph_memory/address_space.h"
#include "memory/graph_memory/alloc_node_address.h"
#include "memory/graph_memory/free_nodes.h"
#include "memory/graph_memory/graph_view.h"
#include "memory/memory_errors.h"
#include "memory/peer_access.h"
#include "memory/symbol_memory.h"

static const rondo_device_use graph_use = {.rank = 6, .name = "graph"};

/* Graphs ---------------------------------------------------------------------------------------------------------- */

static void retain_device(void *object) {
  rondo_device *device = object;
  rondo_device_begin_use(device, &graph_use);
}
static void release_device(void *object) {
  rondo_device *device = object;
  rondo_device_end_use(device, &graph_use);
}

rondo_graph_attachment rondo_build_hold(rondo_device *device) {
  retain_device(device);
  return (rondo_graph_attachment){.object = device, .retain = retain_device, .release = release_device};
}

rondo_status rondo_build_graph_in(rondo_device *device, const char *name, rondo_address_space *space,
                                  rondo_profile *profile, bool relocate, rondo_graph **out) {
  *out = NULL;
  rondo_graph *graph;
  RONDO_TRY(rondo_graph_make(device, &device->allocator, name, &graph));
  rondo_address_space_configure(space, graph, profile, relocate);
  rondo_address_space_retain(space);
  graph->memory = rondo_address_space_attachment(space);
  graph->hold = rondo_build_hold(device);
  *out = graph;
  return RONDO_OK;
}

rondo_status rondo_build_graph(const char *call, rondo_device *device, const rondo_graph_options *options,
                               rondo_graph **out) {
  *out = NULL;
  rondo_device_memory *memory;
  rondo_address_space *space;
  if (options->profile != NULL && options->relocate)
    return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_BAD_OPTIONS,
                      "%s: a profile has no effect on a graph with relocate: set one of them", call);
  RONDO_TRY(rondo_device_memory_of(device, &memory));
  RONDO_TRY(rondo_address_space_create(memory, &space));
  const rondo_status status =
      rondo_build_graph_in(device, options->name, space, options->profile, options->relocate, out);
  rondo_address_space_release(space);
  return status;
}

void rondo_build_uncount(rondo_graph *graph) {
  rondo_graph_end_hold(graph);
  rondo_graph *child;
  for (uint32_t at = 0; (child = rondo_graph_next_child(graph, &at)) != NULL;) rondo_build_uncount(child);
}

rondo_status rondo_build_refuse_captured(const char *call, const rondo_graph *graph) {
  char label[RONDO_LABEL_BYTES];
  if (!rondo_graph_is_captured_into(graph)) return RONDO_OK;
  return rondo_fail(RONDO_INVALID_STATE, RONDO_REASON_CAPTURING_INTO,
                    "%s: a stream captures into %s: end the capture first", call, rondo_graph_label(label, graph));
}

rondo_status rondo_graph_create(rondo_device *device, const rondo_graph_options *options, rondo_graph **out_graph) {
  RONDO_TRY(rondo_check_call("rondo_graph_create", "out_graph", out_graph));
  *out_graph = NULL;
  rondo_graph_options known;
  RONDO_TRY(RONDO_VERSIONED_READ("rondo_graph_options", options, &known));
  RONDO_TRY(rondo_device_require_own("rondo_graph_create", device));
  if (device != NULL) return rondo_build_graph("rondo_graph_create", device, &known, out_graph);
  rondo_allocator allocator;
  RONDO_TRY(rondo_allocator_resolve(known.allocator, &allocator));
  return rondo_graph_make(NULL, &allocator, known.name, out_graph);
}

rondo_status rondo_graph_clone(const rondo_graph *graph, rondo_graph **out_clone) {
  RONDO_TRY(rondo_require("rondo_graph_clone", "the out-parameter", out_clone));
  *out_clone = NULL;
  RONDO_TRY(rondo_require("rondo_graph_clone", "the graph", graph));
  RONDO_TRY(rondo_device_require_own("rondo_graph_clone", graph->device));
  RONDO_TRY(rondo_graph_refuse_bound(graph, "cannot be cloned"));
  return rondo_graph_clone_with(&graph->allocator, graph, out_clone);
}

/* Another thread may close the device when its last use has ended. */
static void destroy_of_device(rondo_graph *graph) {
  const rondo_graph_attachment hold = rondo_build_hold(graph->device);
  rondo_device_memory *memory = rondo_device_memory_made(graph->device);
  rondo_graph_free(graph);
  if (memory != NULL) rondo_retired_sweep(memory, false);
  hold.release(hold.object);
}

rondo_status rondo_graph_destroy(rondo_graph *graph) {
  if (graph == NULL || (graph->device != NULL && graph->device->is_inherited)) return RONDO_OK;
  RONDO_TRY(rondo_refuse_in_callback("rondo_graph_destroy"));
  char label[RONDO_LABEL_BYTES];
  if (graph->is_child)
    return rondo_fail(RONDO_INVALID_STATE, RONDO_REASON_STILL_IN_USE,
                      "rondo_graph_destroy: %s belongs to a child node: remove that node, or destroy the graph that "
                      "contains it",
                      rondo_graph_label(label, graph));
  RONDO_TRY(rondo_build_refuse_captured("rondo_graph_destroy", graph));
  if (graph->device == NULL)
    rondo_graph_free(graph);
  else
    destroy_of_device(graph);
  return RONDO_OK;
}

/* Nodes ----------------------------------------------------------------------------------------------------------- */

/* A child graph of another device has no memory. */
static rondo_status refuse_inside(const char *call, const rondo_graph *graph) {
  char label[RONDO_LABEL_BYTES];
  const rondo_graph *around = graph->parent;
  while (around != NULL && around->device == graph->device) around = around->parent;
  if (around == NULL) return RONDO_OK;
  return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_OTHER_DEVICE,
                    "%s: %s of device '%s' is inside a graph of device '%s', which maps no memory of '%s': allocate in "
                    "the outer graph, with access by this device (rondo_alloc_node.peers)",
                    call, rondo_graph_label(label, graph), graph->device->name, around->device->name,
                    graph->device->name);
}

/* Checks that the graph and the system can hold alloc and free nodes (M5: an allocation larger than the address space
 * is not the node's fault). */
static rondo_status check_memory(const char *call, const rondo_graph *graph, const rondo_node_params *params) {
  char label[RONDO_LABEL_BYTES];
  if (graph->device == NULL)
    return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_OTHER_DEVICE,
                      "%s: %s was created without a device and cannot have memory nodes: create it for a device", call,
                      rondo_graph_label(label, graph));
  RONDO_TRY(refuse_inside(call, graph));
  RONDO_TRY(rondo_device_memory_require_nodes(rondo_address_space_of(graph)->memory, call));
  if (params->kind == RONDO_NODE_FREE || params->as.alloc.bytes <= PTRDIFF_MAX) return RONDO_OK;
  return rondo_fail(RONDO_OUT_OF_MEMORY, RONDO_REASON_BAD_SIZE,
                    "%s: an allocation of %zu bytes does not fit the address space", call, params->as.alloc.bytes);
}

static const char *alloc_name(const rondo_node_params *params) {
  if (params->as.alloc.name != NULL) return params->as.alloc.name;
  return params->name == NULL ? "" : params->name;
}

static rondo_status build_alloc(const char *call, rondo_graph *graph, const rondo_node *dependencies, size_t count,
                                rondo_node_params *params, rondo_node *out_node) {
  RONDO_TRY(rondo_peers_check_list(call, graph->device, params->as.alloc.peers));
  RONDO_TRY(rondo_fail_context(rondo_peers_admit(graph->device, params->as.alloc.peers), "%s", call));
  rondo_node_params placed = *params;
  placed.as.alloc.name = alloc_name(params);
  placed.as.alloc.peers &= ~rondo_device_peer_bit(graph->device);
  RONDO_TRY(rondo_fail_context(rondo_address_space_place(graph, dependencies, count, &placed.as.alloc), "%s", call));
  const rondo_status status = rondo_graph_insert_checked(graph, dependencies, count, &placed, out_node);
  if (status == RONDO_OK)
    params->as.alloc.address = placed.as.alloc.address;
  else
    rondo_address_space_unplace(graph, &placed.as.alloc);
  return rondo_fail_context(status, "%s", call);
}

static rondo_status build_free(const char *call, rondo_graph *graph, const rondo_node *dependencies, size_t count,
                               const rondo_node_params *params, rondo_node *out_node) {
  rondo_status status = rondo_address_space_claim_free(graph, params->as.free_address);
  if (status != RONDO_OK) return rondo_fail_context(status, "%s", call);
  status = rondo_graph_insert_checked(graph, dependencies, count, params, out_node);
  if (status != RONDO_OK) rondo_address_space_forget_free(graph, params->as.free_address);
  return rondo_fail_context(status, "%s", call);
}

/* The graph reserves the random numbers that the child draws. */
static rondo_status build_child(const char *call, rondo_graph *graph, const rondo_node *dependencies, size_t count,
                                const rondo_node_params *params, rondo_node *out_node) {
  rondo_random_reservations *reservations;
  RONDO_TRY(rondo_build_refuse_captured(call, params->as.child));
  RONDO_TRY(rondo_random_embed_begin(call, graph, params->as.child, &reservations));
  const rondo_status status = rondo_graph_insert_checked(graph, dependencies, count, params, out_node);
  rondo_graph *embedded =
      status == RONDO_OK ? rondo_graph_at(graph, rondo_node_number(*out_node))->params.as.child : NULL;
  rondo_random_embed_end(graph, embedded, reservations);
  return rondo_fail_context(status, "%s", call);
}

/* Work that runs. It may name random numbers and symbols. */
static inline rondo_status build_work(const char *call, rondo_graph *graph, const rondo_node *dependencies,
                                      size_t count, const rondo_node_params *params, rondo_node *out_node) {
  RONDO_TRY(rondo_random_check_node(call, graph, params));
  rondo_status status = rondo_symbols_retain(graph, params);
  if (status == RONDO_OK) status = rondo_graph_insert_checked(graph, dependencies, count, params, out_node);
  return status == RONDO_OK ? RONDO_OK : rondo_fail_context(status, "%s", call);
}

/* `device` is the one that the node runs on; in the parameters it is as graphs store it. */
static inline __attribute__((always_inline)) rondo_status build_on(const char *call, rondo_graph *graph,
                                                                   const rondo_device *device,
                                                                   const rondo_node *dependencies, size_t count,
                                                                   rondo_node_params *params, rondo_node *out_node) {
  if (rondo_node_is_memory(params)) RONDO_TRY(check_memory(call, graph, params));
  RONDO_TRY(rondo_work_check(call, device, params));
  if (device != graph->device) RONDO_TRY(rondo_work_check_ranges(call, graph->device, params));
  switch (params->kind) {
    case RONDO_NODE_ALLOC:
      return build_alloc(call, graph, dependencies, count, params, out_node);
    case RONDO_NODE_FREE:
      return build_free(call, graph, dependencies, count, params, out_node);
    case RONDO_NODE_CHILD:
      return build_child(call, graph, dependencies, count, params, out_node);
    default:
      return build_work(call, graph, dependencies, count, params, out_node);
  }
}

/* The caller's parameters keep the device that they name. */
static __attribute__((noinline)) rondo_status build_anywhere(const char *call, rondo_graph *graph,
                                                             const rondo_node *dependencies, size_t count,
                                                             rondo_node_params *params, rondo_node *out_node) {
  rondo_node_params placed = *params;
  rondo_device *device;
  RONDO_TRY(rondo_node_device_set(call, graph, &placed, &device));
  RONDO_TRY(build_on(call, graph, device, dependencies, count, &placed, out_node));
  if (params->kind == RONDO_NODE_ALLOC) params->as.alloc.address = placed.as.alloc.address;
  return RONDO_OK;
}

rondo_status rondo_build_node(const char *call, rondo_graph *graph, const rondo_node *dependencies, size_t count,
                              rondo_node_params *params, rondo_node *out_node) {
  if (dependencies == NULL && count > 0) return rondo_refuse_null(call, "the list of dependencies");
  if (rondo_node_is_plainly_own(graph, params))
    return build_on(call, graph, graph->device, dependencies, count, params, out_node);
  return build_anywhere(call, graph, dependencies, count, params, out_node);
}

static rondo_status check_add(const char *call, const rondo_graph *graph, const rondo_node_params *params,
                              const rondo_node *out_node) {
  if (__builtin_expect(graph == NULL || rondo_in_callback(), 0)) return rondo_check_call(call, "the graph", graph);
  RONDO_TRY(rondo_device_require_own(call, graph->device));
  if (params == NULL || out_node == NULL) return rondo_refuse_null(call, params == NULL ? "params" : "out_node");
  if (params->kind != RONDO_NODE_FOREIGN) return RONDO_OK;
  return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_NODE_KIND,
                    "%s: only captures make nodes of kind 'foreign': capture the work itself", call);
}

/* `out_node` may point into the dependencies, as in `add(graph, &last, 1, ..., &last)`, so it is written last. */
static rondo_status add(const char *call, rondo_graph *graph, const rondo_node *dependencies, size_t count,
                        rondo_node_params *params, rondo_node *out_node) {
  rondo_node node = {0};
  rondo_status status = check_add(call, graph, params, out_node);
  if (status == RONDO_OK) status = rondo_build_node(call, graph, dependencies, count, params, &node);
  if (out_node != NULL) *out_node = node;
  return status;
}

rondo_status rondo_graph_add(rondo_graph *graph, const rondo_node *dependencies, size_t count,
                             rondo_node_params *params, rondo_node *out_node) {
  return add("rondo_graph_add", graph, dependencies, count, params, out_node);
}

rondo_status rondo_graph_add_kernel(rondo_graph *graph, const rondo_node *dependencies, size_t count,
                                    rondo_kernel *kernel, rondo_grid grid, const void *const *args, size_t arg_count,
                                    rondo_node *out_node) {
  rondo_node_params params = {.kind = RONDO_NODE_KERNEL,
                              .as.kernel = {.kernel = kernel, .grid = grid, .args = args, .arg_count = arg_count}};
  return add("rondo_graph_add_kernel", graph, dependencies, count, &params, out_node);
}

rondo_status rondo_graph_add_host(rondo_graph *graph, const rondo_node *dependencies, size_t count,
                                  rondo_host_function function, void *user, rondo_node *out_node) {
  rondo_node_params params = {.kind = RONDO_NODE_HOST, .as.host = {.function = function, .user = user}};
  return add("rondo_graph_add_host", graph, dependencies, count, &params, out_node);
}

rondo_status rondo_graph_add_copy(rondo_graph *graph, const rondo_node *dependencies, size_t count,
                                  const rondo_copy *copy, rondo_node *out_node) {
  if (copy == NULL && out_node != NULL) *out_node = (rondo_node){0};
  if (copy == NULL) return rondo_refuse_null("rondo_graph_add_copy", "copy");
  rondo_node_params params = {.kind = RONDO_NODE_COPY, .as.copy = *copy};
  return add("rondo_graph_add_copy", graph, dependencies, count, &params, out_node);
}

rondo_status rondo_graph_add_fill(rondo_graph *graph, const rondo_node *dependencies, size_t count,
                                  const rondo_fill *fill, rondo_node *out_node) {
  if (fill == NULL && out_node != NULL) *out_node = (rondo_node){0};
  if (fill == NULL) return rondo_refuse_null("rondo_graph_add_fill", "fill");
  rondo_node_params params = {.kind = RONDO_NODE_FILL, .as.fill = *fill};
  return add("rondo_graph_add_fill", graph, dependencies, count, &params, out_node);
}

rondo_status rondo_graph_add_empty(rondo_graph *graph, const rondo_node *dependencies, size_t count,
                                   rondo_node *out_node) {
  rondo_node_params params = {.kind = RONDO_NODE_EMPTY};
  return add("rondo_graph_add_empty", graph, dependencies, count, &params, out_node);
}

rondo_status rondo_graph_add_child(rondo_graph *graph, const rondo_node *dependencies, size_t count, rondo_graph *child,
                                   rondo_node *out_node) {
  rondo_node_params params = {.kind = RONDO_NODE_CHILD, .as.child = child};
  return add("rondo_graph_add_child", graph, dependencies, count, &params, out_node);
}

rondo_status rondo_graph_add_event_record(rondo_graph *graph, const rondo_node *dependencies, size_t count,
                                          rondo_event *event, rondo_node *out_node) {
  rondo_node_params params = {.kind = RONDO_NODE_EVENT_RECORD, .as.event = event};
  return add("rondo_graph_add_event_record", graph, dependencies, count, &params, out_node);
}

rondo_status rondo_graph_add_event_wait(rondo_graph *graph, const rondo_node *dependencies, size_t count,
                                        rondo_event *event, rondo_node *out_node) {
  rondo_node_params params = {.kind = RONDO_NODE_EVENT_WAIT, .as.event = event};
  return add("rondo_graph_add_event_wait", graph, dependencies, count, &params, out_node);
}

rondo_status rondo_graph_add_memory_operations(rondo_graph *graph, const rondo_node *dependencies, size_t count,
                                               const rondo_memory_operation *operations, size_t operation_count,
                                               rondo_node *out_node) {
  rondo_node_params params = {.kind = RONDO_NODE_MEMORY_OPERATIONS,
                              .as.memory_operations = {.operations = operations, .count = operation_count}};
  return add("rondo_graph_add_memory_operations", graph, dependencies, count, &params, out_node);
}

static rondo_status add_semaphores(const char *call, rondo_graph *graph, const rondo_node *dependencies, size_t count,
                                   rondo_node_kind kind, const rondo_semaphores_node *semaphores,
                                   rondo_node *out_node) {
  rondo_node_params params = {.kind = kind, .as.semaphores = *semaphores};
  return add(call, graph, dependencies, count, &params, out_node);
}

rondo_status rondo_graph_add_semaphore_signal(rondo_graph *graph, const rondo_node *dependencies, size_t count,
                                              const rondo_semaphore_value *values, size_t value_count,
                                              rondo_node *out_node) {
  return add_semaphores("rondo_graph_add_semaphore_signal", graph, dependencies, count, RONDO_NODE_SEMAPHORE_SIGNAL,
                        &(rondo_semaphores_node){values, value_count}, out_node);
}

rondo_status rondo_graph_add_semaphore_wait(rondo_graph *graph, const rondo_node *dependencies, size_t count,
                                            const rondo_semaphore_value *values, size_t value_count,
                                            rondo_node *out_node) {
  return add_semaphores("rondo_graph_add_semaphore_wait", graph, dependencies, count, RONDO_NODE_SEMAPHORE_WAIT,
                        &(rondo_semaphores_node){values, value_count}, out_node);
}

rondo_status rondo_graph_add_alloc(rondo_graph *graph, const rondo_node *dependencies, size_t count, size_t bytes,
                                   const char *name, void **out_address, rondo_node *out_node) {
  if (out_address == NULL && out_node != NULL) *out_node = (rondo_node){0};
  if (out_address == NULL) return rondo_refuse_null("rondo_graph_add_alloc", "out_address");
  *out_address = NULL;
  rondo_node_params params = {.kind = RONDO_NODE_ALLOC, .as.alloc = {.bytes = bytes, .name = name}};
  RONDO_TRY(add("rondo_graph_add_alloc", graph, dependencies, count, &params, out_node));
  *out_address = params.as.alloc.address;
  return RONDO_OK;
}

rondo_status rondo_graph_add_free(rondo_graph *graph, const rondo_node *dependencies, size_t count, void *address,
                                  rondo_node *out_node) {
  rondo_node_params params = {.kind = RONDO_NODE_FREE, .as.free_address = address};
  return add("rondo_graph_add_free", graph, dependencies, count, &params, out_node);
}

/* Changing -------------------------------------------------------------------------------------------------------- */

/* Finds the node and refuses what cannot be removed. */
static rondo_status check_removal(const rondo_graph *graph, rondo_node node, uint32_t *out_slot) {
  char label[RONDO_LABEL_BYTES];
  RONDO_TRY(rondo_graph_find(graph, node, out_slot));
  RONDO_TRY(rondo_graph_check_erase(graph, *out_slot));
  const rondo_status status = rondo_address_space_check_removal(graph, *out_slot, NULL, NULL, 0);
  if (status == RONDO_OK) return RONDO_OK;
  return rondo_fail_context(status, "%s", rondo_node_label_in(label, graph, graph, *out_slot));
}

rondo_status rondo_graph_remove(rondo_graph *graph, rondo_node node) {
  const char *const call = "rondo_graph_remove";
  RONDO_TRY(rondo_check_call(call, "the graph", graph));
  uint32_t slot;
  RONDO_TRY(rondo_fail_context(check_removal(graph, node, &slot), "%s", call));
  RONDO_TRY(rondo_fail_context(rondo_graph_own_nodes(graph), "%s", call));
  const rondo_node_params *params = &rondo_graph_at(graph, slot)->params;
  const bool placed = graph->device != NULL;
  if (placed && params->kind == RONDO_NODE_ALLOC) rondo_address_space_forget(graph, &params->as.alloc);
  if (placed && params->kind == RONDO_NODE_FREE) rondo_address_space_forget_free(graph, params->as.free_address);
  RONDO_TRY(rondo_graph_erase(graph, slot));
  rondo_address_space_note_removal(graph);
  return RONDO_OK;
}

static rondo_status find_edges(const rondo_graph *graph, const rondo_node *from, const rondo_node *to, size_t count,
                               uint32_t *slots) {
  RONDO_TRY(rondo_graph_find_all(graph, "from", from, count, slots));
  RONDO_TRY(rondo_graph_find_all(graph, "to", to, count, slots + count));
  RONDO_TRY(rondo_address_space_check_removal(graph, RONDO_NO_NODE, slots, slots + count, count));
  return RONDO_OK;
}

static rondo_status remove_edges(const char *call, rondo_graph *graph, const rondo_node *from, const rondo_node *to,
                                 const rondo_edge_data *data, size_t count) {
  RONDO_TRY(rondo_check_call(call, "the graph", graph));
  if (count == 0) return RONDO_OK;
  if (from == NULL || to == NULL) return rondo_refuse_null(call, from == NULL ? "from" : "to");
  uint32_t *slots;
  RONDO_TRY(rondo_allocate_items(&graph->allocator, count, 2 * sizeof *slots, &slots));
  rondo_status status = find_edges(graph, from, to, count, slots);
  if (status == RONDO_OK) status = rondo_graph_erase_edges_with(graph, slots, slots + count, data, count);
  if (status == RONDO_OK) rondo_address_space_note_removal(graph);
  rondo_release(&graph->allocator, slots, count, 2 * sizeof *slots);
  return rondo_fail_context(status, "%s", call);
}

rondo_status rondo_graph_remove_edges(rondo_graph *graph, const rondo_node *from, const rondo_node *to, size_t count) {
  return remove_edges("rondo_graph_remove_edges", graph, from, to, NULL, count);
}

rondo_status rondo_graph_remove_edges_with(rondo_graph *graph, const rondo_node *from, const rondo_node *to,
                                           const rondo_edge_data *data, size_t count) {
  return remove_edges("rondo_graph_remove_edges_with", graph, from, to, data, count);
}

static rondo_status replace_on(const char *call, rondo_graph *graph, const rondo_device *device, uint32_t slot,
                               const rondo_node_params *params) {
  RONDO_TRY(rondo_work_check(call, device, params));
  RONDO_TRY(rondo_random_check_node(call, graph, params));
  RONDO_TRY(rondo_fail_context(rondo_symbols_retain(graph, params), "%s", call));
  return rondo_fail_context(rondo_graph_replace(graph, slot, params), "%s", call);
}

static rondo_status replace(const char *call, rondo_graph *graph, uint32_t slot, const rondo_node_params *params) {
  RONDO_TRY(rondo_graph_refuse_bound(graph, "cannot change its nodes, which rondo_exec_set_params can in its exec"));
  if (rondo_node_is_plainly_own(graph, params)) return replace_on(call, graph, graph->device, slot, params);
  rondo_node_params placed = *params;
  rondo_device *device;
  RONDO_TRY(rondo_node_device_set(call, graph, &placed, &device));
  return replace_on(call, graph, device, slot, &placed);
}

rondo_status rondo_graph_set_params(rondo_graph *graph, rondo_node node, const rondo_node_params *params) {
  const char *const call = "rondo_graph_set_params";
  RONDO_TRY(rondo_check_call(call, "the graph", graph));
  if (params == NULL) return rondo_refuse_null(call, "params");
  uint32_t slot;
  RONDO_TRY(rondo_fail_context(rondo_graph_find(graph, node, &slot), "%s", call));
  return replace(call, graph, slot, params);
}

rondo_status rondo_graph_set_argument(rondo_graph *graph, rondo_node node, size_t number, const void *value) {
  const char *const call = "rondo_graph_set_argument";
  const void *args[RONDO_MAX_PARAMETERS];
  rondo_node_params params;
  uint32_t slot;
  RONDO_TRY(rondo_check_call(call, "the graph", graph));
  RONDO_TRY(rondo_fail_context(rondo_graph_find(graph, node, &slot), "%s", call));
  RONDO_TRY(rondo_node_params_exchange(call, &rondo_graph_at(graph, slot)->params, number, value, args, &params));
  return replace(call, graph, slot, &params);
}
