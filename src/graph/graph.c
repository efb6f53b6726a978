/* SPDX-License-Identifier: MIT
 * The life of a graph: creating it, adding and removing nodes, and freeing it; graph_clone.c clones it. Each function
 * first does everything that can fail, without changing the graph. The commit at its end cannot fail, so a graph is
 * never half changed.
 */
#include <assert.h>
#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "graph/edges.h"
#include "graph/graph.h"
#include "graph/graph_check.h"
#include "graph/graph_clone.h"
#include "graph/launch_config.h"
#include "graph/node.h"
#include "graph/node_name.h"
#include "graph/node_params.h"
#include "graph/user_object.h"

/* Never 0, so the zero tag is not a node. Serials wrap around after 2^32 graphs. */
static uint32_t next_serial(void) {
  static _Atomic uint32_t last;
  uint32_t serial;
  do serial = atomic_fetch_add_explicit(&last, 1, memory_order_relaxed) + 1;
  while (serial == 0);
  return serial;
}

rondo_status rondo_graph_make_empty(rondo_device *device, const rondo_allocator *allocator, const char *name,
                                    rondo_graph **out) {
  rondo_graph *graph;
  *out = NULL;
  RONDO_TRY(rondo_allocate_items(allocator, 1, sizeof *graph, &graph));
  graph->allocator = *allocator;
  graph->device = device;
  graph->serial = next_serial();
  const rondo_status status = rondo_allocate_text(allocator, name, &graph->name);
  if (status != RONDO_OK) {
    rondo_graph_free(graph);
    return status;
  }
  *out = graph;
  return RONDO_OK;
}

rondo_status rondo_graph_make_storage(const rondo_allocator *allocator, rondo_node_storage **out) {
  rondo_node_storage *storage;
  RONDO_TRY(rondo_allocate_items(allocator, 1, sizeof *storage, &storage));
  atomic_init(&storage->graphs, 1);
  rondo_slab_init(&storage->slab, allocator);
  storage->small = rondo_slab_allocator(&storage->slab);
  *out = storage;
  return RONDO_OK;
}

rondo_status rondo_graph_make(rondo_device *device, const rondo_allocator *allocator, const char *name,
                              rondo_graph **out) {
  RONDO_TRY(rondo_graph_make_empty(device, allocator, name, out));
  const rondo_status status = rondo_graph_make_storage(allocator, &(*out)->storage);
  if (status == RONDO_OK) return RONDO_OK;
  rondo_graph_free(*out);
  *out = NULL;
  return status;
}

static void free_node(rondo_graph *graph, rondo_graph_node *node) {
  const rondo_allocator *small = &graph->storage->small;
  rondo_node_contents_free(graph, node);
  rondo_array_free(small, &node->dependencies);
  rondo_array_free(small, &node->dependents);
  *node = (rondo_graph_node){0};
}

void rondo_graph_leave_nodes(rondo_graph *graph) {
  rondo_node_storage *storage = graph->storage;
  if (storage == NULL) return;
  if (atomic_fetch_sub_explicit(&storage->graphs, 1, memory_order_acq_rel) == 1) {
    for (size_t i = 0; i < graph->nodes.count; i++)
      if (graph->nodes.items[i].live) free_node(graph, &graph->nodes.items[i]);
    rondo_array_free(&graph->allocator, &graph->nodes);
    rondo_slab_free(&storage->slab);
    rondo_release(&graph->allocator, storage, 1, sizeof *storage);
  }
  graph->nodes.items = NULL;
  graph->nodes.count = graph->nodes.capacity = 0;
  graph->storage = NULL;
}

static void release_attachment(const rondo_graph_attachment *attachment) {
  if (attachment->object != NULL) attachment->release(attachment->object);
}

rondo_status rondo_graph_retain_kernel(rondo_graph *graph, rondo_kernel *kernel) {
  for (size_t i = 0; i < graph->symbol_kernels.count; i++)
    if (graph->symbol_kernels.items[i] == kernel) return RONDO_OK;
  RONDO_TRY(rondo_array_push(&graph->allocator, &graph->symbol_kernels, &kernel));
  rondo_kernel_retain(kernel);
  return RONDO_OK;
}

const rondo_code_symbol *rondo_graph_symbol_at(const rondo_graph *graph, const void *address,
                                               const rondo_kernel **out_kernel) {
  const rondo_code_symbol *found = NULL;
  *out_kernel = NULL;
  for (size_t i = 0; i < graph->symbol_kernels.count && found == NULL; i++) {
    *out_kernel = graph->symbol_kernels.items[i];
    found = rondo_kernel_symbol_at(*out_kernel, address);
  }
  return found;
}

/* Devices --------------------------------------------------------------------------------------------------------- */

uint16_t rondo_graph_device_number(const rondo_graph *graph, const rondo_device *device) {
  size_t i = 0;
  if (device == NULL) return 0;
  while (i < graph->others.count && graph->others.items[i].device != device) i++;
  assert(i < graph->others.count); /* it was retained before the node is made */
  return graph->others.items[i].number;
}

bool rondo_graph_has_device(const rondo_graph *graph, const rondo_device *device) {
  size_t i = 0;
  while (i < graph->others.count && graph->others.items[i].device != device) i++;
  return graph->device == device || i < graph->others.count;
}

rondo_status rondo_graph_retain_device(rondo_graph *graph, rondo_device *device, uint32_t index) {
  const rondo_other_device other = {.device = device, .number = (uint16_t)(index + 1)};
  assert(device != NULL && index < UINT16_MAX);
  for (rondo_graph *at = graph; at != NULL; at = at->parent) {
    if (rondo_graph_has_device(at, device)) continue;
    RONDO_TRY(rondo_array_push(&at->allocator, &at->others, &other));
    if (at->hold.object != NULL) at->hold.retain(device);
  }
  return RONDO_OK;
}

rondo_status rondo_graph_retain_device_of(rondo_graph *graph, const rondo_graph *child, uint32_t index) {
  if (child->device != graph->device) RONDO_TRY(rondo_graph_retain_device(graph, child->device, index));
  for (size_t i = 0; i < child->others.count; i++) {
    const rondo_other_device *other = &child->others.items[i];
    if (other->device != graph->device)
      RONDO_TRY(rondo_graph_retain_device(graph, other->device, other->number - UINT32_C(1)));
  }
  return RONDO_OK;
}

static void release_others(const rondo_graph *graph) {
  for (size_t i = 0; i < graph->others.count && graph->hold.object != NULL; i++)
    graph->hold.release(graph->others.items[i].device);
}

void rondo_graph_end_hold(rondo_graph *graph) {
  release_others(graph);
  release_attachment(&graph->hold);
  graph->hold.object = NULL;
}

/* User objects are released when the graph is gone already, and the device last: its allocator may end with it. */
void rondo_graph_free(rondo_graph *graph) {
  if (graph == NULL) return;
  const rondo_allocator allocator = graph->allocator;
  assert(graph->captures == 0);
  rondo_graph_leave_nodes(graph);
  rondo_array_free(&allocator, &graph->programmatic);
  for (size_t i = 0; i < graph->symbol_kernels.count; i++) rondo_kernel_release(graph->symbol_kernels.items[i]);
  rondo_array_free(&allocator, &graph->symbol_kernels);
  rondo_array_free(&allocator, &graph->native_changes);
  rondo_release_text(&allocator, graph->name);
  release_attachment(&graph->memory);
  release_attachment(&graph->random);
  release_attachment(&graph->native);
  release_attachment(&graph->captured);
  rondo_graph left = *graph;
  rondo_release(&allocator, graph, 1, sizeof *graph);
  rondo_object_list_free(&allocator, &left.objects);
  release_others(&left);
  rondo_array_free(&allocator, &left.others);
  release_attachment(&left.hold);
}

const char *rondo_graph_name_label(char buffer[RONDO_LABEL_BYTES], const char *name) {
  if (name[0] == '\0')
    snprintf(buffer, RONDO_LABEL_BYTES, "the graph");
  else
    snprintf(buffer, RONDO_LABEL_BYTES, "graph '%.90s'", name);
  return buffer;
}

const char *rondo_graph_label(char buffer[RONDO_LABEL_BYTES], const rondo_graph *graph) {
  return rondo_graph_name_label(buffer, graph->name);
}

bool rondo_graph_is_captured_into(const rondo_graph *graph) {
  if (graph->captures > 0) return true;
  const rondo_graph *child;
  for (uint32_t at = 0; (child = rondo_graph_next_child(graph, &at)) != NULL;)
    if (rondo_graph_is_captured_into(child)) return true;
  return false;
}

rondo_graph *rondo_graph_next_child(const rondo_graph *graph, uint32_t *inout_slot) {
  const uint32_t count = graph->child_count == 0 ? 0 : (uint32_t)graph->nodes.count;
  while (*inout_slot < count) {
    const rondo_graph_node *node = &graph->nodes.items[(*inout_slot)++];
    if (node->live && node->params.kind == RONDO_NODE_CHILD) return node->params.as.child;
  }
  return NULL;
}

void rondo_graph_note_change(rondo_graph *graph) {
  for (rondo_graph *at = graph; at != NULL; at = at->parent) {
    atomic_store_explicit(&at->verified, 0, memory_order_relaxed);
    at->is_native_stale = at->is_native_other = true;
  }
}

/* The node will have these parameters. If a kernel keeps its launch configuration, the driver's form of the graph can
 * follow. */
static void note_params(rondo_graph *graph, uint32_t slot, const rondo_node_params *params) {
  const rondo_graph_node *node = rondo_graph_at(graph, slot);
  const bool was_other = graph->is_native_other;
  rondo_slots *changes = &graph->native_changes;
  size_t at;
  assert(!rondo_graph_shares_nodes(graph));
  rondo_graph_note_change(graph);
  if (was_other || params->kind != RONDO_NODE_KERNEL) return;
  if (!rondo_launch_config_same(node->params.as.kernel.config, params->as.kernel.config)) return;
  const bool is_listed = rondo_slots_find(changes, slot, &at);
  if (!is_listed && changes->count == changes->capacity) return;
  graph->is_native_other = false;
  if (!is_listed) rondo_slots_insert(changes, slot);
}

void rondo_graph_clear_changes(rondo_graph *graph) {
  graph->native_changes.count = 0;
  graph->is_native_stale = graph->is_native_other = false;
}

/* Node ids -------------------------------------------------------------------------------------------------------- */

rondo_node rondo_graph_id(const rondo_graph *graph, uint32_t slot) {
  return (rondo_node){.id = (uint64_t)graph->serial << 32 | slot};
}

rondo_status rondo_graph_check_slot(const rondo_graph *graph, uint32_t slot) {
  if (rondo_graph_has(graph, slot)) return RONDO_OK;
  char label[RONDO_LABEL_BYTES];
  return rondo_fail_node(RONDO_INVALID_ARGUMENT, RONDO_REASON_UNKNOWN_NODE, slot, "%s has no node %" PRIu32 ": it %s",
                         rondo_graph_label(label, graph), slot,
                         slot < graph->nodes.count ? "was removed" : "was never made");
}

static rondo_status fail_find(const rondo_graph *graph, rondo_node node) {
  char label[RONDO_LABEL_BYTES];
  const uint32_t number = rondo_node_number(node);
  if (node.id == 0)
    return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_UNKNOWN_NODE,
                      "%s: the node id is 0 and names no node: pass the id that adding the node returned",
                      rondo_graph_label(label, graph));
  if (node.id >> 32 == graph->serial) return rondo_graph_check_slot(graph, number);
  return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_UNKNOWN_NODE,
                    "the node id 0x%" PRIx64
                    " does not belong to %s: pass the id that adding the node to this graph returned, or for a clone "
                    "the id from rondo_graph_find_in_clone",
                    node.id, rondo_graph_label(label, graph));
}

rondo_status rondo_graph_find(const rondo_graph *graph, rondo_node node, uint32_t *out_slot) {
  const bool is_there = node.id >> 32 == graph->serial && rondo_graph_has(graph, (uint32_t)node.id);
  *out_slot = is_there ? (uint32_t)node.id : RONDO_NO_NODE;
  return is_there ? RONDO_OK : fail_find(graph, node);
}

static rondo_status find_in_list(const rondo_graph *graph, const char *list, const rondo_node *nodes, size_t index,
                                 uint32_t *out_slot) {
  const rondo_status status = rondo_graph_find(graph, nodes[index], out_slot);
  return status == RONDO_OK ? RONDO_OK : rondo_fail_context(status, "%s[%zu]", list, index);
}

rondo_status rondo_graph_find_all(const rondo_graph *graph, const char *list, const rondo_node *nodes, size_t count,
                                  uint32_t *out_slots) {
  for (size_t i = 0; i < count; i++) RONDO_TRY(find_in_list(graph, list, nodes, i, &out_slots[i]));
  return RONDO_OK;
}

/* Adding ---------------------------------------------------------------------------------------------------------- */

/* How many levels of child graphs the graph contains. */
static unsigned nesting_below(const rondo_graph *graph) {
  const rondo_graph *child;
  unsigned deepest = 0;
  for (uint32_t at = 0; (child = rondo_graph_next_child(graph, &at)) != NULL;) {
    const unsigned below = 1 + nesting_below(child);
    if (below > deepest) deepest = below;
  }
  return deepest;
}

static rondo_status check_nesting(const rondo_graph *graph, const rondo_graph *child) {
  unsigned levels = 1 + nesting_below(child);
  for (const rondo_graph *above = graph->parent; above != NULL; above = above->parent) levels++;
  if (levels <= RONDO_GRAPH_MAX_NESTING) return RONDO_OK;
  char label[RONDO_LABEL_BYTES];
  return rondo_fail(RONDO_LIMIT_EXCEEDED, RONDO_REASON_OUT_OF_RANGE,
                    "%s: child graphs would nest %u levels deep, and at most %d are possible: add the nodes themselves",
                    rondo_graph_label(label, graph), levels, RONDO_GRAPH_MAX_NESTING);
}

static rondo_status check_number(const rondo_graph *graph, size_t number) {
  if (number < RONDO_NO_NODE) return RONDO_OK;
  char label[RONDO_LABEL_BYTES];
  return rondo_fail(RONDO_LIMIT_EXCEEDED, RONDO_REASON_OUT_OF_RANGE,
                    "%s has used up all %" PRIu32 " node numbers: continue in a new graph",
                    rondo_graph_label(label, graph), RONDO_NO_NODE);
}

static rondo_status refuse_listed(const rondo_graph *graph, const rondo_slots *listed, uint32_t slot) {
  size_t index;
  char label[RONDO_LABEL_BYTES];
  if (!rondo_slots_find(listed, slot, &index)) return RONDO_OK;
  return rondo_fail_node(RONDO_INVALID_ARGUMENT, RONDO_REASON_DUPLICATE_EDGE, slot,
                         "%s is listed twice in the dependencies of the new node: list it once",
                         rondo_node_label(label, &rondo_graph_at(graph, slot)->params, slot));
}

static rondo_status fail_dependency(const rondo_graph *graph, const rondo_node *dependencies, size_t at) {
  return rondo_fail_context(fail_find(graph, dependencies[at]), "dependencies[%zu]", at);
}

/* Adds one dependency of the new node, in ascending order, and reserves capacity for its dependent. */
static inline rondo_status gather_dependency(rondo_graph *graph, const rondo_node *dependencies, size_t at,
                                             rondo_slots *out) {
  const uint32_t slot = (uint32_t)dependencies[at].id;
  if (dependencies[at].id >> 32 != graph->serial || !rondo_graph_has(graph, slot))
    return fail_dependency(graph, dependencies, at);
  if (out->count > 0) RONDO_TRY(refuse_listed(graph, out, slot));
  rondo_slots_insert(out, slot);
  rondo_slots *dependents = &rondo_graph_at(graph, slot)->dependents;
  return rondo_slots_reserve(graph, dependents, dependents->count + 1);
}

static rondo_status gather_dependencies(rondo_graph *graph, const rondo_node *dependencies, size_t count,
                                        rondo_slots *out) {
  if (count > 0 && dependencies == NULL) return rondo_refuse_null("the new node", "its list of dependencies");
  RONDO_TRY(rondo_slots_reserve(graph, out, count));
  for (size_t i = 0; i < count; i++) RONDO_TRY(gather_dependency(graph, dependencies, i, out));
  return RONDO_OK;
}

/* A memory node is noted in all enclosing graphs too, because they run it. */
static void note_memory(rondo_graph *graph, const rondo_node_params *params) {
  const bool memory =
      rondo_node_is_memory(params) || (params->kind == RONDO_NODE_CHILD && params->as.child->has_memory);
  if (!memory) return;
  for (rondo_graph *at = graph; at != NULL; at = at->parent) at->has_memory = true;
}

/* Makes the finished node in the slot live. The lists of dependents have capacity for it. Slots before it that are not
 * live become holes. */
static inline void commit(rondo_graph *graph, uint32_t slot) {
  rondo_graph_node *node = &graph->nodes.items[slot];
  assert(slot >= graph->nodes.count && slot < graph->nodes.capacity && !node->live);
  graph->nodes.count = (size_t)slot + 1;
  for (size_t i = 0; i < node->dependencies.count; i++)
    rondo_slots_insert(&rondo_graph_at(graph, node->dependencies.items[i])->dependents, slot);
  node->live = true;
  graph->live_count++;
  if (node->params.kind == RONDO_NODE_CHILD) {
    node->params.as.child->parent_slot = slot;
    graph->child_count++;
  }
  rondo_graph_note_change(graph);
  note_memory(graph, &node->params);
  if (node->params.kind == RONDO_NODE_FOREIGN && node->params.as.foreign.is_bound && graph->device != NULL)
    graph->is_bound = true;
}

rondo_status rondo_graph_insert(rondo_graph *graph, const rondo_node *dependencies, size_t count,
                                const rondo_node_params *params, rondo_node *out) {
  *out = (rondo_node){0};
  const rondo_device *device = params == NULL || params->device == NULL ? graph->device : params->device;
  RONDO_TRY(rondo_node_params_check(graph->name[0] == '\0' ? "graph" : graph->name, device, params));
  return rondo_graph_insert_checked(graph, dependencies, count, params, out);
}

rondo_status rondo_graph_insert_checked(rondo_graph *graph, const rondo_node *dependencies, size_t count,
                                        const rondo_node_params *params, rondo_node *out) {
  *out = (rondo_node){0};
  assert(params->kind != RONDO_NODE_ALLOC || params->as.alloc.address != NULL || graph->device == NULL);
  if (params->kind == RONDO_NODE_CHILD) {
    RONDO_TRY(rondo_graph_refuse_bound(params->as.child, "cannot become a child graph"));
    RONDO_TRY(check_nesting(graph, params->as.child));
  }
  const size_t number = graph->nodes.count;
  RONDO_TRY(check_number(graph, number));
  RONDO_TRY(rondo_graph_own_nodes(graph));
  if (number == graph->nodes.capacity) RONDO_TRY(rondo_array_reserve(&graph->allocator, &graph->nodes, number + 1));
  rondo_graph_node *node = &graph->nodes.items[number]; /* zero, as all unused capacity is */
  RONDO_TRY(rondo_node_contents_make(graph, params, false, node));
  const rondo_status status = gather_dependencies(graph, dependencies, count, &node->dependencies);
  if (status != RONDO_OK) {
    free_node(graph, node);
    return status;
  }
  commit(graph, (uint32_t)number);
  rondo_graph_check_node(graph, (uint32_t)number);
  *out = rondo_graph_id(graph, (uint32_t)number);
  return RONDO_OK;
}

rondo_status rondo_graph_insert_at(rondo_graph *graph, uint32_t number, const rondo_node_params *params) {
  assert(number >= graph->nodes.count && !rondo_graph_shares_nodes(graph));
  RONDO_TRY(check_number(graph, number));
  RONDO_TRY(rondo_array_reserve(&graph->allocator, &graph->nodes, (size_t)number + 1));
  RONDO_TRY(rondo_node_contents_make(graph, params, true, &graph->nodes.items[number]));
  commit(graph, number);
  rondo_graph_check_node(graph, number);
  return RONDO_OK;
}

/* Changing and removing ------------------------------------------------------------------------------------------- */

static rondo_status check_replacement(const rondo_graph *graph, uint32_t slot, const rondo_node_params *params) {
  RONDO_TRY(rondo_graph_check_slot(graph, slot));
  const rondo_graph_node *node = rondo_graph_at(graph, slot);
  char label[RONDO_LABEL_BYTES];
  rondo_node_label(label, &node->params, slot);
  RONDO_TRY(rondo_require(label, "the node's parameters", params));
  const rondo_node_kind kind = node->params.kind;
  if (params->kind != kind)
    return rondo_fail_node(RONDO_INVALID_ARGUMENT, RONDO_REASON_NODE_KIND, slot,
                           "%s cannot become a node of kind '%s': remove it and add another", label,
                           rondo_node_kind_name(params->kind));
  if (kind == RONDO_NODE_CHILD || kind == RONDO_NODE_FOREIGN || rondo_node_is_memory(&node->params))
    return rondo_fail_node(RONDO_UNSUPPORTED, RONDO_REASON_NODE_KIND, slot,
                           "%s: the parameters of nodes of this kind cannot change: %s", label,
                           kind == RONDO_NODE_CHILD ? "edit the child graph" : "remove it and add another");
  return rondo_node_params_check(label, params->device == NULL ? graph->device : params->device, params);
}

rondo_status rondo_graph_prepare(rondo_graph *graph, uint32_t slot, const rondo_node_params *params,
                                 rondo_graph_node *out) {
  *out = (rondo_graph_node){0};
  assert(params->kind == rondo_graph_at(graph, slot)->params.kind && !rondo_graph_shares_nodes(graph));
  (void)slot;
  return rondo_node_contents_make(graph, params, false, out);
}

void rondo_graph_put(rondo_graph *graph, uint32_t slot, rondo_graph_node *prepared) {
  rondo_graph_node *node = rondo_graph_at(graph, slot);
  rondo_graph_node old = *node;
  assert(prepared->params.kind == old.params.kind);
  note_params(graph, slot, &prepared->params);
  node->params = prepared->params;
  node->device_number = prepared->device_number;
  node->arguments = prepared->arguments;
  node->argument_list = prepared->argument_list;
  rondo_node_contents_free(graph, &old);
}

void rondo_graph_discard(rondo_graph *graph, rondo_graph_node *prepared) { rondo_node_contents_free(graph, prepared); }

bool rondo_graph_fits(const rondo_graph *graph, uint32_t slot, const rondo_node_params *params) {
  const rondo_node_params *now = &graph->nodes.items[slot].params;
  if (params->kind != now->kind || params->device != now->device) return false;
  if (params->name != now->name && strcmp(params->name, now->name) != 0) return false;
  if (now->kind == RONDO_NODE_CHILD || rondo_node_is_memory(now)) return false;
  /* they own what their parameters point to, which overwriting would replace */
  if (now->kind == RONDO_NODE_FOREIGN || now->kind == RONDO_NODE_MEMORY_OPERATIONS || rondo_node_names_semaphores(now))
    return false;
  const rondo_kernel_node *kernel = &params->as.kernel, *kernel_now = &now->as.kernel;
  return now->kind != RONDO_NODE_KERNEL ||
         (kernel->kernel == kernel_now->kernel && kernel->arg_bytes == NULL && kernel_now->arg_bytes == NULL &&
          rondo_launch_config_same(kernel->config, kernel_now->config));
}

void rondo_graph_overwrite(rondo_graph *graph, uint32_t slot, const rondo_node_params *params) {
  rondo_graph_node *node = rondo_graph_at(graph, slot);
  assert(rondo_graph_fits(graph, slot, params));
  note_params(graph, slot, params);
  if (params->kind != RONDO_NODE_KERNEL) {
    rondo_node_overwrite(graph, node, params);
    return;
  }
  rondo_graph_store_launch(node, &params->as.kernel);
}

rondo_status rondo_graph_replace(rondo_graph *graph, uint32_t slot, const rondo_node_params *params) {
  rondo_graph_node fresh;
  RONDO_TRY(check_replacement(graph, slot, params));
  RONDO_TRY(rondo_graph_own_nodes(graph));
  RONDO_TRY(rondo_graph_prepare(graph, slot, params, &fresh));
  rondo_graph_put(graph, slot, &fresh);
  rondo_graph_check_node(graph, slot);
  return RONDO_OK;
}

rondo_status rondo_graph_replace_child(rondo_graph *graph, uint32_t slot, const rondo_node_params *params) {
  rondo_graph_node fresh;
  rondo_node_params then = *params;
  if (then.name == NULL) then.name = rondo_graph_at(graph, slot)->params.name;
  RONDO_TRY(rondo_graph_refuse_bound(then.as.child, "cannot become a child graph"));
  RONDO_TRY(check_nesting(graph, then.as.child));
  RONDO_TRY(rondo_graph_prepare(graph, slot, &then, &fresh));
  fresh.params.as.child->parent_slot = slot;
  rondo_graph_put(graph, slot, &fresh);
  note_memory(graph, &rondo_graph_at(graph, slot)->params);
  rondo_graph_check_node(graph, slot);
  return RONDO_OK;
}

/* The first bound node. There is one. */
static uint32_t find_bound(const rondo_graph *graph) {
  const rondo_graph_node *nodes = graph->nodes.items;
  uint32_t slot = 0;
  assert(graph->is_bound);
  while (!nodes[slot].live || nodes[slot].params.kind != RONDO_NODE_FOREIGN || !nodes[slot].params.as.foreign.is_bound)
    slot++;
  return slot;
}

const char *rondo_graph_bound_text(const rondo_graph *graph, char buffer[RONDO_BOUND_TEXT]) {
  const uint32_t slot = find_bound(graph);
  const rondo_foreign_node *foreign = &graph->nodes.items[slot].params.as.foreign;
  snprintf(buffer, RONDO_BOUND_TEXT,
           "a library left a %s of %" PRIu64 " bytes (node %" PRIu32
           ") in the capture, which only the driver's own graph can contain: keep such work out of the capture (for "
           "memory: give the library a workspace first, for example with cublasSetWorkspace, or allocate with "
           "rondo_malloc_async)",
           foreign->what, foreign->bytes, slot);
  return buffer;
}

rondo_status rondo_graph_refuse_bound(const rondo_graph *graph, const char *what) {
  char label[RONDO_LABEL_BYTES], text[RONDO_BOUND_TEXT];
  if (!graph->is_bound) return RONDO_OK;
  return rondo_fail_node(RONDO_UNSUPPORTED, RONDO_REASON_FOREIGN_WORK, find_bound(graph), "%s %s: %s",
                         rondo_graph_label(label, graph), what, rondo_graph_bound_text(graph, text));
}

rondo_status rondo_graph_check_erase(const rondo_graph *graph, uint32_t slot) {
  RONDO_TRY(rondo_graph_check_slot(graph, slot));
  const rondo_graph_node *node = rondo_graph_at(graph, slot);
  const bool captured = graph->captures > 0 ||
                        (node->params.kind == RONDO_NODE_CHILD && rondo_graph_is_captured_into(node->params.as.child));
  if (!captured) return rondo_graph_refuse_bound(graph, "cannot lose nodes");
  char label[RONDO_LABEL_BYTES], graph_label[RONDO_LABEL_BYTES];
  return rondo_fail_node(RONDO_INVALID_STATE, RONDO_REASON_CAPTURING_INTO, slot,
                         "%s of %s cannot be removed while a stream captures into %s: end the capture first",
                         rondo_node_label(label, &node->params, slot), rondo_graph_label(graph_label, graph),
                         graph->captures > 0 ? "the graph" : "its child graph");
}

rondo_status rondo_graph_erase(rondo_graph *graph, uint32_t slot) {
  RONDO_TRY(rondo_graph_check_erase(graph, slot));
  RONDO_TRY(rondo_graph_own_nodes(graph));
  rondo_graph_node *node = rondo_graph_at(graph, slot);
  rondo_graph_note_change(graph);
  rondo_graph_cut_programmatic(graph, slot);
  for (size_t i = 0; i < node->dependencies.count; i++)
    rondo_slots_remove(&rondo_graph_at(graph, node->dependencies.items[i])->dependents, slot);
  for (size_t i = 0; i < node->dependents.count; i++)
    rondo_slots_remove(&rondo_graph_at(graph, node->dependents.items[i])->dependencies, slot);
  graph->child_count -= node->params.kind == RONDO_NODE_CHILD;
  graph->live_count--;
  free_node(graph, node);
  return RONDO_OK;
}
